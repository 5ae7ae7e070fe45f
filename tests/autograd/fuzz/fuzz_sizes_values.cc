// Rows of random sizes: products of arrays, values written by index, statistics, distances.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_sizes.h"

namespace ramet {
namespace fuzz {

namespace {

using X = const Tensor&;
using Dims = std::vector<int64_t>;

Right refused() { return std::nullopt; }
Right kept(X x, int64_t dim) { return place_of(dim, x.dim()) ? one(wide(x.sizes())) : refused(); }
// Without these dimensions, each of which occurs once; with 1 for them where they are kept.
Right reduced(X x, const Dims& dims, bool keep, bool all_of_none = true) {
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

template <class Call> SizeRow of_dims(const char* name, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = d.tensor();
            const Dims dims = d.dims("dim", x.dim());
            const bool keep = d.flag("keepdim");
            d.expect(reduced(x, dims, keep), [&] { return call(x, dims, keep); });
          }};
}
// Along one dimension, of a tensor with elements.
template <class Call> SizeRow of_dim(const char* name, const Call& call, bool two = false) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = d.tensor(0, 4, 1);
            const int64_t dim = d.dim("dim", x.dim());
            const bool keep = d.flag("keepdim");
            Right right = reduced(x, {dim}, keep);
            if (right && two) right->push_back((*right)[0]);
            d.expect(
                right, [&] { return call(x, dim, keep); }, 8);
          }};
}
// A slice of `dim` by an index of zeros, and as many values.
template <class Call> SizeRow of_slices(const char* name, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = d.tensor(1, 3, 1);
            const int64_t dim = d.dim("dim", x.dim());
            const auto at = place_of(dim, x.dim());
            const Tensor index = zeros({1}, kLong);
            const Tensor source =
                at ? x.narrow(static_cast<int64_t>(*at), 0, 1).clone() : x.clone();
            d.expect(kept(x, dim), [&] { return call(x, dim, index, source); });
          }};
}
// The integral along `dim`, or its running values.
template <class Call> SizeRow of_samples(const char* name, bool running, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor y = d.tensor();
            const int64_t dim = d.dim("dim", y.dim());
            Right right = y.dim() == 0 ? refused() : reduced(y, {dim}, false);
            if (right && running) {
              right = one(wide(y.sizes()));
              Wide& n = (*right)[0][*place_of(dim, y.dim())];
              n = std::max<Wide>(n - 1, 0);
            }
            d.expect(
                right, [&] { return call(y, dim); }, 4);
          }};
}

}  // namespace

