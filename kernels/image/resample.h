// Resampling of images by weighted sums of neighbours, one dimension after the other.
#pragma once
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// The inputs and weights of output o of `in` -> `out` (image/resample_weights.h). step = 1 / scale
/// where a scale above 0 is given, else in / out; with align_corners (in - 1) / (out - 1), or 0:
///   kNearest       floor(step o)                kNearestExact  floor(step (o + 0.5))
///   kLinear        two around x = step (o + 0.5) - 0.5, not below 0; with align_corners step o
///   kCubic         four around x, a = -0.75; those outside are the border's (Keys 1981)
///   kLinearWide,   all within 1 (2) steps, at least 1 (2) elements, of step (o + 0.5), of which a
///   kCubicWide     triangle (Keys' cubic, a = -0.5) gives weights, which are made to add up to 1
/// kNone: in = out = 1.
enum class Resampling : uint8_t {
  kNone,
  kNearest,
  kNearestExact,
  kLinear,
  kCubic,
  kLinearWide,
  kCubicWide
};
struct ResampleAxis {
  int64_t in, out;
  double scale;
  Resampling how;
  bool align_corners;
};

/// x: dense [planes][h.in][w.in][inner], y: [planes][h.out][w.out][inner]. backward is the adjoint:
/// x has the axes' outputs and y their inputs. Every sum has one owner and is formed in the order
/// of its terms. float64 is computed in double, all else in float. REQUIRES: a floating dtype, or
/// uint8 with kNearest and kNearestExact.
struct ResampleArgs {
  int64_t planes, inner;
  ResampleAxis h, w;
  bool backward;
  const void* x;
  void* y;
  void* workspace;  // resample_workspace bytes
  ScalarType dtype;
};
RAMET_KERNEL(resample, ResampleArgs);

/// Rows of intermediate results that are kept, and inputs to which a result is padded.
constexpr int64_t kResampleRows = 8;

/// The most inputs of an output.
constexpr int64_t resample_taps(const ResampleAxis& a) {
  switch (a.how) {
    case Resampling::kNone:
    case Resampling::kNearest:
    case Resampling::kNearestExact: return 1;
    case Resampling::kLinear: return 2;
    case Resampling::kCubic: return 4;
    case Resampling::kLinearWide:
    case Resampling::kCubicWide: break;
  }
  const double in = static_cast<double>(a.in), out = static_cast<double>(a.out),
               size = a.align_corners ? (a.out > 1 ? (in - 1) / (out - 1) : 0)
                      : a.scale > 0   ? 1 / a.scale
                                      : in / out,
               support = (a.how == Resampling::kLinearWide ? 1 : 2) * (size > 1 ? size : 1);
  return 2 * support + 5 < in ? static_cast<int64_t>(2 * support) + 5 : a.in;
}
/// Bytes of the tables of an axis.
constexpr int64_t resample_table(const ResampleAxis& a) {
  const int64_t more = a.in > a.out ? a.in : a.out;
  return 8 * (2 * a.out * resample_taps(a) + (4 + 2 * kResampleRows) * more + 8);
}
/// `slots` is max_parallel_slots() of a CPU, 0 for a GPU.
constexpr int64_t resample_workspace(const ResampleArgs& a, int slots) {
  const int64_t in = a.backward ? a.w.out : a.w.in, out = a.backward ? a.w.in : a.w.out,
                rows = 3 * (in * a.inner + 16) + (kResampleRows + 1) * (out * a.inner + 16);
  return resample_table(a.h) + resample_table(a.w) +
         (a.w.how == Resampling::kNone ? 0 : slots * 8 * rows);
}

}  // namespace kernels
}  // namespace ramet
