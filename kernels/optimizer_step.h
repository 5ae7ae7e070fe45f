// One optimizer step over a flat run of parameters, in one pass over memory. Formulas and order of
// operations as in LibTorch (torch/csrc/api/src/optim). Dense runs of float or double; a module's
// flat store needs one call, single tensors one each.
#pragma once
#include <cstdint>

#include "kernels/kernel.h"
#include "kernels/view.h"

namespace ramet {
namespace kernels {

/// g = (maximize ? -grad : grad) + weight_decay p
/// with momentum: buffer = first ? g : momentum buffer + (1 - dampening) g;  g = nesterov ? g +
/// momentum buffer : buffer p -= lr g `momentum_buffer` is null without momentum.
struct SgdArgs {
  void* parameter;
  const void* gradient;
  void* momentum_buffer;
  int64_t n;
  double lr, momentum, dampening, weight_decay;
  ScalarType dtype;
  bool nesterov, maximize, first;
};
RAMET_KERNEL(sgd_step, SgdArgs);

/// g = maximize ? -grad : grad
/// decoupled (AdamW, Loshchilov and Hutter 2017): p *= 1 - lr weight_decay; else (Adam, Kingma and
/// Ba 2014): g += weight_decay p m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g
/// amsgrad (max_v not null): max_v = max(max_v, v), used in place of v
/// p -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps), bias1 = 1 - beta1^t, bias2 = 1 - beta2^t
struct AdamArgs {
  void* parameter;
  const void* gradient;
  void *m, *v, *max_v;
  int64_t n;
  double lr, beta1, beta2, eps, weight_decay, bias1, bias2;
  ScalarType dtype;
  bool decoupled, maximize;
};
RAMET_KERNEL(adam_step, AdamArgs);

/// *out = the sum of x[i]^2, i < n, in double: 32 lanes over blocks of 8192 elements, lanes and
/// blocks folded in a fixed order. x is dense, of any type. `partials` holds
/// sum_squares_partials(n) doubles.
struct SumSquaresArgs {
  const void* x;
  double* partials;
  double* out;
  int64_t n;
  ScalarType dtype;
};
RAMET_KERNEL(sum_squares, SumSquaresArgs);
inline constexpr int64_t kSumSquaresBlock = 8192;
constexpr int64_t sum_squares_partials(int64_t n) {
  return (n + kSumSquaresBlock - 1) / kSumSquaresBlock;
}

}  // namespace kernels
}  // namespace ramet
