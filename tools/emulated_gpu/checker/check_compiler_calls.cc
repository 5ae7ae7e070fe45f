// The functions that compilers call for -fsanitize=thread,bounds (g++ and clang++). Nothing is
// linked with the sanitizer's own library in check builds.
#include <cstdint>
#include <string>

#include "tools/emulated_gpu/checker/checker.h"

#define RAMET_CALLER __builtin_return_address(0)

namespace ramet::emulated {
namespace {

void read(const volatile void* memory, size_t bytes, const void* code, bool atomic = false) {
  check_access(const_cast<const void*>(memory), bytes, false, atomic, code);
}

void write(volatile void* memory, size_t bytes, const void* code, bool atomic = false) {
  check_access(const_cast<void*>(memory), bytes, true, atomic, code);
}

void atomic_write(volatile void* memory, size_t bytes, const void* code) {
  write(memory, bytes, code, true);
  note_atomic();
}

}  // namespace
}  // namespace ramet::emulated

using namespace ramet::emulated;

extern "C" {

// Reports an index of an array of known size. The first argument, with place and type, is private
// to the sanitizer.
void __ubsan_handle_out_of_bounds(void*, void* index) {
  const auto at = static_cast<long long>(reinterpret_cast<intptr_t>(index));
  report_illegal({0, 0, false, false, current_position(), RAMET_CALLER},
                 "OUT OF BOUNDS: index " + std::to_string(at) + " of an array");
}

// Reports a value at an address that its type does not allow: GPUs read vectors, and all other
// types, only from multiples of their size.
void __ubsan_handle_type_mismatch_v1(void* data, void* pointer) {
  struct Type {
    uint16_t kind, info;
    char name[1];
  };
  struct Mismatch {  // the compiler's report, in the layout of its sanitizer's library
    const char* file;
    uint32_t line, column;
    const Type* type;
    unsigned char log_alignment, kind;
  };
  const auto& what = *static_cast<const Mismatch*>(data);
  report_misaligned(pointer, what.type->name, size_t(1) << what.log_alignment, RAMET_CALLER);
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** memory, void*) { write(memory, 8, RAMET_CALLER); }
void __tsan_vptr_read(void** memory) { read(memory, 8, RAMET_CALLER); }

// Kernels poll by volatile accesses. Like an atomic access, a volatile one is no race.
#define RAMET_PLAIN_ACCESS(n)                                                           \
  void __tsan_read##n(void* memory) { read(memory, n, RAMET_CALLER); }                  \
  void __tsan_write##n(void* memory) { write(memory, n, RAMET_CALLER); }                \
  void __tsan_unaligned_read##n(void* memory) { read(memory, n, RAMET_CALLER); }        \
  void __tsan_unaligned_write##n(void* memory) { write(memory, n, RAMET_CALLER); }      \
  void __tsan_volatile_read##n(void* memory) { read(memory, n, RAMET_CALLER, true); }   \
  void __tsan_volatile_write##n(void* memory) { write(memory, n, RAMET_CALLER, true); } \
  void __tsan_read_write##n(void* memory) {                                             \
    read(memory, n, RAMET_CALLER);                                                      \
    write(memory, n, RAMET_CALLER);                                                     \
  }
RAMET_PLAIN_ACCESS(1)
RAMET_PLAIN_ACCESS(2)
RAMET_PLAIN_ACCESS(4)
RAMET_PLAIN_ACCESS(8)
RAMET_PLAIN_ACCESS(16)
#undef RAMET_PLAIN_ACCESS

void __tsan_read_range(void* memory, unsigned long bytes) { read(memory, bytes, RAMET_CALLER); }
void __tsan_write_range(void* memory, unsigned long bytes) { write(memory, bytes, RAMET_CALLER); }

// clang++ replaces these three; g++ calls the C library's.
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  read(from, bytes, RAMET_CALLER);
  write(to, bytes, RAMET_CALLER);
  return __builtin_memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  read(from, bytes, RAMET_CALLER);
  write(to, bytes, RAMET_CALLER);
  return __builtin_memmove(to, from, bytes);
}
void* __tsan_memset(void* memory, int value, unsigned long bytes) {
  write(memory, bytes, RAMET_CALLER);
  return __builtin_memset(memory, value, bytes);
}

void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

#define RAMET_ATOMIC_UPDATE(bits, T, operation)                           \
  T __tsan_atomic##bits##_##operation(volatile T* memory, T value, int) { \
    atomic_write(memory, sizeof(T), RAMET_CALLER);                        \
    return __atomic_##operation(memory, value, __ATOMIC_SEQ_CST);         \
  }
#define RAMET_ATOMIC_COMPARE(bits, T, kind, weak)                                                  \
  int __tsan_atomic##bits##_compare_exchange_##kind(volatile T* memory, T* expected, T value, int, \
                                                    int) {                                         \
    atomic_write(memory, sizeof(T), RAMET_CALLER);                                                 \
    return __atomic_compare_exchange_n(memory, expected, value, weak, __ATOMIC_SEQ_CST,            \
                                       __ATOMIC_SEQ_CST);                                          \
  }
#define RAMET_ATOMICS(bits, T)                                                               \
  T __tsan_atomic##bits##_load(const volatile T* memory, int) {                              \
    read(memory, sizeof(T), RAMET_CALLER, true);                                             \
    return __atomic_load_n(memory, __ATOMIC_SEQ_CST);                                        \
  }                                                                                          \
  void __tsan_atomic##bits##_store(volatile T* memory, T value, int) {                       \
    atomic_write(memory, sizeof(T), RAMET_CALLER);                                           \
    __atomic_store_n(memory, value, __ATOMIC_SEQ_CST);                                       \
  }                                                                                          \
  T __tsan_atomic##bits##_exchange(volatile T* memory, T value, int) {                       \
    atomic_write(memory, sizeof(T), RAMET_CALLER);                                           \
    return __atomic_exchange_n(memory, value, __ATOMIC_SEQ_CST);                             \
  }                                                                                          \
  RAMET_ATOMIC_UPDATE(bits, T, fetch_add)                                                    \
  RAMET_ATOMIC_UPDATE(bits, T, fetch_sub)                                                    \
  RAMET_ATOMIC_UPDATE(bits, T, fetch_and)                                                    \
  RAMET_ATOMIC_UPDATE(bits, T, fetch_or)                                                     \
  RAMET_ATOMIC_UPDATE(bits, T, fetch_xor)                                                    \
  RAMET_ATOMIC_UPDATE(bits, T, fetch_nand)                                                   \
  RAMET_ATOMIC_COMPARE(bits, T, strong, false)                                               \
  RAMET_ATOMIC_COMPARE(bits, T, weak, true)                                                  \
  T __tsan_atomic##bits##_compare_exchange_val(volatile T* memory, T expected, T value, int, \
                                               int) {                                        \
    atomic_write(memory, sizeof(T), RAMET_CALLER);                                           \
    __atomic_compare_exchange_n(memory, &expected, value, false, __ATOMIC_SEQ_CST,           \
                                __ATOMIC_SEQ_CST);                                           \
    return expected;                                                                         \
  }
RAMET_ATOMICS(8, uint8_t)
RAMET_ATOMICS(16, uint16_t)
RAMET_ATOMICS(32, uint32_t)
RAMET_ATOMICS(64, uint64_t)

}  // extern "C"
