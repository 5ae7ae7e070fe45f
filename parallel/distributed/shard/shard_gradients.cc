// The gradients of a group of sharded parameters: from the full gradients of a backward to those of
// the shards.
#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/copy.h"
#include "parallel/distributed/model/leaves_internal.h"
#include "parallel/distributed/shard/shard_context_internal.h"
#include "parallel/distributed/shard/shard_group_internal.h"

using ramet::detail::tls;

namespace ramet::distributed::detail {

using autograd::AccumulateGrad;
using autograd::GraphTask;
using autograd::Node;
using Lock = std::lock_guard<std::recursive_mutex>;

namespace {

constexpr const char* kOp = "fully_shard";

bool may_reach(const ShardGroup::Member& m, GraphTask& task) {
  return task.may_reach(m.edge->edges()[0].node);
}

}  // namespace

const Tensor& ShardGroup::Unit::place(size_t member) {
  Member& m = members[member];
  if (!gradients.defined()) gradients = zeros(layout.total(), reduced_dtype);
  if (!m.place.defined()) m.place = piece_of(gradients, layout.offset(member), m.full.sizes());
  return m.place;
}

void ShardGroup::on_backward_begun(GraphTask& task) {
  const Lock lock(context->mutex);
  context->on_backward_begun(*this, task);
}

Tensor ShardGroup::gradient_place(size_t u, size_t i) {
  const Lock lock(context->mutex);
  if (!context->is_running(tls.task) || !tls.task->owns(this)) return {};
  const NoGradGuard off;
  Unit& unit = units[u];
  Member& m = unit.members[i];
  if (unit.reduced_dtype != unit.gathered_dtype) return {};  // reduce() casts
  // An inner backward has put its part there, or may still do so.
  if (m.reached || may_reach(m, *tls.task)) return {};
  const Tensor& place = unit.place(i);
  return place.unique() ? place.shallow() : Tensor();
}

std::vector<Tensor> ShardGroup::reduce(const std::vector<std::pair<Node*, std::vector<Tensor>>>& in,
                                       GraphTask& task) {
  const Lock lock(context->mutex);
  const NoGradGuard off;
  RAMET_CHECK(context->is_running(&task), kOp, "a backward that did not begin in order");
  for (const auto& [node, gradients] : in) {
    const auto* edge = static_cast<const ShardEdge*>(node);
    const Tensor& g = gradients[0];
    if (!g.defined()) continue;
    Unit& unit = units[edge->unit_];
    Member& m = unit.members[edge->member_];
    RAMET_CHECK(same_sizes(g, m.full) && g.scalar_type() == unit.gathered_dtype &&
                    g.device() == unit.device,
                kOp, "the gradient of '", m.name, "': got ", describe(g),
                ", expected the size, dtype and device of ", describe(m.full));
    const Tensor& place = unit.place(edge->member_);
    const bool is_there = g->data == place->data;
    // The outer backward is about to add what it has written there.
    if (!m.reached && !is_there && !place.unique()) fail_too_late(kOp, m.name);
    if (std::exchange(m.reached, true)) place.add_(g);
    else if (!is_there && g.numel()) autograd::copy_values(place, g);
  }
  context->on_gradients_complete(*this);
  return std::vector<Tensor>(in.size());  // the shards get their gradients at the end
}

bool ShardGroup::may_grow(GraphTask& task) const {
  return std::ranges::any_of(units, [&task](const Unit& u) {
    return std::ranges::any_of(u.members, [&task](const Member& m) { return may_reach(m, task); });
  });
}

bool ShardGroup::reduces() const {
  return std::ranges::any_of(units, [](const Unit& u) { return u.trainable(); });
}

// zero_grad() also drops gradients that have not reached the shards yet.
void ShardGroup::drop_zeroed(Unit& unit) {
  for (size_t i = 0; i < unit.members.size(); ++i) {
    Member& m = unit.members[i];
    AccumulateGrad* const leaf = autograd::grad_accumulator(m.shard.impl());
    if (leaf->mark != AccumulateGrad::kZeroed) continue;
    leaf->mark = 0;
    if (std::exchange(m.collected, false))
      piece_of(unit.collected, unit.layout.offset(i), m.full.sizes()).zero_();
    if (std::exchange(m.summed, false) && m.shard.numel())
      piece_of(unit.summed, unit.layout.place(i, lanes.gather->rank()), {m.shard.numel()}).zero_();
  }
}

void ShardGroup::keep_unsynchronised() {
  for (Unit& unit : units) {
    drop_zeroed(unit);
    if (unit.gradients.defined()) {
      if (unit.collected.defined()) unit.collected.add_(unit.gradients);
      else unit.collected = std::move(unit.gradients);
    }
    unit.gradients = Tensor();
    for (Member& m : unit.members) {
      m.collected = m.collected || std::exchange(m.reached, false);
      m.place = Tensor();
    }
  }
}

void ShardGroup::launch_reduction() {
  const NoGradGuard off;
  keep_unsynchronised();  // gradients from before, then this backward's
  all_reducing_ = all_reduce;
  const int n = lanes.reduce->size();
  for (Unit& unit : units) {
    if (!unit.trainable()) continue;
    if (!unit.collected.defined())
      unit.collected = unit.zeros(unit.layout.total(), unit.reduced_dtype);
    // The sum of two sums is rounded once: the first sums are parts of a tree.
    const bool wide =
        lanes.outer && options.order.is_tree() && autograd::is_narrow(unit.reduced_dtype);
    if (wide) unit.collected = unit.collected.to(kFloat);
    unit.piece =
        Tensor(TensorBase::empty({unit.layout.piece()}, unit.collected.scalar_type(), unit.device));
    CollectiveOptions o(named("reduce", unit));
    o.order = options.order;
    o.timeout = lanes.gather->timeout();
    unit.reducing = lanes.reduce->reduce_scatter(unit.piece, unit.pieces(unit.collected, n), o);
  }
}

void ShardGroup::finish_reduction() {
  for (Unit& unit : units) {
    if (!unit.piece.defined() || !unit.collected.defined()) continue;
    unit.reducing.wait();
    unit.collected = Tensor();
    if (!lanes.outer) continue;
    const NoGradGuard off;
    if (unit.summed.defined()) unit.piece = unit.summed.add_(unit.piece);
    unit.summed = Tensor();
    if (!all_reducing_) continue;
    CollectiveOptions o(named("all-reduce", unit));
    o.order = options.order;
    o.timeout = lanes.gather->timeout();
    unit.reducing = lanes.outer->all_reduce(unit.piece, o);
  }
}

void ShardGroup::add_presence(std::vector<bool>& present) const {
  for (const Unit& unit : units) {
    if (!unit.piece.defined()) continue;
    for (const Member& m : unit.members) present.push_back(m.collected || m.summed);
  }
}

// What becomes of the ranks' sum: the gradient in the shards' dtype.
Tensor ShardGroup::combined(const Unit& unit, Tensor sum) const {
  // If the shards have a wider dtype than the reduction, the mean is not rounded once more.
  if (item_size(unit.dtype) > item_size(unit.reduced_dtype))
    sum = sum.to(unit.reduced_dtype).to(unit.dtype);
  if (options.average == Average::mean && lanes.ranks() > 1)
    sum.div_(static_cast<double>(lanes.ranks()));
  return sum.to(unit.dtype);
}

void ShardGroup::take_reduced(const bool* present, std::vector<Reduced>& out) {
  const NoGradGuard off;
  const int me = lanes.gather->rank();
  for (Unit& unit : units) {
    if (!unit.piece.defined()) continue;
    Tensor piece = std::exchange(unit.piece, Tensor());
    if (lanes.outer && !all_reducing_) {
      unit.summed = std::move(piece);
      for (Member& m : unit.members) {
        m.summed = m.summed || m.collected;
        m.collected = false;
        ++present;
      }
      continue;
    }
    piece = combined(unit, std::move(piece));
    for (size_t i = 0; i < unit.members.size(); ++i) {
      Member& m = unit.members[i];
      m.collected = m.summed = false;
      if (!*present++ || !m.shard.requires_grad()) continue;
      AccumulateGrad* leaf = autograd::grad_accumulator(m.shard.impl());
      if (leaf->mark == AccumulateGrad::kZeroed) continue;  // set to zero since then
      const int64_t n = m.shard.numel();
      out.push_back({autograd::NodePtr(leaf), n ? piece_of(piece, unit.layout.place(i, me), {n})
                                                : unit.zeros(0, unit.dtype)});
    }
  }
}

void ShardGroup::drop_gradients() {
  for (Unit& unit : units) {
    unit.gradients = unit.collected = unit.piece = unit.summed = Tensor();
    for (Member& m : unit.members) {
      m.place = Tensor();
      m.reached = m.collected = m.summed = false;
    }
  }
}

}  // namespace ramet::distributed::detail
