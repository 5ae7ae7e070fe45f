// Everything an operation reads from thread-local storage, in one struct: one address computation
// per operation.
//
// `__thread` with a constant initialiser instead of `thread_local`: the latter calls a wrapper at
// each access that asks whether a dynamic initialiser has to run. What must follow work onto
// another thread is listed in ThreadLocalState.
#pragma once
#include <cstdint>

#include "runtime/base/dtype.h"

namespace ramet {

namespace pool {
struct HeapFront;
}
namespace autograd {
struct Node;
class GraphTask;
}  // namespace autograd
struct Scope;
struct ReplicaRandom;

/// What each thread has of it, as `ramet::detail::tls`; not for programs.
struct Context {
  static constexpr uint8_t kAnomaly = 1;        // autograd::AnomalyMode
  static constexpr uint8_t kGraphObserved = 2;  // autograd/graph/graph_observer.h
  // this thread's free lists; null before first use and after thread exit
  pool::HeapFront* heap = nullptr;
  // thread-local destructors have run: only the locked shared heap may be used
  bool heap_gone = false;
  bool grad_mode = true;        // operations are recorded
  bool inference_mode = false;  // inside InferenceMode
  // 1: what this thread does belongs to the capture that is being made (runtime/capture/capture.h)
  uint8_t capturing = 0;
  // who looks on while the graph is made and walked: 0, or some of the bits below
  uint8_t watching = 0;
  bool anomaly_check_nan = true;  // a NaN in a gradient is an Error then
  // a loop that destroys dead nodes is already running further up this stack
  bool draining = false;
  // inside a task of a fork/join region: nested regions run inline
  bool in_parallel = false;
  ScalarType default_dtype = ScalarType::Float;  // get_default_dtype()
  uint8_t cpu_device = 0;   // index of the current cpu device: whose work runs here
  uint8_t cuda_device = 0;  // index of the current GPU
  // threads this one's regions may use, 0: all (Note [Shares] in runtime/devices/devices.h)
  uint8_t share = 0;
  int16_t replica = -1;                 // replica index inside parallel_apply, -1 outside
  uint64_t counter = 1;                 // operation counter: orders the nodes of this thread
  autograd::Node* dead = nullptr;       // nodes without references, waiting for the loop above
  autograd::GraphTask* task = nullptr;  // backward that runs on this thread, general walk only
  const Scope* scope = nullptr;         // innermost profiler scope
  // what this replica's random numbers are keyed by (runtime/devices/generator.h), null outside
  ReplicaRandom* random = nullptr;
};

#if defined(__GNUC__)
namespace detail {
extern RAMET_API __thread Context tls;
}
#endif

/// Scoped setting of one Context member.
template <class T> class ScopedValue {
 public:
  ScopedValue(T& where, T value) : where_(where), before_(where) { where_ = value; }
  ~ScopedValue() { where_ = before_; }
  ScopedValue(const ScopedValue&) = delete;
  ScopedValue& operator=(const ScopedValue&) = delete;

 private:
  T& where_;
  T before_;
};

}  // namespace ramet
