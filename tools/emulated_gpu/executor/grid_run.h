// A grid that is being run, shared by the workers that run its blocks.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "tools/emulated_gpu/executor/grid.h"

namespace ramet::emulated {

struct GridRun {
  explicit GridRun(const Grid& g) : grid(g), total(uint64_t(g.grid.x) * g.grid.y * g.grid.z) {}

  const Grid grid;
  const uint64_t total;
  std::atomic<uint64_t> next{0}, done{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::condition_variable all_done;
  GridResult result;  // under the mutex until all blocks are done
};

}  // namespace ramet::emulated