std::vector<SizeRow> size_rows_of_values() {
  return {
      {"nonzero_static",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t n = d.number("size"), fill = d.number("fill_value");
         d.expect(
             n >= 0 ? one({n, x.dim()}) : refused(), [&] { return nonzero_static(x, n, fill); },
             16);
       }},
      {"gradient",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(0, 3, 2);
         const Dims dims = d.dims("dim", x.dim());
         const int64_t order = d.mostly("edge_order", 1, 2);
         std::vector<WideShape> right;
         std::vector<bool> seen(static_cast<size_t>(x.dim()) + 1);
         bool fine = order == 1 || order == 2;
         for (const int64_t dim : dims) {
           const auto at = place_of(dim, x.dim());
           fine = fine && at && !seen[*at] && x.dim() > 0 && x.sizes()[*at] > order;
           if (!fine) break;
           seen[*at] = true;
           right.push_back(wide(x.sizes()));
         }
         d.expect(
             fine ? Right(right) : refused(), [&] { return gradient(x, dims, order); }, 8);
       }},
      {"histogram",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t bins = d.number("bins");
         d.expect(
             bins > 0 ? Right({{bins}, {Wide{bins} + 1}}) : refused(),
             [&] { return histogram(x, bins); }, 8);
       }},
      {"histogramdd",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(1, 3);
         const Dims bins = d.numbers("bins", 0, 3);
         const bool same = d.flag("one number") && bins.size() == 1;
         const int64_t dims = x.size(-1);
         WideShape shape = same ? WideShape(static_cast<size_t>(dims), bins[0]) : wide(bins);
         bool fine = x.dim() >= 2 && static_cast<int64_t>(shape.size()) == dims;
         for (const Wide n : shape) fine = fine && n > 0;
         d.expect(
             fine ? one(shape) : refused(),
             [&] {
               return std::get<0>(same ? histogramdd(x, bins[0])
                                       : histogramdd(x, IntArrayRef(bins)));
             },
             8);
       }},
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
             at && *at + 1 == sizes.size() && segments >= 0 ? one(wide(x.sizes())) : refused(),
             [&] { return segment_reduce(x, "sum", ones(sizes, kLong), {}, {}, axis); }, 16);
       }},
      of_dims("nansum", [](X x, const Dims& d, bool k) { return nansum(x, d, k); }),
      of_dims("nanmean", [](X x, const Dims& d, bool k) { return nanmean(x, d, k); }),
      of_dims("linalg_vector_norm",
              [](X x, const Dims& d, bool k) { return linalg_vector_norm(x, 2, d, k); }),
      {"count_nonzero",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const Dims dims = d.dims("dim", x.dim());
         d.expect(reduced(x, dims, false), [&] { return count_nonzero(x, dims); });
       }},
      of_dim(
          "aminmax", [](X x, int64_t d, bool k) { return aminmax(x, d, k); }, true),
      of_dim("quantile", [](X x, int64_t d, bool k) { return quantile(x, 0.5, d, k); }),
      of_dim("nanquantile", [](X x, int64_t d, bool k) { return nanquantile(x, 0.5, d, k); }),
      of_samples("trapezoid", false, [](X y, int64_t d) { return trapezoid(y, 1, d); }),
      of_samples("trapz", false, [](X y, int64_t d) { return trapz(y, 1, d); }),
      of_samples("cumulative_trapezoid", true,
                 [](X y, int64_t d) { return cumulative_trapezoid(y, 1, d); }),
      {"cov",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(0, 3);
         const int64_t correction = d.number("correction");
         const Right right = x.dim() > 2                     ? refused()
                             : x.dim() < 2 || x.size(0) == 1 ? one({})
                                                             : one({x.size(0), x.size(0)});
         d.expect(
             right, [&] { return cov(x, correction); }, 4);
       }},
      of_slices("index_copy",
                [](X x, int64_t d, X i, X source) { return index_copy(x, d, i, source); }),
      of_slices("index_fill", [](X x, int64_t d, X i, X) { return index_fill(x, d, i, 1); }),
      of_slices("index_reduce", [](X x, int64_t d, X i,
                                   X source) { return index_reduce(x, d, i, source, "amax"); }),
      {"scatter_reduce",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(0, 3, 1);
         const int64_t dim = d.dim("dim", x.dim());
         const Tensor index = zeros_like(x).to(kLong);
         d.expect(
             kept(x, dim), [&] { return scatter_reduce(x, dim, index, x, "prod"); }, 4);
       }},
      {"select_scatter",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(0, 3);
         const int64_t dim = d.dim("dim", x.dim()), index = d.mostly("index", -4, 3);
         const auto at = x.dim() == 0 ? std::nullopt : place_of(dim, x.dim());
         const bool there = at && index >= -x.sizes()[*at] && index < x.sizes()[*at];
         const Tensor src = there ? x.select(dim, index).clone() : zeros({2});
         d.expect(there ? one(wide(x.sizes())) : refused(),
                  [&] { return select_scatter(x, src, dim, index); });
       }},
      {"slice_scatter",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(0, 3);
         const int64_t dim = d.dim("dim", x.dim()), start = d.number("start"),
                       end = d.number("end"), step = d.mostly("step", 1, 3);
         const auto at = x.dim() == 0 ? std::nullopt : place_of(dim, x.dim());
         const bool right = at && step > 0;
         const Tensor src = right ? x.slice(dim, start, end, step).clone() : zeros({2});
         d.expect(right ? one(wide(x.sizes())) : refused(),
                  [&] { return slice_scatter(x, src, dim, start, end, step); });
       }},
      {"renorm",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t dim = d.dim("dim", x.dim());
         d.expect(
             x.dim() < 2 ? refused() : kept(x, dim), [&] { return renorm(x, 2, dim, 1); }, 4);
       }},
      {"linalg_matrix_norm",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(0, 4, 1);
         const Dims dims = d.dims("dim", x.dim());
         const bool keep = d.flag("keepdim");
         d.expect(x.dim() < 2 || dims.size() != 2 ? refused() : reduced(x, dims, keep),
                  [&] { return linalg_matrix_norm(x, 1, dims, keep); });
       }},
      {"nuclear_norm",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(0, 4, 1);
         const Dims dims = d.dims("dim", x.dim());
         const bool keep = d.flag("keepdim");
         d.expect(x.dim() < 2 || dims.size() != 2 ? refused() : reduced(x, dims, keep),
                  [&] { return nuclear_norm(x, dims, keep); });
       }},
      {"linalg_norm",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(0, 4, 1);
         const Dims dims = d.dims("dim", x.dim());
         const bool keep = d.flag("keepdim");
         d.expect(dims.empty() || dims.size() > 2 ? refused() : reduced(x, dims, keep),
                  [&] { return linalg_norm(x, std::nullopt, dims, keep); });
       }},
      {"frobenius_norm",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const Dims dims = d.dims("dim", x.dim());
         const bool keep = d.flag("keepdim");
         d.expect(dims.size() > 2 ? refused() : reduced(x, dims, keep),
                  [&] { return frobenius_norm(x, dims, keep); });
       }},
      {"cosine_similarity",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t dim = d.dim("dim", x.dim());
         d.expect(
             reduced(x, {dim}, false), [&] { return cosine_similarity(x, x, dim); }, 4);
       }},
      {"cdist",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(0, 3);
         const int64_t mode = d.mostly("compute_mode", 0, 2);
         Right right = refused();
         if (x.dim() >= 2 && mode >= 0 && mode <= 2) {
           right = one(wide(x.sizes()));
           (*right)[0].back() = x.size(-2);
         }
         d.expect(
             right, [&] { return cdist(x, x, 2, mode); }, 8);
       }},
      {"cross",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(0, 3);
         const int64_t dim = d.dim("dim", x.dim());
         const auto at = x.dim() == 0 ? std::nullopt : place_of(dim, x.dim());
         d.expect(
             at && x.sizes()[*at] == 3 ? one(wide(x.sizes())) : refused(),
             [&] { return cross(x, x, dim); }, 4);
       }},
      {"linalg_cross",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(1, 3);
         const int64_t dim = d.dim("dim", x.dim());
         const auto at = place_of(dim, x.dim());
         d.expect(
             at && x.sizes()[*at] == 3 ? one(wide(x.sizes())) : refused(),
             [&] { return linalg_cross(x, x, dim); }, 4);
       }},
      {"tensordot",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(0, 3);
         const Dims dims = d.dims("dims", x.dim());
         Right right = reduced(x, dims, false, false);
         if (right) {
           WideShape& shape = (*right)[0];
           const WideShape half = shape;
           shape.insert(shape.end(), half.begin(), half.end());
         }
         d.expect(
             right, [&] { return tensordot(x, x, dims, dims); }, 4);
       }},
      {"einsum",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(2, 2);
         const int64_t i = d.mostly("i", 0, 1), j = d.mostly("j", 0, 1);
         const bool right = i != j && std::min(i, j) >= 0 && std::max(i, j) <= 1;
         d.expect(right ? one({x.size(0), x.size(0)}) : refused(), [&] {
           return einsum("ij,kj->ik", {x, x}, IntArrayRef{i, j});
         });
       }},
  };
}

}  // namespace fuzz
}  // namespace ramet
