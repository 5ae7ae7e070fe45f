// The part of a ReplicaSet that runs at every step. It runs no user code, and allocates nothing
// while nothing changes.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "autograd/grad_mode.h"
#include "autograd/graph/graph_observer.h"
#include "autograd/ops/make/copy.h"
#include "nn/module/replica_meeting.h"
#include "parallel/move/counters.h"
#include "parallel/move/movement_internal.h"
#include "parallel/move/peers_internal.h"
#include "parallel/replicas/replica_set_internal.h"
#include "parallel/replicas/run_replicas.h"
#include "runtime/base/logging.h"
#include "runtime/capture/capture.h"
#include "runtime/memory/debug_memory.h"
#include "runtime/observe/observer.h"
#include "runtime/tensor/storage_ref.h"

using ramet::detail::tls;

namespace ramet {
namespace nn {
namespace parallel {

namespace moves = ramet::parallel::detail;

namespace {

bool same_bytes(const Module& m, const std::vector<char>& before) {
  const auto [bytes, size] = m.own_bytes();
  return !bytes ||
         (size == before.size() && (size == 0 || std::memcmp(bytes, before.data(), size) == 0));
}

Tensor on_host(const Tensor& t) { return t.is_cpu() ? t : t.detach().to(Device(kCPU, 0)); }

}  // namespace

// Reports the first difference between the module objects now, of the source and the replicas, and
// at the build.
bool ReplicaSet::structure_changed() {
  auto differs = [](const std::string& name, const char* what) {
    log(LogLevel::Info, "[replicate] ", what, " of ",
        name.empty() ? "the module" : "'" + name + "'", " changed: its replicas are made again");
    return true;
  };
  for (const State::Snapshot& snap : state_->modules) {
    const Module& m = *snap.module;
    // Children first: a module that was replaced may be gone.
    size_t k = 0;
    if (m.own_children().size() != snap.children.size())
      return differs(snap.name, "the number of children");
    for (const auto& child : m.own_children())
      if (child.value() != snap.children[k++].lock()) return differs(snap.name, "a child");
    if (!same_bytes(m, snap.bytes)) return differs(snap.name, "a member");
    for (size_t r = 0; r < snap.replicas.size(); ++r)
      if (!same_bytes(*snap.replicas[r], snap.replica_bytes[r]))
        return differs(snap.name, "a replica's member");
    if (m.own_parameters().size() + m.own_buffers().size() != snap.tensors.size())
      return differs(snap.name, "the number of tensors");
    k = 0;
    for (const auto* registry : {&m.own_parameters(), &m.own_buffers()}) {
      for (const auto& item : *registry) {
        const Tensor& t = item.value();
        const auto& [impl, buffer_grad] = snap.tensors[k];
        if (t.impl() != impl) return differs(full_name(snap.name, item.key()), "the tensor");
        if (impl && (t.scalar_type() != snap.dtypes[k] || t.sizes() != IntArrayRef(snap.sizes[k]) ||
                     t.device() != home_))
          return differs(full_name(snap.name, item.key()), "shape, dtype or device");
        if (impl && registry == &m.own_buffers() && autograd::wants_grad(t.impl()) != buffer_grad)
          return differs(full_name(snap.name, item.key()), "requires_grad");
        ++k;
      }
    }
  }
  return false;
}

// Refreshes one parameter: its memory and its edge.
void ReplicaSet::refresh_entry(size_t index) {
  State::Entry& e = state_->entries[index];
  // after set_data, to() or flattening
  if (e.source.storage_impl()->serial() != e.seen.serial || e.source->data != e.seen.data)
    follow_memory(index);
  if (!(tls.grad_mode && !options_.detach && e.source.requires_grad())) return e.unbind();
  // Hooks that a program sets on replicas last one step. They are emptied, not deleted: a hook of a
  // running backward may have called this forward.
  if (e.node && e.node->watched()) {
    e.node->extra->hooks.clear();
    e.node->extra->retained.clear();
  }
  const bool stays = e.node && e.node->leads_to(e.source);
  if (stays && e.bound) return;
  if (!stays) make_node(index);
  for (const State::Handle& h : e.handles) e.node->attach_copy(h.tensor, h.replica);
  if (RAMET_UNLIKELY(tls.watching != 0) && !stays) {
    std::vector<autograd::Input> copies;
    for (const State::Handle& h : e.handles) copies.emplace_back(h.tensor);
    autograd::tell_made(*e.node, autograd::Input(e.source), copies);
  }
  e.bound = true;
}

// Gives the replicas' tensors memory like the source's present memory.
void ReplicaSet::follow_memory(size_t index) {
  State& s = *state_;
  State::Entry& e = s.entries[index];
  StorageImpl* now = e.source.storage_impl();
  for (size_t a = 0; a < s.away.size(); ++a)
    e.copies[a] =
        Tensor(member_of(s.flat[a], e.offset, e.source.sizes(), e.strides, e.source.scalar_type(),
                         now->version_of ? now->version_of : now));
  for (const State::Handle& h : e.handles) {
    const Device d = device_of_[h.replica];
    const auto away = std::find(s.away.begin(), s.away.end(), d) - s.away.begin();
    h.tensor.set_data(d == home_ ? e.source : e.copies[static_cast<size_t>(away)]);
  }
}

// Takes the replicas' tensors out of the graph.
void ReplicaSet::State::Entry::unbind() {
  if (!std::exchange(bound, false)) return;
  for (const Handle& h : handles) {
    AutogradSlot::release(std::exchange(h.tensor->node, nullptr));
    h.tensor->set(TensorImpl::kRequiresGrad, false);
  }
}

// Makes the entry's node, which takes over the slots of the one that it replaces.
void ReplicaSet::make_node(size_t index) {
  State::Entry& e = state_->entries[index];
  auto* node =
      autograd::new_node<ramet::parallel::ReduceAdd>(e.source, e.name, size(), options_.order);
  const autograd::NodePtr held(node);  // released if an allocation fails
  autograd::release(node);
  node->set_hooks(hooks_);
  std::vector<Tensor> slots = e.node ? e.node->take_slots() : new_slots(index);
  node->hold();
  autograd::release(std::exchange(e.node, node));
  node->set_slots(std::move(slots), state_->buckets[e.bucket].get());
}

// The entry's memory in the flat gradients of all replicas, which are made at the first need.
std::vector<Tensor> ReplicaSet::new_slots(size_t index) {
  State& s = *state_;
  if (s.gradients.empty()) {
    const bool in_place = device_of_[0] == home_;
    std::vector<Tensor> made;  // all of them or none
    for (int i = 0; i < size(); ++i) {
      made.push_back(moves::flat_memory(i || !in_place ? s.flat_bytes : 0,
                                        device_of_[static_cast<size_t>(i)]));
      autograd::fill_values(made.back(), 0);
    }
    s.gradients = std::move(made);
  }
  const State::Entry& e = s.entries[index];
  std::vector<Tensor> slots;
  for (const Tensor& flat : s.gradients)
    slots.push_back(flat.numel() ? Tensor(member_of(flat, e.offset, e.source.sizes(), e.strides,
                                                    e.source.scalar_type()))
                                 : Tensor());
  return slots;
}

// A write through a raw pointer changes no version, so this compares the values.
void ReplicaSet::report_unmarked(const std::vector<size_t>& members) const {
  if (state_->away.empty()) return;
  for (size_t u : members) {
    const State::Entry& e = state_->entries[u];
    if (e.bytes == 0 || e.source.raw_strides() != IntArrayRef(e.strides)) continue;
    const Tensor a = on_host(e.source), b = on_host(e.copies[0]);
    if (std::memcmp(a.ptr(), b.ptr(), static_cast<size_t>(e.bytes)) != 0)
      log(LogLevel::Warning, "[replicate] parameter '", e.name,
          "' was changed through a raw pointer: its replicas keep the old values until "
          "mark_dirty() is called");
  }
}

void ReplicaSet::prepare() {
  if (stale_ || structure_changed()) build();
}

// Ties a capture to the copies that this step makes, and to the replicas' memory.
void ReplicaSet::guard_capture() {
  for (const State::Snapshot& snap : state_->modules)
    if (!snap.states.empty()) capture::refused("replica_state", "the host merges states");
  const std::weak_ptr<ramet::parallel::ReduceHooks> life = hooks_;
  capture::guard(this, "replicas", [this, life, state = state_.get(), hooked = hooks_->any()] {
    const auto hooks = life.lock();
    return hooks && hooks->any() == hooked && state_.get() == state && !stale_ &&
           !structure_changed();
  });
  // The copy is marked as made, but was only recorded.
  capture::on_failure([this, life] {
    if (!life.expired()) stale_ = true;
  });
}

// A whole refresh except the copies to other devices, which copy_to() makes of `dirty` and
// `strided`.
void ReplicaSet::begin_refresh() {
  prepare();
  State& s = *state_;
  const bool all = all_dirty_ || capture::active();  // replays follow every step
  if (RAMET_UNLIKELY(capture::active())) guard_capture();
  // Set until every device has its copies: after a failure the set stays usable.
  all_dirty_ = true;
  {
    const ScopedValue<uint8_t> apart(tls.capturing, 0);  // memory and edges, no values
    for (size_t u = 0; u < s.entries.size(); ++u) refresh_entry(u);
  }
  find_changes(all);
  refresh_buffers();
  for (const State::Snapshot& snap : s.modules) {
    for (Module* replica : snap.replicas) {
      if (replica->is_training() != snap.module->is_training())
        replica->train(snap.module->is_training());
      if (replica->forward_hooks() != snap.module->forward_hooks())
        replica->set_forward_hooks(snap.module->forward_hooks());
      replica->discard_deposits();
    }
  }
}

// Lists what other devices need in `dirty` and `strided`: the buckets with another memory or
// version than at the last refresh, or all of them.
void ReplicaSet::find_changes(bool all) {
  State& s = *state_;
  s.dirty.clear();
  s.strided.clear();
  for (const auto& members : s.members) {
    bool dirty = all;
    for (size_t u : members) {
      State::Entry& e = s.entries[u];
      const State::Seen now = State::Seen::of(e.source);
      dirty = dirty || !now.same(e.seen);
      e.seen = now;
    }
    if (!dirty && debug_memory()) report_unmarked(members);
    if (dirty && !s.away.empty()) add_changes(members);
  }
}

// Adds the parameters of a bucket to `dirty`, neighbours in memory as one range. Those with other
// strides than their copies go to `strided`.
void ReplicaSet::add_changes(const std::vector<size_t>& members) {
  State& s = *state_;
  const StorageImpl* root = nullptr;
  for (size_t u : members) {
    const State::Entry& e = s.entries[u];
    for (Device d : s.away)
      moves::count_bytes(home_.ordinal(), d.ordinal(), static_cast<uint64_t>(e.bytes));
    moves::count(moves::Count::kRefreshBytes, static_cast<uint64_t>(e.bytes) * s.away.size());
    if (e.bytes == 0) continue;
    if (e.source.raw_strides() != IntArrayRef(e.strides) &&
        !(e.source.raw_contiguous() &&
          IntArrayRef(e.strides) == IntArrayRef(contiguous_strides(e.source.sizes())))) {
      s.strided.push_back(u);
      continue;
    }
    const char* from = static_cast<const char*>(e.source.ptr());
    const StorageImpl* memory = e.source.storage_impl()->memory_of;
    if (!s.dirty.empty() && memory && memory == root &&
        s.dirty.back().from + (e.offset - s.dirty.back().offset) == from) {
      s.dirty.back().bytes = e.offset + e.bytes - s.dirty.back().offset;
    } else {
      s.dirty.push_back({e.offset, from, e.bytes});
    }
    root = memory;
  }
}

// Reports which entries were copied to a device: those in the ranges of bytes, and the separate
// ones.
template <class State>  // a private name
[[gnu::cold]] static void tell_copied(const State& s, size_t a, uint64_t begun) {
  std::vector<Tensor> from, to;
  for (size_t u = 0; u < s.entries.size(); ++u) {
    const auto& e = s.entries[u];
    const auto holds = [&e](const auto& c) {
      return e.offset >= c.offset && e.offset < c.offset + c.bytes;
    };
    if (!std::any_of(s.dirty.begin(), s.dirty.end(), holds) &&
        std::find(s.strided.begin(), s.strided.end(), u) == s.strided.end())
      continue;
    from.push_back(e.source);
    to.push_back(e.copies[a]);
  }
  autograd::tell_moved("broadcast", from, to, begun);
}

void ReplicaSet::copy_to(Device device, const moves::FanOut* fan) const {
  const State& s = *state_;
  const size_t a =
      static_cast<size_t>(std::find(s.away.begin(), s.away.end(), device) - s.away.begin());
  if (a == s.away.size() || (s.dirty.empty() && s.strided.empty())) return;
  const RecordScope scope("replicate.refresh");
  const uint64_t begun = autograd::movement_begins();
  moves::count(moves::Count::kTransfers, s.dirty.size() + s.strided.size());
  moves::count(moves::Count::kLaunches, s.strided.size());
  std::vector<kernels::CopiedTensor> dirty;
  for (const State::Copy& c : s.dirty)
    dirty.push_back({c.from, static_cast<char*>(s.flat[a].ptr()) + c.offset, c.bytes});
  moves::copy_tensors(device, home_, dirty, /*flat=*/true, fan);
  for (size_t u : s.strided) autograd::copy_values(s.entries[u].copies[a], s.entries[u].source);
  if (begun) tell_copied(s, a, begun);
}

void ReplicaSet::refresh() {
  begin_refresh();
  {
    const State& s = *state_;
    const moves::FanOut fan(home_, s.dirty.empty() ? ArrayRef<Device>() : s.away);
    for (Device d : s.away) copy_to(d, &fan);
  }
  all_dirty_ = false;
}

namespace {

// Counts devices that have their copies. At the end, unless a replica failed before, all have them.
struct FetchCount {
  bool& all_dirty;
  const size_t needed;
  std::atomic<size_t> fetched{0};
  ~FetchCount() {
    if (fetched == needed) all_dirty = false;
  }
};

// Discards deposits of norm layers in a step that failed.
template <class State>  // a private name
struct DepositGuard {
  State& s;
  bool succeeded = false;
  ~DepositGuard() {
    if (succeeded) return;
    for (const auto& snap : s.modules)
      for (Module* replica : snap.replicas) replica->discard_deposits();
  }
};

}  // namespace

void ReplicaSet::apply(const std::function<void(int)>& run, int count) {
  if (count < 0) count = size();
  RAMET_CHECK(count > 0 && count <= size(), "ReplicaSet", "replicas to run: got ", count,
              ", expected 1 to ", size());
  const OneAtATime alone_here(
      running_, "ReplicaSet",
      "a forward of these replicas is running already, expected one at a time");
  begin_refresh();
  State& s = *state_;
  std::unique_ptr<ReplicaMeeting> meeting;
  if (s.has_sync) meeting = std::make_unique<ReplicaMeeting>(count, capture::active(), elsewhere_);
  // Each device fetches its own copy, all concurrently; for devices that run nothing now, this
  // thread fetches it. Copies between GPUs are queued first, so that they do not wait for the
  // forward that the source GPU runs itself.
  const auto first_of = [&](Device d) {
    return static_cast<int>(std::find(device_of_.begin(), device_of_.end(), d) -
                            device_of_.begin());
  };
  FetchCount copies{all_dirty_, s.away.size()};
  bool by_itself[kMaxDevices] = {};
  {
    const moves::FanOut fan(home_, s.dirty.empty() ? ArrayRef<Device>() : s.away);
    for (Device d : s.away) {
      if (!meeting && first_of(d) < count && !fan.has(d)) {
        by_itself[d.ordinal()] = true;
        continue;
      }
      copy_to(d, &fan);
      ++copies.fetched;
    }
  }
  DepositGuard<State> deposits{s};
  detail::run_replicas(
      ArrayRef<Device>(device_of_.data(), static_cast<size_t>(count)),
      [&](int i) {
        const Device d = device_of_[static_cast<size_t>(i)];
        if (by_itself[d.ordinal()] && first_of(d) == i) {
          copy_to(d);
          ++copies.fetched;
        }
        run(i);
      },
      meeting.get());
  update_source(count);
  deposits.succeeded = true;
}

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
