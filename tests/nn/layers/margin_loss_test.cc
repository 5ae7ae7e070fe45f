// Losses with margins and of sequences: options, edges, refusals; CTC against the sum over all
// alignments. Numbers: tests/nn/goldens.
#include "nn/layers/loss/margin_loss.h"

#include <algorithm>
#include <cmath>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/layers/softmax.h"
#include "autograd/ops/loss/cross_entropy.h"
#include "autograd/ops/loss/ctc_loss.h"
#include "autograd/ops/loss/loss.h"
#include "autograd/ops/loss/margin_loss.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "nn/layers/loss/ctc_loss.h"
#include "nn/module/module_list.h"
#include "runtime/memory/allocator.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

namespace F = functional;

using V = const std::vector<Tensor>&;
enum class Reduction { kNone, kMean, kSum };

template <class Options> Options with(Reduction r) {
  Options options;
  if (r == Reduction::kNone) options.reduction(kNone);
  if (r == Reduction::kSum) options.reduction(kSum);
  return options;  // kMean is the default
}

Tensor signs() { return doubles({1, -1, 1, -1, -1, -1, 1, 1, 1, 1, -1, -1}).view({3, 4}); }
Tensor labels() { return doubles({2, 0, 3}).to(kLong); }
Tensor sets() { return doubles({3, 0, -1, 1, 1, -1, 0, 0, -1, 2, 0, 1}).to(kLong).view({3, 4}); }
std::vector<Tensor> operands() {
  return {sines(12).view({3, 4}), sines(12, 0.91, 0.5).view({3, 4}),
          sines(12, 1.7, 0.2).view({3, 4})};
}

constexpr int64_t kEach = ramet::Reduction::None;

// As many losses as the target has, for any shape of the input.
TEST(MarginLosses, ShapeOfTheTarget) {
  const auto sizes = [](const Tensor& x, const Tensor& target) {
    return ramet::multi_margin_loss(x, target, 1, 1, {}, kEach).sizes().vec();
  };
  const Tensor one = operands()[0][0], class_of_one = tensor({int64_t{2}});
  EXPECT_EQ(sizes(one, class_of_one), std::vector<int64_t>{1});
  EXPECT_EQ(sizes(one.unsqueeze(0), class_of_one), std::vector<int64_t>{1});
  EXPECT_EQ(sizes(one, class_of_one[0]), std::vector<int64_t>{});
  EXPECT_EQ(sizes(one.unsqueeze(0), class_of_one[0]), std::vector<int64_t>{});
}

// A sample without a batch has the loss of a batch of it.
TEST(MarginLosses, OfOneSample) {
  const Tensor a = operands()[0], b = operands()[1];
  const auto cosine = F::CosineEmbeddingLossFuncOptions().margin(-0.9);
  const std::pair<Tensor, Tensor> pairs[] = {
      {F::cosine_embedding_loss(a[0], b[0], tensor(-1), cosine),
       F::cosine_embedding_loss(a.narrow(0, 0, 1), b.narrow(0, 0, 1), tensor({-1}), cosine)},
      {F::multi_margin_loss(a[1], tensor(2)),
       F::multi_margin_loss(a.narrow(0, 1, 1), tensor({int64_t{2}}))},
      {F::multilabel_margin_loss(a[1], sets()[0]),
       F::multilabel_margin_loss(a.narrow(0, 1, 1), sets().narrow(0, 0, 1))}};
  for (const auto& [got, want] : pairs) {
    EXPECT_EQ(got.dim(), 0);
    expect_values(got, values(want));
  }
}

