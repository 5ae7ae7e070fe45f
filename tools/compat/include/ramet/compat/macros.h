// The macros of LibTorch that declare something or say something to the compiler.
#pragma once
#include "ramet.h"

// As in LibTorch: what is declared in c10 is seen in at, and both in torch.
namespace c10 {}
namespace at {
using namespace c10;
}
namespace torch {
using namespace at;
}

// Not Ramet's version: that of the front end with these names. A program that asks for
// "at least 1.8" or "2.0" gets the answer that it would get there.
#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 15
#define TORCH_VERSION_PATCH 0
#define TORCH_VERSION_ABI_TAG 0
#define TORCH_VERSION "2.15.0"

#define TORCH_MODULE(Name) RAMET_MODULE(Name)
#define TORCH_MODULE_IMPL(Name, ImplType) RAMET_MODULE_IMPL(Name, ImplType)
#define TORCH_ARG(T, name) RAMET_ARG(T, name)
#define FORWARD_HAS_DEFAULT_ARGS(...) RAMET_FORWARD_HAS_DEFAULT_ARGS(__VA_ARGS__)

#define C10_EXPORT RAMET_API
#define C10_IMPORT RAMET_API
#define C10_HIDDEN __attribute__((visibility("hidden")))
#define C10_API RAMET_API
#define C10_API_ENUM
#define TORCH_API RAMET_API
#define TORCH_API_ENUM
#define TORCH_CUDA_CPP_API RAMET_API
#define TORCH_CUDA_CU_API RAMET_API
#define CAFFE2_API RAMET_API
#define AT_API RAMET_API

#define C10_LIKELY(x) RAMET_LIKELY(x)
#define C10_UNLIKELY(x) RAMET_UNLIKELY(x)
#define C10_UNLIKELY_OR_CONST(x) RAMET_UNLIKELY(x)
#define C10_UNUSED [[maybe_unused]]
#define C10_NODISCARD [[nodiscard]]
#define C10_FALLTHROUGH [[fallthrough]]
#define C10_NORETURN [[noreturn]]
#define C10_DEPRECATED [[deprecated]]
#define C10_DEPRECATED_MESSAGE(text) [[deprecated(text)]]
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_ALWAYS_INLINE_ATTRIBUTE __attribute__((always_inline))
#define C10_NOINLINE __attribute__((noinline))
#define C10_USED __attribute__((used))
#define C10_RESTRICT __restrict
#define C10_ERASE
#define AT_FORCE_INLINE C10_ALWAYS_INLINE

#ifdef __CUDACC__
#define C10_HOST __host__
#define C10_DEVICE __device__
#define C10_HOST_DEVICE __host__ __device__
#else
#define C10_HOST
#define C10_DEVICE
#define C10_HOST_DEVICE
#endif

#define C10_STRINGIZE_IMPL(x) #x
#define C10_STRINGIZE(x) C10_STRINGIZE_IMPL(x)
#define C10_CONCATENATE_IMPL(a, b) a##b
#define C10_CONCATENATE(a, b) C10_CONCATENATE_IMPL(a, b)
#define C10_UID __COUNTER__
#define C10_ANONYMOUS_VARIABLE(name) C10_CONCATENATE(name, __COUNTER__)
#define C10_EXPAND_MSVC_WORKAROUND(x) x

#define C10_DISABLE_COPY_AND_ASSIGN(Class) \
  Class(const Class&) = delete;            \
  Class& operator=(const Class&) = delete
#define AT_DISALLOW_COPY_AND_ASSIGN(Class) C10_DISABLE_COPY_AND_ASSIGN(Class)

#define RAMET_COMPAT_PRAGMA(x) _Pragma(#x)
#ifdef __clang__
#define C10_CLANG_DIAGNOSTIC_PUSH() RAMET_COMPAT_PRAGMA(clang diagnostic push)
#define C10_CLANG_DIAGNOSTIC_POP() RAMET_COMPAT_PRAGMA(clang diagnostic pop)
#define C10_CLANG_DIAGNOSTIC_IGNORE(flag) RAMET_COMPAT_PRAGMA(clang diagnostic ignored flag)
#define C10_CLANG_HAS_WARNING(flag) __has_warning(flag)
#else
#define C10_CLANG_DIAGNOSTIC_PUSH()
#define C10_CLANG_DIAGNOSTIC_POP()
#define C10_CLANG_DIAGNOSTIC_IGNORE(flag)
#define C10_CLANG_HAS_WARNING(flag) 0
#endif
#define C10_DIAGNOSTIC_PUSH_AND_IGNORED_IF_DEFINED(flag) \
  RAMET_COMPAT_PRAGMA(GCC diagnostic push) RAMET_COMPAT_PRAGMA(GCC diagnostic ignored flag)
#define C10_DIAGNOSTIC_POP() RAMET_COMPAT_PRAGMA(GCC diagnostic pop)
