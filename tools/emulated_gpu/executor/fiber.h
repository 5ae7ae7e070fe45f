// Stacks that CUDA threads run on, and switches between them that sanitizers can follow.
#pragma once
#include <cstddef>

#include "tools/emulated_gpu/executor/context_switch.h"
#include "tools/emulated_gpu/executor/types.h"

#if defined(RAMET_EMULATED_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace ramet::emulated {

/// Something to switch to: a fiber, or the host thread that runs a block.
struct Stack {
  Context context;
  char* low = nullptr;
  size_t bytes = 0;
  // The sanitizers' names for this stack.
  void* asan_fake_stack = nullptr;
  void* tsan_fiber = nullptr;
};

/// A stack of its own, with a page below it that faults at once on overflow.
class Fiber : public Stack {
 public:
  using Entry = void (*)(Fiber*);
  Fiber(size_t stack_bytes, Entry entry);
  ~Fiber();
  Fiber(const Fiber&) = delete;

  /// The next switch calls the entry again. The stack's contents are dropped without destructors: a
  /// block that has failed is abandoned where it stands.
  void rewind();
  void run() { entry_(this); }

 private:
  Entry entry_;
};

/// Describes the calling thread's own stack.
void describe_host_thread(Stack* stack);

inline void switch_stack(Stack& from, Stack& to) {
#if defined(RAMET_EMULATED_ASAN)
  __sanitizer_start_switch_fiber(&from.asan_fake_stack, to.low, to.bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to.tsan_fiber, 0);
#endif
  Context::switch_to(from.context, to.context);
#if defined(RAMET_EMULATED_ASAN)
  __sanitizer_finish_switch_fiber(from.asan_fake_stack, nullptr, nullptr);
#endif
}

// Two CUDA threads meet at a barrier: each sees what the other did before it. Only TSan needs to be
// informed.
#if defined(__SANITIZE_THREAD__)
inline void happens_before(void* token) { __tsan_release(token); }
inline void happens_after(void* token) { __tsan_acquire(token); }
#else
inline void happens_before(void*) {}
inline void happens_after(void*) {}
#endif

}  // namespace ramet::emulated
