// Rows of random sizes: what takes a dimension, and other numbers of operations.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_sizes.h"

namespace ramet {
namespace fuzz {

namespace {

using Dims = std::vector<int64_t>;

// Over these dimensions, all where there are none.
Right reduced(const Tensor& x, const Dims& dims, bool keep, bool needs_elements = false) {
  std::vector<bool> gone(static_cast<size_t>(std::max<int64_t>(x.dim(), 1)), dims.empty());
  for (const int64_t dim : dims) {
    const auto d = place_of(dim, x.dim());
    if (!d || gone[*d]) return std::nullopt;
    gone[*d] = true;
  }
  WideShape out;
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    if (gone[d] && needs_elements && x.sizes()[d] == 0) return std::nullopt;
    if (!gone[d]) out.push_back(x.sizes()[d]);
    else if (keep) out.push_back(1);
  }
  return one(out);
}
Right twice(Right right) {
  if (right) right->push_back((*right)[0]);
  return right;
}
Right kept(const Tensor& x, int64_t dim) {
  return place_of(dim, x.dim()) ? one(wide(x.sizes())) : Right();
}

template <class Call>
SizeRow of_dims(const char* name, bool needs_elements, const Call& call, bool two = false) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = d.tensor();
            const Dims dims = d.dims("dim", x.dim());
            const bool keep = d.flag("keepdim");
            const Right right = reduced(x, dims, keep, needs_elements);
            d.expect(two ? twice(right) : right, [&] { return call(x, dims, keep); });
          }};
}
template <class Call>
SizeRow of_dim(const char* name, bool needs_elements, const Call& call, bool two = false) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = d.tensor();
            const int64_t dim = d.dim("dim", x.dim());
            const bool keep = d.flag("keepdim");
            const Right right = reduced(x, {dim}, keep, needs_elements);
            d.expect(two ? twice(right) : right, [&] { return call(x, dim, keep); });
          }};
}
template <class Call> SizeRow along(const char* name, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = d.tensor();
            const int64_t dim = d.dim("dim", x.dim());
            d.expect(kept(x, dim), [&] { return call(x, dim); });
          }};
}
template <class Call> SizeRow of_lines_twice(const char* name, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = d.tensor();
            const int64_t dim = d.dim("dim", x.dim());
            d.expect(twice(kept(x, dim)), [&] { return call(x, dim); });
          }};
}
// Slices that are all equal: one is left.
template <class Call> SizeRow of_equal_slices(const char* name, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = zeros_like(d.tensor());
            const int64_t dim = d.dim("dim", x.dim());
            const auto at = place_of(dim, x.dim());
            Right right;
            if (at && x.dim() > 0) {
              WideShape shape = wide(x.sizes());
              const Wide n = shape[*at];
              shape[*at] = 1;
              const bool others = std::find(shape.begin(), shape.end(), Wide{0}) != shape.end();
              shape[*at] = std::min<Wide>(n, 1);
              if (!others) right = one(shape);
            }
            d.expect(right, [&] { return std::get<0>(call(x, dim)); });
          }};
}
// Of an index of zeros along a dimension; `call` gives something of x's sizes.
template <class Call> SizeRow with_index(const char* name, bool gathers, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = d.tensor(0, 3, 1);
            const int64_t dim = d.dim("dim", x.dim());
            const Tensor index = zeros_like(x).to(kLong);
            (void)gathers;
            d.expect(kept(x, dim), [&] { return call(x, dim, index); });
          }};
}
template <class Call> SizeRow with_row_numbers(const char* name, bool selects, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = d.tensor(1, 3, 1);
            const int64_t dim = d.dim("dim", x.dim());
            const Tensor index = zeros({3}, kLong);
            Right right = kept(x, dim);
            if (right && selects) (*right)[0][*place_of(dim, x.dim())] = 3;
            d.expect(right, [&] { return call(x, dim, index); });
          }};
}
}  // namespace

