// Everything an operation reads from thread-local storage, in one struct: one address computation
// per operation.
//
// `__thread` with a constant initialiser instead of `thread_local`: the latter calls a wrapper at
// each access, which checks whether a dynamic initialiser has to run. ThreadLocalState lists the
// state that must follow work onto another thread.
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

/// A thread's state: each thread has one, `ramet::detail::tls`. Not for programs.
struct Context {
  static constexpr uint8_t kAnomaly = 1;        // autograd::AnomalyMode
  static constexpr uint8_t kGraphObserved = 2;  // autograd/graph/graph_observer.h
  static constexpr uint8_t kCheckpoint = 4;     // inside autograd::checkpoint's function
  static constexpr uint8_t kComputesAgain = 8;  // and that runs once more, in a backward pass
  // this thread's free lists; null before first use and after thread exit
  pool::HeapFront* heap = nullptr;
  // thread-local destructors have run: only the locked shared heap may be used
  bool heap_gone = false;
  bool grad_mode = true;        // operations are recorded
  bool inference_mode = false;  // inside InferenceMode
  // 1: what this thread does belongs to the capture that is being made (runtime/capture/capture.h)
  uint8_t capturing = 0;
  // observers while the graph is made and in the backward pass: 0, or some of the bits above
  uint8_t watching = 0;
  bool anomaly_check_nan = true;  // a NaN in a gradient is an Error then
  // a loop that destroys dead nodes is already running further up this stack
  bool draining = false;
  // inside a task of a fork/join region: nested regions run inline
  bool in_parallel = false;
  ScalarType default_dtype = ScalarType::Float;  // get_default_dtype()
  uint8_t cpu_device = 0;   // index of the current cpu device, for which this thread works
  uint8_t cuda_device = 0;  // index of the current GPU
  // number of threads for this thread's regions, 0: all (Note [Shares] in
  // runtime/devices/devices.h)
  uint8_t share = 0;
  int16_t replica = -1;  // replica index inside parallel_apply, -1 outside
  // autocast (autograd/autocast.h): for which kinds of devices it is on, as bits. 0 while an
  // operation runs that it has cast for
  uint8_t autocast = 0;
  uint8_t autocast_choices = 0;         // its dtypes and its cache, as bits; 0: the defaults
  uint64_t counter = 1;                 // operation counter: orders the nodes of this thread
  autograd::Node* dead = nullptr;       // nodes without references, waiting for the loop above
  autograd::GraphTask* task = nullptr;  // a general backward pass on this thread
  const Scope* scope = nullptr;         // innermost profiler scope
  // the key of this replica's random numbers (runtime/devices/generator.h), null outside
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
