// The common parts of all optimizers' steps: kernels/optim/optimizer_step.h.
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

/// Tensors of one call: as many as fit an argument block, which CUDA limits to 4 KB.
inline constexpr int kOptimizerTensors = 64;

/// The operands of the step of one tensor. A state that is not in use is null, for all tensors of a
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
  int32_t count;     // number of tensors; later entries are unused
  StepTensor<kStates> tensors[kOptimizerTensors];
};

#if defined(RAMET_VARIANT)
namespace RAMET_VARIANT {

/// The sets of states for which kernels exist: a bit for each state.
template <unsigned... kUse> using StatesInUse = std::integer_sequence<unsigned, kUse...>;

}  // namespace RAMET_VARIANT
#endif

}  // namespace kernels
}  // namespace ramet
