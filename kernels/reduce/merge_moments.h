// Means and variances of all values, from those of their parts. Batch norm uses it for the
// statistics of its replicas.
#pragma once
#include <cstdint>

#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

inline constexpr int kMaxMomentParts = 16;

/// `count` values for each of n channels, at least one: their means and unbiased variances.
struct MomentsPart {
  const double* mean;
  const double* var;
  double count;
};
/// mean[i] is the mean of `count` values, and m2[i] the sum of squared deviations from it. Adds the
/// parts to both, one after the other (Chan, Golub and LeVeque 1979):
///   delta = part mean - mean, total = count + part count
///   mean += delta part_count / total
///   m2 += part var (part_count - 1) + delta^2 count part_count / total
/// With count = 0 they are only written.
struct MergeMomentsArgs {
  double* mean;
  double* m2;
  double count;
  int64_t n;
  int32_t parts;
  MomentsPart part[kMaxMomentParts];
};
RAMET_KERNEL(merge_moments, MergeMomentsArgs);

}  // namespace kernels
}  // namespace ramet
