// Sorting of elements, for fronts. Private to autograd/ops.
#pragma once
#include <tuple>

#include "autograd/ops/front/common_internal.h"
#include "kernels/index/order.h"

namespace ramet {
namespace autograd {

/// The positions of each row's elements in sorted order, the smallest first, equal ones in their
/// order. keys: int64 [rows, n], dense, compared as unsigned numbers below 2^bits. The call sorts
/// `keys` itself. The result is int64 [rows, n].
RAMET_API Tensor sorted_positions(const Tensor& keys, int bits = 64);

/// The shape of a dense tensor around one of its dimensions. A 0-dim tensor counts as one element.
struct Axis {
  int64_t outer = 1, n = 1, inner = 1;
  Axis(const Tensor& x, int64_t dim) {
    for (int64_t d = 0; d < x.dim(); ++d) (d < dim ? outer : d == dim ? n : inner) *= x.size(d);
  }
};
/// The extent of a (wrapped) dimension.
inline int64_t extent(const Tensor& x, int64_t dim) { return x.dim() == 0 ? 1 : x.size(dim); }

/// Which results of ordered() the caller wants; others stay undefined.
enum class Want : uint8_t { kBoth, kValues, kPositions };
/// Picks elements of each line of x along `dim` as kernels/index/order.h does, and returns them and
/// their positions (int64). With kFirst the results have `count` elements in that dimension.
/// Otherwise they lack it or, with `keepdim`, have 1. No history.
RAMET_API std::tuple<Tensor, Tensor> ordered(const Tensor& x, int64_t dim, kernels::OrderPick pick,
                                             int64_t count, bool descending, bool keepdim,
                                             Want want = Want::kBoth);
/// ordered() with the values recorded: their gradient goes to their positions.
RAMET_API std::tuple<Tensor, Tensor> ordered_recorded(const char* node, const Tensor& x,
                                                      int64_t dim, kernels::OrderPick pick,
                                                      int64_t count, bool descending, bool keepdim);
/// Records `values`, which were taken from x at `positions` along `dim`. `lost`: they lack that
/// dimension.
RAMET_API Tensor taken(const char* node, const Tensor& x, int64_t dim, Tensor values,
                       const Tensor& positions, bool lost);

}  // namespace autograd
}  // namespace ramet
