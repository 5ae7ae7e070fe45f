// Group norm of n samples of c channels of l values (Wu and He 2018). Statistics cover a sample's c
// / groups neighbouring channels. Each channel has a weight and a bias.
#pragma once
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// Dense memory, for x, y, dy and dx alike: [n][c][l], or [n][l][c] if channels are innermost. The
/// second form is for a CPU only. If l = 1, both are the same and count as the second.
struct GroupNormShape {
  int64_t n, c, l, groups;
  bool inside;
};

/// y = (x - mean) rstd weight + bias, rstd = 1 / sqrt(var + eps), var without correction. REQUIRES:
/// x and y of a floating dtype. The others have its compute type: weight and bias (each may be
/// null) with c values, mean and rstd with n * groups values. c is a multiple of groups.
struct GroupNormArgs {
  GroupNormShape shape;
  const void *x, *weight, *bias;
  void *y, *mean, *rstd;
  double eps;
  ScalarType dtype;
};
RAMET_KERNEL(group_norm_forward, GroupNormArgs);

/// With h = (x - mean) rstd, g = dy weight and means over a group:
///   dx = rstd (g - mean(g) - h mean(g h)),   dweight = sum dy h,   dbias = sum dy.
/// Any of dx, dweight, dbias may be null. The last two have the compute type. They are sums of a
/// sample's channel, sample after sample on a CPU.
struct GroupNormBackwardArgs {
  GroupNormShape shape;
  const void *x, *weight, *dy;
  const void *mean, *rstd;
  void *dx, *dweight, *dbias;
  void* workspace;  // group_norm_backward_workspace bytes
  ScalarType dtype;
};
RAMET_KERNEL(group_norm_backward, GroupNormBackwardArgs);

/// Two sums for each channel of a sample. On a GPU also two factors for each of its groups.
constexpr int64_t group_norm_backward_workspace(const GroupNormShape& s) {
  return 8 * (2 * s.n * s.c + 2 * s.n * s.groups);
}

}  // namespace kernels
}  // namespace ramet
