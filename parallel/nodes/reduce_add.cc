#include "parallel/nodes/reduce_add.h"

#include <algorithm>

#include "autograd/graph/graph_observer.h"
#include "autograd/graph/graph_task.h"
#include "autograd/ops/front/common_internal.h"
#include "parallel/move/counters.h"
#include "parallel/nodes/broadcast_reduce.h"
#include "parallel/nodes/grad_bucket.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/devices.h"

using ramet::detail::tls;

namespace ramet {
namespace parallel {

using autograd::AccumulateGrad;
using autograd::Node;

ReduceAdd::ReduceAdd(const Tensor& source, std::string full_name, int slots, ReduceOrder order)
    : Node("ReduceAdd", 1, slots, sizeof(ReduceAdd)),
      next_(autograd::edge_of(source.impl())),
      full_name_(std::move(full_name)),
      order_(order) {
  device = source->device;
  flags |= kSpans | kReduce;
  follow_edges();
  if (next_.node) detail::count(detail::Count::kNodesCreated);
}

ReduceAdd::~ReduceAdd() { autograd::release(next_.node); }

autograd::ReduceBucket* ReduceAdd::bucket() { return bucket_; }

AccumulateGrad* ReduceAdd::leaf() const {
  return next_.node && (next_.node->flags & Node::kSink) ? static_cast<AccumulateGrad*>(next_.node)
                                                         : nullptr;
}

void ReduceAdd::set_slots(std::vector<Tensor> slots, GradBucket* bucket) {
  leave_bucket();
  slots_ = std::move(slots);
  bucket_ = bucket;
  if (bucket) bucket->members_.push_back(this);
}

void ReduceAdd::leave_bucket() {
  slots_.clear();
  if (!bucket_) return;
  auto& members = bucket_->members_;
  members.erase(std::remove(members.begin(), members.end(), this), members.end());
  bucket_ = nullptr;
}

std::vector<Tensor> ReduceAdd::take_slots() {
  std::vector<Tensor> slots = std::move(slots_);
  leave_bucket();
  return slots;
}

void ReduceAdd::attach_copy(const Tensor& copy, uint32_t slot) {
  hold();
  autograd::release(static_cast<Node*>(std::exchange(copy->node, this)));
  copy->slot = slot;
  copy->flags |= TensorImpl::kRequiresGrad | TensorImpl::kReplica;
}

Tensor ReduceAdd::destination(uint32_t slot) {
  if (!bucket_ || !tls.task || !tls.task->owns(bucket_) || watched() || hooked()) return {};
  const Tensor& mine = slots_[slot];
  if (!mine.defined()) return next_.node ? next_.node->destination(next_.slot) : Tensor();
  // One reference: not handed out already, and last step's gradient is not held elsewhere.
  return mine.unique() ? mine.shallow() : Tensor();
}

namespace {

// What a hook returned instead of a gradient.
void replace(const char* op, const std::string& parameter, Tensor& gradient, Tensor changed) {
  if (!changed.defined()) return;
  RAMET_CHECK(same_sizes(changed, gradient) && changed.device() == gradient.device() &&
                  changed.scalar_type() == gradient.scalar_type(),
              op, "parameter '", parameter, "': the hook returned ", describe(changed),
              ", expected size, dtype and device of ", describe(gradient));
  gradient = std::move(changed);
}

}  // namespace

bool ReduceAdd::is_unread_until_end(autograd::GraphTask& task) const {
  AccumulateGrad* const to = leaf();
  if (!to || !task.is_unread_until_end(to)) return false;
  const std::lock_guard lock(to->mutex);
  return to->where.defined() && !to->grad.defined();
}

void ReduceAdd::arrived(Tensor& grad, uint32_t slot) {
  if (hooked()) {
    const auto lists = hooks_->lists();  // a hook may change them
    const DeviceGuard here(grad.device());
    for (size_t i = 0; lists && i < lists->pre.size(); ++i) {
      capture::refuse("register_pre_reduce_hook", "a hook on a gradient runs on the host");
      replace("pre_reduce_hook", full_name_, grad,
              lists->pre[i].second(static_cast<int>(slot), full_name_, grad));
    }
  }
  run_hooks(grad, slot);
}

void ReduceAdd::run_post_hooks(Tensor& sum) const {
  if (!hooked() || !sum.defined()) return;
  const auto lists = hooks_->lists();
  const DeviceGuard here(sum.device());
  for (size_t i = 0; lists && i < lists->post.size(); ++i) {
    capture::refuse("register_post_reduce_hook", "a hook on a gradient runs on the host");
    replace("post_reduce_hook", full_name_, sum, lists->post[i].second(full_name_, sum));
  }
}

void ReduceAdd::check_slots(const std::vector<Tensor>& in) const {
  const Tensor* like = nullptr;
  uint64_t absent = 0;
  for (const Tensor& g : in) {
    absent += !g.defined();
    if (!g.defined()) continue;
    if (!like) like = &g;
    RAMET_CHECK(same_sizes(*like, g), "ReduceAdd", "parameter '", full_name_,
                "': All inputs of ReduceAdd must have the same size, but got ", describe(*like),
                " and ", describe(g));
    RAMET_CHECK(like->scalar_type() == g.scalar_type(), "ReduceAdd", "parameter '", full_name_,
                "': All inputs of ReduceAdd must have the same dtype, but got ", describe(*like),
                " and ", describe(g));
  }
  if (like && absent) detail::count(detail::Count::kSlotsSkipped, absent);
}

Tensor ReduceAdd::sum_alone(const std::vector<Tensor>& slots) const {
  check_slots(slots);
  return detail::sum_of_slots(slots.data(), slots.size(), Device::from_ordinal(device), order_);
}

bool ReduceAdd::leave_to_outer_backward(const Tensor* in, const autograd::GraphTask* task) {
  autograd::GraphTask* const keeper = task && slot_count > 1 ? task->keeper() : nullptr;
  for (uint32_t s = 0; keeper && s < slot_count; ++s)
    if (in[s].defined()) keeper->keep(this, s, *task, in[s]);
  return keeper != nullptr;
}

void ReduceAdd::apply(Tensor* in, Tensor* out) {
  if (leave_to_outer_backward(in, tls.task)) return;
  out[0] = sum_alone(std::vector<Tensor>(in, in + slot_count));
  run_post_hooks(out[0]);
}

void add_reduce_edge(const Tensor& source, ArrayRef<Tensor> copies, const std::string& full_name) {
  RAMET_CHECK(source.defined() && source.requires_grad(), "add_reduce_edge", "source: got ",
              describe(source), ", expected a tensor that requires grad");
  RAMET_CHECK(!copies.empty() && copies.size() <= static_cast<size_t>(kMaxLeaves),
              "add_reduce_edge", "copies: got ", copies.size(), ", expected 1 to ", kMaxLeaves);
  for (size_t i = 0; i < copies.size(); ++i) {
    const Tensor& c = copies[i];
    RAMET_CHECK(c.defined() && same_sizes(c, source) && c.scalar_type() == source.scalar_type(),
                "add_reduce_edge", "copy ", i, " of '", full_name, "': got ", describe(c),
                ", expected the size and dtype of ", describe(source));
    RAMET_CHECK(!c->base && (c->is(TensorImpl::kReplica) || c.is_leaf()) && !c.is_same(source),
                "add_reduce_edge", "copy ", i, " of '", full_name,
                "': got the source, a view or a tensor with history, expected a tensor of its own");
  }
  auto* node = autograd::new_node<ReduceAdd>(source, full_name, static_cast<int>(copies.size()),
                                             ReduceOrder::fixed());
  for (size_t i = 0; i < copies.size(); ++i) node->attach_copy(copies[i], static_cast<uint32_t>(i));
  if (RAMET_UNLIKELY(tls.watching))
    autograd::tell_made(*node, autograd::Input(source),
                        std::vector<autograd::Input>(copies.begin(), copies.end()));
  autograd::release(node);
}

}  // namespace parallel
}  // namespace ramet
