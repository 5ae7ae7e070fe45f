// ReduceAdd: the gradient edge of a replicated parameter. The gradients of all its copies become
// one gradient of the source.
//
// Note [Gradients are born in slots]
// A source parameter has one ReduceAdd node with a slot for each shard. Copy number j of the
// parameter is a non-leaf, and its edge is (node, j). Each slot has memory in the flat store of its
// shard. The backward pass of the shard writes the gradient directly there: the node returns that
// memory as the gradient's destination.
//
// Shard 0 has no slot memory where it shares the source's device. Its slot is the source's own
// gradient memory, so the sum is formed in place and a single shard costs nothing.
//
// Nodes with neighbouring slots form a GradBucket. The thread that delivers the bucket's last
// gradient sums the bucket, while the rest of the backward pass runs. Parameters that lie next to
// one another are summed by one kernel call (grad_bucket.h has the cases).
//
// A slot belongs to the backward pass that claimed the bucket. These get fresh memory instead: a
// concurrent second backward pass, create_graph, autograd::grad, and a gradient that the program
// still holds.
//
// A node lives as long as something refers to it: its replica set or a graph. A backward pass never
// frees it. Where reduce hooks are set nothing is formed in place, because hooks may keep what they
// see. A shard that did not use the parameter delivers nothing and is skipped. If no shard used it,
// the source's gradient stays undefined.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/graph/reduce_bucket.h"
#include "parallel/move/options.h"
#include "parallel/nodes/reduce_hooks.h"

namespace ramet {
namespace parallel {

class GradBucket;

class RAMET_API ReduceAdd final : public autograd::Node {
 public:
  /// Its gradient goes where `source`'s goes now. `order` of leaves: the slots.
  ReduceAdd(const Tensor& source, std::string full_name, int slots, ReduceOrder order);
  ~ReduceAdd() override;

  std::string name() const override { return "ReduceAdd(" + full_name_ + ")"; }
  autograd::RawEdge* edges() override { return &next_; }
  void apply(Tensor* in, Tensor* out) override;
  Tensor destination(uint32_t slot) override;
  void arrived(Tensor& grad, uint32_t slot) override;
  autograd::ReduceBucket* bucket() override;
  bool runs_users_code() const override { return hooked() || Node::runs_users_code(); }

  /// The parameter's name.
  const std::string& full_name() const { return full_name_; }
  /// In which the replicas' gradients are added.
  ReduceOrder order() const { return order_; }
  /// Does the source's gradient still go where this node sends it?
  bool leads_to(const Tensor& source) const {
    return next_.node == source->node && next_.slot == source->slot;
  }
  /// The source's gradient collector; null where the source is no leaf.
  autograd::AccumulateGrad* leaf() const;
  /// Memory of the slots, [slot]; undefined where the source's gradient memory serves. Empty: fresh
  /// memory each time.
  void set_slots(std::vector<Tensor> slots, GradBucket* bucket);
  /// Leaves the bucket and hands the slots to the node that takes its place.
  std::vector<Tensor> take_slots();
  /// A graph may outlive the set: from now on sums are formed in fresh memory, one parameter at a
  /// time.
  void leave_bucket();
  /// Of the set that this node belongs to. Before the first backward pass.
  void set_hooks(std::shared_ptr<const ReduceHooks> hooks) { hooks_ = std::move(hooks); }
  /// Makes `copy` the copy number `slot` of the parameter. Its storage and values are not touched.
  void attach_copy(const Tensor& copy, uint32_t slot);

 private:
  friend class GradBucket;
  /// An Error unless all defined gradients have one size and dtype. Counts the undefined ones.
  void check_slots(const std::vector<Tensor>& in) const;
  /// The sum in fresh memory, recorded in grad mode: outside a bucket, under create_graph and for
  /// autograd::grad.
  Tensor sum_alone(const std::vector<Tensor>& slots) const;
  /// True where this backward pass runs inside that of a replica. Then it has handed the gradients
  /// over to the outer pass (Note [Backwards inside replicas]).
  bool leave_to_outer_backward(const Tensor* in, const autograd::GraphTask* task);
  void run_post_hooks(Tensor& sum) const;
  /// Is the sum formed where the leaf keeps its gradient, and read by nothing before the backward
  /// pass ends?
  bool is_unread_until_end(autograd::GraphTask& task) const;
  bool hooked() const { return hooks_ && hooks_->any(); }
  autograd::RawEdge next_;  // the source's gradient edge
  std::string full_name_;
  ReduceOrder order_;
  std::vector<Tensor> slots_;
  GradBucket* bucket_ = nullptr;
  std::shared_ptr<const ReduceHooks> hooks_;
};

/// Makes each of `copies` a copy of `source`: their gradients, added from left to right, become
/// source's. The copies have no history of their own, and the sizes and dtype of `source`. The
/// values are the caller's business. An Error for a source that requires no grad.
RAMET_API void add_reduce_edge(const Tensor& source, ArrayRef<Tensor> copies,
                               const std::string& full_name = "");

}  // namespace parallel

namespace autograd {
using parallel::add_reduce_edge;
}

}  // namespace ramet
