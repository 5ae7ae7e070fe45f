// Sums, means and maxima of bags of a matrix's rows.
#pragma once
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

enum class BagMode : uint8_t { kSum, kMean, kMax };

/// y[b] = the sum, mean or maximum of weight[indices[k]] over the k of bag b, without those that
/// are `padding`. Bag b goes from offsets[b] to offsets[b + 1]; the last of `given` bags goes to
/// `total`. An empty bag gives 0. A maximum is the first value that no later one exceeds. Sums are
/// formed in the order of k, in float (in double for float64). Each row is multiplied by scale[k]
/// if there is one. REQUIRES: dense memory; weight and y of a floating dtype; scale of its compute
/// type. Offsets and indices out of range count as nothing.
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
