// Reductions of any set of dimensions: sums, products, norms, extrema and their positions, any,
// all, variance.
//
// Note [How a reduction is cut]
// The elements of one output are a sequence (its reduced dimensions, row-major). It is read in
// blocks of a fixed size. A block is reduced in fixed lanes (float in float). Blocks are combined
// in double (or int64), in order. So the error of a float sum does not grow with its length. Long
// sequences with few outputs are cut into segments, which are combined in order afterwards. The
// shape alone decides the number of segments. A GPU uses other segments, for more blocks, combined
// as a tree (reduce_gpu_plan.h). There are two loops. One goes over the sequence of one output
// after another. The other goes over blocks of columns at once, if neighbouring outputs are closer
// in memory than neighbours of the sequence. plan_reduce (kernels/reduce/reduce_plan.h) decides all
// of it, from extents and strides. Nothing depends on the number of threads.
#pragma once
#include "kernels/copy/view.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

enum class ReduceOp : uint8_t {
  kSum,
  kMean,
  kProd,  // of no elements: 0, NaN, 1. Integers wrap; the mean of integers is not defined
  kSumSquares,
  kNorm0,
  kNorm1,
  kNorm2,
  kNormP,
  kNormInf,
  kNormNegInf,  // floating point; kNormP with `parameter`
  kMax,
  kMin,  // a NaN wins; REQUIRES count > 0
  kMaxIndex,
  kMinIndex,  // the first position of the extremum; a NaN counts as the extremum. REQUIRES count >
              // 0
  kAny,
  kAll,  // of elements != 0
  kVar,
  kStd,  // sum of squared deviations / max(0, count - parameter), Chan's update block by block
};

/// out[k] = reduction over all r of in[k, r].
/// REQUIRES: plan_reduce filled the block; no input element is written.
struct ReduceArgs {
  const void* in;
  void* out;    // `outputs` dense elements of out_dtype; may be null for kMaxIndex and kMinIndex
  void* extra;  // kMaxIndex, kMinIndex: int64 positions. kVar, kStd: means of out_dtype, or null
  void* workspace;  // workspace_bytes, may be null where that is 0
  ScalarType in_dtype;
  ScalarType
      out_dtype;  // REQUIRES for everything but kAny and kAll: compute_type as that of in_dtype
  ReduceOp op;
  bool columns;                     // which loop: over columns
  int32_t kept_rank, reduced_rank;  // at least 1 each
  int64_t kept_sizes[kMaxKernelRank], kept_strides[kMaxKernelRank];
  int64_t reduced_sizes[kMaxKernelRank], reduced_strides[kMaxKernelRank];
  int64_t outputs, count;     // products of the extents
  int64_t segments, segment;  // the sequence is cut into `segments` pieces of `segment` elements
                              // (the last is shorter)
  int64_t workspace_bytes;
  double parameter;  // p of kNormP, correction of kVar and kStd
};

RAMET_KERNEL(reduce, ReduceArgs);

/// Elements of one output that are reduced together, columns that are processed together, rows of a
/// column block, bytes of a partial result.
inline constexpr int64_t kReduceBlock = 2048, kReduceColumns = 512, kReduceRows = 32,
                         kReducePartial = 24;

}  // namespace kernels
}  // namespace ramet
