// The one place where a kernel is called.
//
// A kernel is pure. It gets a small trivially copyable argument block (pointers, extents, strides,
// scalars, workspace). It allocates nothing (on a GPU: only runtime/cuda/scratch.h), throws
// nothing, never synchronises, and its result depends on no thread-local state. So a list of
// (kernel, argument block) pairs is a training step. Profiling, capture and replay use only this
// hook.
//
// Declaring a kernel in a stem's header, shortened:
//
//   // kernels/rows/softmax.h
//   struct SoftmaxArgs { const void* x; void* y; int64_t rows, cols; ScalarType dtype; };
//   RAMET_KERNEL(softmax_forward, SoftmaxArgs);
//
// declares the function once per CPU variant and once for CUDA, and defines the constant
// `softmax_forward`. The namespaces of the variants are base, v3 and v4. The sources in the
// sub-folders of kernels (but linalg) are compiled three times, and RAMET_VARIANT names the
// namespace. The CUDA function is weak: null where no CUDA code is linked. Fronts call the
// constant: softmax_forward(x.stream(), {...}). There is no registry: kernels that are not called
// are not linked.
//
// Only x86-64 has v3 and v4. A build may have only one variant (--//tools/bazel:variants). Then the
// functions of the other variants are traps that nothing calls.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/base/dtype.h"
#include "runtime/base/stream.h"
#include "runtime/observe/kernel_call.h"

#if defined(__x86_64__)
#define RAMET_ALL_VARIANTS 1
#define RAMET_KERNEL_VARIANTS(name) \
  { &base::name, &v3::name, &v4::name }
#else
#define RAMET_KERNEL_VARIANTS(name) \
  { &base::name, nullptr, nullptr }
#endif

namespace ramet {
namespace kernels {

/// Instruction-set variants of the CPU kernels, in ascending order.
enum class Variant : uint8_t { kBase, kV3, kV4 };
inline constexpr int kVariants = 3;

/// Index of the variant in use; kVariants before the first kernel call.
RAMET_API extern std::atomic<uint8_t> chosen_variant;
/// Chooses once: the best variant that this processor can run, or the one named by
/// RAMET_ISA=base|v3|v4 (an Error if it cannot run).
RAMET_API uint8_t choose_variant();
/// For tests: from now on use `variant`. An Error if this processor cannot run it.
RAMET_API void set_variant(Variant variant);
/// Can this processor run it, and does this program contain it?
RAMET_API bool variant_supported(Variant variant);
/// "base", "v3" or "v4".
RAMET_API const char* variant_name(Variant variant);

template <class Args> struct Kernel {
  static_assert(std::is_trivially_copyable<Args>::value,
                "a recorded call is replayed from a byte copy of its arguments");
  using Cpu = void (*)(const Args&);
  using Cuda = void (*)(const Args&, Stream);
  const char* name;
  Cpu cpu[kVariants];  // null or a trap: variant_supported() is false
  Cuda cuda;

  void operator()(Stream stream, const Args& args) const {
    if (auto* observer = ramet::detail::kernel_observer.load(std::memory_order_relaxed);
        RAMET_UNLIKELY(observer != nullptr))
      return observed(observer, stream, args);
    run(stream, args);
  }

 private:
  // Kernels that draw random numbers have this member (kernels/random/random.h).
  template <class A> static auto key_of(const A& args, int) -> decltype(&args.key) {
    return &args.key;
  }
  template <class A> static const void* key_of(const A&, long) { return nullptr; }
  void run(Stream stream, const Args& args) const {
    if (RAMET_UNLIKELY(!stream.device.is_cpu())) return on_cuda(stream, args);
    uint8_t variant = chosen_variant.load(std::memory_order_relaxed);
    if (RAMET_UNLIKELY(variant == kVariants)) variant = choose_variant();
    cpu[variant](args);
  }
  [[gnu::cold, gnu::noinline]] void observed(KernelObserver observer, Stream stream,
                                             const Args& args) const {
    KernelCall call{name, stream, &args, sizeof args};
    call.invoke = [](const void* kernel, Stream where, const void* block) {
      (*static_cast<const Kernel*>(kernel))(where, *static_cast<const Args*>(block));
    };
    call.kernel = this;
    call.key = key_of(args, 0);
    observer(call);
    if (call.skip) return;
    run(stream, args);
    call.done = true;
    observer(call);
  }
  [[gnu::cold, gnu::noinline]] void on_cuda(Stream stream, const Args& args) const {
    if (!cuda)
      fail(name, "no kernel for device ", stream.device.str(),
           ": this program is linked without CUDA kernels");
    cuda(args, stream);
  }
};

}  // namespace kernels
}  // namespace ramet

#define RAMET_KERNEL(name, Args)                         \
  namespace base {                                       \
  void name(const Args&);                                \
  }                                                      \
  namespace v3 {                                         \
  void name(const Args&);                                \
  }                                                      \
  namespace v4 {                                         \
  void name(const Args&);                                \
  }                                                      \
  namespace cuda {                                       \
  [[gnu::weak]] void name(const Args&, ::ramet::Stream); \
  }                                                      \
  inline constexpr ::ramet::kernels::Kernel<Args> name { \
#name, RAMET_KERNEL_VARIANTS(name), &cuda::name      \
  }
