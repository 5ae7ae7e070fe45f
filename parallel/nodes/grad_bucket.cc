#include "parallel/nodes/grad_bucket.h"

#include <algorithm>

#include "autograd/graph/graph_observer.h"
#include "autograd/graph/graph_task.h"
#include "autograd/ops/front/common_internal.h"
#include "parallel/move/counters.h"
#include "parallel/move/movement_internal.h"
#include "parallel/move/peers_internal.h"
#include "parallel/nodes/broadcast_reduce.h"
#include "parallel/nodes/reduce_add.h"
#include "runtime/observe/observer.h"

namespace ramet {
namespace parallel {

using autograd::AccumulateGrad;
using autograd::GraphTask;
using autograd::Node;

// The sums of one call of reduce() that record no history (cases 3 to 5 of grad_bucket.h).
class GradBucket::Reduction {
 public:
  // `concurrent`: runs the kernels concurrently with the backward pass; null: among its kernels.
  Reduction(GradBucket& bucket, Device device, detail::ConcurrentSums* concurrent)
      : bucket_(bucket), concurrent_(concurrent), device_(device) {}

  // Adds a member, and returns its sum. The sum is formed by the next launch(), or earlier.
  // Undefined where no shard used the parameter.
  Tensor add(const ReduceAdd& node, const std::vector<Tensor>& slots) {
    node.check_slots(slots);
    const auto first =
        std::find_if(slots.begin(), slots.end(), [](const Tensor& t) { return t.defined(); });
    if (first == slots.end()) return {};
    const Device to = Device::from_ordinal(node.device);
    if (bucket_.shards_ == 1) return first->device() == to ? *first : sum_of_slots(slots, to);
    Tensor out = destination(node, slots[0], *first);
    if (sum_continues_unrounded(node, first->scalar_type())) sum_unrounded(node, slots, out);
    else append(out, slots);
    return out;
  }

  // Queues the sum of the members that were appended.
  void launch() {
    if (run_.empty()) return;
    // Kept before a later member can fail: the stream goes on reading them after the error.
    if (concurrent_) concurrent_->keep(std::exchange(operands_, {}));
    detail::run_sum(device_, detail::peer_sum(run_, dtype_, bucket_.order_), concurrent_);
    detail::count(detail::Count::kLaunches);
    run_.clear();
  }

  // Reports to the graph's observers what moved.
  void report(const std::vector<Tensor>& sums) const {
    if (begun_) autograd::tell_moved("reduce_add", observed_, sums, begun_);
  }

 private:
  Tensor sum_of_slots(const std::vector<Tensor>& slots, Device to) const {
    return detail::sum_of_slots(slots.data(), slots.size(), to, bucket_.order_);
  }

  // Memory of the sum: the source's gradient memory where it may be written; shard 0 may have
  // written there already. Else fresh memory in the layout of a contribution.
  static Tensor destination(const ReduceAdd& node, const Tensor& of_shard_0, const Tensor& like) {
    AccumulateGrad* const leaf = node.leaf();
    if (of_shard_0.defined() && leaf && leaf->where.defined() &&
        of_shard_0->data == leaf->where->data)
      return of_shard_0;
    if (leaf && !node.hooked()) {
      const Tensor place = leaf->destination(node.next_.slot);
      if (place.defined() && same_sizes(place, like) && place.scalar_type() == like.scalar_type())
        return place;
    }
    return detail::empty_in_layout_of(like, like.sizes(), Device::from_ordinal(node.device));
  }

  static bool sum_continues_unrounded(const ReduceAdd& node, ScalarType dtype) {
    if (!autograd::is_narrow(dtype) || node.hooked()) return false;
    const AccumulateGrad* const leaf = node.leaf();
    return leaf && leaf->reduce && leaf->reduce->wants_unrounded();
  }

  void sum_unrounded(const ReduceAdd& node, const std::vector<Tensor>& slots, Tensor& out) const {
    std::vector<Tensor> wide(slots.size());
    for (size_t k = 0; k < slots.size(); ++k)
      if (slots[k].defined()) wide[k] = slots[k].to(kFloat);
    const Tensor sum = sum_of_slots(wide, out.device());
    detail::copy(out, sum);
    node.leaf()->reduce->on_unrounded_sum(sum, out);
  }

  // Lengthens the run where all operands continue it, else launches the run and begins another.
  void append(const Tensor& out, const std::vector<Tensor>& slots) {
    std::vector<Tensor> dense(slots.size());
    std::vector<const TensorBase*> run = {&out};
    for (size_t k = 0; k < slots.size(); ++k) {
      if (slots[k].defined()) dense[k] = contribution(slots[k], out);
      run.push_back(slots[k].defined() ? &dense[k] : nullptr);
    }
    operands_.insert(operands_.end(), dense.begin(), dense.end());
    if (begun_) observed_.insert(observed_.end(), dense.begin(), dense.end());
    if (out.numel() == 0) return;
    const bool joins = out.device() == device_ && out.scalar_type() == dtype_;
    if (joins && run_.extend_later(run)) return;
    launch();
    device_ = out.device();
    dtype_ = out.scalar_type();
    run_.extend_later(run);
  }

