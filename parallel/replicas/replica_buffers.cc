// Buffers and declared states of replicas: how they follow the source, and what the source takes
// over. Also which tensor is a copy of which. See nn/module/buffer_policy.h and
// parallel/replicas/replica_state.h.
#include <algorithm>
#include <map>

#include "autograd/grad_mode.h"
#include "autograd/ops/make/copy.h"
#include "parallel/move/comm.h"
#include "parallel/move/counters.h"
#include "parallel/move/movement_internal.h"
#include "parallel/move/peers_internal.h"
#include "parallel/replicas/buffer_page_internal.h"
#include "parallel/replicas/replica_set_internal.h"
#include "runtime/capture/capture.h"

using ramet::detail::tls;

namespace ramet {
namespace nn {
namespace parallel {

namespace moves = ramet::parallel::detail;
namespace comm = ramet::parallel::comm;

// Replicas that wrote their copy get the source's value again, like replicas that did not have it
// yet.
void ReplicaSet::refresh_buffers() {
  std::vector<std::pair<State::Buffer*, size_t>> stale;
  std::vector<State::Seen> seen;  // of each buffer
  // contiguous copies, by device of the replica and of the source
  std::map<std::pair<uint8_t, uint8_t>, std::vector<kernels::CopiedTensor>> plain;
  for (State::Buffer& b : state_->buffers) {
    const State::Seen now = State::Seen::of(b.source);
    seen.push_back(now);
    if (b.shares && (now.serial != b.seen.serial || now.data != b.seen.data)) {
      const ScopedValue<uint8_t> apart(tls.capturing, 0);
      b.follow(0, b.source);
    }
    for (size_t i = b.shares ? 1 : 0; i < b.handles.size(); ++i) {
      const Tensor& handle = b.handles[i];
      const bool written =
          handle.version() != b.versions[i] && b.policy != BufferPolicy::per_replica;
      const bool always = capture::active() && b.policy != BufferPolicy::per_replica;
      if (now.same(b.seen) && !written && !always) continue;
      stale.emplace_back(&b, i);
      if (handle.numel() == 0) continue;
      const auto names = static_cast<uint32_t>(1 + b.ties[i].size());
      if (const Tensor page = b.paged() ? moves::fresh_page(handle, names) : Tensor();
          page.defined()) {
        moves::turn_page(handle, page);
        b.follow(i, handle);
      }
      if (handle.raw_contiguous() && b.source.raw_contiguous() &&
          handle.scalar_type() == b.source.scalar_type())
        plain[{handle->device, b.source->device}].push_back(
            {b.source.ptr(), handle.ptr(), static_cast<int64_t>(handle.nbytes())});
      else autograd::copy_values(handle, b.source);
    }
  }
  for (const auto& [way, copies] : plain)
    moves::copy_tensors(Device::from_ordinal(way.first), Device::from_ordinal(way.second), copies,
                        /*flat=*/false);
  for (const auto& [b, i] : stale) {
    const Tensor& handle = b->handles[i];
    handle.storage_impl()->wrote("refresh");
    b->versions[i] = handle.version();
    if (handle->device == b->source->device) continue;
    moves::count_bytes(b->source->device, handle->device, handle.nbytes());
    moves::count(moves::Count::kRefreshBytes, handle.nbytes());
  }
  for (size_t k = 0; k < seen.size(); ++k) state_->buffers[k].seen = seen[k];
}

Tensor ReplicaSet::source_of(const Tensor& tensor) const {
  for (const State::Entry& e : state_->entries)
    for (const State::Handle& h : e.handles)
      if (h.tensor.is_same(tensor)) return e.source;
  for (const State::Buffer& b : state_->buffers)
    for (const Tensor& handle : b.handles)
      if (handle.is_same(tensor)) return b.source;
  return {};
}

std::vector<detail::ReplicaStateBase*> ReplicaSet::State::states_of(const Module& m) {
  const auto [bytes, size] = m.own_bytes();
  if (!bytes) return {};
  return detail::states_within(bytes, size);
}

void ReplicaSet::State::find_states(Snapshot& snap) {
  const auto found = states_of(*snap.replicas.back());
  RAMET_CHECK(found.size() == snap.states.size(), "replicate", "clone() of ",
              snap.name.empty() ? "the module" : "'" + snap.name + "'", ": got ", found.size(),
              " members of replica_state, expected ", snap.states.size());
  for (size_t k = 0; k < found.size(); ++k) snap.of_replicas[k].push_back(found[k]);
}

void ReplicaSet::State::keep_states(const State& before) {
  for (Snapshot& now : modules) {
    for (const Snapshot& old : before.modules) {
      if (old.module != now.module || old.name != now.name || old.states != now.states) continue;
      if (old.owned && old.alive.expired()) continue;  // another module at the same address
      for (size_t k = 0; k < now.states.size(); ++k)
        for (size_t r = 0; r < now.of_replicas[k].size(); ++r)
          now.of_replicas[k][r]->follow(*old.of_replicas[k][r]);
    }
  }
  for (Buffer& now : buffers) {
    if (now.policy != BufferPolicy::per_replica) continue;
    for (const Buffer& old : before.buffers) {
      if (old.source.impl() != now.source.impl() || old.policy != now.policy) continue;
      for (size_t r = 0; r < now.handles.size(); ++r)
        if (same_sizes(now.handles[r], old.handles[r]) &&
            now.handles[r].scalar_type() == old.handles[r].scalar_type())
          autograd::copy_values(now.handles[r], old.handles[r]);
    }
  }
}

std::vector<std::function<void()>> ReplicaSet::State::merged_states() const {
  std::vector<std::function<void()>> out;
  for (const Snapshot& snap : modules)
    for (size_t k = 0; k < snap.states.size(); ++k)
      if (auto commit = snap.states[k]->merged(snap.of_replicas[k])) out.push_back(commit);
  return out;
}

bool ReplicaSet::State::Buffer::written(int count) const {
  if (shares && source.version() != seen.version) return true;
  for (size_t i = shares ? 1 : 0; i < static_cast<size_t>(count); ++i)
    if (handles[i].version() != versions[i]) return true;
  return false;
}

Tensor ReplicaSet::State::Buffer::merged(int count, Device home) const {
  const ArrayRef<Tensor> all(handles.data(), static_cast<size_t>(count));
  switch (policy) {
    case BufferPolicy::merge_stats:
    case BufferPolicy::per_replica: break;
    case BufferPolicy::first:
    case BufferPolicy::sync:
    case BufferPolicy::all_equal: return shares ? Tensor() : all[0];
    case BufferPolicy::sum: return comm::reduce_add(all, home);
    case BufferPolicy::mean: {
      // The sum of 16-bit numbers may be too large for 16 bits.
      const ScalarType type = all[0].scalar_type();
      std::vector<Tensor> wide;
      for (const Tensor& t : all) wide.push_back(t.to(compute_type(type)));
      return comm::reduce_add(wide, home).div(count).to(type);
    }
    case BufferPolicy::max: {
      Tensor most = all[0].to(home);
      for (size_t i = 1; i < all.size(); ++i) most = most.maximum(all[i].to(home));
      return most;
    }
  }
  return {};
}

// Checks what the policy all_equal promises of the buffers that the step wrote.
void ReplicaSet::check_equal_buffers(int count) const {
  for (const State::Buffer& b : state_->buffers) {
    if (b.policy != BufferPolicy::all_equal || !b.written(count)) continue;
    for (size_t i = 1; i < static_cast<size_t>(count); ++i)
      RAMET_CHECK(b.handles[i].to(home_).equal(b.handles[0].to(home_)), "replicate", "buffer '",
                  b.name, "' of policy all_equal: replica ", i, " on device ", device_of_[i],
                  " has another value than replica 0");
  }
}

void ReplicaSet::update_source(int count) {
  const NoGradGuard off;
  State& s = *state_;
  check_equal_buffers(count);
  // Computes all values before it writes any: if one of them fails, the source takes over nothing.
  struct Taken {
    const State::Buffer* buffer;
    Tensor value, page;  // `page`: if replica 0 shares the source's memory and its graph may keep
                         // it
  };
  std::vector<Taken> taken;
  for (const State::Buffer& b : s.buffers) {
    if (!b.written(count)) continue;
    if (Tensor value = b.merged(count, home_); value.defined())
      taken.push_back({&b, std::move(value), {}});
  }
  const auto merged = s.merged_states();
  for (Taken& t : taken)
    if (t.buffer->paged() && moves::alone(t.buffer->source, s.buffers, &State::Buffer::source))
      t.page = moves::fresh_page(t.buffer->source);
  for (const auto& [buffer, value, page] : taken) {
    moves::turn_page(buffer->source, page);
    autograd::copy_values(buffer->source, value);
    buffer->source.storage_impl()->wrote("replica");
  }
  merge_replicas(count);
  for (const auto& commit : merged) commit();
}

// Lets modules take over what their replicas deposited.
void ReplicaSet::merge_replicas(int count) {
  std::vector<std::pair<Module*, std::vector<Module*>>> modules;
  for (const State::Snapshot& snap : state_->modules)
    modules.emplace_back(
        snap.module, std::vector<Module*>(snap.replicas.begin(), snap.replicas.begin() + count));
  if (merger_) merger_(modules);
  else
    for (const auto& [module, replicas] : modules) module->merge_replicas(replicas);
}

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
