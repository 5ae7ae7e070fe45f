// What the steps of all optimizers have in common: kernels/optim/optimizer_step.h.
#pragma once
#include <cstdint>
#include <utility>

#include "kernels/copy/view.h"
#include "kernels/kernel.h"
#if defined(RAMET_VARIANT) && !defined(RAMET_GPU_MATH)
#include "kernels/simd/smath.h"
#endif

namespace ramet {
namespace kernels {

/// Tensors of one call: what an argument block holds, which CUDA limits to 4 KB.
inline constexpr int kOptimizerTensors = 64;

/// What the step of one tensor works on. A state that is not in use is null, for all tensors of a
/// call or none.
template <int kStates> struct StepTensor {
  void* parameter;
  const void* gradient;
  void* states[kStates];
  int64_t n;
};
template <int kStateCount> struct StepArgs {
  static constexpr int kStates = kStateCount;
  ScalarType dtype;  // floating
  bool maximize;     // steps with -gradient
  int32_t count;     // of tensors; those behind are not looked at
  StepTensor<kStates> tensors[kOptimizerTensors];
};

#if defined(RAMET_VARIANT)
namespace RAMET_VARIANT {

/// Which states a kernel exists for: a bit each.
template <unsigned... kUse> using StatesInUse = std::integer_sequence<unsigned, kUse...>;

}  // namespace RAMET_VARIANT
#endif

}  // namespace kernels
}  // namespace ramet
