// Checks one access of a running kernel: where it goes, what was there before, and whether the two
// are ordered.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "tools/emulated_gpu/checker/checker.h"
#include "tools/emulated_gpu/executor/settings.h"

namespace ramet::emulated {
namespace {

/// The earlier operation that an access is not ordered after; null where all is well.
const CheckedOperation* unordered_operation(uint32_t instance) {
  const CheckState& state = check_state();
  if (instance == 0 || instance >= state.operation_first) return nullptr;
  auto next = std::upper_bound(state.operations.begin(), state.operations.end(), instance,
                               [](uint32_t value, const CheckedOperation& operation) {
                                 return value < operation.first_instance;
                               });
  if (next == state.operations.begin()) return nullptr;
  const CheckedOperation& operation = *std::prev(next);
  const bool known =
      operation.stream < state.clock.size() && state.clock[operation.stream] >= operation.number;
  return known ? nullptr : &operation;
}

/// Within one block: a __syncthreads() between the two or, in one warp, a warp primitive. Epochs
/// only grow, so "another one" is "an earlier one".
bool ordered_in_block(const LastAccess& earlier, const Access& access) {
  if (earlier.block_epoch != uint16_t(access.position.block_epoch)) return true;
  const bool same_warp = earlier.rank / 32 == access.position.rank / 32 && !earlier.across_warps;
  return same_warp && earlier.warp_epoch != uint16_t(access.position.warp_epoch);
}

bool conflicts(const Region& region, const LastAccess& earlier, const Access& access) {
  const CheckState& state = check_state();
  if (earlier.instance < state.launch_first) return false;
  if (access.atomic && earlier.atomic) return false;
  if (earlier.instance == state.instance) {
    const bool same_thread = earlier.rank == access.position.rank && !earlier.several;
    return !same_thread && !ordered_in_block(earlier, access);
  }
  if (region.kind != RegionKind::Device) return false;
  return !(state.acquired && state.released[earlier.instance - state.launch_first]);
}

/// Have the bytes been written (shared memory: by this block)? A write marks them as written.
bool initialised(Region& region, const Access& access) {
  const size_t cell = region.cell_of(access.address);
  uint8_t& written = region.written[cell];
  if (region.kind != RegionKind::Device && region.written_by[cell] != check_state().instance) {
    CheckState& state = check_state();
    region.written_by[cell] = state.instance;
    written = 0;
    if (region.kind == RegionKind::StaticShared) {
      state.static_shared += 4;
      if (state.static_shared + state.grid.shared_bytes > state.grid.most_shared)
        report_too_much_shared(access);
    }
  }
  if (access.write) written |= uint8_t(access.bytes);
  return (written & access.bytes) == access.bytes;
}

void remember(LastAccess& last, const Access& access, unsigned bytes) {
  const CheckState& state = check_state();
  const uint16_t epoch = uint16_t(access.position.block_epoch);
  // Readers of one epoch add up: a later write must be ordered after all of them. Two kinds of
  // earlier readers do not add up. Readers of other bytes: the write need not be after those.
  // Readers of the same warp before a primitive that this reader comes after: a write after this
  // reader is also after them.
  const bool of_one_warp = last.rank / 32 == access.position.rank / 32 && !last.across_warps;
  const bool adds = !access.write && last.instance == state.instance && last.block_epoch == epoch &&
                    (last.bytes & bytes) != 0 &&
                    !(of_one_warp && last.warp_epoch != uint16_t(access.position.warp_epoch));
  const bool other = adds && last.rank != access.position.rank;
  const bool other_warp = other && last.rank / 32 != access.position.rank / 32;
  // Built in registers, then stored at once.
  LastAccess now{};
  now.several = other || (adds && last.several);
  now.across_warps = other_warp || (adds && last.across_warps);
  now.bytes = adds ? last.bytes | bytes : bytes;
  now.code = reinterpret_cast<uintptr_t>(access.code);
  now.rank = access.position.rank;
  now.atomic = access.atomic;
  now.block_epoch = epoch;
  now.warp_epoch = uint16_t(access.position.warp_epoch);
  now.instance = state.instance;
  last = now;
}

/// (It takes its arguments by value: reading a struct that was just written would wait for the
/// write.)
[[gnu::noinline]] void check_region_access(Region& region, uintptr_t address, size_t bytes,
                                           bool write, bool atomic, const void* code) {
  Access access{address, 0, write, atomic, current_position(), code};
  const CheckState& state = check_state();
  const char* const verb = access.write ? "write to " : "read of ";
  if (region.kind == RegionKind::DynamicShared &&
      (address < state.dynamic_shared ||
       address + bytes > state.dynamic_shared + state.grid.shared_bytes)) {
    char offset[32];
    std::snprintf(offset, sizeof offset, "%+td", ptrdiff_t(address - state.dynamic_shared));
    report_illegal(access, std::string("OUT OF BOUNDS: ") + verb + "dynamic shared memory " +
                               offset + ", of which the launch gave " +
                               std::to_string(state.grid.shared_bytes) + " bytes");
  }
  if (region.kind == RegionKind::Device && region.device != state.grid.device &&
      !peer_access_enabled(state.grid.device, reinterpret_cast<const void*>(address)))
    report_illegal(access, std::string("PEER ACCESS is not enabled: ") + verb +
                               describe(region, address) +
                               " on cuda:" + std::to_string(state.grid.device));
  for (size_t done = 0; done < bytes;) {
    const unsigned offset = (address + done) & 3;
    const auto take = unsigned(std::min<size_t>(4 - offset, bytes - done));
    access.address = (address + done) & ~uintptr_t(3);
    access.bytes = ((1u << take) - 1) << offset;
    if (region.kind == RegionKind::Device &&
        (region.owned[region.cell_of(access.address)] & access.bytes) != access.bytes)
      report_illegal(access, std::string("OUT OF BOUNDS: ") + verb +
                                 describe(region, address + done) + ", which no allocation holds");
    track(region, access, true);
    done += take;
  }
}

bool is_built_in(uintptr_t address) {
  // (No loop: the list would be written to memory at every access.)
  const auto is = [address](const uint3& variable) {
    return address - reinterpret_cast<uintptr_t>(&variable) < sizeof(uint3);
  };
  return is(threadIdx) || is(blockIdx) || is(blockDim) || is(gridDim);
}

}  // namespace

static void compare(const Region& region, const Access& access, const LastAccess& earlier,
                    bool earlier_write) {
  if (!(earlier.bytes & access.bytes)) return;
  if (region.kind == RegionKind::Device)
    if (const CheckedOperation* operation = unordered_operation(earlier.instance))
      report_unordered(region, access, earlier, earlier_write, *operation);
  if (conflicts(region, earlier, access)) report_race(region, access, earlier, earlier_write);
}

void track(Region& region, const Access& access, bool check_initialised) {
  const size_t at = region.cell_of(access.address);
  Cell& cell = region.cells[at];
  if (region.kind == RegionKind::Device && !(region.written[at] & Region::kTouched)) {
    region.written[at] |= Region::kTouched;
    cell = {};
  }
  if (!initialised(region, access) && check_initialised) report_uninitialised(region, access);
  compare(region, access, cell.write, true);
  if (access.write) {
    for (const LastAccess& read : cell.read) compare(region, access, read, false);
    compare(region, access, cell.earlier_read, false);
    remember(cell.write, access, access.bytes);
    return;
  }
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned bytes = access.bytes & 3u << (2 * half);
    if (!bytes) continue;
    LastAccess& read = cell.read[half];
    if (read.instance && read.instance != check_state().instance) cell.earlier_read = read;
    remember(read, access, bytes);
  }
}

