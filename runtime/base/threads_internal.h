// Does the platform have threads?
//
// Note [Without threads]
// WebAssembly without its threads has one. There devices have no workers, and data loaders have
// none (runtime/devices, nn/data/worker_pool.cc). What is posted runs at once, on the thread that
// posts it, and in order. A backward pass runs all lanes on its own thread, as for a capture. Results are the same,
// since no result depends on a thread. Replicas that meet need a thread each: that is an Error.
#pragma once

namespace ramet {
namespace detail {

constexpr bool has_threads() {
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
  return false;
#else
  return true;
#endif
}

}  // namespace detail
}  // namespace ramet
