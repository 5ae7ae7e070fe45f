// Random numbers from a counter: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random
// Numbers: As Easy as 1, 2, 3, 2011).
//
// A number depends only on the seed, the stream and its element's index. It does not depend on
// threads, on the start of a chunk or on neighbouring elements. `base` is the index of the first
// element, so a shard of a batch draws by global index.
//
// Block j of a stream is Philox with key (seed) and counter (j, stream), 64 bits each, low word
// first: four 32-bit words. Which words belong to element i (groups of 16 blocks, so that vector
// code needs no shuffles):
//   one word:   word (i / 16) % 4 of block (i / 64) * 16 + i % 16           uniform floats,
//               bernoulli, dropout
//   two words:  words 2q, 2q + 1, q = (i / 16) % 2, of block (i / 32) * 16 + i % 16   uniform
//               doubles, integers
//   normal, float:  like one word; words 2q, 2q + 1 make a cosine and a sine (Box and Muller 1958)
//   normal, double: like two words; words 0, 1 give the radius, 2, 3 the angle, the cosine comes
//       first
// Normals are computed in double without fma, so every variant (and CUDA) has the same bits.
#pragma once
#include <cstdint>

#include "kernels/copy/view.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// The key of the numbers: part of every argument block.
struct RandomKey {
  uint64_t seed, stream;
  int64_t base;  // index of the first element, >= 0
};

/// out[i] = a + (b - a) u, u in [0, 1) with 24 bits (float), 53 (double), 11 (half), 8 (bfloat16).
/// a and b are rounded to the dtype. Every out[i] is at least a and below b; if both are the same
/// number, it is that. REQUIRES: dtype is floating point, out is dense; a <= b, and the dtype holds
/// a, b and b - a. random_normal: out[i] = a + b z, z standard normal; |z| < 6.7 for float, 8.6 for
/// double.
struct RandomArgs {
  void* out;
  int64_t n;
  RandomKey key;
  double a, b;
  ScalarType dtype;
};
RAMET_KERNEL(random_uniform, RandomArgs);
RAMET_KERNEL(random_normal, RandomArgs);

/// out[i] = low + floor(r * range / 2^64), r a 64-bit number; `range` 0 means 2^64. Stored as
/// `dtype`, any type.
struct RandomIntegersArgs {
  void* out;
  int64_t n;
  RandomKey key;
  int64_t low;
  uint64_t range;
  ScalarType dtype;
};
RAMET_KERNEL(random_integers, RandomIntegersArgs);

/// out[i] = u < p ? 1 : 0; where `probability` is not null, p is probability[i] (dense, of type
/// p_type).
struct BernoulliArgs {
  void* out;
  const void* probability;
  int64_t n;
  RandomKey key;
  double p;
  ScalarType dtype, p_type;
};
RAMET_KERNEL(random_bernoulli, BernoulliArgs);

/// mask[i] = u < keep, y[i] = x[i] * (mask[i] ? scale : 0). Dense; x and y of one floating-point
/// type, mask bool; y may be x.
struct DropoutArgs {
  const void* x;
  void* y;
  void* mask;
  int64_t n;
  RandomKey key;
  double keep, scale;
  ScalarType dtype;
};
RAMET_KERNEL(dropout_forward, DropoutArgs);

/// out[r][s] is the i, found by bisection, for which the draw is between two running sums:
///   cumulative[r][i - 1] <= draws[r][s] * cumulative[r][n - 1] < cumulative[r][i]
/// Where rounding leaves none, it is the last one. Running sums of a GPU may grow, or fall, by
/// rounding alone (CumulativeSumArgs). So if i has no probability, the result is the next one that
/// has, or else the one before. Dense rows; a draw is in [0, 1). The last sum and a probability of
/// each row are above 0.
struct RandomPickArgs {
  const double *cumulative, *probabilities, *draws;
  int64_t* out;
  int64_t rows, n, samples;
};
RAMET_KERNEL(random_pick, RandomPickArgs);

}  // namespace kernels
}  // namespace ramet
