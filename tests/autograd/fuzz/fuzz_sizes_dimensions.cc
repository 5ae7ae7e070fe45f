// Rows of random sizes: what takes a dimension, and other numbers of operations.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_rows.h"

namespace ramet {
namespace fuzz {

namespace {

// Slices that are all equal: one is left.
Right one_slice(const Tensor& x, int64_t dim) {
  const auto at = place_of(dim, x.dim());
  if (!at || x.dim() == 0) return refused();
  WideShape shape = wide(x.sizes());
  const Wide n = std::exchange(shape[*at], 1);
  if (std::find(shape.begin(), shape.end(), Wide{0}) != shape.end()) return refused();
  return with(shape, *at, std::min<Wide>(n, 1));
}
Right along(const Tensor& x, int64_t dim, Wide extent) {
  const Right right = kept(x, dim);
  return right && x.dim() ? with((*right)[0], *place_of(dim, x.dim()), extent) : right;
}
int64_t extent_of(const Tensor& x, int64_t dim) {
  return x.dim() && kept(x, dim) ? x.size(dim) : 1;
}
Right chosen(const Tensor& x, int64_t k, int64_t dim, bool keep) {
  return k >= 1 && k <= extent_of(x, dim) ? twice(reduced_some(x, {dim}, keep)) : refused();
}
Tensor first_of(const Tensor& x) { return zeros_like(x).to(kLong); }
Tensor three() { return zeros({3}, kLong); }

// The last dimensions of a tensor, or any.
struct Normalized {
  Tensor x;
  std::vector<int64_t> shape;
  Right right;
};
Normalized draw_normalized(SizeDraw& d) {
  const Tensor x = d.tensor(1);
  std::vector<int64_t> shape = d.numbers("normalized_shape", 0, 3);
  if (d.flag("the last ones"))
    shape.assign(x.sizes().end() - d.tape().between(0, x.dim()), x.sizes().end());
  d.note("shape", IntArrayRef(shape));
  return {x, shape,
          as(x, !shape.empty() && static_cast<int64_t>(shape.size()) <= x.dim() &&
                    std::equal(shape.rbegin(), shape.rend(), x.sizes().vec().rbegin()))};
}

}  // namespace

// Of dimensions, or of one, which stay if `keep`; SOME: there must be elements; BOTH: two results.
#define OVER(name, ...) \
  ROW(name, (Any x, Dims dims, bool keep), reduced(x, dims, keep), __VA_ARGS__)
#define OVER_BOTH(name, ...) \
  ROW(name, (Any x, Dims dims, bool keep), twice(reduced(x, dims, keep)), __VA_ARGS__)
#define OVER_SOME(name, ...) \
  ROW(name, (Any x, Dims dims, bool keep), reduced_some(x, dims, keep), __VA_ARGS__)
#define OVER_ONE(name, ...) \
  ROW(name, (Any x, Dim<> dim, bool keep), reduced(x, {dim}, keep), __VA_ARGS__)
#define OVER_ONE_SOME(name) \
  ROW(name, (Any x, Dim<> dim, bool keep), reduced_some(x, {dim}, keep), name(x, dim, keep))
#define OVER_ONE_BOTH(name) \
  ROW(name, (Any x, Dim<> dim, bool keep), twice(reduced_some(x, {dim}, keep)), name(x, dim, keep))
// Along a dimension, which all stay.
#define ALONG(name, ...) ROW(name, (Any x, Dim<> dim), kept(x, dim), __VA_ARGS__)
#define ALONG_BOTH(name, ...) ROW(name, (Any x, Dim<> dim), twice(kept(x, dim)), __VA_ARGS__)
#define ALONG_EQUAL(name, ...) ROW(name, (Any x, Dim<> dim), one_slice(x, dim), __VA_ARGS__)
// With an index of zeros along a dimension.
#define ALONG_INDEX(name, ...) ROW(name, (Some<0, 3, 1> x, Dim<> dim), kept(x, dim), __VA_ARGS__)
#define ALONG_ROWS(name, ...) ROW(name, (Some<1, 3, 1> x, Dim<> dim), kept(x, dim), __VA_ARGS__)

std::vector<SizeRow> size_rows_of_dimensions() {
  return {
      OVER(sum, sum(x, dims, keep)),
      OVER(mean, mean(x, dims, keep)),
      OVER(var, var(x, dims, true, keep)),
      OVER(std, std(x, dims, 1, keep)),
      OVER_BOTH(var_mean, var_mean(x, dims, true, keep)),
      OVER_BOTH(std_mean, std_mean(x, dims, 1, keep)),
      OVER_SOME(amax, amax(x, dims, keep)),
      OVER_SOME(amin, amin(x, dims, keep)),
      OVER(norm, norm(x, 2, dims, keep)),
      OVER(logsumexp, logsumexp(x, dims, keep)),
      OVER_ONE(any, any(x, dim, keep)),
      OVER_ONE(all, all(x, dim, keep)),
      OVER_ONE(any, any(x, IntArrayRef{dim}, keep)),
      OVER_ONE(all, all(x, IntArrayRef{dim}, keep)),
      OVER_ONE(prod, prod(x, dim, keep)),
      OVER_ONE_BOTH(max),
      OVER_ONE_BOTH(min),
      OVER_ONE_SOME(argmax),
      OVER_ONE_SOME(argmin),
      ALONG(cumsum, cumsum(x, dim)),
      ALONG(cumprod, cumprod(x, dim)),
      ALONG(cumprod_, x.clone().cumprod_(dim)),
      ALONG(logcumsumexp, logcumsumexp(x, dim)),
      ALONG_BOTH(cummax, cummax(x, dim)),
      ALONG_BOTH(cummin, cummin(x, dim)),
      ALONG(softmax, softmax(x, dim)),
      ALONG(log_softmax, log_softmax(x, dim)),
      OVER_ONE_BOTH(median),
      OVER_ONE_BOTH(nanmedian),
      OVER_ONE_BOTH(mode),
      ROW(kthvalue, (Any x, Mostly<1, 3> k, Dim<> dim, bool keep), chosen(x, k, dim, keep),
          kthvalue(x, k, dim, keep)),
      ALONG_BOTH(sort, sort(x, dim.value)),
      ALONG_BOTH(sort, sort(x, std::optional(true), dim.value, true)),
      ALONG(argsort, argsort(x, dim)),
      ALONG(argsort, argsort(x, true, dim)),
      ROW(topk, (Any x, Mostly<0, 3> k, Dim<> dim),
          twice(k < 0 || k > extent_of(x, dim) ? refused() : along(x, dim, k)), topk(x, k, dim)),
      ROW(bincount, (Within<0, 3> n, Number least),
          right_if(least >= 0, {std::max<Wide>(least, n > 0)}),
          bincount(zeros({n}, kLong), std::nullopt, least)),
      COSTLY(histc, 2, (Any x, Number bins), right_if(bins > 0, {bins}), histc(x, bins, -1, 1)),
      ALONG_EQUAL(unique_dim, std::get<0>(unique_dim(zeros_like(x), dim))),
      ALONG_EQUAL(unique_dim_consecutive, std::get<0>(unique_dim_consecutive(zeros_like(x), dim))),
      ALONG_EQUAL(unique_consecutive,
                  std::get<0>(unique_consecutive(zeros_like(x), false, false, dim))),
      ALONG_INDEX(gather, gather(x, dim, first_of(x))),
      ALONG_INDEX(scatter, scatter(x, dim, first_of(x), x)),
      ALONG_INDEX(scatter, scatter(x, dim, first_of(x), 2)),
      ALONG_INDEX(scatter_add, scatter_add(x, dim, first_of(x), x)),
      ALONG_INDEX(scatter_, x.clone().scatter_(dim, first_of(x), x)),
      ALONG_INDEX(scatter_add_, x.clone().scatter_add_(dim, first_of(x), x)),
      ROW(index_select, (Some<1, 3, 1> x, Dim<> dim), along(x, dim, 3),
          index_select(x, dim, three())),
      ALONG_ROWS(index_add, index_add(x, dim, three(), index_select(x, dim, three()))),
      ALONG_ROWS(index_add_, x.clone().index_add_(dim, three(), index_select(x, dim, three()))),
      {"embedding",
       [](SizeDraw& d) {
         const Tensor weight = d.tensor(2, 2, 1).requires_grad_();
         const int64_t padding = d.number("padding_idx");
         const bool by_freq = d.flag("scale_grad_by_freq");
         d.expect(right_if(padding < weight.size(0), {3, weight.size(1)}), [&] {
           const Tensor y = embedding(weight, three(), padding, by_freq);
           y.sum().backward();
           return y;
         });
       }},
      {"layer_norm",
       [](SizeDraw& d) {
         const auto [x, shape, right] = draw_normalized(d);
         const bool two = d.flag("residual");
         d.expect(twice(right), [&, x = x, shape = shape] {
           return two ? residual_layer_norm(x, x, shape)
                      : std::tuple(layer_norm(x, shape), layer_norm(x, shape));
         });
       }},
      {"rms_norm",
       [](SizeDraw& d) {
         const Normalized n = draw_normalized(d);
         d.expect(n.right, [&] { return rms_norm(n.x, n.shape); });
       }},
      ROW(polygamma, (Any x, Number n), as(x, n >= 0), polygamma(n, x)),
      ROW(round, (Any x, Number decimals), as(x), round(x, decimals)),
      ROW(round_, (Any x, Number decimals), as(x), x.clone().round_(decimals)),
      // The terms are in memory, p for an element.
      ROW(mvlgamma, (Any x, Number p), lenient(d, p > 1000, as(x, p >= 1)), mvlgamma(x, p)),
      ROW(group_norm, (Some<1> x, Number groups),
          as(x, x.dim() >= 2 && groups > 0 && x.size(1) % groups == 0), group_norm(x, groups)),
      ROW(glu, (Any x, Dim<> dim),
          x.dim() > 0 && kept(x, dim) && x.size(dim) % 2 == 0 ? along(x, dim, x.size(dim) / 2)
                                                              : refused(),
          glu(x, dim)),
  };
}

// ---- what all files of rows share

std::string Arguments::next() {
  size_t end = at_;
  for (int depth = 0; depth > 0 || (list_[end] != ',' && list_[end] != ')'); ++end)
    depth += (list_[end] == '<') - (list_[end] == '>');
  at_ = end + 1;
  const size_t begin = list_.rfind(' ', end) + 1;
  return list_.substr(begin, end - begin);
}

Right with(WideShape shape, size_t at, Wide extent) {
  shape[at] = extent;
  return one(std::move(shape));
}
Right twice(Right right) {
  if (right) right->push_back((*right)[0]);
  return right;
}
Right reduced(const Tensor& x, const std::vector<int64_t>& dims, bool keep, bool all_of_none) {
  std::vector<bool> gone(static_cast<size_t>(std::max<int64_t>(x.dim(), 1)),
                         dims.empty() && all_of_none);
  for (const int64_t dim : dims) {
    const auto d = place_of(dim, x.dim());
    if (!d || gone[*d]) return refused();
    gone[*d] = true;
  }
  WideShape out;
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    if (!gone[d]) out.push_back(x.sizes()[d]);
    else if (keep) out.push_back(1);
  }
  return one(out);
}
Right reduced_some(const Tensor& x, const std::vector<int64_t>& dims, bool keep) {
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    const auto here = [&](int64_t dim) { return place_of(dim, x.dim()) == d; };
    if (x.sizes()[d] == 0 && (dims.empty() || std::any_of(dims.begin(), dims.end(), here)))
      return refused();
  }
  return reduced(x, dims, keep);
}
Right diagonal_of(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  const auto a = place_of(dim1, x.dim()), b = place_of(dim2, x.dim());
  if (!a || !b || *a == *b) return refused();
  const Wide rows = x.sizes()[*a], cols = x.sizes()[*b];
  const Wide length = offset >= 0 ? std::min(rows, cols - offset) : std::min(rows + offset, cols);
  WideShape out;
  for (size_t d = 0; d < x.sizes().size(); ++d)
    if (d != *a && d != *b) out.push_back(x.sizes()[d]);
  out.push_back(std::max<Wide>(length, 0));
  return one(out);
}

std::vector<SizeRow> size_rows() {
  std::vector<SizeRow> all;
  for (const auto& rows : {size_rows_of_parts(), size_rows_of_views(), size_rows_of_factories(),
                           size_rows_of_dimensions(), size_rows_of_images(), size_rows_of_losses(),
                           size_rows_of_pixels(), size_rows_of_rearranged(), size_rows_of_values()})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

}  // namespace fuzz
}  // namespace ramet
