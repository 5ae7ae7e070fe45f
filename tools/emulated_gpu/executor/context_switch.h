// A place that execution can be switched to and from. Two implementations have one interface:
//
//   prepare(stack, bytes, entry, argument)  the next switch to this context calls entry(argument),
//                                           which must not return
//   switch_to(from, to)                     saves the running code in `from` and goes on in `to`
//
// Neither knows about sanitizers; fiber.h does.
#pragma once
#include <ucontext.h>

#include <cstddef>

namespace ramet::emulated {

/// glibc's: every processor that Linux runs on, but two system calls (signal masks) a switch.
class PortableContext {
 public:
  using Entry = void (*)(void*);
  void prepare(void* stack, size_t bytes, Entry entry, void* argument);
  static void switch_to(PortableContext& from, PortableContext& to);

 private:
  ucontext_t context_;
};

#if defined(__x86_64__) || defined(__aarch64__)
#define RAMET_EMULATED_FAST_SWITCH 1
/// The registers that a called function must keep, and the stack pointer. About 3 ns on x86-64.
class FastContext {
 public:
  using Entry = void (*)(void*);
  void prepare(void* stack, size_t bytes, Entry entry, void* argument);
  static void switch_to(FastContext& from, FastContext& to);

 private:
  void* stack_pointer_ = nullptr;
};
#endif

// -DRAMET_EMULATED_PORTABLE_SWITCH tries the fallback where it is not needed.
#if defined(RAMET_EMULATED_FAST_SWITCH) && !defined(RAMET_EMULATED_PORTABLE_SWITCH)
using Context = FastContext;
#else
using Context = PortableContext;
#endif

}  // namespace ramet::emulated
