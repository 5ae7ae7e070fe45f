// Batch normalisation (Ioffe and Szegedy, arXiv 1502.03167): statistics, normalisation and
// gradient.
#pragma once
#include "kernels/gpu/gpu_cuts.h"
#include "kernels/kernel.h"
#include "kernels/matrix/gemm_plan.h"

namespace ramet {
namespace kernels {

/// n samples of c channels of l values by element strides. REQUIRES: planes (l-stride 1), or
/// channels innermost (c-stride 1) with consecutive samples (n-stride = l times the l-stride, or l
/// = 1). All views of one call are of the same kind.
struct ChannelView {
  void* data;
  int64_t n, c, l;
};

/// All operands have one dtype, float or double. But on a CPU x, y and their gradients may be
/// bfloat16 (`values`) where the others are float. Then each value is converted where it is read,
/// and rounded once. Per-channel operands hold c values.
struct BatchNormArgs {
  int64_t n, c, l;
  ChannelView x, y;
  const void *weight, *bias;  // null: 1 and 0
  void *mean, *invstd;
  void *running_mean, *running_var;  // null: none
  double momentum, eps;
  bool training;
  ScalarType dtype;
  void* workspace;  // batch_norm_workspace bytes, aligned to 64
  ScalarType values = dtype;
};
/// training: mean and invstd = 1 / sqrt(var + eps) over the n*l values of a channel with the biased
/// variance. Then running_mean and running_var (if any) move by `momentum` towards the mean and the
/// unbiased variance. Otherwise mean = running_mean and invstd = 1 / sqrt(running_var + eps). Sums
/// of chunks are about the chunk's own mean, and chunks are combined in double in order. A GPU uses
/// other chunks (batch_norm_gpu_part), combined as a tree.
RAMET_KERNEL(batch_norm_statistics, BatchNormArgs);
/// y = x * scale + shift with scale = weight * invstd, shift = bias - mean * scale.
RAMET_KERNEL(batch_norm_forward, BatchNormArgs);

/// With s = sum of dy and d = sum of dy * (x - mean) over a channel's m = n*l values:
///   dbias = s, dweight = d * invstd,
///   dx = weight * invstd * (dy - s/m - (x - mean) * invstd^2 * d/m) when training, weight * invstd
///       * dy otherwise.
/// Null results are not computed.
struct BatchNormBackwardArgs {
  int64_t n, c, l;
  ChannelView x, dy, dx;
  const void *weight, *mean, *invstd;
  void *dweight, *dbias;
  bool training;
  ScalarType dtype;
  void* workspace;
  ScalarType values = dtype;
};
RAMET_KERNEL(batch_norm_backward, BatchNormBackwardArgs);

// Values of a chunk: rows of channels (channels innermost), or part of a plane.
inline constexpr int64_t kBatchNormPlane = 4096;
RAMET_PLAN int64_t batch_norm_rows(int64_t c) {
  const int64_t rows = 8192 / (c > 0 ? c : 1);
  return rows < 16 ? 16 : rows > 256 ? 256 : rows;
}
RAMET_PLAN int64_t batch_norm_chunks(int64_t n, int64_t c, int64_t l, bool channels_inside) {
  if (channels_inside) return (n * l + batch_norm_rows(c) - 1) / batch_norm_rows(c);
  return n * ((l + kBatchNormPlane - 1) / kBatchNormPlane);
}
/// Values of a channel that a block sums on a GPU (of 32 channels at once, if channels are
/// innermost). They are few enough to be still in a cache when they are read again. Over all
/// channels they give enough pieces for a nominal GPU (gpu_cuts.h).
RAMET_PLAN int64_t batch_norm_gpu_part(int64_t n, int64_t c, int64_t l, bool channels_inside) {
  const int64_t tiles = channels_inside ? (c + 31) / 32 : c,
                wanted = kNominalBlocks / (tiles > 0 ? tiles : 1),
                parts = wanted > 256 ? wanted : 256, each = (n * l + parts - 1) / parts;
  return each > 512 ? each : 512;
}
/// Bytes of workspace of any of the three, for any layout.
RAMET_PLAN int64_t batch_norm_workspace(int64_t n, int64_t c, int64_t l) {
  const int64_t a = batch_norm_chunks(n, c, l, true), b = batch_norm_chunks(n, c, l, false);
  return 8 * (2 * ((a > b ? a : b) + 1) * c + 4 * (c + 16));
}

}  // namespace kernels
}  // namespace ramet