TEST(MarginLosses, ModulesCallTheirFunctions) {
  const std::vector<Tensor> x = operands();
  const Tensor a = x[0], b = x[1], c = x[2], halves = signs().add(1).div(2);
  const Tensor weight = doubles({0.5, 1, 2, 0.25});
  const auto eps = F::PoissonNLLLossFuncOptions().log_input(false).full(true).eps(1e-3);
  const std::pair<Tensor, Tensor> pairs[] = {
      {HuberLoss(HuberLossOptions(kSum).delta(0.5))(a, b),
       F::huber_loss(a, b, F::HuberLossFuncOptions(kSum).delta(0.5))},
      {KLDivLoss(kBatchMean)(a, halves), F::kl_div(a, halves, kSum).div(3)},
      {KLDivLoss(KLDivLossOptions(kSum).log_target(true))(a, b),
       F::kl_div(a, b, F::KLDivFuncOptions(kSum).log_target(true))},
      {PoissonNLLLoss(PoissonNLLLossOptions().full(true))(a, halves),
       F::poisson_nll_loss(a, halves, F::PoissonNLLLossFuncOptions().full(true))},
      {F::poisson_nll_loss(b.square(), halves, eps),
       ramet::poisson_nll_loss(b.square(), halves, false, true, 1e-3, ramet::Reduction::Mean)},
      {HingeEmbeddingLoss(HingeEmbeddingLossOptions().margin(2))(a, signs()),
       F::hinge_embedding_loss(a, signs(), F::HingeEmbeddingLossFuncOptions().margin(2))},
      {SoftMarginLoss(kSum)(a, signs()), F::soft_margin_loss(a, signs(), kSum)},
      {MultiLabelMarginLoss(kSum)(a, sets()), F::multilabel_margin_loss(a, sets(), kSum)},
      {CosineEmbeddingLoss()(a, b, doubles({1, -1, 1})),
       F::cosine_embedding_loss(a, b, doubles({1, -1, 1}))},
      {MarginRankingLoss()(a, b, signs()), F::margin_ranking_loss(a, b, signs())},
      {TripletMarginLoss(TripletMarginLossOptions().swap(true))(a, b, c),
       F::triplet_margin_loss(a, b, c, F::TripletMarginLossFuncOptions().swap(true))},
      {TripletMarginWithDistanceLoss()(a, b, c), F::triplet_margin_loss(a, b, c)},
      {MultiMarginLoss(MultiMarginLossOptions().p(2).weight(weight))(a, labels()),
       F::multi_margin_loss(a, labels(), F::MultiMarginLossFuncOptions().p(2).weight(weight))},
      {MultiLabelSoftMarginLoss(MultiLabelSoftMarginLossOptions().weight(weight))(a, halves),
       F::multilabel_soft_margin_loss(a, halves,
                                      F::MultilabelSoftMarginLossFuncOptions().weight(weight))},
  };
  for (const auto& [got, want] : pairs) EXPECT_TRUE(same_bits(got, want)) << &got - &pairs[0].first;

  MultiMarginLoss loss(MultiMarginLossOptions().weight(weight));
  EXPECT_EQ(loss->named_buffers().keys(), std::vector<std::string>{"weight"});
  const auto copy = std::dynamic_pointer_cast<MultiMarginLossImpl>(loss->clone());
  EXPECT_TRUE(same_bits(copy->weight, weight));
  EXPECT_FALSE(copy->weight.is_same(loss->weight));
}

TEST(MarginLosses, WhereFormulasOverflow) {
  // As the exact values, not infinite.
  expect_values(F::soft_margin_loss(doubles({-2000, 2000}), doubles({1, 1}), kNone), {2000, 0});
  const Tensor y = doubles({-1, 0, 1}).requires_grad_();
  F::poisson_nll_loss(zeros({3}, kDouble), y, F::PoissonNLLLossFuncOptions().full(true)).backward();
  expect_values(y.grad(), {0, 0, 0});  // Stirling's term has no part here
  const Tensor none = zeros({0, 3}, kDouble);
  EXPECT_EQ(
      F::multi_margin_loss(none, zeros({0}, kLong), F::MultiMarginLossFuncOptions().reduction(kSum))
          .item<double>(),
      0);
  EXPECT_EQ(F::multilabel_margin_loss(none, zeros({0, 3}, kLong), kSum).item<double>(), 0);
  EXPECT_EQ(F::multilabel_margin_loss(tensor(2.0), tensor(int64_t{0})).item<double>(), 0);
  expect_values(
      F::multilabel_margin_loss(doubles({0.1, 0.2, 0.4, 0.8}), doubles({3, 0, -1, 1}).to(kLong)),
      {0.85});
}

