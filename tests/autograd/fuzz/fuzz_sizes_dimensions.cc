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
// 0: none, 1: mean, 2: sum.
template <class Call> SizeRow with_reduction(const char* name, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = d.tensor();
            const int64_t reduction = d.number("reduction");
            const Right right = reduction == 0                     ? one(wide(x.sizes()))
                                : reduction == 1 || reduction == 2 ? one({})
                                                                   : Right();
            d.expect(right, [&] { return call(x, zeros_like(x), reduction); });
          }};
}
// The same of samples, which are rows.
template <class Call> SizeRow with_samples(const char* name, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = d.tensor(2, 2, 1);
            const int64_t reduction = d.number("reduction");
            const Right right = reduction == 0                     ? one({x.size(0)})
                                : reduction == 1 || reduction == 2 ? one({})
                                                                   : Right();
            d.expect(right, [&] { return call(x, reduction); });
          }};
}
// Networks of one layer, whatever number of layers is said.
template <class Call> SizeRow with_layers(const char* name, int64_t gates, const Call& call) {
  return {
      name, [=](SizeDraw& d) {
        const Tensor x = d.tensor(3, 3, 1), h = zeros({1, x.size(1), 2});
        const std::vector<Tensor> weights = {zeros({2 * gates, x.size(2)}), zeros({2 * gates, 2})};
        const int64_t layers = d.mostly("num_layers", 1, 2);
        const Right right = layers == 1 ? one({x.size(0), x.size(1), 2}) : Right();
        d.expect(right, [&] { return std::get<0>(call(x, h, weights, layers)); });
      }};
}
// Rows of scores and their classes.
template <class Call> SizeRow with_classes(const char* name, bool of_images, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const int64_t rows = d.note("rows", d.tape().below(4)),
                          classes = d.note("classes", d.tape().between(1, 4)),
                          reduction = d.mostly("reduction", 0, 2),
                          ignored = d.number("ignore_index");
            const std::vector<int64_t> scores = of_images ? Dims{rows, classes, 2, 3}
                                                          : Dims{rows, classes},
                                       of_target = of_images ? Dims{rows, 2, 3} : Dims{rows};
            const bool strange = d.flag("an ignored class");
            const Tensor target = full(of_target, strange ? ignored : 0, kLong);
            const Right right = reduction == 0                     ? one(wide(of_target))
                                : reduction == 1 || reduction == 2 ? one({})
                                                                   : Right();
            d.expect(right, [&] { return call(zeros(scores), target, reduction, ignored); });
          }};
}

}  // namespace

