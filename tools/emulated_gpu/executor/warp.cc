// Warp-level primitives: live lanes of a mask meet, one of them does the work for all.
#include <cstdio>
#include <cstring>

#include "tools/emulated_gpu/checker/checks.h"
#include "tools/emulated_gpu/executor/report.h"
#include "tools/emulated_gpu/executor/worker.h"

namespace ramet::emulated {

void warp_rendezvous(uint32_t mask, void* argument, WarpFunction function, const char* file,
                     int line) {
  Worker::get().meet(mask, argument, function, file, line);
}

void Worker::meet(uint32_t mask, void* argument, WarpFunction function, const char* file,
                  int line) {
  const unsigned lane = current_ % 32;
  Warp& warp = warps_[current_ / 32];
  if (!(mask >> lane & 1)) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%08x", mask);
    record_fault(Fault::WarpPrimitive,
                 "BAD MASK: thread " + text_of(threadIdx) + " at " + place(file, line) +
                     " calls a warp primitive with mask " + text + ", which lacks its own lane");
    abandon_block();
  }
  size_t index = 0;
  const auto count = static_cast<size_t>(warp.group_count);
  while (index < count && warp.groups[index].mask != mask) ++index;
  if (index == count) {
    warp.groups[index] = {mask, 0, function, file, line};
    ++warp.group_count;
  }
  WarpGroup& group = warp.groups[index];
  const bool same_place =
      group.line == line && (group.file == file || std::strcmp(group.file, file) == 0);
  if (group.function != function || !same_place) {
    record_fault(Fault::WarpPrimitive, "DIVERGENT WARP PRIMITIVE: thread " + text_of(threadIdx) +
                                           " at " + place(file, line) +
                                           " meets lanes that wait in another one at " +
                                           place(group.file, group.line));
    abandon_block();
  }
  if (step_hooks) step_hooks->arrives(mask, file, line);
  CudaThread& thread = threads_[current_];
  thread.argument = argument;
  thread.mask = mask;
  thread.file = file;
  thread.line = line;
  group.arrived |= 1u << lane;
  happens_before(&warp);
  if (group.arrived == (mask & warp.live)) {
    complete_group(current_ / 32, static_cast<int>(index), false);
  } else {
    thread.state = ThreadState::AtWarp;
    wait_for_others();
  }
  happens_after(&warp);
}

void Worker::complete_group(unsigned warp_index, int index, bool include_current) {
  Warp& warp = warps_[warp_index];
  const WarpGroup group = warp.groups[static_cast<size_t>(index)];
  warp.groups[static_cast<size_t>(index)] = warp.groups[static_cast<size_t>(--warp.group_count)];
  ++warp.epoch;
  if (group.function) {
    void* lanes[32] = {};
    for (uint32_t rest = group.arrived; rest; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(__builtin_ctz(rest));
      lanes[lane] = threads_[warp_index * 32 + lane].argument;
    }
    // It works on all lanes' stacks; the checker must ignore these accesses.
    const RunningStack keep = running_stack;
    running_stack = {nullptr, 0};
    group.function(lanes, group.mask);
    running_stack = keep;
  }
  // The lowest lane first, before all other ready threads (Note [Greedy]).
  for (uint32_t rest = group.arrived; rest;) {
    const auto lane = 31u - static_cast<unsigned>(__builtin_clz(rest));
    rest &= ~(1u << lane);
    const unsigned rank = warp_index * 32 + lane;
    if (rank != current_ || include_current) push_ready_first(rank);
  }
}

}  // namespace ramet::emulated
