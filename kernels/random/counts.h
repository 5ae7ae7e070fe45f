// Distributions with draws of a variable number of random numbers: Poisson's, the binomial and the
// gamma distribution. Philox streams as in random.h. Element i takes the blocks i, i + 2^56, i + 2
// * 2^56 and so on, until its draw is done. Each block gives two numbers of 53 bits. So a draw
// depends on seed, stream and index alone, and is the same on CPUs and GPUs.
#pragma once
#include "kernels/random/random.h"

namespace ramet {
namespace kernels {

/// All of one floating-point type and dense. random_poisson: out[i] with the mean a[i] >= 0; b is
/// null. random_binomial: successes among floor(a[i]) trials of probability b[i]. It gives 0 for
/// fewer than one trial, and clamps probabilities to [0, 1]. A NaN gives NaN. random_log_gamma: the
/// logarithm of a draw with the shape a[i] > 0 and the scale 1. It is finite for every finite
/// shape. Doubles only; b is null.
struct RandomCountsArgs {
  void* out;
  const void *a, *b;
  int64_t n;
  RandomKey key;
  ScalarType dtype;
};
RAMET_KERNEL(random_poisson, RandomCountsArgs);
RAMET_KERNEL(random_binomial, RandomCountsArgs);
RAMET_KERNEL(random_log_gamma, RandomCountsArgs);

}  // namespace kernels
}  // namespace ramet
