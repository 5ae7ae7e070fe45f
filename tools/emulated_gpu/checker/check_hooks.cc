// The hooks through which the executor and the engine report to the checker.
#include <algorithm>
#include <mutex>

#include "tools/emulated_gpu/checker/checker.h"

namespace ramet::emulated {
namespace {

/// Held while an operation runs: the checker follows one at a time.
std::mutex& operation_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

void begin_operation(const char* what, uint32_t stream, uint64_t number, const VectorClock& clock) {
  operation_mutex().lock();
  CheckState& state = check_state();
  // A copy is one block of one thread.
  const uint32_t first = ++state.instance;
  state.operations.push_back({first, stream, number, what});
  state.clock = clock;
  state.operation_first = state.launch_first = first;
  state.released.assign(1, false);
  state.fenced = state.acquired = false;
  forget_reports();
}

void begin_grid(const Grid& grid) {
  CheckState& state = check_state();
  state.grid = grid;
  state.launch_first = state.instance + 1;
  if (!state.operations.empty()) state.operations.back().kernel = grid.function;
  state.released.assign(size_t(grid.grid.x) * grid.grid.y * grid.grid.z, false);
  // Modules, and with them shared variables, may have come since the last launch.
  find_thread_regions();
}

// In a graph other nodes follow in the same operation, ordered after the grid.
void end_grid() {
  CheckState& state = check_state();
  state.launch_first = ++state.instance;
  state.released.assign(1, false);
  state.fenced = state.acquired = false;
}

void begin_block(const Grid&, unsigned char* dynamic_shared) {
  CheckState& state = check_state();
  ++state.instance;
  state.fenced = state.acquired = false;
  state.static_shared = 0;
  state.dynamic_shared = reinterpret_cast<uintptr_t>(dynamic_shared);
  find_dynamic_shared(dynamic_shared);
}

void copy_access(const void* memory, size_t bytes, bool write) {
  const auto start = reinterpret_cast<uintptr_t>(memory);
  Region* region = region_of(start);
  if (!region || region->kind != RegionKind::Device) return;
  for (size_t done = 0; done < bytes;) {
    const unsigned offset = (start + done) & 3;
    const auto take = unsigned(std::min<size_t>(4 - offset, bytes - done));
    const unsigned which = ((1u << take) - 1) << offset;
    if ((region->owned[region->cell_of(start + done)] & which) != which)
      return report_unowned(*region, start + done, write);
    // A copy of uninitialised bytes is allowed.
    track(*region, {(start + done) & ~uintptr_t(3), which, write, false, Position{}, nullptr},
          false);
    done += take;
  }
}

}  // namespace

const CheckHooks& checks() {
  static const CheckHooks hooks = [] {
    CheckHooks h;
    h.grid_begin = begin_grid;
    h.grid_end = end_grid;
    h.block_begin = begin_block;
    h.fence = [] { check_state().fenced = true; };
    h.arena = add_device_region;
    h.arena_gone = remove_device_region;
    h.allocated = [](void* memory, size_t bytes) { mark_allocation(memory, bytes, true); };
    h.freed = [](void* memory, size_t bytes) { mark_allocation(memory, bytes, false); };
    h.freed_in_order = [](const void* memory, size_t bytes) {
      const auto address = reinterpret_cast<uintptr_t>(memory);
      if (Region* region = region_of(address)) check_free(*region, address, bytes);
    };
    h.pinned = mark_pinned;
    h.host_access = copy_access;
    h.operation_begin = begin_operation;
    h.operation_end = [] { operation_mutex().unlock(); };
    return h;
  }();
  return hooks;
}

}  // namespace ramet::emulated
