// ReduceBucket and LeafBucket: what a backward pass calls of code that reduces gradients of several
// nodes at once.
//
// A pass calls in this order, each call once for a bucket or for each member:
//
//   on_backward_begun      the pass reaches the bucket
//   on_last_contribution   a member's gradient is complete; other members may wait for theirs
//   reduce                 all members are complete: one gradient for each
//   on_reduced             a member's gradient goes on when this returns
//   on_accumulated         a leaf has accumulated it (LeafBucket)
//   on_backward_ended      the pass is over
//
// If a member never completes because a node failed, reduce() gets the complete ones at the end.
#pragma once
#include <atomic>
#include <utility>
#include <vector>

#include "autograd/graph/node.h"

namespace ramet {
namespace autograd {

/// Nodes; one call reduces their gradients, as soon as the last one is complete: sums over replicas
/// (parallel/nodes/grad_bucket.h), or leaves.
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

/// The bucket of leaves. Their gradients go on to other processes.
class RAMET_API LeafBucket : public ReduceBucket {
 public:
  /// `leaf` has accumulated what this backward gave it, perhaps nothing.
  virtual void on_accumulated(AccumulateGrad* leaf) { (void)leaf; }
  /// Do sums of 16-bit gradients over replicas enter further sums, which need the bits that
  /// rounding removes? Then on_unrounded_sum() gets the float32 sum of the leaf's next gradient.
  virtual bool wants_unrounded() const { return false; }
  /// A leaf's sum of contributions before and after it was rounded to the leaf's dtype.
  virtual void on_unrounded_sum(const Tensor& sum, const Tensor& rounded) {
    (void)sum, (void)rounded;
  }
};

}  // namespace autograd
}  // namespace ramet
