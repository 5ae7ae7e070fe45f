// Fork and join inside one operation.
//
//
// Every logical CPU device has a share of the cores. cpu:0 uses the whole pool (RAMET_NUM_THREADS).
// cpu:k (k > 0) is one worker thread. Its operations run on that thread alone, unless there are
// more cores than devices. The caller cuts a region into tasks, by shape alone and never by thread
// count. So the thread that runs a task may change, but not the result of the task.
#pragma once
#include <cstdint>

#include "runtime/base/error.h"

namespace ramet {

/// Threads that a region started by this thread may use, the caller included. At least 1.
RAMET_API int get_num_threads();
/// Sets the size of the pool (>= 1). Takes effect at the next region. Same bits for any value.
RAMET_API void set_num_threads(int threads);
/// Upper bound of `slot` below: regions started now never use more than this many slots.
RAMET_API int max_parallel_slots();
/// Work that touches fewer bytes than this (8 FLOP count as a byte) stays on the caller: 32 KB, or
/// RAMET_PAR_GRAIN.
RAMET_API int64_t parallel_grain();

namespace detail {
// fn(context, task, slot): task in [0, tasks), slot in [0, max_parallel_slots()), unique among the
// threads of the region.
RAMET_API void parallel_run(int64_t tasks, void (*fn)(void*, int64_t, int), void* context);
}  // namespace detail

/// Runs f(task, slot) for every task, on this thread and idle pool threads. Returns when all are
/// done. Rethrows an exception of f: of several tasks, that of the first. Later tasks may or may
/// not have run. A region inside a region runs on the caller. So does one that finds the pool busy
/// with another device's region.
template <class F> inline void parallel_tasks(int64_t tasks, const F& f) {
  if (tasks == 1) {
    f(int64_t{0}, 0);
    return;
  }
  if (tasks <= 0) return;
  detail::parallel_run(
      tasks, [](void* c, int64_t i, int slot) { (*static_cast<const F*>(c))(i, slot); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace ramet