void check_free(Region& region, uintptr_t address, size_t bytes) {
  Access access{address, 15, true, false, Position{}, nullptr};
  uint32_t known[4] = {};  // the neighbour's instances, which were in order
  for (size_t i = 0; i * 4 < bytes; ++i, access.address += 4) {
    const size_t at = region.cell_of(access.address);
    if (!(region.written[at] & Region::kTouched)) continue;
    const Cell& cell = region.cells[at];
    const LastAccess* const all[4] = {&cell.write, &cell.read[0], &cell.read[1],
                                      &cell.earlier_read};
    for (size_t k = 0; k < 4; ++k)
      if (std::exchange(known[k], all[k]->instance) != all[k]->instance)
        compare(region, access, *all[k], k == 0);
  }
}

void check_access(const void* memory, size_t bytes, bool write, bool atomic, const void* code) {
  if (!running_stack.bytes) return;  // host code
  const auto address = reinterpret_cast<uintptr_t>(memory);
  if (address - reinterpret_cast<uintptr_t>(running_stack.low) < running_stack.bytes) return;
  if (is_built_in(address)) return;
  const Grid& grid = check_state().grid;
  if (address - reinterpret_cast<uintptr_t>(grid.arguments) < grid.argument_bytes) return;
  if (step_hooks) step_hooks->accesses(memory, bytes, write, atomic, code);
  if (Region* region = region_of(address))
    return check_region_access(*region, address, bytes, write, atomic, code);
  if (readable_from_kernels(address)) return;
  char text[64];
  std::snprintf(text, sizeof text, "ILLEGAL ADDRESS: %s host memory %p",
                write ? "write to" : "read of", memory);
  report_illegal({address, 0, write, atomic, current_position(), code}, text);
}

void note_atomic() {
  if (!running_stack.bytes) return;
  CheckState& state = check_state();
  state.acquired = true;
  if (state.fenced) state.released[state.instance - state.launch_first] = true;
}

}  // namespace ramet::emulated
