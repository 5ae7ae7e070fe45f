#include "autograd/ops/index/unique.h"

#include "autograd/ops/front/sort_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;
using kernels::OrderPick;
using Three = std::tuple<Tensor, Tensor, Tensor>;

namespace {

Tensor no_positions(const Tensor& x) { return Tensor(TensorBase::empty(0, kLong, x.device())); }

// Marks where runs begin along the last dimension of [lines, n]: true for the first, then whether
// an element differs from the one before. `nans_equal`: as in the order of sort.
Tensor run_starts(const Tensor& x, bool nans_equal = false) {
  const int64_t n = x.size(1);
  Tensor starts(TensorBase::empty(x.sizes(), kBool, x.device()));
  fill_values(starts, true);
  if (n <= 1) return starts;
  const Tensor after = x.narrow(1, 1, n - 1), before = x.narrow(1, 0, n - 1);
  Tensor differ = after.ne(before);
  if (nans_equal && is_floating(x.scalar_type()))
    differ = differ.logical_and(after.isnan().logical_and(before.isnan()).logical_not());
  starts.narrow(1, 1, n - 1).copy_(differ);
  return starts;
}
// The number of its run for each element, at the element's old position. `places` of [lines, n] has
// those positions; it is undefined where elements did not move.
Tensor run_numbers(const Tensor& starts, const Tensor& places) {
  const Tensor numbers = starts.cumsum(1).sub(1);
  return places.defined() ? move_to_zeros(numbers.sizes(), 1, places, numbers) : numbers;
}

// The results for n elements or slices in sorted order: the positions where runs begin, numbers of
// runs, lengths of runs. Runs begin at `starts` [1, n]; places[0][i] is the old position of i.
Three runs(const char* op, const Tensor& starts, const Tensor& places, bool inverse, bool counts) {
  capture::refuse(op, "the size of the result depends on values");
  const int64_t n = starts.size(1);
  const Tensor begin = starts.nonzero().select(1, 1);
  Tensor lengths;
  if (counts) {
    lengths = Tensor(TensorBase::empty(begin.sizes(), kLong, starts.device()));
    const int64_t k = begin.size(0);
    if (k > 0) {
      lengths.narrow(0, 0, k - 1).copy_(begin.narrow(0, 1, k - 1));
      lengths.narrow(0, k - 1, 1).fill_(n);
      lengths.sub_(begin);
    }
  }
  return {places.defined() ? places.select(0, 0).index_select(0, begin) : begin,
          inverse ? run_numbers(starts, places).select(0, 0) : no_positions(starts),
          counts ? lengths : no_positions(starts)};
}

Three of_elements(const char* op, const Tensor& self, bool sorts, bool inverse, bool counts) {
  check_defined(op, self);
  const NoGradGuard off;
  const Tensor x = self.shallow().contiguous().view({1, self.numel()});
  Tensor line = x, places;
  if (sorts) std::tie(line, places) = ordered(x, 1, OrderPick::kFirst, x.size(1), false, true);
  auto [at, numbers, lengths] = runs(op, run_starts(line), places, inverse, counts);
  return {x.select(0, 0).index_select(0, at), inverse ? numbers.view(self.sizes()) : numbers,
          lengths};
}

// The lexicographic order of the rows of [n, m], and where runs of equal rows begin, both [1, n].
// First, elements of each column become ranks, equal where elements are equal. Then pairs of
// neighbouring columns become ranks of pairs, until one column is left: log2(m) sorts of as many
// lines as there are columns.
std::pair<Tensor, Tensor> rows_in_order(const Tensor& rows) {
  const int64_t n = rows.size(0);
  Tensor columns = rows.t().contiguous();
  for (;;) {
    const auto [line, places] = ordered(columns, 1, OrderPick::kFirst, n, false, true);
    Tensor starts = run_starts(line, /*nans_equal=*/true);
    const int64_t m = columns.size(0), pairs = m / 2;
    if (m == 1) {
      if (is_floating(rows.scalar_type()))
        starts = starts.logical_or(rows.isnan().any(1).index_select(0, places.select(0, 0)));
      return {places, starts};
    }
    const Tensor ranks = run_numbers(starts, places);
    columns = Tensor(TensorBase::empty({m - pairs, n}, kLong, rows.device()));
    const Tensor two = ranks.narrow(0, 0, 2 * pairs).view({pairs, 2, n});
    columns.narrow(0, 0, pairs).copy_(two.select(1, 0).mul(n).add(two.select(1, 1)));
    if (m > 2 * pairs) columns.select(0, pairs).copy_(ranks.select(0, m - 1));
  }
}

Three of_slices(const char* op, const Tensor& self, int64_t dim, bool sorts) {
  check_defined(op, self);
  if (self.dim() == 0)
    throw IndexError(detail::join("[", op, "] Dimension specified as ", dim,
                                  " but tensor has no dimensions: got ", describe(self)));
  const int64_t d = wrap_dim(op, dim, self.dim()), n = self.size(d);
  if (self.numel() == 0) {
    bool others = false;
    for (int64_t k = 0; k < self.dim(); ++k) others = others || (k != d && self.size(k) == 0);
    RAMET_CHECK(n == 0 && !others, op,
                "There are 0 sized dimensions, and they aren't selected, so unique cannot be "
                "applied: got ",
                describe(self), ", dimension ", d);
  }
  const NoGradGuard off;
  const Tensor x = self.shallow();
  if (n == 0) return {x.clone(), no_positions(x), no_positions(x)};
  const Tensor rows = x.movedim(d, 0).reshape({n, self.numel() / n});
  Tensor places, starts;
  if (sorts) {
    std::tie(places, starts) = rows_in_order(rows);
  } else {
    starts = Tensor(TensorBase::empty({1, n}, kBool, x.device()));
    fill_values(starts, true);
    if (n > 1)
      starts.narrow(1, 1, n - 1)
          .copy_(rows.narrow(0, 1, n - 1).ne(rows.narrow(0, 0, n - 1)).any(1).unsqueeze(0));
  }
  auto [at, numbers, lengths] = runs(op, starts, places, true, true);
  return {x.index_select(d, at), numbers, lengths};
}

}  // namespace

Three _unique2(const Tensor& self, bool, bool return_inverse, bool return_counts) {
  return of_elements("_unique2", self, true, return_inverse, return_counts);
}
std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool, bool return_inverse) {
  auto [values, inverse, counts] = of_elements("_unique", self, true, return_inverse, false);
  return {values, inverse};
}
Three unique_dim(const Tensor& self, int64_t dim, bool, bool, bool) {
  return of_slices("unique_dim", self, dim, true);
}
Three unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts,
                         std::optional<int64_t> dim) {
  if (dim) return of_slices("unique_consecutive", self, *dim, false);
  return of_elements("unique_consecutive", self, false, return_inverse, return_counts);
}
Three unique_dim_consecutive(const Tensor& self, int64_t dim, bool, bool) {
  return of_slices("unique_dim_consecutive", self, dim, false);
}

}  // namespace ramet
