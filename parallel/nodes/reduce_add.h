// ReduceAdd: the gradient edge of a replicated parameter. The gradients of all its copies become
// one gradient of the source.
//
// Note [Gradients are born in slots]
// A source parameter has one ReduceAdd node with a slot per shard; copy number j of the parameter
// is a non-leaf whose edge is (node, j). Each slot has memory in its shard's flat store, and the
// node offers it as the destination of the gradient that the shard's backward computes. Shard 0,
// where it shares the source's device, has none: its slot is the source's own gradient memory, so
// that the sum is formed in place, and a single shard costs nothing. Nodes whose slots are
// neighbours form a GradBucket: the thread that delivers a bucket's last gradient sums all of it
// with one kernel call, while the rest of the backward still runs. A slot belongs to the backward
// that claimed the bucket: a second backward at the same time, create_graph, autograd::grad and a
// gradient that somebody kept get fresh memory.
//
// On a GPU the sums run on the communication stream, beside the kernels of the backward, where
// nothing is done with them before it ends: the first and only gradients of their leaves, in a
// backward that runs no user's code (hooks, Functions). Its end puts them before all that follows;
// so does a backward of another thread that comes to one of these leaves meanwhile.
//
// A node lives as long as something refers to it, its replica set or a graph; one backward never
// frees it. Where reduce hooks are set nothing is formed in place, because they may keep what
// they see. A shard that did not use the parameter delivers nothing and is passed over; if none
// did, the source's gradient stays undefined.
#pragma once
#include <atomic>
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
class ReduceAdd;
namespace detail {
class BesideStream;
}

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
  /// Of the set that this node belongs to. Before the first backward.
  void set_hooks(std::shared_ptr<const ReduceHooks> hooks) { hooks_ = std::move(hooks); }
  /// Makes `copy` the copy number `slot` of the parameter. Its storage and values are not touched.
  void attach_copy(const Tensor& copy, uint32_t slot);

 private:
  friend class GradBucket;
  Tensor sum_alone(Tensor* in);
  bool leave_to_keeper(const Tensor* in, const autograd::GraphTask* task);
  void run_post_hooks(Tensor& sum) const;
  bool ends_in_place(autograd::GraphTask& task) const;
  bool hooked() const { return hooks_ && hooks_->any(); }
  autograd::RawEdge next_;  // the source's gradient edge
  std::string full_name_;
  ReduceOrder order_;
  std::vector<Tensor> slots_;
  GradBucket* bucket_ = nullptr;
  std::shared_ptr<const ReduceHooks> hooks_;
};

/// Parameters that are reduced together. Owned by a replica set.
class RAMET_API GradBucket final : public autograd::ReduceBucket {
 public:
  GradBucket(int shards, ReduceOrder order) : shards_(shards), order_(order) {}
  std::vector<Tensor> reduce(const std::vector<std::pair<autograd::Node*, std::vector<Tensor>>>& in,
                             autograd::GraphTask& task) override;
  /// Tells the leaf's own bucket, long before the sum goes there with those of all members.
  void on_last_contribution(autograd::Node* member, size_t parts) override;
  void on_reduced(autograd::Node* member, Tensor& sum) override;
  void on_backward_ended() override;

  /// In order of registration. For inspection; changed only while no backward runs.
  const std::vector<ReduceAdd*>& members() const { return members_; }
  /// How often it was reduced.
  uint64_t reductions() const { return reductions_; }
  /// Of the last reduction, by monotonic_ns(): its last gradient came; its sum was complete:
  uint64_t ready_at() const { return ready_; }
  uint64_t done_at() const { return done_; }

 private:
  friend class ReduceAdd;
  void mark_leaves(bool sum_under_way);
  const int shards_;
  const ReduceOrder order_;
  std::vector<ReduceAdd*> members_;
  std::shared_ptr<detail::BesideStream> beside_;  // sums of this backward that nobody waits for yet
  bool sum_under_way_ = false;                    // as the leaves are marked
  std::atomic<uint64_t> reductions_{0}, ready_{0}, done_{0};
};

}  // namespace parallel

namespace autograd {
/// Makes each of `copies` (no history of their own, same sizes and dtype as `source`) a copy of
/// `source`: their gradients, added from left to right, become source's. The values are the
/// caller's business. An Error for a source that requires no grad.
RAMET_API void add_reduce_edge(const Tensor& source, ArrayRef<Tensor> copies,
                               const std::string& full_name = "");
}  // namespace autograd

}  // namespace ramet
