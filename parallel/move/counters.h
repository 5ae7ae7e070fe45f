// Counts what the parallel layer has done so far, in plain integers. Tests and tools read the
// counts, one step at a time.
#pragma once
#include <cstdint>

#include "runtime/base/device.h"

namespace ramet {
namespace parallel {

/// Totals since the last reset_counters(). Bytes are payload, without padding. A matrix entry is
/// [from][to], by Device::ordinal(); the diagonal counts copies within a device.
struct Counters {
  uint64_t comm_bytes[kMaxDevices][kMaxDevices] = {};
  uint64_t comm_transfers = 0;        // Tensors, or runs of adjacent tensors, that were moved.
  uint64_t comm_launches = 0;         // Kernel calls that moved or summed.
  uint64_t comm_queued = 0;           // Movements that queued because an operand was pending.
  uint64_t reduce_nodes_created = 0;  // Gradient edges of replicated parameters.
  uint64_t reduce_slots_skipped = 0;  // Shards that delivered no gradient for a parameter.
  uint64_t replica_refresh_bytes = 0;
  uint64_t replica_rebuilds = 0;
  uint64_t host_syncs = 0;  // Times that a user's thread waited for a pending storage.
  uint64_t rng_draws = 0;   // Operations that drew random numbers.
  // Nodes of autograd graphs that exist now; reset_counters() does not change it.
  int64_t graph_nodes_alive = 0;

  /// Bytes that went from one device to another.
  uint64_t moved() const {
    uint64_t sum = 0;
    for (int i = 0; i < kMaxDevices; ++i)
      for (int j = 0; j < kMaxDevices; ++j)
        if (i != j) sum += comm_bytes[i][j];
    return sum;
  }
};
RAMET_API Counters counters();
RAMET_API void reset_counters();

namespace detail {
enum class Count : uint8_t {
  kTransfers,
  kLaunches,
  kQueued,
  kNodesCreated,
  kSlotsSkipped,
  kRefreshBytes,
  kRebuilds,
  kCount
};
void count(Count what, uint64_t n = 1);
void count_bytes(int from, int to, uint64_t bytes);
}  // namespace detail

}  // namespace parallel
}  // namespace ramet
