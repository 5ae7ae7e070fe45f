#include "autograd/ops/reduce/histogram.h"

#include <cmath>

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/index/search.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/view.h"
#include "runtime/base/checked_size.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;

namespace {

using Weight = const std::optional<Tensor>&;
using Range = std::optional<ArrayRef<double>>;

// The samples as rows [n, D]. Makes the checks that all forms share.
Tensor points(const char* op, const Tensor& self, Weight weight) {
  RAMET_CHECK(is_floating(self.scalar_type()), op, "only for floating-point dtypes: got ",
              describe(self));
  const int64_t dims = self.size(-1);
  if (weight && weight->defined()) {
    RAMET_CHECK(weight->scalar_type() == self.scalar_type(), op,
                "if weight tensor is provided, input tensor and weight tensor should have the same "
                "dtype, but got ",
                describe(self), " and ", describe(*weight));
    RAMET_CHECK(weight->sizes() == self.sizes().slice(0, self.sizes().size() - 1), op,
                "if weight tensor is provided it should have the same shape as the input tensor "
                "excluding its innermost dimension, but got input with shape ",
                self.sizes(), " and weight with shape ", weight->sizes());
    check_same_device(op, self, *weight, "weight");
  }
  const int64_t rows = dims ? self.numel() / dims : 0;
  return self.detach().reshape({rows, dims});
}

// The edges of bins of equal width for each coordinate.
std::vector<Tensor> even_edges(const char* op, const Tensor& rows, IntArrayRef bins, Range range) {
  const auto dims = static_cast<size_t>(rows.size(1));
  RAMET_CHECK(bins.size() == dims, op,
              "The size of bins must be equal to the innermost dimension of the input: got ", bins,
              ", expected ", dims, " numbers");
  RAMET_CHECK(!range || range->size() == 2 * dims, op, "for a ", dims,
              "-dimensional histogram range should have ", 2 * dims, " elements, but got ",
              range ? range->size() : 0);
  for (size_t d = 0; d < dims; ++d)
    RAMET_CHECK(bins[d] > 0 && bins[d] < INT64_MAX, op, "bins must be > 0, but got ", bins[d],
                " for dimension ", d);
  std::vector<Tensor> edges;
  for (size_t d = 0; d < dims; ++d) {
    double low = 0, high = 1;
    if (range) {
      low = (*range)[2 * d], high = (*range)[2 * d + 1];
    } else if (rows.size(0) > 0) {
      capture::refuse(op, "the host reads the range; give it");
      const Tensor x = rows.select(1, static_cast<int64_t>(d));
      low = x.min().item<double>(), high = x.max().item<double>();
    }
    RAMET_CHECK(std::isfinite(low) && std::isfinite(high), op, "dimension ", d, "'s range [", low,
                ", ", high, "] is not finite");
    RAMET_CHECK(low <= high, op, "min should not exceed max, but got min ", low, " max ", high,
                " for dimension ", d);
    if (low == high) low -= 0.5, high += 0.5;
    edges.push_back(linspace(low, high, bins[d] + 1, rows.options()));
  }
  return edges;
}
std::vector<Tensor> given_edges(const char* op, const Tensor& rows, TensorList bins) {
  const auto dims = static_cast<size_t>(rows.size(1));
  RAMET_CHECK(bins.size() == dims, op,
              "The size of bins must be equal to the innermost dimension of the input: got ",
              bins.size(), " tensors, expected ", dims);
  std::vector<Tensor> edges;
  for (size_t d = 0; d < dims; ++d) {
    const Tensor& b = bins[d];
    check_defined(op, b);
    RAMET_CHECK(b.scalar_type() == rows.scalar_type(), op,
                "input tensor and bins tensors should have the same dtype, but got ",
                describe(rows), " and ", describe(b));
    RAMET_CHECK(b.dim() == 1, op, "bins tensor should have one dimension, but got ", describe(b),
                " for dimension ", d);
    RAMET_CHECK(b.numel() > 1, op, "bins must be > 0, but got ", b.numel(), " edges for dimension ",
                d);
    check_same_device(op, rows, b, "bins");
    edges.push_back(b.detach().clone(MemoryFormat::Contiguous));
  }
  return edges;
}

// The counts of the bins between these edges. The weights keep their history.
Tensor counted(const char* op, const Tensor& rows, const std::vector<Tensor>& edges, Weight weight,
               bool density) {
  std::vector<int64_t> sizes;
  int64_t bins = 1;
  for (const Tensor& e : edges) {
    sizes.push_back(e.numel() - 1);
    bins = checked_mul(op, "bins", bins, e.numel() - 1);
  }
  const int64_t n = rows.size(0);
  Tensor at = zeros({n}, TensorOptions(kLong).device(rows.device())), outside = at.to(kBool);
  for (size_t d = 0; d < edges.size(); ++d) {
    const Tensor x = rows.select(1, static_cast<int64_t>(d)).contiguous();
    const Tensor first = edges[d].select(0, 0), last = edges[d].select(0, sizes[d]);
    outside = outside.logical_or(x.ge(first).logical_and(x.le(last)).logical_not());
    const Tensor bin = searchsorted(edges[d], x, false, /*right=*/true).sub(1);
    at = at.mul(sizes[d]).add(bin.clamp(0, sizes[d] - 1));
  }
  const bool weighted = weight && weight->defined();
  const Tensor what = weighted ? weight->reshape({n}) : ones({n}, rows.options());
  Tensor hist = zeros({bins}, rows.options());
  hist.index_add_(0, at, what.masked_fill(outside, 0));
  if (density) hist = hist.div(hist.sum());
  hist = hist.reshape(sizes);
  for (size_t d = 0; density && d < edges.size(); ++d) {
    std::vector<int64_t> along(sizes.size(), 1);
    along[d] = sizes[d];
    hist = hist.div(
        edges[d].narrow(0, 1, sizes[d]).sub(edges[d].narrow(0, 0, sizes[d])).reshape(along));
  }
  return hist;
}

template <class Edges>
std::tuple<Tensor, std::vector<Tensor>> of_points(const char* op, const Tensor& self, Weight weight,
                                                  bool density, const Edges& edges_of) {
  const Tensor rows = points(op, self, weight);
  std::vector<Tensor> edges = edges_of(rows);
  Tensor hist = counted(op, rows, edges, weight, density);
  return {std::move(hist), std::move(edges)};
}

const Tensor& of_points(const char* op, const Tensor& self) {
  check_defined(op, self);
  RAMET_CHECK(self.dim() >= 2, op, "input tensor should have at least 2 dimensions: got ",
              describe(self));
  return self;
}

// Treats numbers as points of one coordinate.
template <class Edges>
std::tuple<Tensor, Tensor> of_numbers(const Tensor& self, Weight weight, bool density,
                                      const Edges& edges_of) {
  const char* op = "histogram";
  check_defined(op, self);
  auto [hist, edges] = of_points(op, self.detach().unsqueeze(-1), weight, density, edges_of);
  return {std::move(hist), std::move(edges[0])};
}

template <class F>
std::tuple<Tensor&, Tensor&> two_results(Tensor& hist, Tensor& edges, const Tensor& self,
                                         const F& f) {
  const char* op = "histogram_out";
  check_defined(op, self);
  for (const Tensor* out : {&hist, &edges}) {
    check_out_device(op, *out, self.device());
    check_out_history(op, *out, false);
    RAMET_CHECK(out->scalar_type() == self.scalar_type(), op, "Expected out tensor to have dtype ",
                name_of(self.scalar_type()), ", but got ", name_of(out->scalar_type()));
  }
  const NoGradGuard off;
  const auto [counts, places] = f();
  deliver(op, hist, counts, OutType::kSame);
  deliver(op, edges, places, OutType::kSame);
  return {hist, edges};
}

}  // namespace

