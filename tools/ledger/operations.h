// What the operations of one step compute.
#pragma once
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/graph/graph_observer.h"
#include "tools/ledger/ledger_file.h"

namespace ramet {
namespace ledger {

/// Hashes each recorded operation's results, and the gradients that its backward gives. The
/// backward pass then runs on one thread. Operations are numbered in each shard of a data-parallel
/// forward pass, so that their numbers do not depend on the devices.
class OperationHashes : public autograd::GraphObserver {
 public:
  bool wants_one_thread() const override { return true; }
  void on_node_made(autograd::Node& node, ArrayRef<autograd::Input> inputs,
                    ArrayRef<autograd::Input> results) override;
  void on_node_ended(autograd::Node& node, const Tensor* out, bool failed) override;

  /// Those so far. A forward operation comes after those that it depends on; backward ones follow.
  std::vector<Operation> all() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<int64_t, int64_t> counts_;                // of each shard
  std::unordered_map<const autograd::Node*, Operation> made_;  // by the node that has the history
  std::vector<std::pair<uint64_t, Operation>> forward_;        // with the node's counter
  std::vector<Operation> backward_;
};

}  // namespace ledger
}  // namespace ramet