// Labels that repeat, lists that end at once or never; terms of 0 and NaN.
TEST(MarginLosses, OfManyLabels) {
  const int64_t n = 7, c = 9;
  std::vector<double> x;
  std::vector<int64_t> y;
  for (int64_t i = 0; i < n * c; ++i) {
    x.push_back(i % 5 == 0 ? double(i % 4) / 2 : std::sin(double(i)) * 2);
    y.push_back(i / c == 0 || (i / c == 3 && i % c > 3) ? -1 : i * i % (i / c == 5 ? c : 4));
  }
  x[3 * c + 7] = std::nan("");
  std::vector<double> losses, slopes(x.size(), 0.);
  for (int64_t i = 0; i < n; ++i) {
    const double* const row = x.data() + i * c;
    std::vector<int64_t> labels;
    for (int64_t j = 0; j < c && y[size_t(i * c + j)] >= 0; ++j)
      labels.push_back(y[size_t(i * c + j)]);
    double sum = 0;
    for (const int64_t label : labels)
      for (int64_t k = 0; k < c; ++k) {
        const double term = 1 - row[label] + row[k];
        if (std::count(labels.begin(), labels.end(), k) > 0 || term <= 0) continue;
        sum += term;
        slopes[size_t(i * c + k)] += 1. / c;
        slopes[size_t(i * c + label)] -= 1. / c;
      }
    losses.push_back(sum / c);
  }
  const Tensor targets = tensor(y).view({n, c});
  Tensor in = doubles(x).view({n, c}).requires_grad_();
  const Tensor got = F::multilabel_margin_loss(in, targets, kNone);
  got.sum().backward();
  for (int64_t i = 0; i < n; ++i) {
    if (i == 3) EXPECT_TRUE(std::isnan(got[i].item<double>()));
    else EXPECT_NEAR(got[i].item<double>(), losses[size_t(i)], 1e-12) << i;
  }
  const Tensor slope = in.grad().reshape({-1});
  for (size_t i = 0; i < slopes.size(); ++i)
    EXPECT_NEAR(slope[int64_t(i)].item<double>(), slopes[i], 1e-12) << i;
}

// No pair of classes has memory of its own: here they would be 64 MB.
TEST(MarginLosses, MemoryGrowsAsTheClasses) {
  const int64_t n = 16, c = 1000;
  const Tensor x = sines(n * c).to(kFloat).view({n, c}).requires_grad_();
  const Tensor y = full({n, c}, -1, kLong);
  y.narrow(1, 0, 3).copy_(arange(3 * n).view({n, 3}));
  reset_peak_memory_stats(kCPU);
  const int64_t before = memory_stats(kCPU).current;
  F::multilabel_margin_loss(x, y).backward();
  EXPECT_LE(memory_stats(kCPU).peak - before, n * c * 64);
}

