// Rows of random sizes: losses and recurrent networks.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_rows.h"

namespace ramet {
namespace fuzz {
namespace {

// 0: none, 1: mean, 2: sum.
Right reduced_by(int64_t reduction, const WideShape& none) {
  return reduction == 0 ? one(none) : right_if(reduction == 1 || reduction == 2, {});
}
// Rows of scores and their classes.
struct Scores {
  Tensor x, target;
};
Scores scores(bool of_images, int64_t rows, int64_t classes, int64_t label) {
  using List = std::vector<int64_t>;
  return {zeros(of_images ? List{rows, classes, 2, 3} : List{rows, classes}),
          full(of_images ? List{rows, 2, 3} : List{rows}, label, kLong)};
}
// Networks of one layer, whatever number of layers the arguments give.
std::vector<Tensor> weights(const Tensor& x, int64_t gates) {
  return {zeros({2 * gates, x.size(2)}), zeros({2 * gates, 2})};
}
Tensor state(const Tensor& x) { return zeros({1, x.size(1), 2}); }

}  // namespace

#define LOSS(name, ...) \
  ROW(name, (Any x, Number r), reduced_by(r, wide(x.sizes())), name(x, zeros_like(x), __VA_ARGS__))
// Of samples, which are rows.
#define OF_SAMPLES(name, ...) \
  ROW(name, (Some<2, 2, 1> x, Number r), reduced_by(r, {x.size(0)}), name(__VA_ARGS__))
#define OF_CLASSES(name, of_images)                                                              \
  ROW(name,                                                                                      \
      (Within<0, 3> rows, Within<1, 4> classes, Mostly<0, 2> r, Number ignored, bool strange),   \
      reduced_by(r, of_images ? WideShape{rows, 2, 3} : WideShape{rows}), [&](const Scores& s) { \
        return name(s.x, s.target, std::nullopt, r, ignored);                                    \
      }(scores(of_images, rows, classes, strange ? ignored.value : 0)))
#define LAYERS(name, gates, ...)                        \
  ROW(name, (Some<3, 3, 1> x, Mostly<1, 2> layers),     \
      right_if(layers == 1, {x.size(0), x.size(1), 2}), \
      std::get<0>(name(x, __VA_ARGS__, weights(x, gates), false, layers, 0, false, false, false)))

std::vector<SizeRow> size_rows_of_losses() {
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
      LOSS(mse_loss, r),
      LOSS(l1_loss, r),
      LOSS(smooth_l1_loss, r),
      LOSS(huber_loss, r),
      LOSS(kl_div, r),
      LOSS(binary_cross_entropy, std::nullopt, r),
      LOSS(binary_cross_entropy_with_logits, std::nullopt, std::nullopt, r),
      LOSS(hinge_embedding_loss, 1, r),
      LOSS(soft_margin_loss, r),
      LOSS(margin_ranking_loss, zeros_like(x), 1, r),
      LOSS(poisson_nll_loss, true, false, 1e-8, r),
      OF_SAMPLES(cosine_embedding_loss, x, x, ones({x.size(0)}), 0, r),
      OF_SAMPLES(triplet_margin_loss, x, x, x, 1, 2, 1e-6, false, r),
      OF_SAMPLES(multi_margin_loss, x, zeros({x.size(0)}, kLong), 1, 1, {}, r),
      OF_SAMPLES(multilabel_margin_loss, x, zeros(x.sizes(), kLong), r),
      LAYERS(lstm, 4, {state(x), state(x)}),
      LAYERS(gru, 3, state(x)),
      LAYERS(rnn_tanh, 1, state(x)),
      LAYERS(rnn_relu, 1, state(x)),
      OF_CLASSES(cross_entropy_loss, false),
      ROW(linear_cross_entropy,
          (Within<0, 3> rows, Within<1, 4> classes, Mostly<0, 2> r, Number ignored,
           Maybe<Mostly<1, 4>> chunk, bool strange),
          reduced_by(chunk.value_or(1) > 0 ? r.value : -1, WideShape{rows}),
          linear_cross_entropy(zeros({rows, 2}), zeros({classes, 2}),
                               full({rows}, strange ? ignored.value : 0, kLong), {}, {}, r, ignored,
                               0, chunk)),
      OF_CLASSES(nll_loss, false),
      OF_CLASSES(nll_loss2d, true),
      OF_CLASSES(nll_loss_nd, true),
  };
}

}  // namespace fuzz
}  // namespace ramet
