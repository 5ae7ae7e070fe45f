#include "autograd/ops/sort.h"

#include "autograd/ops/front/out_front.h"
#include "autograd/ops/front/sort_front.h"
#include "autograd/ops/index.h"

namespace ramet {

using namespace autograd;
using kernels::OrderPick;
using Two = std::tuple<Tensor, Tensor>;

namespace {

Two sorted(const char* op, const char* node, const Tensor& x, int64_t dim, bool descending) {
  check_defined(op, x);
  const int64_t d = wrap_dim(op, dim, x.dim());
  return ordered_recorded(node, x, d, OrderPick::kFirst, extent(x, d), descending, true);
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
  RAMET_CHECK(self.scalar_type() != kBool, "topk", "does not support bool dtypes: got ",
              describe(self));
  // Of a number LibTorch gives the number where none is asked for.
  return ordered_recorded("TopkBackward0", self, d, OrderPick::kFirst, self.dim() ? k : 1, largest,
                          true);
}

// ---- rules of out forms -------------------------------------------------------------------------

namespace {
constexpr OutRule kPlaces{OutType::kSame, /*recorded=*/false};
}  // namespace

#include "autograd/forms/definitions.inc"
#include "autograd/ops/sort.inc"

}  // namespace ramet