// Every loss of no samples: a mean of nothing is NaN and their sum 0, as in PyTorch. Only PyTorch's
// multi_margin_loss and multilabel_margin_loss differ: they give what lay in memory.
TEST(MarginLosses, OfNoSamples) {
  using Loss = Tensor (*)(const Tensor& x, int64_t reduction);
#define RAMET_LOSS(...) [](const Tensor& x, int64_t r) -> Tensor { return __VA_ARGS__; }
  const std::pair<const char*, Loss> losses[] = {
      {"mse", RAMET_LOSS(mse_loss(x, zeros_like(x), r))},
      {"l1", RAMET_LOSS(l1_loss(x, zeros_like(x), r))},
      {"smooth_l1", RAMET_LOSS(smooth_l1_loss(x, zeros_like(x), r))},
      {"huber", RAMET_LOSS(huber_loss(x, zeros_like(x), r))},
      {"bce", RAMET_LOSS(binary_cross_entropy(x, zeros_like(x), {}, r))},
      {"bce logits", RAMET_LOSS(binary_cross_entropy_with_logits(x, zeros_like(x), {}, {}, r))},
      {"kl_div", RAMET_LOSS(ramet::kl_div(x, zeros_like(x), r))},
      {"nll", RAMET_LOSS(nll_loss(x, zeros({0}, kLong), {}, r))},
      {"nll, weight", RAMET_LOSS(nll_loss(x, zeros({0}, kLong), ones({3}, kDouble), r))},
      {"cross_entropy", RAMET_LOSS(cross_entropy_loss(x, zeros({0}, kLong), {}, r))},
      {"smoothed", RAMET_LOSS(cross_entropy_loss(x, zeros({0}, kLong), {}, r, -100, 0.1))},
      {"probabilities", RAMET_LOSS(cross_entropy_loss(x, zeros_like(x), {}, r))},
      {"poisson", RAMET_LOSS(poisson_nll_loss(x, zeros_like(x), true, true, 1e-8, r))},
      {"hinge", RAMET_LOSS(hinge_embedding_loss(x, zeros_like(x), 1, r))},
      {"soft_margin", RAMET_LOSS(ramet::soft_margin_loss(x, zeros_like(x), r))},
      {"ranking", RAMET_LOSS(margin_ranking_loss(x, zeros_like(x), zeros_like(x), 0, r))},
      {"cosine", RAMET_LOSS(cosine_embedding_loss(x, zeros_like(x), zeros({0}), 0, r))},
      {"triplet", RAMET_LOSS(ramet::triplet_margin_loss(x, zeros_like(x), zeros_like(x), 1, 2, 1e-6,
                                                        false, r))},
      {"multi_margin", RAMET_LOSS(ramet::multi_margin_loss(x, zeros({0}, kLong), 1, 1, {}, r))},
      {"multi_margin, 2, weight",
       RAMET_LOSS(ramet::multi_margin_loss(x, zeros({0}, kLong), 2, 1, ones({3}, kDouble), r))},
      {"multilabel_margin", RAMET_LOSS(ramet::multilabel_margin_loss(x, zeros({0, 3}, kLong), r))},
      {"multilabel_soft_margin",
       RAMET_LOSS(F::multilabel_soft_margin_loss(
           x, zeros_like(x), with<F::MultilabelSoftMarginLossFuncOptions>(Reduction(r))))},
  };
#undef RAMET_LOSS
  for (const auto& [name, loss] : losses) {
    SCOPED_TRACE(name);
    const Tensor x = zeros({0, 3}, kDouble).requires_grad_();
    EXPECT_EQ(loss(x, ramet::Reduction::None).size(0), 0);
    const Tensor mean = loss(x, ramet::Reduction::Mean), sum = loss(x, ramet::Reduction::Sum);
    EXPECT_TRUE(std::isnan(mean.item<double>()));
    EXPECT_EQ(sum.item<double>(), 0);
    EXPECT_EQ(mean.dim() + sum.dim(), 0);
    for (const Tensor& of : {mean, sum})
      EXPECT_EQ(autograd::grad({of}, {x})[0].sizes(), IntArrayRef({0, 3}));
  }
}

