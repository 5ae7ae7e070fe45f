// Rows of random sizes: products of arrays, values written by index, statistics, distances.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_rows.h"

namespace ramet {
namespace fuzz {

namespace {

// The place of a dimension, where there is one.
std::optional<size_t> in(const Tensor& x, int64_t dim) {
  return x.dim() == 0 ? std::nullopt : place_of(dim, x.dim());
}
bool has(const Tensor& x, int64_t dim, int64_t index) {
  const auto at = in(x, dim);
  return at && index >= -x.sizes()[*at] && index < x.sizes()[*at];
}
Right gradients(const Tensor& x, const Dims& dims, int64_t order) {
  std::vector<WideShape> right;
  std::vector<bool> seen(static_cast<size_t>(x.dim()) + 1);
  if (order != 1 && order != 2) return refused();
  for (const int64_t dim : dims) {
    const auto at = in(x, dim);
    if (!at || seen[*at] || x.sizes()[*at] <= order) return refused();
    seen[*at] = true;
    right.push_back(wide(x.sizes()));
  }
  return right;
}
// Of one number of bins for all columns, or of one for each.
Right counts_of(const Tensor& x, const std::vector<int64_t>& bins, bool same) {
  const int64_t dims = x.size(-1);
  const WideShape shape = same ? WideShape(static_cast<size_t>(dims), bins[0]) : wide(bins);
  return right_if(x.dim() >= 2 && static_cast<int64_t>(shape.size()) == dims &&
                      std::all_of(shape.begin(), shape.end(), [](Wide n) { return n > 0; }),
                  shape);
}
// The integral along `dim`, or its running values.
Right integral(const Tensor& y, int64_t dim, bool running) {
  const auto at = in(y, dim);
  if (!at) return refused();
  return running ? with(wide(y.sizes()), *at, std::max<int64_t>(y.sizes()[*at] - 1, 0))
                 : reduced(y, {dim}, false);
}
Right crossed(const Tensor& x, int64_t dim) {
  const auto at = in(x, dim);
  return as(x, at && x.sizes()[*at] == 3);
}
// What is left of two tensors with the same sizes.
Right left_twice(const Tensor& x, const Dims& dims) {
  const Right half = reduced(x, dims, false, false);
  if (!half) return half;
  WideShape shape = (*half)[0];
  shape.insert(shape.end(), (*half)[0].begin(), (*half)[0].end());
  return one(shape);
}
Right norms(const Tensor& x, const Dims& dims, bool keep, size_t least, size_t most) {
  const bool fine = x.dim() >= static_cast<int64_t>(least) || least < 2;
  return fine && dims.size() >= least && dims.size() <= most ? reduced(x, dims, keep) : refused();
}
// A slice of `dim`, and an index of zeros for it.
Tensor first(const Tensor& x, int64_t dim) {
  return in(x, dim) ? x.narrow(dim, 0, 1).clone() : x.clone();
}
Tensor zero() { return zeros({1}, kLong); }
Tensor part(const Tensor& x, int64_t dim, int64_t index) {
  return has(x, dim, index) ? x.select(dim, index).clone() : zeros({2});
}
Tensor part(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  return in(x, dim) && step > 0 ? x.slice(dim, start, end, step).clone() : zeros({2});
}

}  // namespace

#define OVER(name, ...) \
  ROW(name, (Any x, Dims dims, bool keep), reduced(x, dims, keep), __VA_ARGS__)
#define OVER_NORM(name, tensor, least, most, ...) \
  ROW(name, (tensor x, Dims dims, bool keep), norms(x, dims, keep, least, most), __VA_ARGS__)
#define OVER_ONE(name, ...) \
  COSTLY(name, 8, (Some<0, 4, 1> x, Dim<> dim, bool keep), reduced(x, {dim}, keep), __VA_ARGS__)
// A slice of a dimension by an index of zeros, and as many values.
#define ALONG_ROWS(name, ...) ROW(name, (Some<1, 3, 1> x, Dim<> dim), kept(x, dim), __VA_ARGS__)
#define ALONG_SAMPLES(name, running) \
  COSTLY(name, 4, (Any y, Dim<> dim), integral(y, dim, running), name(y, 1, dim))

std::vector<SizeRow> size_rows_of_values() {
  using Matrix = Some<0, 4, 1>;
  return {
      COSTLY(nonzero_static, 16, (Any x, Number n, Number fill), right_if(n >= 0, {n, x.dim()}),
             nonzero_static(x, n, fill)),
      COSTLY(gradient, 8, (Some<0, 3, 2> x, Dims dims, Mostly<1, 2> order),
             gradients(x, dims, order), gradient(x, dims, order)),
      COSTLY(histogram, 8, (Any x, Number bins),
             bins > 0 ? Right(std::vector<WideShape>{{bins.value}, {Wide{bins.value} + 1}})
                      : refused(),
             histogram(x, bins)),
      COSTLY(histogramdd, 8, (Some<1, 3> x, Numbers<0, 3> bins, bool one_number),
             counts_of(x, bins, one_number && bins.size() == 1),
             std::get<0>(one_number && bins.size() == 1 ? histogramdd(x, bins[0])
                                                        : histogramdd(x, IntArrayRef(bins)))),
      {"segment_reduce",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(1, 3);
         const int64_t axis = d.dim("axis", x.dim());
         const auto at = place_of(axis, x.dim());
         const size_t rank = d.note("rank", 1 + d.tape().below(2));
         std::vector<int64_t> sizes;
         for (size_t k = 0; k < rank && k < x.sizes().size(); ++k) sizes.push_back(x.sizes()[k]);
         const int64_t segments = sizes.back();  // of one element each
         d.expect(
             as(x, at && *at + 1 == sizes.size() && segments >= 0),
             [&] { return segment_reduce(x, "sum", ones(sizes, kLong), {}, {}, axis); }, 16);
       }},
      OVER(nansum, nansum(x, dims, keep)),
      OVER(nanmean, nanmean(x, dims, keep)),
      OVER(linalg_vector_norm, linalg_vector_norm(x, 2, dims, keep)),
      ROW(count_nonzero, (Any x, Dims dims), reduced(x, dims, false), count_nonzero(x, dims)),
      COSTLY(aminmax, 8, (Some<0, 4, 1> x, Dim<> dim, bool keep), twice(reduced(x, {dim}, keep)),
             aminmax(x, dim, keep)),
      OVER_ONE(quantile, quantile(x, 0.5, dim, keep)),
      OVER_ONE(nanquantile, nanquantile(x, 0.5, dim, keep)),
      ALONG_SAMPLES(trapezoid, false),
      ALONG_SAMPLES(trapz, false),
      ALONG_SAMPLES(cumulative_trapezoid, true),
      COSTLY(cov, 4, (Some<0, 3> x, Number correction),
             x.dim() > 2                     ? refused()
             : x.dim() < 2 || x.size(0) == 1 ? one({})
                                             : one({x.size(0), x.size(0)}),
             cov(x, correction)),
      ALONG_ROWS(index_copy, index_copy(x, dim, zero(), first(x, dim))),
      ALONG_ROWS(index_fill, index_fill(x, dim, zero(), 1)),
      ALONG_ROWS(index_reduce, index_reduce(x, dim, zero(), first(x, dim), "amax")),
      COSTLY(scatter_reduce, 4, (Some<0, 3, 1> x, Dim<> dim), kept(x, dim),
             scatter_reduce(x, dim, zeros_like(x).to(kLong), x, "prod")),
      ROW(select_scatter, (Some<0, 3> x, Dim<> dim, Mostly<-4, 3> index), as(x, has(x, dim, index)),
          select_scatter(x, part(x, dim, index), dim, index)),
      ROW(slice_scatter, (Some<0, 3> x, Dim<> dim, Number start, Number end, Mostly<1, 3> step),
          as(x, in(x, dim) && step > 0),
          slice_scatter(x, part(x, dim, start, end, step), dim, start, end, step)),
      COSTLY(renorm, 4, (Any x, Dim<> dim), x.dim() < 2 ? refused() : kept(x, dim),
             renorm(x, 2, dim, 1)),
      OVER_NORM(linalg_matrix_norm, Matrix, 2, 2, linalg_matrix_norm(x, 1, dims, keep)),
      OVER_NORM(nuclear_norm, Matrix, 2, 2, nuclear_norm(x, dims, keep)),
      OVER_NORM(linalg_norm, Matrix, 1, 2, linalg_norm(x, std::nullopt, dims, keep)),
      OVER_NORM(frobenius_norm, Any, 0, 2, frobenius_norm(x, dims, keep)),
      COSTLY(cosine_similarity, 4, (Any x, Dim<> dim), reduced(x, {dim}, false),
             cosine_similarity(x, x, dim)),
      COSTLY(cdist, 8, (Some<0, 3> x, Mostly<0, 2> mode),
             x.dim() >= 2 && mode >= 0 && mode <= 2
                 ? with(wide(x.sizes()), size_t(x.dim()) - 1, x.size(-2))
                 : refused(),
             cdist(x, x, 2, mode)),
      COSTLY(cross, 4, (Some<0, 3> x, Dim<> dim), crossed(x, dim), cross(x, x, dim)),
      COSTLY(linalg_cross, 4, (Some<1, 3> x, Dim<> dim), crossed(x, dim), linalg_cross(x, x, dim)),
      COSTLY(tensordot, 4, (Some<0, 3> x, Dims dims), left_twice(x, dims),
             tensordot(x, x, dims, dims)),
      ROW(einsum, (Some<2, 2> x, Mostly<0, 1> i, Mostly<0, 1> j),
          right_if(i != j && std::min(i.value, j.value) >= 0 && std::max(i.value, j.value) <= 1,
                   {x.size(0), x.size(0)}),
          einsum("ij,kj->ik", {x, x}, IntArrayRef{i, j})),
  };
}

}  // namespace fuzz
}  // namespace ramet
