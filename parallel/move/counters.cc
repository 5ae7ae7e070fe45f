#include "parallel/move/counters.h"

#include <atomic>

#include "autograd/graph/node.h"
#include "runtime/base/counters.h"
#include "runtime/devices/devices.h"

namespace ramet {
namespace parallel {
namespace {

constinit std::atomic<uint64_t> g_bytes[kMaxDevices][kMaxDevices]{};
constinit std::atomic<uint64_t> g_counts[static_cast<int>(detail::Count::kCount)]{};

uint64_t value(detail::Count what) {
  return g_counts[static_cast<int>(what)].load(std::memory_order_relaxed);
}

}  // namespace

namespace detail {
void count(Count what, uint64_t n) {
  g_counts[static_cast<int>(what)].fetch_add(n, std::memory_order_relaxed);
}
void count_bytes(int from, int to, uint64_t bytes) {
  g_bytes[from][to].fetch_add(bytes, std::memory_order_relaxed);
}
}  // namespace detail

Counters counters() {
  using detail::Count;
  Counters c;
  for (int i = 0; i < kMaxDevices; ++i)
    for (int j = 0; j < kMaxDevices; ++j)
      c.comm_bytes[i][j] = g_bytes[i][j].load(std::memory_order_relaxed);
  c.comm_transfers = value(Count::kTransfers);
  c.comm_launches = value(Count::kLaunches);
  c.comm_queued = value(Count::kQueued);
  c.reduce_nodes_created = value(Count::kNodesCreated);
  c.reduce_slots_skipped = value(Count::kSlotsSkipped);
  c.replica_refresh_bytes = value(Count::kRefreshBytes);
  c.replica_rebuilds = value(Count::kRebuilds);
  c.host_syncs = devices::host_syncs();
  c.rng_draws = random_draws();
  c.graph_nodes_alive = autograd::nodes_alive();
  return c;
}

void reset_counters() {
  for (auto& row : g_bytes)
    for (auto& n : row) n = 0;
  for (auto& n : g_counts) n = 0;
  devices::reset_host_syncs();
  reset_random_draws();
}

}  // namespace parallel
}  // namespace ramet
