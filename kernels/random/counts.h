// Distributions of which a draw takes as many random numbers as it needs: Poisson's, the binomial
// and the gamma distribution. Philox streams as in random.h. Element i takes the blocks i, i +
// 2^56, i + 2 * 2^56 and so on, of which each gives two numbers of 53 bits, until its draw is done.
// So it depends on seed, stream and index alone, and is the same on CPUs and GPUs.
#pragma once
#include "kernels/random/random.h"

namespace ramet {
namespace kernels {

/// All of one floating-point type and dense. random_poisson: out[i] with the mean a[i] >= 0; b is
/// null. random_binomial: successes among floor(a[i]) trials of probability b[i]; 0 of fewer than
/// one trial, probabilities count as from [0, 1]. A NaN gives NaN. random_log_gamma: the logarithm
/// of a draw with the shape a[i] > 0 and the scale 1, finite for every finite shape, of doubles; b
/// is null.
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
