// The common parts of all optimizers' steps: kernels/optim/optimizer_step.h.
//
// Note [Masters]
// A 16-bit parameter may have a master: the parameter in float32. A step updates the master and
// rounds it to the parameter. So updates that are smaller than the parameter's rounding add up.
// If an element's master does not round to the parameter, the element was written after the last
// step. A loaded file, a broadcast or a program may do that. Then its master begins anew at the
// parameter's value. So an optimizer needs no notice of such writes, and zeros are good first
// values.
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
/// call or none. So is the master, which is in float32: Note [Masters].
template <int kStates> struct StepTensor {
  void* parameter;
  const void* gradient;
  void* states[kStates];
  int64_t n;
  void* master;
};
template <int kStateCount> struct StepArgs {
  static constexpr int kStates = kStateCount;
  // Floating: one dtype, or any but Double.
  ScalarType dtype, gradient_dtype, state_dtype;
  bool maximize;  // steps with -gradient
  // Where this is not null and not zero, the step changes nothing. On the device of the tensors.
  const float* skip;
  int32_t count;  // number of tensors; later entries are unused
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