TEST(MarginLosses, Refuse) {
  const Tensor x = sines(24).view({4, 6}), classes = ones({4}, kLong);
  EXPECT_ERROR_TEXT(F::huber_loss(x, x, F::HuberLossFuncOptions().delta(0)),
                    "does not support non-positive values for delta");
  EXPECT_ERROR_TEXT(F::margin_ranking_loss(x, x, ones({6})),
                    "All input tensors should have same dimension but got sizes: input1: [4, 6]");
  EXPECT_ERROR_TEXT(F::cosine_embedding_loss(x, x, ones({2, 2})), "multi-target not supported");
  EXPECT_ERROR_TEXT(F::cosine_embedding_loss(x[0], x[0], ones({2})),
                    "1D target tensor expects 2D input tensors, but found inputs with sizes [6]");
  EXPECT_ERROR_TEXT(F::cosine_embedding_loss(x, x, ones({3})), "[4]");
  EXPECT_ERROR_TEXT(F::triplet_margin_loss(x, x, x[0]), "anchor 2D, positive 2D, and negative 1D");
  const auto multi = [&](const Tensor& y, const F::MultiMarginLossFuncOptions& o = {}) {
    return error_of([&] { F::multi_margin_loss(x, y, o); });
  };
  expect_part(multi(classes, F::MultiMarginLossFuncOptions().p(3)), "only p == 1 and p == 2");
  expect_part(multi(ones({3}, kLong)), "Expected target size [4], but got [3]");
  expect_part(multi(classes.mul(6)), "6");
  expect_part(multi(classes.neg()), "-1");
  expect_part(multi(ones({4})), "expected scalar type int64");
  expect_part(multi(classes, F::MultiMarginLossFuncOptions().weight(ones({2}))),
              "inconsistent weight size, expected 6 but got [2]");
  EXPECT_ERROR_TEXT(MultiMarginLoss(MultiMarginLossOptions().p(0)), "only p == 1 and p == 2");
  EXPECT_ERROR_TEXT(MultiMarginLoss(MultiMarginLossOptions().weight(ones({2, 2}))),
                    "weight must be one-dimensional");
  EXPECT_ERROR_TEXT(F::multi_margin_loss(zeros({3, 0}), ones({3}, kLong)),
                    "Expected non-empty vector or matrix");
  const Tensor sets = ones({4, 6}, kLong);
  EXPECT_ERROR_TEXT(F::multilabel_margin_loss(x, ones({4, 6})), "expected scalar type int64");
  EXPECT_ERROR_TEXT(F::multilabel_margin_loss(x, ones({4, 5}, kLong)), "inconsistent target size");
  EXPECT_ERROR_TEXT(F::multilabel_margin_loss(x, sets.mul(6)), "6");
  EXPECT_ERROR_TEXT(F::multilabel_margin_loss(x, sets.mul(-2)), "-2");
  EXPECT_ERROR_TEXT(F::multilabel_soft_margin_loss(tensor(1.0), tensor(1.0)),
                    "tensor has no dimensions");
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { F::huber_loss(x, Tensor()); }, [&] { F::kl_div(x, Tensor(), kSum); },
           [&] { F::poisson_nll_loss(Tensor(), x); }, [&] { F::hinge_embedding_loss(x, Tensor()); },
           [&] { F::soft_margin_loss(x, Tensor()); },
           [&] { F::cosine_embedding_loss(x, Tensor(), x); },
           [&] { F::triplet_margin_loss(x, x, Tensor()); },
           [&] { F::margin_ranking_loss(x, x, Tensor()); },
           [&] { F::multi_margin_loss(x, Tensor()); },
           [&] { F::multilabel_margin_loss(x, Tensor()); },
           [&] { F::multilabel_soft_margin_loss(x, Tensor()); }})
    EXPECT_ERROR_TEXT(call(), "undefined tensor");
}

using L = std::vector<int64_t>;

Tensor scores() { return sines(60, 1.7, 0.2).mul(3).view({5, 3, 4}); }
Tensor rows_of(const L& v, int64_t columns) { return tensor(v).view({-1, columns}); }

// What x's gradient gives with fixed numbers, for each sample.
Tensor slopes(const Tensor& x) {
  return x.grad().mul(sines(60).view({5, 3, 4})).sum(IntArrayRef({0, 2}));
}

// What no alignment gives; targets in one dimension; the last class as the blank.
TEST(CtcLoss, InfiniteAsPyTorch) {
  const Tensor targets = tensor(L{0, 0, 1, 2}), steps = tensor(L{2, 2, 5}),
               lengths = tensor(L{3, 0, 1});
  for (const bool zero : {true, false}) {
    const Tensor x = scores().requires_grad_();
    const auto loss = [&](int64_t reduction) {
      return ctc_loss(x.log_softmax(2), targets, steps, lengths, 3, reduction, zero);
    };
    const double least = zero ? 0 : 1e30;
    expect_values(loss(kEach).clamp_max(1e30), {least, 4.59054466114058, 8.51966430504125});
    expect_values(loss(ramet::Reduction::Mean).clamp_max(1e30), {zero ? 4.37006965539394 : 1e30});
    loss(ramet::Reduction::Sum).backward();
    expect_values(slopes(x).narrow(0, 1, 2), {0.10812250516427, 1.75228846647937});
    // NaN at the sample's own steps alone, of all classes, or 0.
    for (int64_t t = 0; t < 5; ++t)
      for (const double g : values(x.grad()[t][0]))
        EXPECT_TRUE(!zero && t < 2 ? std::isnan(g) : g == 0);
  }
}

