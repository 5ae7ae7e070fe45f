// ReduceBucket: what a backward asks whoever reduces gradients of several nodes at once.
#pragma once
#include <atomic>
#include <utility>
#include <vector>

#include "autograd/graph/node.h"

namespace ramet {
namespace autograd {

/// Nodes whose gradients are reduced by one call, as soon as the last one is complete: those of
/// replicas (parallel/nodes/reduce_add.h), or leaves, whose gradients go on to other processes.
class RAMET_API ReduceBucket {
 public:
  virtual ~ReduceBucket() = default;
  /// in: (node, gradient per slot). Result: one gradient per node, in that order.
  virtual std::vector<Tensor> reduce(const std::vector<std::pair<Node*, std::vector<Tensor>>>& in,
                                     GraphTask& task) = 0;
  /// A backward that reaches members of this bucket, and captures no gradients of inputs, begins.
  virtual void on_backward_begun(GraphTask& task) { (void)task; }
  /// A member's last contribution is there, `parts` of them defined; other members may still wait
  /// for theirs. Under the walk's lock.
  virtual void on_last_contribution(Node* member, size_t parts) {
    (void)member;
    (void)parts;
  }
  /// Each member's sum is there, and goes on when this returns.
  virtual void on_reduced(Node* member, Tensor& sum) {
    (void)member;
    (void)sum;
  }
  /// Of a bucket of leaves: `leaf` has accumulated what this backward gave it, perhaps nothing.
  virtual void on_accumulated(Node* leaf) { (void)leaf; }
  /// Of a bucket of leaves: do sums of 16-bit gradients go on from here to further ones, which need
  /// what rounding takes away? Then `sum` is that of the next gradient of the leaf, in float32.
  virtual bool wants_unrounded() const { return false; }
  /// A leaf's sum of contributions before and after it was rounded to the leaf's dtype.
  virtual void on_unrounded_sum(const Tensor& sum, const Tensor& rounded) {
    (void)sum, (void)rounded;
  }
  /// The backward that claimed the bucket is over: what reduce() left to do beside it comes before
  /// everything that follows.
  virtual void on_backward_ended() {}
  /// Takes it for a backward; false where another one has it.
  bool claim(GraphTask* t) {
    GraphTask* none = nullptr;
    return owner_.compare_exchange_strong(none, t);
  }
  /// That backward is done with it.
  void release(GraphTask* t) { owner_.compare_exchange_strong(t, nullptr); }

 private:
  std::atomic<GraphTask*> owner_{nullptr};
};

}  // namespace autograd
}  // namespace ramet
