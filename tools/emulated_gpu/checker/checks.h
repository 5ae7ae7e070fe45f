// The hooks of the checker (--config=check). They are empty in every other build: no_checks.cc.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/emulated_gpu/executor/grid.h"

namespace ramet::emulated {

/// Which operations of which streams are known to be done, by stream number.
using VectorClock = std::vector<uint64_t>;
inline void join_clocks(VectorClock& into, const VectorClock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

struct CheckHooks {
  // The executor: blocks run one after the other when these are set.
  void (*grid_begin)(const Grid&) = nullptr;
  void (*block_begin)(const Grid&, unsigned char* dynamic_shared) = nullptr;
  void (*grid_end)() = nullptr;
  void (*fence)() = nullptr;
  // Memory.
  void (*arena)(void* base, size_t bytes, int device) = nullptr;
  void (*arena_gone)(void* base) = nullptr;
  void (*allocated)(void* memory, size_t bytes) = nullptr;
  void (*freed)(void* memory, size_t bytes) = nullptr;
  /// The stream's running operation is about to free the memory.
  void (*freed_in_order)(const void* memory, size_t bytes) = nullptr;
  void (*pinned)(void* memory, size_t bytes, bool on) = nullptr;
  /// What copies, matrix products and collectives touch outside kernels.
  void (*host_access)(const void* memory, size_t bytes, bool write) = nullptr;
  // Streams: one operation at a time when these are set.
  void (*operation_begin)(const char* what, uint32_t stream, uint64_t number,
                          const VectorClock& clock) = nullptr;
  void (*operation_end)() = nullptr;
};

const CheckHooks& checks();

/// Hooks that record what each CUDA thread of a block does (tools/see/step). The host thread that
/// runs the block calls them; current_position() names its running CUDA thread.
struct StepHooks {
  void (*block_begun)(const Grid&, uint64_t block);
  void (*block_ended)();
  /// Before the access, in builds with the checker.
  void (*accesses)(const void* memory, size_t bytes, bool write, bool atomic, const void* code);
  /// Comes to a barrier of its block (mask 0), or to a warp primitive.
  void (*arrives)(uint32_t mask, const char* file, int line);
  void (*barrier_passed)();
  void (*thread_ended)();
  void (*fault)(const std::string& text);
};
/// Null: no recording. Set before the first launch.
inline constinit const StepHooks* step_hooks = nullptr;

inline void host_reads(const void* memory, size_t bytes) {
  if (checks().host_access) checks().host_access(memory, bytes, false);
}
inline void host_writes(void* memory, size_t bytes) {
  if (checks().host_access) checks().host_access(memory, bytes, true);
}

/// Stack of the running fiber; 0 bytes on a host thread. Kept by the executor for the checker.
struct RunningStack {
  const char* low;
  size_t bytes;
};
extern __thread RunningStack running_stack;

/// Where the running CUDA thread stands between the barriers of its block and its warp.
struct Position {
  bool on_device = false;
  unsigned rank = 0;
  uint32_t block_epoch = 0, warp_epoch = 0;
};
Position current_position();

/// Index of a thread of the running block.
uint3 index_of(unsigned rank);

/// Whether device `from` may reach the memory of another one at `address`.
bool peer_access_enabled(int from, const void* address);

/// Reports a fault of the running block, which goes on.
void device_warn(Fault fault, const std::string& text);

}  // namespace ramet::emulated