  // A slot's gradient with the strides of the sum, complete as far as movements write it.
  static Tensor contribution(const Tensor& slot, const Tensor& out) {
    Tensor g(slot.steady());
    if (!same_strides(g, out) && !(g.raw_contiguous() && out.raw_contiguous())) {
      const Tensor strided =
          std::exchange(g, Tensor(TensorBase::empty_strided(out.sizes(), out.raw_strides(),
                                                            g.scalar_type(), g.device())));
      detail::copy(g, strided);
    }
    g.ptr();  // waits where a movement still writes it
    if (g->device != out->device) detail::count(detail::Count::kTransfers);
    if (g->data != out->data) detail::count_bytes(g->device, out->device, g.nbytes());
    return g;
  }

  const GradBucket& bucket_;
  detail::ConcurrentSums* const concurrent_;
  const uint64_t begun_ = autograd::movement_begins();  // 0: no observer
  Device device_;                                       // of the run
  ScalarType dtype_ = ScalarType::Undefined;            // of the run
  nn::FlatRun run_;                                     // sums and contributions that neighbour
  std::vector<Tensor> operands_;                        // that the next kernel call reads
  std::vector<Tensor> observed_;                        // all of them
};

std::vector<Tensor> GradBucket::reduce(const Contributions& in, GraphTask& task) {
  RecordScope scope("ReduceAdd.bucket");
  ready_ = monotonic_ns();
  if (leave_to_outer_backward(in, task)) return std::vector<Tensor>(in.size());
  std::vector<Tensor> sums = task.create_graph() ? sum_with_history(in) : sum(in, task);
  done_ = monotonic_ns();
  ++reductions_;
  return sums;
}

bool GradBucket::leave_to_outer_backward(const Contributions& in, GraphTask& task) const {
  bool left = false;
  for (const auto& [node, slots] : in)
    left |= static_cast<ReduceAdd*>(node)->leave_to_outer_backward(slots.data(), &task);
  return left;
}

std::vector<Tensor> GradBucket::sum_with_history(const Contributions& in) const {
  std::vector<Tensor> sums;
  for (const auto& [node, slots] : in)
    sums.push_back(static_cast<const ReduceAdd*>(node)->sum_alone(slots));
  return sums;
}

std::vector<Tensor> GradBucket::sum(const Contributions& in, GraphTask& task) {
  Reduction reduction(*this, Device::from_ordinal(in[0].first->device),
                      begin_concurrent_sums(in, task));
  std::vector<Tensor> sums;
  for (const auto& [node, slots] : in)
    sums.push_back(reduction.add(static_cast<const ReduceAdd&>(*node), slots));
  reduction.launch();
  reduction.report(sums);
  return sums;
}

// Null where a sum may be read before the backward pass ends, and on CPUs.
detail::ConcurrentSums* GradBucket::begin_concurrent_sums(const Contributions& in,
                                                          GraphTask& task) {
  const Device device = Device::from_ordinal(in[0].first->device);
  if (shards_ == 1 || !device.is_cuda() || !task.owns(this)) return nullptr;
  for (const auto& [node, slots] : in)
    if (!static_cast<const ReduceAdd*>(node)->is_unread_until_end(task)) return nullptr;
  if (!concurrent_) concurrent_ = std::make_shared<detail::ConcurrentSums>(device);
  mark_leaves(true);
  return concurrent_.get();
}

void GradBucket::on_backward_ended() {
  if (concurrent_) concurrent_->join();
  mark_leaves(false);
}

void GradBucket::mark_leaves(bool sum_under_way) {
  if (sum_under_way_ == sum_under_way) return;
  sum_under_way_ = sum_under_way;
  for (const ReduceAdd* member : members_)
    if (AccumulateGrad* leaf = member->leaf()) {
      const std::lock_guard lock(leaf->mutex);
      sum_under_way ? ++leaf->sums_under_way : --leaf->sums_under_way;
    }
}

void GradBucket::on_last_contribution(Node* member, size_t) {
  AccumulateGrad* leaf = static_cast<ReduceAdd*>(member)->leaf();
  if (leaf && leaf->reduce) leaf->reduce->on_last_contribution(leaf, 1);
}

void GradBucket::on_reduced(Node* member, Tensor& sum) {
  static_cast<const ReduceAdd*>(member)->run_post_hooks(sum);
}

}  // namespace parallel
}  // namespace ramet
