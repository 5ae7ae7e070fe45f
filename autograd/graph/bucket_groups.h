// BucketGroups: the buckets that a backward pass reduces, and which members are complete.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "autograd/graph/graph_order.h"
#include "autograd/graph/reduce_bucket.h"

namespace ramet {
namespace autograd {

/// Not thread safe: except for owns(), the caller holds the lock of its backward pass.
class BucketGroups {
 public:
  using Member = std::pair<Node*, GraphOrder::Entry*>;

  /// Announces `task` to the buckets that it reaches. With `claim` it also claims their slots,
  /// where no other backward pass has them.
  void begin(GraphOrder& order, GraphTask& task, bool claim);
  /// Did begin() reach this bucket?
  bool contains(ReduceBucket* b) const { return groups_.count(b) != 0; }
  /// Adds a complete member. Returns true for the last one.
  bool add(ReduceBucket* b, Node* n, GraphOrder::Entry* entry);
  /// Takes the complete members, in the order of the graph, not of arrival. The operations that
  /// the reduction records are numbered from the rank of the first member.
  std::vector<Member> take(ReduceBucket* b);
  /// Buckets with complete members that were not taken.
  std::vector<ReduceBucket*> waiting() const;

  /// Did begin() claim the bucket's slots?
  bool owns(const ReduceBucket* b) const { return owned_.count(const_cast<ReduceBucket*>(b)) != 0; }
  /// Reports to the claimed buckets that the pass is over.
  void end();
  /// Gives the claimed buckets back.
  void release(GraphTask* task);

 private:
  struct Group {
    int waits = 0;                // members that are not complete
    std::vector<Member> members;  // complete, not yet taken
  };
  std::unordered_map<ReduceBucket*, Group> groups_;
  std::unordered_set<ReduceBucket*> owned_;
};

}  // namespace autograd
}  // namespace ramet
