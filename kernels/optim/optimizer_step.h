// One optimizer step of many tensors, in one pass over memory and one launch; their gradients' norm
// and its limit. Formulas and order of operations as in LibTorch (torch/csrc/api/src/optim). Dense
// tensors or runs of a module's flat store; an element's bits depend neither on the other tensors
// nor on its place, and are the same on CPUs and GPUs.
#pragma once
#include <cstdint>

#include "kernels/copy/view.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// Tensors of one call: what an argument block holds, which CUDA limits to 4 KB.
inline constexpr int kOptimizerTensors = 64;

/// g = (maximize ? -grad : grad) + weight_decay p
/// with momentum: buffer = first ? g : momentum buffer + (1 - dampening) g
///                g = nesterov ? g + momentum buffer : buffer
/// p -= lr g
/// `momentum_buffer` is null without momentum, for all tensors or none.
struct SgdTensor {
  void* parameter;
  const void* gradient;
  void* momentum_buffer;
  int64_t n;
};
struct SgdArgs {
  double lr, momentum, dampening, weight_decay;
  ScalarType dtype;  // float32 or float64
  bool nesterov, maximize, first;
  int32_t count;  // of tensors; those behind are not looked at
  SgdTensor tensors[kOptimizerTensors];
};
RAMET_KERNEL(sgd_step, SgdArgs);

/// g = maximize ? -grad : grad
/// decoupled (AdamW, Loshchilov and Hutter 2017): p *= 1 - lr weight_decay
/// else (Adam, Kingma and Ba 2014): g += weight_decay p
/// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g
/// amsgrad (max_v not null, for all tensors or none): max_v = max(max_v, v), used in place of v
/// p -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps), bias1 = 1 - beta1^t, bias2 = 1 - beta2^t
struct AdamTensor {
  void* parameter;
  const void* gradient;
  void *m, *v, *max_v;
  int64_t n;
};
struct AdamArgs {
  double lr, beta1, beta2, eps, weight_decay, bias1, bias2;
  ScalarType dtype;  // float32 or float64
  bool decoupled, maximize;
  int32_t count;
  AdamTensor tensors[kOptimizerTensors];
};
RAMET_KERNEL(adam_step, AdamArgs);

/// sums[t] = the sum of x[i]^2 over tensor t, in double: 32 lanes over blocks of 8192 elements, and
/// 32 lanes over the blocks' sums, folded in a fixed order. Dense tensors of any type. `partials`
/// holds sum_squares_partials(n) doubles for each tensor, one after the other.
struct DenseTensor {
  void* x;
  int64_t n;
};
struct SumSquaresArgs {
  double* partials;
  double* sums;
  ScalarType dtype;
  int32_t count;
  DenseTensor tensors[kOptimizerTensors];
};
RAMET_KERNEL(sum_squares, SumSquaresArgs);
inline constexpr int64_t kSumSquaresBlock = 8192;
constexpr int64_t sum_squares_partials(int64_t n) {
  return (n + kSumSquaresBlock - 1) / kSumSquaresBlock;
}

/// *norm = sqrt(sums[0] + sums[1] + ...), in order.
struct TotalNormArgs {
  const double* sums;
  double* norm;
  int64_t count;
};
RAMET_KERNEL(total_norm, TotalNormArgs);

/// x *= factor, factor = max_norm / (*norm + 1e-6), where that is less than 1 or NaN; else nothing.
/// Floating dtypes; 16-bit ones in float.
struct LimitNormArgs {
  const double* norm;
  double max_norm;
  ScalarType dtype;
  int32_t count;
  DenseTensor tensors[kOptimizerTensors];
};
RAMET_KERNEL(limit_norm, LimitNormArgs);

}  // namespace kernels
}  // namespace ramet
