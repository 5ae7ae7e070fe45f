// Tensors with known values, spread over ranks in several ways.
#pragma once
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "parallel/distributed/checkpoint/checkpoint.h"
#include "tests/parallel/distributed/support.h"

namespace ramet::distributed {

/// How a tensor is spread. `columns` are slices of the last dimension, `flat` even pieces of all
/// elements. `both` is columns over pairs of ranks, and flat pieces of those within a pair.
enum class Spread { whole, rows, columns, flat, both };

/// A tensor of the whole numbers below 251 in an order that `seed` gives, over and over; bool: of 0
/// and 1.
inline Tensor numbered(const std::vector<int64_t>& sizes, ScalarType dtype, int64_t seed) {
  const Tensor once = (arange(251, TensorOptions(kLong)) * 7 + seed).remainder(251);
  const Tensor values = (dtype == kBool ? once.remainder(2) : once).to(dtype);
  const int64_t n = elements_of(sizes);
  return values.repeat({n / 251 + 1}).slice(0, 0, n).view(sizes);
}

/// Rank's part of `whole`, cut out by tensor operations; as large as the others', except the last.
inline TensorPart part_of(const std::string& name, const Tensor& whole, Spread spread, int rank,
                          int ranks) {
  TensorPart p{name, whole.sizes().vec(), {}, whole.detach().clone()};
  const auto cut = [&](int64_t outer, int64_t extent, int64_t inner, int64_t i, int64_t n) {
    const int64_t each = (extent + n - 1) / n, begin = std::min(extent, i * each),
                  length = std::min(extent, begin + each) - begin;
    p.cuts.push_back({outer, extent, inner, begin, length});
    p.local = p.local.contiguous()
                  .view({outer, extent, inner})
                  .slice(1, begin, begin + length)
                  .contiguous();
  };
  const auto columns = [&](int64_t i, int64_t n) {
    cut(whole.numel() / whole.size(-1), whole.size(-1), 1, i, n);
  };
  if (whole.numel() == 0 || whole.dim() == 0) return p;
  if (spread == Spread::rows) cut(1, whole.size(0), whole.numel() / whole.size(0), rank, ranks);
  if (spread == Spread::columns) columns(rank, ranks);
  if (spread == Spread::flat) cut(1, whole.numel(), 1, rank, ranks);
  if (spread == Spread::both) {
    const int pairs = (ranks + 1) / 2, pair = rank / 2;
    columns(pair, pairs);
    cut(1, p.local.numel(), 1, rank % 2, std::min(2, ranks - 2 * pair));
  }
  return p;
}

/// The same part with other values, to load into.
inline TensorPart blank(TensorPart p) {
  p.local = p.local.scalar_type() == kBool ? p.local.logical_not() : p.local + 1;
  return p;
}

}  // namespace ramet::distributed
