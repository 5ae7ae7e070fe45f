#include "parallel/distributed/shard/shard_group_internal.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "autograd/ops/make/copy.h"
#include "parallel/distributed/group/group_state_internal.h"
#include "parallel/distributed/shard/shard_context_internal.h"
#include "runtime/base/logging.h"
#include "runtime/memory/absent_storage.h"

using ramet::detail::tls;

namespace ramet::distributed::detail {

using autograd::Node;
using Lock = std::lock_guard<std::recursive_mutex>;

namespace {

constexpr const char* kOp = "fully_shard";

size_t bytes_at(int64_t elements, ScalarType dtype) {
  return static_cast<size_t>(elements) * item_size(dtype);
}

}  // namespace

void ShardLanes::abort(const std::string& reason) const {
  if (ranks() == 1) return;
  gather->abort(reason);
  reduce->abort(reason);
  if (outer) outer->abort(reason);
}

// ---- the edge -----------------------------------------------------------------------------------

ShardEdge::ShardEdge(ShardGroup* group, size_t unit, size_t member)
    : Node("FullyShard", 1, 1, sizeof(ShardEdge)), group_(group), unit_(unit), member_(member) {
  // The engine's general path: it knows when all gradients of the bucket have come.
  flags |= kSpans | kReduce;
  device = static_cast<uint8_t>(group->units[unit].device.ordinal());
}
ShardEdge::~ShardEdge() { autograd::release(next_.node); }

std::string ShardEdge::name() const {
  return group_ ? "FullyShard(" + group_->units[unit_].members[member_].name + ")" : "FullyShard";
}
autograd::ReduceBucket* ShardEdge::bucket() { return group_; }

void ShardEdge::lead_to(const Tensor& shard) {
  const autograd::RawEdge to = autograd::edge_of(shard.impl());
  autograd::release(std::exchange(next_, to).node);
}

void ShardEdge::apply(Tensor* in, Tensor* out) {
  RAMET_CHECK(group_, kOp, "a backward through a sharded module that is gone");
  const ShardGroup::Unit& unit = group_->units[unit_];
  const auto part = unit.layout.part(member_, group_->lanes.gather->rank());
  out[0] = in[0].reshape({-1}).slice(0, part.begin, part.begin + part.length).to(unit.dtype);
}

Tensor ShardEdge::destination(uint32_t) {
  if (!group_ || watched() || !tls.task || tls.task->create_graph()) return {};
  return group_->gradient_place(unit_, member_);
}

// ---- making it ----------------------------------------------------------------------------------

Tensor piece_of(const Tensor& flat, int64_t offset, IntArrayRef sizes) {
  return Tensor(member_of(flat, static_cast<int64_t>(bytes_at(offset, flat.scalar_type())), sizes,
                          contiguous_strides(sizes), flat.scalar_type()));
}

bool ShardGroup::Unit::trainable() const {
  return std::ranges::any_of(members, [](const Member& m) { return m.shard.requires_grad(); });
}

Tensor ShardGroup::Unit::zeros(int64_t n, ScalarType its_dtype) const {
  return ramet::zeros({n}, TensorOptions(device).dtype(its_dtype));
}

int64_t ShardGroup::Unit::narrowest_item() const {
  return static_cast<int64_t>(
      std::min({item_size(dtype), item_size(gathered_dtype), item_size(reduced_dtype)}));
}

std::vector<Tensor> ShardGroup::Unit::pieces(const Tensor& flat_values, int ranks) const {
  std::vector<Tensor> out;
  for (int r = 0; r < ranks; ++r)
    out.push_back(flat_values.slice(0, r * layout.piece(), (r + 1) * layout.piece()));
  return out;
}

ShardGroup::ShardGroup(const ShardLanes& l, const FullyShardOptions& o)
    : lanes(l), options(with_number(o, next_number(*l.gather, "sharded"))) {}

std::shared_ptr<ShardGroup> ShardGroup::make(const ShardLanes& lanes,
                                             const FullyShardOptions& options,
                                             std::vector<FoundParameter> found) {
  const NoGradGuard off;
  std::shared_ptr<ShardGroup> group(new ShardGroup(lanes, options));
  group->reshard_after_forward = options.reshard_after_forward;
  for (FoundParameter& f : found) group->add(std::move(f));
  for (Unit& unit : group->units) {
    std::vector<int64_t> numels;
    for (const Member& m : unit.members) numels.push_back(m.full.numel());
    // One layout for all its dtypes. In wider ones places are at multiples of more than 64 bytes.
    unit.layout = ShardLayout(numels, unit.narrowest_item(), lanes.gather->size());
    group->shard_values(unit);  // may fail: nothing has changed yet
  }
  for (size_t u = 0; u < group->units.size(); ++u)
    for (size_t i = 0; i < group->units[u].members.size(); ++i) group->replace_by_shard(u, i);
  group->follow_requires_grad();
  return group;
}

// Adds a parameter to the unit of its dtype, device and requires_grad.
void ShardGroup::add(FoundParameter found) {
  const Tensor& t = found.tensor;
  auto unit = std::ranges::find_if(units, [&t](const Unit& u) {
    return u.dtype == t.scalar_type() && u.device == t.device() &&
           u.members[0].full.requires_grad() == t.requires_grad();
  });
  if (unit == units.end()) {
    unit = units.insert(unit, Unit());
    unit->dtype = unit->gathered_dtype = unit->reduced_dtype = t.scalar_type();
    unit->device = t.device();
    if (t.is_floating_point()) {
      const MixedPrecisionPolicy& policy = options.mp_policy;
      unit->gathered_dtype = policy.param_dtype.value_or(unit->dtype);
      unit->reduced_dtype = policy.reduce_dtype.value_or(unit->dtype);
    }
  }
  Member m;
  m.name = found.name;
  m.full = t;
  m.places = std::move(found.places);
  unit->members.push_back(std::move(m));
}

// Gives modules the shard in place of the parameter, which has no memory from now on.
void ShardGroup::replace_by_shard(size_t u, size_t i) {
  Member& m = units[u].members[i];
  const bool trainable = m.full.requires_grad();
  AutogradSlot::release(std::exchange(m.full->node, nullptr));
  m.full->set(TensorImpl::kRequiresGrad, false);
  m.full->set(TensorImpl::kReplica, true);
  m.full->dtype = units[u].gathered_dtype;
  m.shard.set_requires_grad(trainable);
  auto* node = autograd::new_node<ShardEdge>(this, u, i);
  m.edge = autograd::NodePtr(node);
  autograd::release(node);
  m.absent.reset(absent_storage(m.full.device(), [life = weak_from_this(), name = m.name] {
    const auto alive = life.lock();
    RAMET_CHECK(alive, kOp, "parameter '", name, "' belongs to a sharded module that is gone");
    alive->on_absent_values_read(name);
  }));
  // Nodes that saved the member before must not see a change.
  m.absent->own_version.store(m.full.version(), std::memory_order_relaxed);
  m.gathered_version = m.shard.version();
  add_ref(m.absent->refs);
  m.full.repoint(m.absent.get());
  for (const auto& [module, key] : m.places) {
    module->set_own_parameter(key, m.shard);
    module->set_holds_shards(true);
  }
}

ShardGroup::~ShardGroup() {
  for (Unit& unit : units)
    for (Member& m : unit.members)
      if (m.edge) static_cast<ShardEdge*>(m.edge.get())->group_ = nullptr;
  if (!context) return;
  const Lock lock(context->mutex);
  context->forget(this);
}

std::string ShardGroup::named(const char* what, const Unit& unit) const {
  return options.name + "/" + what + " [" + unit.members.front().name +
         (unit.members.size() > 1 ? " .. " + unit.members.back().name : "") + "]";
}

// Makes this rank's shards from the values that all ranks agree on.
void ShardGroup::shard_values(Unit& unit) {
  const ShardLayout& layout = unit.layout;
  const Tensor flat = unit.zeros(layout.total(), unit.dtype);
  for (size_t i = 0; i < unit.members.size(); ++i) {
    const Tensor& full = unit.members[i].full;
    if (full.numel()) autograd::copy_values(piece_of(flat, layout.offset(i), full.sizes()), full);
  }
  if (options.init_sync) {
    CollectiveOptions o(named("initial", unit));
    o.undefined_on_failure = true;
    if (lanes.outer) lanes.outer->broadcast(flat, 0, o).wait();
    lanes.gather->broadcast(flat, 0, o).wait();
  }
  const int me = lanes.gather->rank();
  const Tensor mine = flat.slice(0, me * layout.piece(), (me + 1) * layout.piece()).clone();
  for (size_t i = 0; i < unit.members.size(); ++i) {
    const auto part = layout.part(i, me);
    unit.members[i].shard = part.length ? piece_of(mine, layout.place(i, me), {part.length})
                                        : unit.zeros(0, unit.dtype);
  }
}

void ShardGroup::follow_requires_grad() {
  for (Unit& unit : units) {
    for (Member& m : unit.members) {
      auto* edge = static_cast<ShardEdge*>(m.edge.get());
      const bool wanted = m.shard.requires_grad();
      if (wanted && m.full->node != edge) {
        edge->lead_to(m.shard);
        autograd::attach(m.full, edge, 0);
      } else if (!wanted && m.full->node) {
        AutogradSlot::release(std::exchange(m.full->node, nullptr));
        m.full->set(TensorImpl::kRequiresGrad, false);
      }
    }
  }
}

// ---- values -------------------------------------------------------------------------------------

const ShardGroup::Member* ShardGroup::changed() const {
  for (const Unit& unit : units)
    for (const Member& m : unit.members)
      if (m.shard.version() != m.gathered_version) return &m;
  return nullptr;
}

uint64_t ShardGroup::writes() const {
  uint64_t n = 0;
  for (const Unit& unit : units)
    for (const Member& m : unit.members) n += m.shard.version();
  return n;
}

void ShardGroup::launch_gather() {
  if (state_ != ShardState::sharded) {
    if (!changed()) return;
    if (state_ == ShardState::gathering) finish_gather();  // its memory is being written
    reshard();
  }
  const NoGradGuard off;
  const int me = lanes.gather->rank();
  for (const Unit& unit : units)
    for (size_t i = 0; i < unit.members.size(); ++i) {
      const Member& m = unit.members[i];
      RAMET_CHECK(m.shard.scalar_type() == unit.dtype && m.shard.device() == unit.device &&
                      m.shard.numel() == unit.layout.part(i, me).length,
                  kOp, "the shard of '", m.name, "': got ", describe(m.shard), ", expected ",
                  short_name_of(unit.dtype), "[", unit.layout.part(i, me).length, "] on ",
                  unit.device, ": to() and set_data() are for before fully_shard");
    }
  for (Unit& unit : units) {
    unit.flat = Tensor(TensorBase::empty({unit.layout.total()}, unit.gathered_dtype, unit.device));
    try {
      unit.gathering = gather(unit, unit.flat, "gather");
    } catch (...) {
      for (Unit& u : units) u.flat = Tensor();
      throw;
    }
  }
  state_ = ShardState::gathering;
}

Work ShardGroup::gather(const Unit& unit, const Tensor& flat, const char* what) const {
  const int me = lanes.gather->rank();
  const std::vector<Tensor> out = unit.pieces(flat, lanes.gather->size());
  const Tensor& mine = out[static_cast<size_t>(me)];
  mine.zero_();  // gaps are sent too
  for (size_t i = 0; i < unit.members.size(); ++i) {
    const Tensor& shard = unit.members[i].shard;
    const int64_t at = unit.layout.place(i, me);
    // A cast, where `flat` has another dtype than the shards.
    if (shard.numel()) autograd::copy_values(mine.slice(0, at, at + shard.numel()), shard);
  }
  CollectiveOptions o(named(what, unit));
  o.undefined_on_failure = true;  // then `flat` is discarded
  return lanes.gather->all_gather(out, mine, o);
}

void ShardGroup::finish_gather() {
  if (state_ != ShardState::gathering) return;
  try {
    for (const Unit& unit : units) unit.gathering.wait();
  } catch (...) {
    for (Unit& unit : units) unit.flat = Tensor();
    state_ = ShardState::sharded;
    throw;
  }
  for (Unit& unit : units) {
    for (size_t i = 0; i < unit.members.size(); ++i) {
      Member& m = unit.members[i];
      // Graphs from before the change detect that their values are gone.
      if (m.shard.version() != m.gathered_version)
        m.absent->wrote(m.shard.storage_impl()->last_writer());
      m.gathered_version = m.shard.version();
      m.written_version = m.absent->own_version.load(std::memory_order_relaxed);
      char* const at = static_cast<char*>(unit.flat.ptr()) +
                       bytes_at(unit.layout.offset(i), unit.gathered_dtype);
      m.full.repoint(
          StorageImpl::alias(unit.flat.storage_impl(), at, m.full.nbytes(), m.absent.get()));
    }
  }
  state_ = ShardState::gathered;
}

void ShardGroup::reshard() {
  if (state_ == ShardState::gathering) {
    // The operation keeps its memory alive until it has ended.
    for (Unit& unit : units) unit.flat = Tensor();
    state_ = ShardState::sharded;
  }
  if (state_ == ShardState::sharded) return;
  for (Unit& unit : units) {
    for (Member& m : unit.members) {
      if (m.absent->own_version.load(std::memory_order_relaxed) != m.written_version)
        log(LogLevel::Warning, "[fully_shard] parameter '", m.name, "' was changed by ",
            m.absent->last_writer(),
            " while it was gathered: the change is lost, shards are what can be written");
      add_ref(m.absent->refs);
      m.full.repoint(m.absent.get());
    }
    unit.flat = Tensor();
  }
  state_ = ShardState::sharded;
}

void ShardGroup::on_absent_values_read(const std::string& parameter) {
  const Lock lock(context->mutex);
  if (state_ == ShardState::gathered) return;  // gathered by another thread
  if (held) return finish_gather();
  RAMET_CHECK(tls.task, kOp, "parameter '", parameter,
              "' is sharded: its values are here only while its module's forward or backward runs. "
              "Call the module as module(x) or with nn::call, since ->forward() bypasses the hook "
              "that gathers them; full_state_dict() and unshard() give them otherwise");
  context->on_values_needed(*this);
}

}  // namespace ramet::distributed::detail