std::vector<SizeRow> size_rows_of_dimensions() {
  using X = const Tensor&;
  return {
      of_dims("sum", false, [](X x, const Dims& d, bool k) { return sum(x, d, k); }),
      of_dims("mean", false, [](X x, const Dims& d, bool k) { return mean(x, d, k); }),
      of_dims("var", false, [](X x, const Dims& d, bool k) { return var(x, d, true, k); }),
      of_dims("std", false, [](X x, const Dims& d, bool k) { return std(x, d, 1, k); }),
      of_dims(
          "var_mean", false, [](X x, const Dims& d, bool k) { return var_mean(x, d, true, k); },
          true),
      of_dims(
          "std_mean", false, [](X x, const Dims& d, bool k) { return std_mean(x, d, 1, k); }, true),
      of_dims("amax", true, [](X x, const Dims& d, bool k) { return amax(x, d, k); }),
      of_dims("amin", true, [](X x, const Dims& d, bool k) { return amin(x, d, k); }),
      of_dims("norm", false, [](X x, const Dims& d, bool k) { return norm(x, 2, d, k); }),
      of_dims("logsumexp", false, [](X x, const Dims& d, bool k) { return logsumexp(x, d, k); }),
      of_dim("any", false, [](X x, int64_t d, bool k) { return any(x, d, k); }),
      of_dim("all", false, [](X x, int64_t d, bool k) { return all(x, d, k); }),
      of_dim("any", false, [](X x, int64_t d, bool k) { return any(x, Dims{d}, k); }),
      of_dim("all", false, [](X x, int64_t d, bool k) { return all(x, Dims{d}, k); }),
      of_dim("prod", false, [](X x, int64_t d, bool k) { return prod(x, d, k); }),
      of_dim(
          "max", true, [](X x, int64_t d, bool k) { return max(x, d, k); }, true),
      of_dim(
          "min", true, [](X x, int64_t d, bool k) { return min(x, d, k); }, true),
      of_dim("argmax", true, [](X x, int64_t d, bool k) { return argmax(x, d, k); }),
      of_dim("argmin", true, [](X x, int64_t d, bool k) { return argmin(x, d, k); }),
      along("cumsum", [](X x, int64_t d) { return cumsum(x, d); }),
      along("cumprod", [](X x, int64_t d) { return cumprod(x, d); }),
      along("cumprod_", [](X x, int64_t d) { return Tensor(x.clone().cumprod_(d)); }),
      along("logcumsumexp", [](X x, int64_t d) { return logcumsumexp(x, d); }),
      of_lines_twice("cummax", [](X x, int64_t d) { return cummax(x, d); }),
      of_lines_twice("cummin", [](X x, int64_t d) { return cummin(x, d); }),
      along("softmax", [](X x, int64_t d) { return softmax(x, d); }),
      along("log_softmax", [](X x, int64_t d) { return log_softmax(x, d); }),
      of_dim(
          "median", true, [](X x, int64_t d, bool k) { return median(x, d, k); }, true),
      of_dim(
          "nanmedian", true, [](X x, int64_t d, bool k) { return nanmedian(x, d, k); }, true),
      of_dim(
          "mode", true, [](X x, int64_t d, bool k) { return mode(x, d, k); }, true),
      {"kthvalue",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t k = d.mostly("k", 1, 3), dim = d.dim("dim", x.dim());
         const bool keep = d.flag("keepdim");
         const Right right = reduced(x, {dim}, keep, true);
         const bool fine = right && k >= 1 && k <= (x.dim() ? x.size(dim) : 1);
         d.expect(fine ? twice(right) : Right(), [&] { return kthvalue(x, k, dim, keep); });
       }},
      of_lines_twice("sort", [](X x, int64_t d) { return sort(x, d); }),
      of_lines_twice("sort", [](X x, int64_t d) { return sort(x, std::optional(true), d, true); }),
      along("argsort", [](X x, int64_t d) { return argsort(x, d); }),
      along("argsort", [](X x, int64_t d) { return argsort(x, true, d); }),
      {"topk",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t k = d.mostly("k", 0, 3), dim = d.dim("dim", x.dim());
         Right right = kept(x, dim);
         const int64_t extent = right && x.dim() ? x.size(dim) : 1;
         if (k < 0 || k > extent) right = Right();
         else if (right && x.dim()) (*right)[0][*place_of(dim, x.dim())] = k;
         d.expect(twice(right), [&] { return topk(x, k, dim); });
       }},
      {"bincount",
       [](SizeDraw& d) {
         const Tensor x = zeros({d.tape().below(4)}, kLong);
         const int64_t least = d.number("minlength");
         const Wide counts = std::max<Wide>(least, x.numel() ? 1 : 0);
         d.expect(least < 0 ? Right() : one({counts}),
                  [&] { return bincount(x, std::nullopt, least); });
       }},
      {"histc",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t bins = d.number("bins");
         d.expect(
             bins <= 0 ? Right() : one({bins}), [&] { return histc(x, bins, -1, 1); }, 2);
       }},
      of_equal_slices("unique_dim", [](X x, int64_t d) { return unique_dim(x, d); }),
      of_equal_slices("unique_dim_consecutive",
                      [](X x, int64_t d) { return unique_dim_consecutive(x, d); }),
      of_equal_slices("unique_consecutive",
                      [](X x, int64_t d) { return unique_consecutive(x, false, false, d); }),
      with_index("gather", true, [](X x, int64_t d, X i) { return gather(x, d, i); }),
      with_index("scatter", false, [](X x, int64_t d, X i) { return scatter(x, d, i, x); }),
      with_index("scatter", false, [](X x, int64_t d, X i) { return scatter(x, d, i, 2); }),
      with_index("scatter_add", false, [](X x, int64_t d, X i) { return scatter_add(x, d, i, x); }),
      with_index("scatter_", false,
                 [](X x, int64_t d, X i) { return Tensor(x.clone().scatter_(d, i, x)); }),
      with_index("scatter_add_", false,
                 [](X x, int64_t d, X i) { return Tensor(x.clone().scatter_add_(d, i, x)); }),
      with_row_numbers("index_select", true,
                       [](X x, int64_t d, X i) { return index_select(x, d, i); }),
      with_row_numbers(
          "index_add", false,
          [](X x, int64_t d, X i) { return index_add(x, d, i, index_select(x, d, i)); }),
      with_row_numbers("index_add_", false,
                       [](X x, int64_t d, X i) {
                         return Tensor(x.clone().index_add_(d, i, index_select(x, d, i)));
                       }),
      {"embedding",
       [](SizeDraw& d) {
         const Tensor weight = d.tensor(2, 2, 1).requires_grad_();
         const int64_t padding = d.number("padding_idx");
         const bool by_freq = d.flag("scale_grad_by_freq");
         d.expect(padding < weight.size(0) ? one({3, weight.size(1)}) : Right(), [&] {
           const Tensor y = embedding(weight, zeros({3}, kLong), padding, by_freq);
           y.sum().backward();
           return y;
         });
       }},
      {"layer_norm",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(1);
         std::vector<int64_t> shape = d.numbers("normalized_shape", 0, 3);
         if (d.flag("the last ones"))
           shape.assign(x.sizes().end() - d.tape().between(0, x.dim()), x.sizes().end());
         d.note("shape", IntArrayRef(shape));
         const bool fine = !shape.empty() && static_cast<int64_t>(shape.size()) <= x.dim() &&
                           std::equal(shape.rbegin(), shape.rend(), x.sizes().vec().rbegin());
         const bool two = d.flag("residual");
         const Right right = fine ? one(wide(x.sizes())) : Right();
         d.expect(twice(right), [&] {
           return two ? residual_layer_norm(x, x, shape)
                      : std::tuple(layer_norm(x, shape), layer_norm(x, shape));
         });
       }},
      {"rms_norm",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(1);
         std::vector<int64_t> shape = d.numbers("normalized_shape", 0, 3);
         if (d.flag("the last ones"))
           shape.assign(x.sizes().end() - d.tape().between(0, x.dim()), x.sizes().end());
         d.note("shape", IntArrayRef(shape));
         const bool fine = !shape.empty() && static_cast<int64_t>(shape.size()) <= x.dim() &&
                           std::equal(shape.rbegin(), shape.rend(), x.sizes().vec().rbegin());
         d.expect(fine ? one(wide(x.sizes())) : Right(), [&] { return rms_norm(x, shape); });
       }},
      {"polygamma",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t n = d.number("n");
         d.expect(n < 0 ? Right() : one(wide(x.sizes())), [&] { return polygamma(n, x); });
       }},
      {"round",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t decimals = d.number("decimals");
         d.expect(one(wide(x.sizes())), [&] { return round(x, decimals); });
       }},
      {"round_",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t decimals = d.number("decimals");
         d.expect(one(wide(x.sizes())), [&] { return x.clone().round_(decimals); });
       }},
      {"mvlgamma",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t p = d.number("p");
         if (p > 1000) d.may_refuse();  // the terms are in memory, p for an element
         d.expect(p < 1 ? Right() : one(wide(x.sizes())), [&] { return mvlgamma(x, p); });
       }},
      {"group_norm",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(1);
         const int64_t groups = d.number("num_groups");
         const bool fine = x.dim() >= 2 && groups > 0 && x.size(1) % groups == 0;
         d.expect(fine ? one(wide(x.sizes())) : Right(), [&] { return group_norm(x, groups); });
       }},
      {"glu",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t dim = d.dim("dim", x.dim());
         const auto at = place_of(dim, x.dim());
         Right right = at && x.dim() > 0 && x.size(dim) % 2 == 0 ? one(wide(x.sizes())) : Right();
         if (right) (*right)[0][*at] /= 2;
         d.expect(right, [&] { return glu(x, dim); });
       }},
  };
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
