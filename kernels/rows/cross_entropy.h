// Cross entropy with class indices, log-softmax and negative log-likelihood in one pass over the
// logits, and nll_loss.
#pragma once
#include "kernels/kernel.h"
#include "kernels/rows/row_tasks.h"

namespace ramet {
namespace kernels {

enum class LossReduction : uint8_t { kNone, kMean, kSum };  // the numbering of LibTorch's Reduction

/// For row r with target t (rows with t == ignore_index count as 0), l = log_softmax(x[r]),
/// smoothing e, C classes:
///   loss[r] = -(1 - e) w[t] l[t] - e / C sum_c w[c] l[c]
/// kNone: `loss` gets every loss[r]. kSum: their sum. kMean: the sum divided by the sum of w[t]
/// over the rows that count (0 / 0 = NaN if there is none). With log_probs the rows of x are l
/// themselves (nll_loss). Row losses are added in double, in groups of 64 rows, the groups in
/// order. With inner > 1 rows are pixels of images: x[r][c] is at (r / inner cols + c) inner + r %
/// inner. REQUIRES: a floating dtype, x dense; targets checked (check_index of
/// kernels/index/index.h); cols > 0. On a GPU, and for 16-bit floats, inner = 1.
struct CrossEntropyArgs {
  const void* x;
  const int64_t* target;
  const void* weight;    // cols elements of dtype, or null: ones
  void* loss;            // rows elements, or one, of dtype
  void* statistics;      // Rows x 2 of the compute type: max and log sum exp(x - max), for the
                         // backward pass. Null with log_probs.
  double* total_weight;  // one double: sum of w[t] over the rows that count
  void* workspace;       // cross_entropy_workspace bytes
  int64_t rows, cols, ignore_index;
  double smoothing;
  ScalarType dtype;
  LossReduction reduction;
  bool log_probs;
  int64_t inner = 1;
};
RAMET_KERNEL(cross_entropy_forward, CrossEntropyArgs);

/// dx[r][c] = g[r] (A[r] softmax(x[r])[c] - a[r][c]), where
///   a[r][c] = (1 - e) w[t] [c = t] + e w[c] / C,  A[r] = sum_c a[r][c].
/// g[r] is grad[r] (kNone), grad (kSum) or grad / total_weight (kMean). With log_probs dx[r][c] =
/// -g[r] a[r][c]. Rows that do not count get 0. inner: as in the forward pass, for x and dx.
struct CrossEntropyBackwardArgs {
  const void* x;  // unused with log_probs
  const int64_t* target;
  const void* weight;
  const void* grad;  // rows elements (kNone) or one, of dtype
  const void* statistics;
  const double* total_weight;
  void* dx;  // rows x cols
  void* workspace;
  int64_t rows, cols, ignore_index;
  double smoothing;
  ScalarType dtype;
  LossReduction reduction;
  bool log_probs;
  int64_t inner = 1;
};
RAMET_KERNEL(cross_entropy_backward, CrossEntropyBackwardArgs);

/// The loss (kMean, kSum) and, in the place of x, its gradient: x[r][c] = g (A[r] softmax(x[r])[c]
/// - a[r][c]) as above with grad 1. A row is read, summed and overwritten at once. REQUIRES: as for
/// the forward pass; x may be written.
struct CrossEntropyConsumeArgs {
  void* x;
  const int64_t* target;
  const void* weight;
  void* loss;
  double* total_weight;
  void* workspace;  // cross_entropy_consume_workspace bytes
  int64_t rows, cols, ignore_index;
  double smoothing;
  ScalarType dtype;
  LossReduction reduction;
};
RAMET_KERNEL(cross_entropy_consume, CrossEntropyConsumeArgs);

/// Some rows of a loss, which other calls complete: `losses` (if not null) gets each row's loss as
/// of kNone. With `gradient` the rows of x become their gradient as in the backward pass, where a
/// `grad` of null is 1. kMean divides the gradient by *total_weight, which is read, not written.
/// A row has the bits of cross_entropy_consume. On a CPU, and without smoothing, they are also
/// those of the forward pass. REQUIRES: as for the forward pass, but that weight_dtype may be
/// another floating type, unless one of the two is float64.
struct CrossEntropyRowsArgs {
  void* x;
  const int64_t* target;
  const void* weight;  // cols elements of weight_dtype, or null: ones
  double* losses;
  const void* grad;  // rows elements (kNone) or one, of grad_dtype
  const double* total_weight;
  void* workspace;  // cross_entropy_workspace bytes
  int64_t rows, cols, ignore_index;
  double smoothing;
  ScalarType dtype, weight_dtype, grad_dtype;
  LossReduction reduction;
  bool gradient;
};
RAMET_KERNEL(cross_entropy_rows, CrossEntropyRowsArgs);

/// x *= *factor, one element of a floating dtype. If it is 1, nothing is read or written.
struct ScaleByArgs {
  void* x;
  const void* factor;
  int64_t n;
  ScalarType dtype, factor_dtype;
};
RAMET_KERNEL(scale_by, ScaleByArgs);

inline constexpr int64_t kLossGroup = 64;

/// Bytes for either; `slots` is max_parallel_slots(). Partial sums, the weights as compute type,
/// row buffers.
constexpr int64_t cross_entropy_workspace(ScalarType t, int64_t rows, int64_t cols, int slots) {
  return (rows + kLossGroup - 1) / kLossGroup * 16 + row_stride(cols) * 8 +
         row_workspace(t, cols, 2, slots);
}
/// The same and a loss for each row.
constexpr int64_t cross_entropy_consume_workspace(ScalarType t, int64_t rows, int64_t cols,
                                                  int slots) {
  return cross_entropy_workspace(t, rows, cols, slots) + rows * 8;
}

}  // namespace kernels
}  // namespace ramet
