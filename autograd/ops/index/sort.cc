#include "autograd/ops/index/sort.h"

#include <cmath>

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/front/reduce_internal.h"
#include "autograd/ops/front/sort_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/make/copy.h"

namespace ramet {

using namespace autograd;
using kernels::OrderPick;
using Two = std::tuple<Tensor, Tensor>;

namespace {

void check_no_bool(const char* op, const Tensor& x) {
  RAMET_CHECK(x.scalar_type() != kBool, op, "does not support bool dtypes: got ", describe(x));
}

Two sorted(const char* op, const char* node, const Tensor& x, int64_t dim, bool descending) {
  check_defined(op, x);
  const int64_t d = wrap_dim(op, dim, x.dim());
  return ordered_recorded(node, x, d, OrderPick::kFirst, extent(x, d), descending, true);
}

// Checks for operations that take one element of each line; returns the wrapped dim.
int64_t one_of_lines(const char* op, const Tensor& x, int64_t dim, bool takes_bool = false) {
  const ReducedDims dims = reduced_dims(op, x, dim, false);
  if (!takes_bool) check_no_bool(op, x);
  check_not_empty(op, x, dims, true);
  return wrap_dim(op, dim, x.dim());
}

Tensor median_of_all(const char* op, const char* node, OrderPick pick, const Tensor& x) {
  check_defined(op, x);
  check_no_bool(op, x);
  Tensor out;
  {
    const NoGradGuard off;
    if (x.numel() == 0) {
      const Tensor nan(TensorBase::empty({}, kFloat, x.device()));
      fill_values(nan, NAN);
      out = nan.to(x.scalar_type(), false, /*copy=*/true);
    } else {
      out =
          std::get<0>(ordered(x.shallow().reshape({-1}), 0, pick, 0, false, false, Want::kValues));
    }
  }
  if (!recording(x)) return out;
  return record(node, {x}, std::move(out),
                [op, sx = save(x), sy = save_output(out)](const Node& self, const Tensor& g) {
                  const Tensor& x = sx.get(self);
                  const Tensor y = sy.get(self).detach();
                  const ReducedDims all = reduced_dims(op, x, std::nullopt, false);
                  const Tensor winners = x.eq(y).logical_or(x.isnan().logical_and(y.isnan()));
                  return spread(g, x.sizes(), all)
                      .mul(even_shares(winners, all, g.scalar_type()))
                      .to(g.scalar_type());
                });
}

}  // namespace

Two sort(const Tensor& self, int64_t dim, bool descending) {
  return sorted("sort", "SortBackward0", self, dim, descending);
}
Two sort(const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
  return sorted("sort", "SortBackward1", self, dim, descending);
}
Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  check_defined("argsort", self);
  const int64_t d = wrap_dim("argsort", dim, self.dim());
  return std::get<1>(
      ordered(self, d, OrderPick::kFirst, extent(self, d), descending, true, Want::kPositions));
}
Tensor argsort(const Tensor& self, bool, int64_t dim, bool descending) {
  return argsort(self, dim, descending);
}
Tensor msort(const Tensor& self) {
  return std::get<0>(sorted("msort", "SortBackward0", self, 0, false));
}

Two topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  check_defined("topk", self);
  const int64_t d = wrap_dim("topk", dim, self.dim()), n = extent(self, d);
  RAMET_CHECK(k >= 0 && k <= n, "topk", "selected index k out of range: got ", k,
              ", expected 0 to ", n, " for ", describe(self));
  check_no_bool("topk", self);
  // For a 0-dim tensor, LibTorch returns the number even for k = 0.
  return ordered_recorded("TopkBackward0", self, d, OrderPick::kFirst, self.dim() ? k : 1, largest,
                          true);
}

Two kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  const int64_t d = one_of_lines("kthvalue", self, dim), n = extent(self, d);
  RAMET_CHECK(k >= 1 && k <= n, "kthvalue", "selected number k out of range for dimension ", d,
              ": got ", k, ", expected 1 to ", n, " for ", describe(self));
  return ordered_recorded("KthvalueBackward0", self, d, OrderPick::kOne, k - 1, false, keepdim);
}

Tensor median(const Tensor& self) {
  return median_of_all("median", "MedianBackward0", OrderPick::kMedian, self);
}
Two median(const Tensor& self, int64_t dim, bool keepdim) {
  const int64_t d = one_of_lines("median", self, dim);
  return ordered_recorded("MedianBackward1", self, d, OrderPick::kMedian, 0, false, keepdim);
}
Tensor nanmedian(const Tensor& self) {
  return median_of_all("nanmedian", "NanmedianBackward0", OrderPick::kNanMedian, self);
}
Two nanmedian(const Tensor& self, int64_t dim, bool keepdim) {
  const int64_t d = one_of_lines("nanmedian", self, dim);
  return ordered_recorded("NanmedianBackward1", self, d, OrderPick::kNanMedian, 0, false, keepdim);
}
Two mode(const Tensor& self, int64_t dim, bool keepdim) {
  const int64_t d = one_of_lines("mode", self, dim, /*takes_bool=*/true);
  return ordered_recorded("ModeBackward0", self, d, OrderPick::kMode, 0, false, keepdim);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/index/sort.inc"

}  // namespace ramet
