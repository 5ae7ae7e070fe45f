// ReduceBucket: the interface to code that reduces the gradients of several nodes at once.
#pragma once
#include <atomic>
#include <utility>
#include <vector>

#include "autograd/graph/node.h"

namespace ramet {
namespace autograd {

/// Nodes; one call reduces their gradients, as soon as the last one is complete. They are nodes of
/// replicas (parallel/nodes/reduce_add.h), or leaves with gradients that go on to other processes.
class RAMET_API ReduceBucket {
 public:
  virtual ~ReduceBucket() = default;
  /// in: (node, gradient per slot). Result: one gradient per node, in that order.
  virtual std::vector<Tensor> reduce(const std::vector<std::pair<Node*, std::vector<Tensor>>>& in,
                                     GraphTask& task) = 0;
  /// Called when a backward begins that reaches members of this bucket and captures no gradients of
  /// inputs.
  virtual void on_backward_begun(GraphTask& task) { (void)task; }
  /// Called when a member has its last contribution; `parts` of them are defined. Other members may
  /// still wait for theirs. The caller holds the lock of the pass.
  virtual void on_last_contribution(Node* member, size_t parts) {
    (void)member;
    (void)parts;
  }
  /// Called for each member with its sum, which goes on when this returns.
  virtual void on_reduced(Node* member, Tensor& sum) {
    (void)member;
    (void)sum;
  }
  /// For a bucket of leaves: `leaf` has accumulated what this backward gave it, perhaps nothing.
  virtual void on_accumulated(Node* leaf) { (void)leaf; }
  /// For a bucket of leaves: do sums of 16-bit gradients enter further sums, which need the bits
  /// that rounding removes? Then on_unrounded_sum() gets the float32 sum of the leaf's next
  /// gradient.
  virtual bool wants_unrounded() const { return false; }
  /// A leaf's sum of contributions before and after it was rounded to the leaf's dtype.
  virtual void on_unrounded_sum(const Tensor& sum, const Tensor& rounded) {
    (void)sum, (void)rounded;
  }
  /// Called when the backward that claimed the bucket is over. Work that reduce() left to run
  /// concurrently comes before everything that follows.
  virtual void on_backward_ended() {}
  /// Claims the bucket for a backward; false where another backward has it.
  bool claim(GraphTask* t) {
    GraphTask* none = nullptr;
    return owner_.compare_exchange_strong(none, t);
  }
  /// Ends the claim of that backward.
  void release(GraphTask* t) { owner_.compare_exchange_strong(t, nullptr); }

 private:
  std::atomic<GraphTask*> owner_{nullptr};
};

}  // namespace autograd
}  // namespace ramet