TEST(CtcLoss, ANaNIsNoInfinity) {
  for (const L& target : {L{}, L{1}})
    for (const bool zero : {false, true}) {
      const Tensor x = full({2, 3}, NAN).requires_grad_();
      const Tensor loss = ctc_loss(x, tensor(target), L{2}, L{static_cast<int64_t>(target.size())},
                                   0, ramet::Reduction::Mean, zero);
      loss.backward();
      EXPECT_TRUE(std::isnan(loss.item<float>()));
      for (const double g : values(x.grad())) EXPECT_TRUE(std::isnan(g));
    }
}

// A NaN is in every loss that reads it: not taken for what no alignment gives, where the target is
// empty.
TEST(CtcLoss, NaNStaysNaN) {
  const Tensor targets = rows_of({1, 2, 2, 1, 1, 1}, 2), steps = tensor(L{5, 5, 5}),
               lengths = tensor(L{0, 2, 0});
  for (const ScalarType type : {ramet::kFloat, ramet::kDouble}) {
    for (const int64_t at : {0, 2, 4}) {
      const Tensor x = scores().to(type);
      x[at][0][0].fill_(NAN);
      const Tensor y = ctc_loss(x, targets, steps, lengths, 0, kEach, true);
      EXPECT_TRUE(std::isnan(y[0].item<double>())) << at;
      EXPECT_TRUE(std::isfinite(y[1].item<double>()));
      EXPECT_TRUE(std::isfinite(y[2].item<double>()));
    }
  }
}

// By definition: the sum over all ways to give each step a class that leave the target once
// repetitions and then blanks are gone.
double by_alignments(const Tensor& log_probs, const L& target, int64_t blank) {
  const int64_t steps = log_probs.size(0), classes = log_probs.size(1);
  const std::vector<double> lp = values(log_probs);
  double sum = 0;
  L path(static_cast<size_t>(steps), 0);
  for (;;) {
    L left;
    double log_p = 0;
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t c = path[static_cast<size_t>(t)];
      log_p += lp[static_cast<size_t>(t * classes + c)];
      if (c != blank && (t == 0 || c != path[static_cast<size_t>(t - 1)])) left.push_back(c);
    }
    if (left == target) sum += std::exp(log_p);
    int64_t t = steps;
    while (t > 0 && ++path[static_cast<size_t>(t - 1)] == classes)
      path[static_cast<size_t>(--t)] = 0;
    if (t == 0) return -std::log(sum);
  }
}

TEST(CtcLoss, IsTheSumOverAllAlignments) {
  for (const int64_t blank : {0, 2})
    for (const int64_t steps : {1, 3, 6}) {
      // Not normalised: the sum and its derivative are those of any numbers.
      const Tensor x = sines(steps * 3, 1.3, 0.4).view({steps, 3}).requires_grad_();
      const int64_t a = blank == 0 ? 1 : 0, b = 3 - a - blank;
      for (const L& target :
           std::vector<L>{{}, {a}, {b}, {a, b}, {a, a}, {b, a, b}, {a, b, b}, {a, a, a}}) {
        SCOPED_TRACE(testing::Message() << steps << " steps, target " << IntArrayRef(target));
        const auto loss = [&](const Tensor& y) {
          return ctc_loss(y, tensor(target), L{steps}, L{static_cast<int64_t>(target.size())},
                          blank, kEach);
        };
        const double want = by_alignments(x, target, blank), got = loss(x).item<double>();
        if (std::isinf(want)) {
          EXPECT_EQ(got, want);
          continue;
        }
        EXPECT_NEAR(got, want, 1e-12);
        // The derivative by differences of the definition.
        const Tensor slope = autograd::grad({loss(x)}, {x})[0];
        for (int64_t i = 0; i < x.numel(); ++i) {
          const auto moved = [&](double by) {
            Tensor y = x.detach().clone();
            y.data_ptr<double>()[i] += by;
            return by_alignments(y, target, blank);
          };
          EXPECT_NEAR(values(slope)[static_cast<size_t>(i)], (moved(1e-5) - moved(-1e-5)) / 2e-5,
                      1e-8);
        }
      }
    }
}