std::tuple<Tensor, Tensor> histogram(const Tensor& self, const Tensor& bins, Weight weight,
                                     bool density) {
  return of_numbers(self, weight, density,
                    [&](const Tensor& rows) { return given_edges("histogram", rows, bins); });
}
std::tuple<Tensor, Tensor> histogram(const Tensor& self, int64_t bins, Range range, Weight weight,
                                     bool density) {
  return of_numbers(self, weight, density,
                    [&](const Tensor& rows) { return even_edges("histogram", rows, bins, range); });
}
std::tuple<Tensor&, Tensor&> histogram_out(Tensor& hist, Tensor& bin_edges, const Tensor& self,
                                           const Tensor& bins, Weight weight, bool density) {
  return two_results(hist, bin_edges, self, [&] { return histogram(self, bins, weight, density); });
}
std::tuple<Tensor&, Tensor&> histogram_out(Tensor& hist, Tensor& bin_edges, const Tensor& self,
                                           int64_t bins, Range range, Weight weight, bool density) {
  return two_results(hist, bin_edges, self,
                     [&] { return histogram(self, bins, range, weight, density); });
}

std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, IntArrayRef bins,
                                                    Range range, Weight weight, bool density) {
  const char* op = "histogramdd";
  return of_points(op, of_points(op, self), weight, density,
                   [&](const Tensor& rows) { return even_edges(op, rows, bins, range); });
}
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, int64_t bins, Range range,
                                                    Weight weight, bool density) {
  of_points("histogramdd", self);
  const std::vector<int64_t> each(static_cast<size_t>(self.size(-1)), bins);
  return histogramdd(self, IntArrayRef(each), range, weight, density);
}
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, TensorList bins, Range,
                                                    Weight weight, bool density) {
  const char* op = "histogramdd";
  return of_points(op, of_points(op, self), weight, density,
                   [&](const Tensor& rows) { return given_edges(op, rows, bins); });
}

}  // namespace ramet
