// How fronts run reductions: dimension lists, outputs, workspace, and the adjoint. Private to
// autograd/ops.
#pragma once
#include "autograd/ops/front/common_internal.h"
#include "kernels/reduce/reduce.h"

namespace ramet {
namespace autograd {

/// A set of dimensions, one bit each, and what happens to them in the result's shape.
struct ReducedDims {
  uint64_t mask = 0;
  bool keepdim = false;
  bool has(int64_t d) const { return mask >> d & 1; }
};

/// The dimensions of a list: negative ones wrapped, none twice. All dimensions where there is no
/// list or an empty one.
RAMET_API ReducedDims reduced_dims(const char* op, const Tensor& x, OptionalIntArrayRef dim,
                                   bool keepdim);
/// The arguments of a reduction of x.
RAMET_API void add_dims(Arguments& to, ReducedDims dims, const Tensor& x);
/// The number of elements that are reduced to one.
RAMET_API int64_t reduced_count(const Tensor& x, ReducedDims dims);
/// An Error where the operation would need the extremum of no elements.
RAMET_API void check_not_empty(const char* op, const Tensor& x, ReducedDims dims, bool one_dim);

/// Runs the kernel and returns a fresh result of `dtype`, without history. `extra` receives
/// positions (kMaxIndex, kMinIndex) or means (kVar, kStd). With `only_extra` it does not compute
/// the values, and the result is undefined.
RAMET_API Tensor run_reduce(kernels::ReduceOp op, const Tensor& x, ReducedDims dims,
                            ScalarType dtype, double parameter = 0, Tensor* extra = nullptr,
                            bool only_extra = false);

/// 1 / (number of winners) where `winners` is true, else 0. The dtype is dtype's compute type,
/// because more elements may tie than 16 bits can count.
RAMET_API Tensor even_shares(const Tensor& winners, ReducedDims dims, ScalarType dtype);
/// g, shaped like a reduction's result, as a view with the sizes of the reduced tensor: the adjoint
/// of sum. Recorded.
RAMET_API Tensor spread(const Tensor& g, IntArrayRef sizes, ReducedDims dims);

}  // namespace autograd
}  // namespace ramet
