// Rows of random sizes: losses and recurrent networks.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_sizes.h"

namespace ramet {
namespace fuzz {
namespace {

using Dims = std::vector<int64_t>;

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
// Networks of one layer, whatever number of layers the arguments give.
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

std::vector<SizeRow> size_rows_of_losses() {
  using X = const Tensor&;
  const std::optional<Tensor> none;
  return {
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

}  // namespace fuzz
}  // namespace ramet
