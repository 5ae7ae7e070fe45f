#include "parallel/nodes/reduce_add.h"

#include <algorithm>

#include "autograd/graph/engine.h"
#include "autograd/graph/graph_observer.h"
#include "autograd/ops/front/common.h"
#include "parallel/move/counters.h"
#include "parallel/move/movement.h"
#include "parallel/move/peers.h"
#include "parallel/nodes/broadcast_reduce.h"
#include "runtime/capture.h"
#include "runtime/devices.h"
#include "runtime/observer.h"

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
  // One reference: not handed out already, and nobody kept last step's gradient.
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

// Will the sum be formed where the leaf keeps its gradient, and left alone there until the walk
// ends?
bool ReduceAdd::ends_in_place(autograd::GraphTask& task) const {
  AccumulateGrad* const to = leaf();
  if (!to || !task.unseen_before_the_end(to)) return false;
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

namespace {

void check_slots(const ReduceAdd& node, const std::vector<Tensor>& in) {
  const Tensor* like = nullptr;
  for (const Tensor& g : in) {
    if (!g.defined()) continue;
    if (!like) like = &g;
    RAMET_CHECK(same_sizes(*like, g), "ReduceAdd", "parameter '", node.full_name(),
                "': All inputs of ReduceAdd must have the same size, but got ", describe(*like),
                " and ", describe(g));
    RAMET_CHECK(like->scalar_type() == g.scalar_type(), "ReduceAdd", "parameter '",
                node.full_name(), "': All inputs of ReduceAdd must have the same dtype, but got ",
                describe(*like), " and ", describe(g));
  }
}

void count_skipped(const std::vector<Tensor>& in) {
  uint64_t absent = 0;
  for (const Tensor& g : in) absent += !g.defined();
  if (absent && absent < in.size()) detail::count(detail::Count::kSlotsSkipped, absent);
}

}  // namespace

// Alone, in fresh memory: outside a bucket, under create_graph and for autograd::grad.
Tensor ReduceAdd::sum_alone(Tensor* in) {
  const std::vector<Tensor> slots(in, in + slot_count);
  check_slots(*this, slots);
  count_skipped(slots);
  return detail::sum_of_slots(in, slot_count, Device::from_ordinal(device), order_);
}

// In a backward inside a replica's: Note [Backwards inside replicas] in autograd/graph/engine.h.
bool ReduceAdd::leave_to_keeper(const Tensor* in, const autograd::GraphTask* task) {
  autograd::GraphTask* const keeper = task && slot_count > 1 ? task->keeper() : nullptr;
  for (uint32_t s = 0; keeper && s < slot_count; ++s)
    if (in[s].defined()) keeper->keep(this, s, *task, in[s]);
  return keeper != nullptr;
}

void ReduceAdd::apply(Tensor* in, Tensor* out) {
  if (leave_to_keeper(in, tls.task)) return;
  out[0] = sum_alone(in);
  run_post_hooks(out[0]);
}

void GradBucket::on_backward_ended() {
  if (beside_) beside_->join();
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

std::vector<Tensor> GradBucket::reduce(const std::vector<std::pair<Node*, std::vector<Tensor>>>& in,
                                       autograd::GraphTask& task) {
  RecordScope scope("ReduceAdd.bucket");
  ready_ = monotonic_ns();
  std::vector<Tensor> out(in.size()), held;
  bool kept = false;
  for (const auto& [node, slots] : in)
    kept = static_cast<ReduceAdd*>(node)->leave_to_keeper(slots.data(), &task) || kept;
  if (kept) return out;
  if (task.create_graph()) {
    for (size_t i = 0; i < in.size(); ++i)
      out[i] =
          static_cast<ReduceAdd*>(in[i].first)->sum_alone(const_cast<Tensor*>(in[i].second.data()));
  } else {
    nn::FlatRun run;
    Device device = Device::from_ordinal(in[0].first->device);
    ScalarType dtype = ScalarType::Undefined;
    const bool beside = device.is_cuda() && task.owns(this) &&
                        std::all_of(in.begin(), in.end(), [&task](const auto& member) {
                          return static_cast<const ReduceAdd*>(member.first)->ends_in_place(task);
                        });
    if (beside && !beside_) beside_ = std::make_shared<detail::BesideStream>(device);
    if (beside) mark_leaves(true);
    const uint64_t told = autograd::movement_begins();
    std::vector<Tensor> from;
    auto flush = [&] {
      if (run.empty()) return;
      // Before anything can fail: the stream goes on reading what a later member's error gives
      // back.
      if (told && beside) from.insert(from.end(), held.begin(), held.end());
      if (beside) beside_->keep(std::exchange(held, {}));
      detail::run_sum(device, detail::peer_sum(run, dtype, order_),
                      beside ? beside_.get() : nullptr);
      detail::count(detail::Count::kLaunches);
      run.clear();
    };
    for (size_t i = 0; i < in.size(); ++i) {
      auto* node = static_cast<ReduceAdd*>(in[i].first);
      const std::vector<Tensor>& slots = in[i].second;
      check_slots(*node, slots);
      count_skipped(slots);
      const auto first =
          std::find_if(slots.begin(), slots.end(), [](const Tensor& t) { return t.defined(); });
      if (first == slots.end()) continue;  // nobody used it: stays undefined
      if (shards_ == 1) {
        out[i] = *first;
        if (first->device().ordinal() != node->device)
          out[i] = detail::sum_of_slots(slots.data(), shards_, Device::from_ordinal(node->device),
                                        order_);
        continue;
      }
      // Where the source's gradient will be: shard 0 may have written there already.
      auto* leaf = node->leaf();
      if (slots[0].defined() && leaf && leaf->where.defined() &&
          slots[0]->data == leaf->where->data)
        out[i] = slots[0];
      else if (leaf && !node->hooked()) out[i] = leaf->destination(node->next_.slot);
      const Device to = Device::from_ordinal(node->device);
      if (!out[i].defined() || !same_sizes(out[i], *first) ||
          out[i].scalar_type() != first->scalar_type())
        out[i] = detail::empty_in_layout_of(*first, first->sizes(), to);
      if (autograd::is_narrow(first->scalar_type()) && !node->hooked() && leaf && leaf->reduce &&
          leaf->reduce->wants_unrounded()) {
        std::vector<Tensor> wide(slots.size());
        for (size_t k = 0; k < slots.size(); ++k)
          if (slots[k].defined()) wide[k] = slots[k].to(kFloat);
        const Tensor sum = detail::sum_of_slots(wide.data(), wide.size(), to, order_);
        detail::copy(out[i], sum);
        leaf->reduce->on_unrounded_sum(sum, out[i]);
        continue;
      }
      std::vector<const TensorBase*> operands = {&out[i]};
      held.reserve(held.size() + slots.size());
      std::vector<Tensor> dense;
      for (const Tensor& slot : slots) {
        dense.emplace_back();
        if (!slot.defined()) continue;
        const Tensor g(slot.steady());
        if (same_strides(g, out[i]) || (g.raw_contiguous() && out[i].raw_contiguous())) {
          dense.back() = g;
        } else {
          dense.back() = Tensor(TensorBase::empty_strided(out[i].sizes(), out[i].raw_strides(),
                                                          g.scalar_type(), g.device()));
          detail::copy(dense.back(), g);
        }
        dense.back().ptr();  // waits where a movement still writes it
        if (g->device != out[i]->device) detail::count(detail::Count::kTransfers);
        if (g->data != out[i]->data) detail::count_bytes(g->device, out[i]->device, g.nbytes());
      }
      for (const Tensor& g : dense) operands.push_back(g.defined() ? &g : nullptr);
      held.insert(held.end(), dense.begin(), dense.end());
      if (out[i].numel() == 0) continue;
      if (to == device && out[i].scalar_type() == dtype && run.extend_later(operands)) continue;
      flush();
      device = to;
      dtype = out[i].scalar_type();
      run.extend_later(operands);
    }
    flush();
    if (told) {
      from.insert(from.end(), held.begin(), held.end());
      autograd::tell_moved("reduce_add", from, out, told);
    }
  }
  done_ = monotonic_ns();
  ++reductions_;
  return out;
}

}  // namespace parallel

namespace autograd {

void add_reduce_edge(const Tensor& source, ArrayRef<Tensor> copies, const std::string& full_name) {
  RAMET_CHECK(source.defined() && source.requires_grad(), "add_reduce_edge", "source: got ",
              describe(source), ", expected a tensor that requires grad");
  RAMET_CHECK(!copies.empty() && copies.size() <= static_cast<size_t>(parallel::kMaxLeaves),
              "add_reduce_edge", "copies: got ", copies.size(), ", expected 1 to ",
              parallel::kMaxLeaves);
  for (size_t i = 0; i < copies.size(); ++i) {
    const Tensor& c = copies[i];
    RAMET_CHECK(c.defined() && same_sizes(c, source) && c.scalar_type() == source.scalar_type(),
                "add_reduce_edge", "copy ", i, " of '", full_name, "': got ", describe(c),
                ", expected the size and dtype of ", describe(source));
    RAMET_CHECK(!c->base && (c->is(TensorImpl::kReplica) || c.is_leaf()) && !c.is_same(source),
                "add_reduce_edge", "copy ", i, " of '", full_name,
                "': got the source, a view or a tensor with history, expected a tensor of its own");
  }
  auto* node = new_node<parallel::ReduceAdd>(source, full_name, static_cast<int>(copies.size()),
                                             parallel::ReduceOrder::fixed());
  for (size_t i = 0; i < copies.size(); ++i) node->attach_copy(copies[i], static_cast<uint32_t>(i));
  if (RAMET_UNLIKELY(tls.watching))
    tell_made(*node, Input(source), std::vector<Input>(copies.begin(), copies.end()));
  release(node);
}

}  // namespace autograd
}  // namespace ramet
