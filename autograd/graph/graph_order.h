// Roots of a backward pass, and GraphOrder: the nodes that it reaches, in one deterministic order.
#pragma once
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/graph/node.h"

namespace ramet {
namespace autograd {

/// Where a backward pass begins: a gradient for one slot of a node.
struct Root {
  NodePtr node;  // a reference: a hook may detach the tensor
  uint32_t slot;
  Tensor grad;
};

/// Later operations come first, leaves last. Nodes with equal counters (each thread has its own)
/// are ordered by device. Addresses and timing have no influence.
class GraphOrder {
 public:
  /// A gradient that arrives at one slot of a node.
  struct Contribution {
    uint64_t key;  // orders the additions: the sender's rank + 1, or 0 for a root
    uint32_t slot;
    Tensor gradient;
  };
  /// The state of a node in this backward pass.
  struct Entry {
    int waits = 0;                                   // contributions still to come
    uint64_t rank = 0;                               // place in the order
    bool wanted = true;                              // leads to something that the caller asked for
    std::vector<std::pair<uint32_t, int>> captures;  // slot, index of the result
    std::vector<Contribution> contributions;
  };

  /// Visits all nodes that `roots` lead to, counts contributions and numbers the nodes.
  void visit(const std::vector<Root>& roots);
  /// Marks as wanted only the nodes that lead to one of the `captures`: the results of grad(), by
  /// index.
  void keep_what_leads_to(ArrayRef<RawEdge> captures);

  /// All nodes, in the order.
  const std::vector<Node*>& nodes() const { return nodes_; }
  /// The entry of `n`. REQUIRES: `n` was visited.
  Entry& operator[](Node* n) { return entries_.find(n)->second; }
  /// The entry of `n`; null where `n` was not visited.
  const Entry* find(const Node* n) const {
    const auto it = entries_.find(const_cast<Node*>(n));
    return it == entries_.end() ? nullptr : &it->second;
  }
  /// Does one of the node's edges lead to something that the caller asked for?
  bool leads_to_wanted(Node* n) const;

 private:
  std::vector<Node*> nodes_;
  std::unordered_map<Node*, Entry> entries_;
};

}  // namespace autograd
}  // namespace ramet