std::vector<SizeRow> size_rows_of_dimensions() {
  using X = const Tensor&;
  const std::optional<Tensor> none;
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
      {"ctc_loss",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(2, 3).detach().requires_grad_();
         const bool batched = x.dim() == 3, padded = d.flag("padded");
         const int64_t steps = x.size(0), batch = batched ? x.size(1) : 1, classes = x.size(-1),
                       blank = d.mostly("blank", 0, classes - 1),
                       reduction = d.mostly("reduction", 0, 2);
         std::vector<int64_t> inputs, lengths;
         Wide labels = 0;
         bool fine = 0 <= blank && blank < classes && 0 <= reduction && reduction <= 2;
         for (int64_t b = 0; b < batch; ++b) {
           inputs.push_back(d.mostly("steps", 0, steps));
           lengths.push_back(d.mostly("labels", 0, 3));
           fine = fine && 0 <= inputs.back() && inputs.back() <= steps && 0 <= lengths.back() &&
                  lengths.back() <= (padded ? 3 : 9);
           labels += lengths.back();
         }
         const int64_t total = 0 <= labels && labels <= 9 ? static_cast<int64_t>(labels) : 9;
         fine = fine && (padded || labels == total);
         const Tensor targets = padded ? zeros({batch, 3}, kLong) : zeros({total}, kLong);
         const Right right = reduction == 0 && batched ? one({batch}) : one({});
         d.expect(
             fine ? right : Right(),
             [&] {
               const Tensor y = ctc_loss(x, targets, inputs, lengths, blank, reduction, true);
               y.sum().backward();
               return y;
             },
             16);
       }},
      with_reduction("mse_loss", [](X x, X y, int64_t r) { return mse_loss(x, y, r); }),
      with_reduction("l1_loss", [](X x, X y, int64_t r) { return l1_loss(x, y, r); }),
      with_reduction("smooth_l1_loss", [](X x, X y, int64_t r) { return smooth_l1_loss(x, y, r); }),
      with_reduction("huber_loss", [](X x, X y, int64_t r) { return huber_loss(x, y, r); }),
      with_reduction("kl_div", [](X x, X y, int64_t r) { return kl_div(x, y, r); }),
      with_reduction("binary_cross_entropy",
                     [=](X x, X y, int64_t r) { return binary_cross_entropy(x, y, none, r); }),
      with_reduction("binary_cross_entropy_with_logits",
                     [=](X x, X y, int64_t r) {
                       return binary_cross_entropy_with_logits(x, y, none, none, r);
                     }),
      with_reduction("hinge_embedding_loss",
                     [](X x, X y, int64_t r) { return hinge_embedding_loss(x, y, 1, r); }),
      with_reduction("soft_margin_loss",
                     [](X x, X y, int64_t r) { return soft_margin_loss(x, y, r); }),
      with_reduction("margin_ranking_loss",
                     [](X x, X y, int64_t r) { return margin_ranking_loss(x, y, y, 1, r); }),
      with_reduction(
          "poisson_nll_loss",
          [](X x, X y, int64_t r) { return poisson_nll_loss(x, y, true, false, 1e-8, r); }),
      with_samples(
          "cosine_embedding_loss",
          [](X x, int64_t r) { return cosine_embedding_loss(x, x, ones({x.size(0)}), 0, r); }),
      with_samples(
          "triplet_margin_loss",
          [](X x, int64_t r) { return triplet_margin_loss(x, x, x, 1, 2, 1e-6, false, r); }),
      with_samples("multi_margin_loss",
                   [](X x, int64_t r) {
                     return multi_margin_loss(x, zeros({x.size(0)}, kLong), 1, 1, {}, r);
                   }),
      with_samples(
          "multilabel_margin_loss",
          [](X x, int64_t r) { return multilabel_margin_loss(x, zeros(x.sizes(), kLong), r); }),
      with_layers("lstm", 4,
                  [](X x, X h, TensorList w, int64_t n) {
                    return lstm(x, {h, h}, w, false, n, 0, false, false, false);
                  }),
      with_layers("gru", 3,
                  [](X x, X h, TensorList w, int64_t n) {
                    return gru(x, h, w, false, n, 0, false, false, false);
                  }),
      with_layers("rnn_tanh", 1,
                  [](X x, X h, TensorList w, int64_t n) {
                    return rnn_tanh(x, h, w, false, n, 0, false, false, false);
                  }),
      with_layers("rnn_relu", 1,
                  [](X x, X h, TensorList w, int64_t n) {
                    return rnn_relu(x, h, w, false, n, 0, false, false, false);
                  }),
      {"glu",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t dim = d.dim("dim", x.dim());
         const auto at = place_of(dim, x.dim());
         Right right = at && x.dim() > 0 && x.size(dim) % 2 == 0 ? one(wide(x.sizes())) : Right();
         if (right) (*right)[0][*at] /= 2;
         d.expect(right, [&] { return glu(x, dim); });
       }},
      with_classes(
          "cross_entropy_loss", false,
          [=](X x, X t, int64_t r, int64_t i) { return cross_entropy_loss(x, t, none, r, i); }),
      with_classes("nll_loss", false,
                   [=](X x, X t, int64_t r, int64_t i) { return nll_loss(x, t, none, r, i); }),
      with_classes("nll_loss2d", true,
                   [=](X x, X t, int64_t r, int64_t i) { return nll_loss2d(x, t, none, r, i); }),
      with_classes("nll_loss_nd", true,
                   [=](X x, X t, int64_t r, int64_t i) { return nll_loss_nd(x, t, none, r, i); }),
  };
}

std::vector<SizeRow> size_rows() {
  std::vector<SizeRow> all;
  for (const auto& rows : {size_rows_of_parts(), size_rows_of_views(), size_rows_of_factories(),
                           size_rows_of_dimensions(), size_rows_of_images(),
                           size_rows_of_rearranged(), size_rows_of_values()})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

}  // namespace fuzz
}  // namespace ramet