// Beyond the table's second derivatives: those of the gradient are composed.
TEST(CtcLoss, IsDifferentiableThreeTimes) {
  const autograd::CheckedFunction slope = [](V in) {
    const Tensor y = ctc_loss(in[0].log_softmax(2), rows_of({1, 2, 1, 1}, 2), L{4, 3}, L{2, 2});
    const Tensor g = autograd::grad({y}, {in[0]}, {}, true, true)[0];
    return std::vector<Tensor>{g.mul(sines(24, 1.1).view({4, 2, 3}))};
  };
  const Tensor x = sines(24, 1.7).view({4, 2, 3}).requires_grad_();
  EXPECT_NO_THROW(autograd::gradgradcheck(slope, {x}));
}

// As the transposed logits of a network that has the batch first; lengths of any whole dtype.
TEST(CtcLoss, FormsAgree) {
  const Tensor x = scores().log_softmax(2), padded = rows_of({1, 2, 3, 3, 9, -9, 2, 1, 7}, 3);
  const L steps = {5, 4, 3}, lengths = {3, 1, 2};
  const Tensor want = ctc_loss(x, padded, steps, lengths, 0, kEach),
               joined = tensor(L{1, 2, 3, 3, 2, 1});
  const Tensor apart = x.transpose(0, 1).contiguous().transpose(0, 1);
  const Tensor narrow_steps = tensor(steps).to(kInt),
               bytes = tensor(lengths).to(kByte).view({3, 1});
  for (const Tensor& got :
       {ctc_loss(x, joined, steps, lengths, 0, kEach),
        ctc_loss(apart, padded.to(kInt), narrow_steps, bytes, 0, kEach),
        ctc_loss(apart, joined.to(kDouble), narrow_steps, bytes, 0, kEach),
        F::ctc_loss(x, padded, narrow_steps, bytes, F::CTCLossFuncOptions().reduction(kNone)),
        CTCLoss(CTCLossOptions().reduction(kNone))(x, joined, narrow_steps, bytes)})
    EXPECT_TRUE(same_bits(got, want));
  for (int64_t b = 0; b < 3; ++b) {
    const Tensor own = padded[b].narrow(0, 0, lengths[size_t(b)]);
    const Tensor one =
        ctc_loss(x.select(1, b), own, steps[size_t(b)], lengths[size_t(b)], 0, kEach);
    EXPECT_EQ(one.dim(), 0);
    EXPECT_TRUE(same_bits(one, want[b]));
  }
  // What a backward needs is its own.
  const Tensor y = scores().requires_grad_(), labels = joined.clone();
  const Tensor loss = ctc_loss(y, labels, steps, lengths),
               same = ctc_loss(y, joined, steps, lengths);
  labels.fill_(-1);
  EXPECT_TRUE(same_bits(autograd::grad({loss}, {y})[0], autograd::grad({same}, {y})[0]));
}

// The losses are 24,000, of which a float32 rounds 1e-3, and states that matter are 10,000 below
// others. Sums that are not taken relative to the largest are 2.6 off here.
TEST(CtcLoss, ManyStepsInFloat) {
  const Tensor x = sines(8000 * 5, 2.3, 0.1).mul(3).view({8000, 1, 5}).log_softmax(2);
  const auto slope = [&](ScalarType t) {
    const Tensor y = x.to(t).requires_grad_();
    ctc_loss(y, tensor(L{1, 2, 2, 4, 1}).repeat({8}), L{8000}, L{40}).backward();
    return y.grad().to(kDouble);
  };
  EXPECT_LT(slope(kFloat).sub(slope(kDouble)).abs().max().item<double>() * 40, 5e-3);
}

}  // namespace
}  // namespace ramet::nn
