// NestedSums: gradients that backward passes inside replicas' Functions bring to sums over
// replicas.
//
// Note [Backwards inside replicas]
// A user's Function in a replica may run a backward pass of its own, whenever its device comes to
// it. Sums over replicas in the order of these passes would depend on timing, and would be no tree.
// So their gradients wait here until the pass around them has ended.
#pragma once
#include <vector>

#include "autograd/graph/graph_order.h"

namespace ramet {
namespace autograd {

/// Not thread safe: the caller holds the lock of its backward pass.
class NestedSums {
 public:
  /// Keeps a gradient for a slot of `sum`. `path`: the ranks of the nodes that the inner pass runs
  /// in, outermost first. Several Functions of one replica may run on several devices, so the path
  /// decides the order, not the arrival.
  void keep(Node* sum, uint32_t slot, std::vector<uint64_t> path, Tensor gradient);
  /// Does one of the sums go to `leaf`?
  bool leads_to(const Node* leaf) const;
  /// Takes what was kept, as roots of one more pass.
  std::vector<Root> take();

 private:
  struct Kept {
    NodePtr sum;
    uint32_t slot;
    std::vector<uint64_t> path;
    Tensor gradient;
  };
  std::vector<Kept> kept_;
};

}  // namespace autograd
}  // namespace ramet
