// The type in which elements of a dtype are computed, and the functions that choose a kernel's code
// by it. They name every dtype and have no default branch. So a new dtype does not compile before
// it is named here (-Werror=switch).
#pragma once
#include "kernels/simd/inline.h"
#include "runtime/base/dtype.h"

namespace ramet::kernels::RAMET_VARIANT {

static_assert(kScalarTypes == 12, "compute_type_of() orders all dtypes: where does a new one go?");
RAMET_INLINE ScalarType compute_type_of(ScalarType t) {
  return t == ScalarType::Double ? t : t >= ScalarType::Half ? ScalarType::Float : ScalarType::Long;
}

template <class T> struct ComputeTag;
template <> struct ComputeTag<float> { static constexpr ScalarType value = ScalarType::Float; };
template <> struct ComputeTag<double> { static constexpr ScalarType value = ScalarType::Double; };
template <> struct ComputeTag<int64_t> { static constexpr ScalarType value = ScalarType::Long; };

// Not RAMET_INLINE: host code, in .cu files too. The front has refused a dtype for which the caller
// has no code. Here it ends the process, because other code would compute a wrong result.

/// f(T{}) with the compute type of `t`: float, double or int64_t.
template <class F>
inline __attribute__((always_inline)) auto by_compute_type(ScalarType t, const F& f) {
  switch (t) {
    case ScalarType::Bool:
    case ScalarType::Byte:
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::Long:
    case ScalarType::UInt16:
    case ScalarType::UInt32: return f(int64_t{});
    case ScalarType::Half:
    case ScalarType::BFloat16:
    case ScalarType::Float: return f(float{});
    case ScalarType::Double: return f(double{});
    case ScalarType::Undefined: break;
  }
  __builtin_trap();
}

/// The same for floating dtypes only: f(float{}) or f(double{}).
template <class F>
inline __attribute__((always_inline)) auto by_floating_type(ScalarType t, const F& f) {
  switch (t) {
    case ScalarType::Half:
    case ScalarType::BFloat16:
    case ScalarType::Float: return f(float{});
    case ScalarType::Double: return f(double{});
    case ScalarType::Bool:
    case ScalarType::Byte:
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::Long:
    case ScalarType::UInt16:
    case ScalarType::UInt32:
    case ScalarType::Undefined: break;
  }
  __builtin_trap();
}

/// f(T{}) with the C++ type T of `t` itself, for a caller that converts nothing.
template <class... T, class F>
inline __attribute__((always_inline)) void by_dtype(ScalarType t, const F& f) {
  if (!((t == ComputeTag<T>::value && (f(T{}), true)) || ...)) __builtin_trap();
}

}  // namespace ramet::kernels::RAMET_VARIANT
