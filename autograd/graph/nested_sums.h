// NestedSums: gradients that backward passes inside replicas' Functions add to sums over replicas.
//
// Note [Backwards inside replicas]
// A user's Function in a replica may run a backward pass of its own. The time depends on its
// device. So sums over replicas in the order of these passes would depend on timing, and would not
// form a tree. Therefore their gradients wait here until the outer pass has ended.
#pragma once
#include <vector>

#include "autograd/graph/graph_order.h"

namespace ramet {
namespace autograd {

/// Not thread safe: the caller holds the lock of its backward pass.
class NestedSums {
 public:
  /// Keeps a gradient for a slot of `sum`. `path`: the ranks of the nodes around the inner pass,
  /// outermost first. Several Functions of one replica may run on several devices. So the path
  /// decides the order, not the arrival.
  void keep(Node* sum, uint32_t slot, std::vector<uint64_t> path, Tensor gradient);
  /// Does one of the sums lead to `leaf`?
  bool leads_to(const Node* leaf) const;
  /// Takes the kept gradients, as roots of one more pass.
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
