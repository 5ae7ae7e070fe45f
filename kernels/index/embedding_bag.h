// Sums, means and maxima of bags of a matrix's rows.
#pragma once
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

enum class BagMode : uint8_t { kSum, kMean, kMax };

/// y[b] = the sum, mean or maximum of weight[indices[k]] over the k of bag b, offsets[b] to
/// offsets[b + 1] or, of the last of `given`, to `total`; without those that are `padding`. 0 of
/// none. A maximum is the first value that no later one is larger than. Sums are formed in the
/// order of k, in float (double of float64), each row times scale[k] where there is one. REQUIRES:
/// dense memory; a floating dtype of weight and y, its compute type of scale. Offsets and indices
/// beyond their ranges are taken as nothing there.
struct EmbeddingBagArgs {
  const void* weight;
  const int64_t *indices, *offsets;
  const void* scale;         // or null
  void* y;                   // [bags, cols]
  int64_t *places, *counts;  // [bags, cols]: the row of each maximum, 0 of none; [bags]; or null
  int64_t rows, cols, bags, given, total, padding;
  BagMode mode;
  ScalarType dtype;
};
RAMET_KERNEL(embedding_bag, EmbeddingBagArgs);

}  // namespace kernels
}  // namespace ramet
