#include "tools/emulated_gpu/executor/fiber.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#if defined(RAMET_EMULATED_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace ramet::emulated {
namespace {

size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void enter(void* fiber) {
#if defined(RAMET_EMULATED_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  static_cast<Fiber*>(fiber)->run();
  __builtin_trap();  // a fiber has nowhere to return to
}

}  // namespace

Fiber::Fiber(size_t stack_bytes, Entry entry) : entry_(entry) {
  const size_t page = page_bytes();
  bytes = (stack_bytes + page - 1) / page * page;
  void* memory = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, page, PROT_NONE);
  low = static_cast<char*>(memory) + page;
#if defined(__SANITIZE_THREAD__)
  tsan_fiber = __tsan_create_fiber(0);
#endif
  context.prepare(low, bytes, enter, this);
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(tsan_fiber);
#endif
#if defined(RAMET_EMULATED_ASAN)
  ASAN_UNPOISON_MEMORY_REGION(low, bytes);
#endif
  munmap(low - page_bytes(), bytes + page_bytes());
}

void Fiber::rewind() {
#if defined(RAMET_EMULATED_ASAN)
  ASAN_UNPOISON_MEMORY_REGION(low, bytes);
  asan_fake_stack = nullptr;
#endif
  context.prepare(low, bytes, enter, this);
}

void describe_host_thread(Stack* stack) {
  pthread_attr_t attributes;
  void* lowest = nullptr;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &lowest, &stack->bytes);
  pthread_attr_destroy(&attributes);
  stack->low = static_cast<char*>(lowest);
#if defined(__SANITIZE_THREAD__)
  stack->tsan_fiber = __tsan_get_current_fiber();
#endif
}

}  // namespace ramet::emulated
