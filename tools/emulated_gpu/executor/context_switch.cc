#include "tools/emulated_gpu/executor/context_switch.h"

#include <cstdint>

namespace ramet::emulated {
namespace {

// makecontext() passes ints only: a pointer travels as two halves.
void portable_entry(unsigned entry_low, unsigned entry_high, unsigned low, unsigned high) {
  const auto join = [](unsigned l, unsigned h) { return uintptr_t(l) | uintptr_t(h) << 32; };
  reinterpret_cast<PortableContext::Entry>(join(entry_low, entry_high))(
      reinterpret_cast<void*>(join(low, high)));
}

}  // namespace

void PortableContext::prepare(void* stack, size_t bytes, Entry entry, void* argument) {
  static_assert(sizeof(void*) == 8);
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack;
  context_.uc_stack.ss_size = bytes;
  context_.uc_link = nullptr;
  const auto e = reinterpret_cast<uintptr_t>(entry), a = reinterpret_cast<uintptr_t>(argument);
  makecontext(&context_, reinterpret_cast<void (*)()>(portable_entry), 4, unsigned(e),
              unsigned(e >> 32), unsigned(a), unsigned(a >> 32));
}

void PortableContext::switch_to(PortableContext& from, PortableContext& to) {
  swapcontext(&from.context_, &to.context_);
}

#if defined(RAMET_EMULATED_FAST_SWITCH)

extern "C" void ramet_emulated_switch(void** save, void* load);
extern "C" void ramet_emulated_enter();

#if defined(__x86_64__)

// The switch ends in `ret`, not in a pop and a jump: fibers mostly wait at one call, so the return
// predictor stays in step. With the jump two fibers alone are faster (2.9 against 7.1 ns) and a
// real barrier slower (29 against 17 ns a thread).
asm(R"(
.text
.globl ramet_emulated_switch
.hidden ramet_emulated_switch
.type ramet_emulated_switch,@function
ramet_emulated_switch:
  .cfi_startproc
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .cfi_endproc
.size ramet_emulated_switch,.-ramet_emulated_switch
.globl ramet_emulated_enter
.hidden ramet_emulated_enter
.type ramet_emulated_enter,@function
ramet_emulated_enter:
  .cfi_startproc
  .cfi_undefined rip
  movq %r12, %rdi
  call *%rbx
  ud2
  .cfi_endproc
.size ramet_emulated_enter,.-ramet_emulated_enter
)");

void FastContext::prepare(void* stack, size_t bytes, Entry entry, void* argument) {
  auto** top = reinterpret_cast<void**>(static_cast<char*>(stack) + bytes);
  *--top = nullptr;  // keeps the 16-byte alignment of calls
  *--top = nullptr;  // end of the chain of frames
  *--top = reinterpret_cast<void*>(&ramet_emulated_enter);
  *--top = nullptr;                              // rbp
  *--top = reinterpret_cast<void*>(entry);       // rbx
  *--top = argument;                             // r12
  for (int i = 0; i < 3; ++i) *--top = nullptr;  // r13 to r15
  stack_pointer_ = top;
}

#else

// The link register says where a switch returns to: the code that had switched away, or _enter.
asm(R"(
.text
.globl ramet_emulated_switch
.hidden ramet_emulated_switch
.type ramet_emulated_switch,%function
ramet_emulated_switch:
  .cfi_startproc
  stp x19, x20, [sp, #-160]!
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x19, x20, [sp], #160
  ret
  .cfi_endproc
.size ramet_emulated_switch,.-ramet_emulated_switch
.globl ramet_emulated_enter
.hidden ramet_emulated_enter
.type ramet_emulated_enter,%function
ramet_emulated_enter:
  .cfi_startproc
  .cfi_undefined x30
  mov x0, x20
  blr x19
  brk #1
  .cfi_endproc
.size ramet_emulated_enter,.-ramet_emulated_enter
)");

void FastContext::prepare(void* stack, size_t bytes, Entry entry, void* argument) {
  constexpr int kSaved = 20, kLink = 11;  // 8 bytes each: x19 to x30, d8 to d15
  auto** top = reinterpret_cast<void**>(static_cast<char*>(stack) + bytes) - kSaved;
  for (int i = 0; i < kSaved; ++i) top[i] = nullptr;
  top[0] = reinterpret_cast<void*>(entry);
  top[1] = argument;
  top[kLink] = reinterpret_cast<void*>(&ramet_emulated_enter);
  stack_pointer_ = top;
}

#endif

void FastContext::switch_to(FastContext& from, FastContext& to) {
  ramet_emulated_switch(&from.stack_pointer_, to.stack_pointer_);
}

#endif

}  // namespace ramet::emulated
