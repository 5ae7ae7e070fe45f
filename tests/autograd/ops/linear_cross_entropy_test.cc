// Linear layer and cross entropy in one function, against the two functions in float64.
#include "autograd/ops/loss/linear_cross_entropy.h"

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "runtime/memory/allocator.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using In = std::vector<Tensor>;

struct EntropyOptions {
  std::optional<Tensor> weight;
  int64_t reduction = Reduction::Mean, ignored = -100;
  double smoothing = 0;
  std::optional<int64_t> chunk{};
};
// in: input, linear_weight and, for a third, linear_bias.
Tensor linear_entropy(const In& in, const Tensor& target, const EntropyOptions& o) {
  return linear_cross_entropy(in[0], in[1], target,
                              in.size() > 2 ? std::optional<Tensor>(in[2]) : std::nullopt, o.weight,
                              o.reduction, o.ignored, o.smoothing, o.chunk);
}
Tensor entropy_apart(const In& in, const Tensor& target, const EntropyOptions& o) {
  const Tensor logits =
      linear(in[0], in[1], in.size() > 2 ? std::optional<Tensor>(in[2]) : std::nullopt);
  const Tensor loss = cross_entropy_loss(logits.reshape({-1, logits.size(-1)}), target.reshape(-1),
                                         o.weight, o.reduction, o.ignored, o.smoothing);
  return o.reduction == Reduction::None ? loss.reshape(target.sizes()) : loss;
}
In entropy_leaves(const In& in, ScalarType t) {
  In leaves;
  for (const Tensor& x : in) leaves.push_back(x.detach().to(t).clone().requires_grad_());
  return leaves;
}
// Rows of 5 numbers, 6 classes.
In entropy_operands(int64_t rows, bool bias) {
  In in = {varied({rows, 5}, 1).mul(2), varied({6, 5}, 2)};
  if (bias) in.push_back(varied({6}, 3));
  return in;
}
Tensor entropy_classes(int64_t rows, int64_t classes = 6) {
  return arange(rows, kLong).mul(5).add(2).remainder(classes);
}

// Each option with the others; two backward passes, of which the second computes the logits again.
TEST(LinearCrossEntropy, AsBothFunctions) {
  const Tensor target = entropy_classes(7), weight = varied({6}, 4).add(1.5);
  for (ScalarType t : {kDouble, kFloat, kHalf, kBFloat16})
    for (bool bias : {false, true})
      for (bool weighted : {false, true})
        for (double smoothing : {0.0, 0.1})
          for (int64_t ignored : {-100, 1})
            for (int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum})
              for (std::optional<int64_t> chunk :
                   {std::optional<int64_t>(), std::optional<int64_t>(3),
                    std::optional<int64_t>(INT64_MAX)}) {
                EntropyOptions o{{}, reduction, ignored, smoothing, chunk};
                const In in = entropy_leaves(entropy_operands(7, bias), t),
                         wide = entropy_leaves(in, kDouble);
                if (weighted) o.weight = weight.to(t);
                const Tensor got = linear_entropy(in, target, o);
                if (weighted) o.weight = o.weight->to(kDouble);
                const Tensor want = entropy_apart(wide, target, o),
                             g = varied(want.sizes(), 5).add(0.5).to(t);
                EXPECT_EQ(got.scalar_type(), t);
                const double most = t == kDouble  ? 1e-13
                                    : t == kFloat ? 2e-6
                                    : t == kHalf  ? 4e-3
                                                  : 3e-2;
                expect_values(got.detach(), values(want.detach()), most);
                const In slopes = autograd::grad({want}, wide, {g.to(kDouble)}),
                         first = autograd::grad({got}, in, {g}, true),
                         second = autograd::grad({got}, in, {g}, true);
                for (size_t i = 0; i < in.size(); ++i) {
                  expect_values(first[i], values(slopes[i]), most);
                  expect_values(second[i], values(slopes[i]), most);
                }
                if (HasFailure()) return;
              }
}

TEST(LinearCrossEntropy, Derivatives) {
  const Tensor target = entropy_classes(4);
  for (int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum}) {
    const EntropyOptions o{varied({6}, 4).add(1.5), reduction, 1, 0.1, 3};
    expect_derivatives(OF_X(linear_entropy(x, target, o)),
                       {varied_leaf({4, 5}, 1), varied_leaf({6, 5}, 2), varied_leaf({6}, 3)});
  }
}

// A row's loss, and its gradient, do not depend on the chunk that has the row.
TEST(LinearCrossEntropy, AnyChunk) {
  const Tensor target = entropy_classes(200);
  for (ScalarType t : {kDouble, kFloat, kBFloat16}) {
    const In in = entropy_leaves(entropy_operands(200, true), t);
    const auto run = [&](int64_t chunk, int64_t reduction) {
      const Tensor loss = linear_entropy(in, target, {{}, reduction, -100, 0.1, chunk}),
                   dx = autograd::grad({loss.sum()}, {in[0]})[0];
      return std::pair(values(loss), values(dx));
    };
    for (int64_t reduction : {Reduction::None, Reduction::Mean})
      for (int64_t chunk : {1, 7, 64, 199})
        EXPECT_EQ(run(200, reduction), run(chunk, reduction)) << name_of(t) << " by " << chunk;
  }
}

// One rounding for the sum of all chunks: what 16 bits have next to the sum in float64. The rows'
// gradients are multiples of powers of two here, so products and sums are exact before it.
TEST(LinearCrossEntropy, SumsOf16BitsAreRoundedOnce) {
  const int64_t rows = 512;
  const Tensor target = zeros({rows}, kLong), bias = tensor({-64., 64.}, kDouble);
  for (ScalarType t : {kHalf, kBFloat16}) {
    // Logits of -64 and 64, so the gradients of a row are -1 and 1.
    const Tensor x = arange(rows, kDouble).mul(37).remainder(101).add(1).div(64).view({rows, 1});
    const In in = entropy_leaves({x, zeros({2, 1}), bias}, t);
    for (int64_t chunk : {1, 7, 64}) {
      const In got = autograd::grad(
          {linear_entropy(in, target, {{}, Reduction::Sum, -100, 0, chunk})}, {in[1], in[2]});
      const double sum = in[0].detach().to(kDouble).sum().item<double>();
      const Tensor want = tensor({-sum, sum}, kDouble).to(t);
      EXPECT_EQ(values(got[0]), values(want)) << name_of(t) << " by " << chunk;
      EXPECT_EQ(values(got[1]), values(tensor({-512., 512.}, kDouble)));
    }
  }
}

// A sum of 1024 equal parts in 16 bits would end at half of this.
TEST(LinearCrossEntropy, PartsOf16BitsAreAddedInFloat32) {
  const Tensor target = zeros({4096}, kLong);
  for (ScalarType t : {kHalf, kBFloat16}) {
    const In in = entropy_leaves({ones({4096, 2}), zeros({3, 2}), zeros({3})}, t);
    linear_entropy(in, target, {{}, Reduction::Mean, -100, 0, 4}).backward();
    const double one = 1.0 / 3;
    expect_values(in[1].grad(), {-2 * one, -2 * one, one, one, one, one}, 4e-3);
    expect_values(in[2].grad(), {-2 * one, one, one}, 4e-3);
  }
}

// As under a GradScaler: without the factor these gradients are below the smallest float16.
TEST(LinearCrossEntropy, Float16WithAFactor) {
  const Tensor target = zeros({8192}, kLong);
  In in = entropy_leaves({varied({8192, 4}, 1), zeros({1000, 4})}, kHalf);
  linear_entropy(in, target, {}).mul(16384).backward();
  const Tensor wide = in[0].detach().to(kDouble),
               want = wide.sum(0).mul(16384 * 0.001 / 8192);  // of classes without a sample
  for (int64_t c : {1, 500, 999})
    expect_values(in[1].grad()[c].to(kDouble).div(want.abs().max()),
                  values(want.div(want.abs().max())), 1e-2);
}

TEST(LinearCrossEntropy, TiedWeights) {
  const Tensor symbols = entropy_classes(9).view({3, 3}),
               next = entropy_classes(9).add(1).remainder(6);
  const auto gradient = [&](bool whole) {
    const In w = entropy_leaves({varied({6, 5}, 2)}, kDouble);
    const Tensor x = embedding(w[0], symbols).tanh();
    const EntropyOptions o{{}, Reduction::Mean, -100, 0, 2};
    (whole ? entropy_apart({x, w[0]}, next.view({3, 3}), o)
           : linear_entropy({x, w[0]}, next.view({3, 3}), o))
        .backward();
    return values(w[0].grad());
  };
  const std::vector<double> want = gradient(true), got = gradient(false);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-13) << i;
}

TEST(LinearCrossEntropy, NothingCounts) {
  for (int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum})
    for (int64_t rows : {0, 5}) {
      const In in = entropy_leaves(entropy_operands(rows, true), kFloat);
      const Tensor loss = linear_entropy(in, full({rows}, 3, kLong), {{}, reduction, 3, 0.1, 2});
      expect_values(loss.detach(),
                    reduction == Reduction::None
                        ? std::vector<double>(static_cast<size_t>(rows), 0)
                        : std::vector<double>{reduction == Reduction::Sum ? 0 : kNaN});
      loss.sum().backward();
      for (const Tensor& x : in)
        expect_values(x.grad(), std::vector<double>(static_cast<size_t>(x.numel()), 0), 0);
    }
}

// Batches of sequences, one row without a batch, and strides of every kind.
TEST(LinearCrossEntropy, ShapesAndStrides) {
  const Tensor target = entropy_classes(6).view({2, 3}), x = varied({5, 3, 2}, 1),
               w = varied({5, 12}, 2);
  for (int64_t reduction : {Reduction::None, Reduction::Sum}) {
    const EntropyOptions o{{}, reduction, -100, 0, 2};
    const In in = {x.detach().requires_grad_(), w.detach().requires_grad_(),
                   varied({12}, 3).requires_grad_()};
    const auto views = [&] {
      return In{in[0].transpose(0, 2), in[1].t().slice(0, 0, 12, 2), in[2].slice(0, 0, 12, 2)};
    };
    const Tensor got = linear_entropy(views(), target, o), want = entropy_apart(views(), target, o);
    expect_values(got.detach(), values(want.detach()), 1e-13);
    const In a = autograd::grad({got.sum()}, in), b = autograd::grad({want.sum()}, in);
    for (size_t i = 0; i < 3; ++i) expect_values(a[i], values(b[i]), 1e-13);
  }
  const In both = {varied({5, 2, 3}, 1).select(1, 0).t(),
                   varied({6, 2, 5, 2}, 2).select(1, 0).select(2, 1)};
  expect_values(linear_entropy(both, entropy_classes(3), {}),
                values(entropy_apart(both, entropy_classes(3), {})), 1e-13);
  const In row = entropy_operands(1, true);
  const Tensor alone =
      linear_entropy({row[0][0], row[1], row[2]}, full({}, 4, kLong), {{}, Reduction::None});
  EXPECT_EQ(alone.dim(), 0);
  expect_values(alone, values(entropy_apart(row, full({1}, 4, kLong), {})), 1e-13);
}

// 2048 x 8192 logits are 64 MiB, or 32 in 16 bits.
TEST(LinearCrossEntropy, NeverHoldsTheLogits) {
  const In in =
      entropy_leaves({varied({2048, 4}, 1), varied({8192, 4}, 2), varied({8192}, 3)}, kFloat);
  const Tensor target = entropy_classes(2048, 8192), weight = varied({8192}, 4).add(1.5).to(kFloat);
  for (bool casts : {false, true})
    for (int64_t reduction : {Reduction::None, Reduction::Mean}) {
      reset_peak_memory_stats(kCPU);
      const int64_t before = memory_stats(kCPU).current;
      Tensor loss;
      {
        const AutocastGuard autocast(kCPU, kBFloat16, casts);
        loss = linear_entropy(in, target, {weight, reduction});
      }
      autograd::grad({loss.sum()}, in);
      EXPECT_LT(memory_stats(kCPU).peak - before, int64_t{12} << 20) << casts;
    }
}

TEST(LinearCrossEntropy, OnlyWhatIsAskedFor) {
  const Tensor target = entropy_classes(3);
  const In in = entropy_operands(3, true);
  EXPECT_FALSE(linear_entropy(in, target, {}).requires_grad());
  const Tensor w = in[1].detach().requires_grad_(), x = in[0].detach().requires_grad_();
  Tensor loss = linear_entropy({in[0], w, in[2]}, target, {});
  EXPECT_EQ(loss.grad_fn()->name(), "LinearCrossEntropyBackward0");
  loss.backward();
  EXPECT_FALSE(in[0].grad().defined() || in[2].grad().defined());
  EXPECT_ERROR_TEXT(loss.backward(), "LinearCrossEntropyBackward0");
  loss = linear_entropy({x, w, in[2]}, target, {});
  const Tensor dx = autograd::grad({loss}, {x}, {}, true)[0],
               dw = autograd::grad({loss}, {w}, {}, true)[0];
  expect_values(dw, values(w.grad()), 1e-14);
  const In again = autograd::grad({entropy_apart({x, w, in[2]}, target, {})}, {x});
  expect_values(dx, values(again[0]), 1e-13);
}

TEST(LinearCrossEntropy, Autocast) {
  const Tensor target = entropy_classes(7);
  for (ScalarType lower : {kBFloat16, kHalf})
    for (int64_t reduction : {Reduction::None, Reduction::Mean}) {
      const EntropyOptions o{{}, reduction, -100, 0, 3};
      const In in = entropy_leaves(entropy_operands(7, true), kFloat),
               wide = entropy_leaves(in, kDouble);
      Tensor loss;
      {
        const AutocastGuard on(kCPU, lower);
        loss = linear_entropy(in, target, o);
      }
      EXPECT_EQ(loss.scalar_type(), kFloat);
      const Tensor want = entropy_apart(wide, target, o);
      const double most = lower == kHalf ? 4e-3 : 3e-2;
      expect_values(loss.detach(), values(want.detach()), most);
      // The loss itself is not rounded to 16 bits.
      const Tensor narrow = loss.detach().to(lower).to(kFloat);
      EXPECT_NE(values(narrow), values(loss.detach()));
      const In slopes = autograd::grad({want.sum()}, wide), got = autograd::grad({loss.sum()}, in);
      for (size_t i = 0; i < in.size(); ++i) {
        EXPECT_EQ(got[i].scalar_type(), kFloat);
        expect_values(got[i], values(slopes[i]), most);
      }
    }
}

// Weights stay float32, with values that 16 bits do not hold. A row's loss has the bits of
// cross_entropy_loss, and so has the gradient of the input, but for a factor in 16 bits.
TEST(LinearCrossEntropy, AutocastLeavesWeightsOfClasses) {
  const Tensor target = entropy_classes(7);
  for (ScalarType lower : {kBFloat16, kHalf})
    for (int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum})
      for (double smoothing : {0.0, 0.1})
        for (int64_t ignored : {-100, 1}) {
          Tensor weight = tensor({1., 2.0007, 1., 1.001, 0.3, 3.003}, kFloat);
          // Their means are small enough for float16; the weights are not.
          if (reduction == Reduction::Mean) weight = weight * 1e5;
          const EntropyOptions o{weight, reduction, ignored, smoothing, 3};
          const In in = entropy_leaves(entropy_operands(7, true), kFloat),
                   wide = entropy_leaves(in, kDouble);
          Tensor loss, whole;
          {
            const AutocastGuard on(kCPU, lower);
            loss = linear_entropy(in, target, o), whole = entropy_apart(in, target, o);
          }
          EntropyOptions in_double = o;
          in_double.weight = weight.to(kDouble);
          const Tensor exact = entropy_apart(wide, target, in_double);
          EXPECT_EQ(loss.scalar_type(), kFloat);
          expect_values(loss.detach(), values(whole.detach()), 1e-6);
          const Tensor g = varied(loss.sizes(), 5).add(0.5).to(kFloat);
          const double most = lower == kHalf ? 4e-3 : 3e-2;
          const In got = autograd::grad({loss}, in, {g}, true),
                   again = autograd::grad({loss}, in, {g}),
                   slopes = autograd::grad({whole}, in, {g}),
                   sharp = autograd::grad({exact}, wide, {g.to(kDouble)});
          for (size_t i = 0; i < in.size(); ++i) {
            EXPECT_EQ(got[i].scalar_type(), kFloat);
            expect_values(got[i], values(sharp[i]), most);
            expect_values(again[i], values(slopes[i]), lower == kHalf ? 1e-3 : 8e-3);
          }
          expect_values(again[0], values(slopes[0]), 0);
          if (HasFailure()) return;
        }
}

TEST(LinearCrossEntropy, OperandsThatWereWrittenSince) {
  const In in = entropy_leaves(entropy_operands(3, true), kFloat);
  for (int64_t reduction : {Reduction::None, Reduction::Mean})
    for (bool of_target : {false, true}) {
      const Tensor target = entropy_classes(3), weight = ones({6});
      const Tensor loss =
          linear_entropy(in, target, EntropyOptions{weight, reduction, -100, 0, {}}).sum();
      if (of_target) target.fill_(int64_t{1} << 40);
      else weight.fill_(2);
      expect_part(error_of([&] { loss.backward(); }), "modified by an inplace operation");
    }
}

TEST(LinearCrossEntropy, Errors) {
  const In in = entropy_operands(3, true);
  const Tensor target = entropy_classes(3), &x = in[0], &w = in[1], &b = in[2];
  const auto expect = [](const std::function<void()>& f, const std::string& part) {
    expect_part(error_of(f), "[linear_cross_entropy] " + part);
  };
  const auto call = [&](const In& operands, const Tensor& t, const EntropyOptions& o = {}) {
    return [=] { linear_entropy(operands, t, o); };
  };
  expect(call({x, w, b}, target, {{}, 3}), "reduction: got 3");
  expect(call({x, w, b}, target, {{}, Reduction::Mean, -100, 1.5}), "label_smoothing must be");
  expect(call({x, w, b}, target, {{}, Reduction::Mean, -100, 0, 0}), "batch_chunk_size: got 0");
  expect(call({x, w.slice(1, 1)}, target), "shapes: got input ");
  expect(call({x, w[0]}, target), "shapes: got input ");
  expect(call({x, w, b.slice(0, 1)}, target), "linear_bias: got ");
  expect(call({x, w, b.to(kFloat)}, target), "dtypes: got ");
  expect(call({x, w.to(kFloat)}, target), "dtypes: got ");
  expect(call({x.to(kLong), w.to(kLong)}, target), "not implemented for 'Long'");
  expect(call({x, w}, target.to(kDouble)), "target: got ");
  expect(call({x, w}, target.slice(0, 1)), "Expected target of input's shape");
  expect(call({x, w}, full({3}, 6, kLong)), "index out of range: got 6 at position 0");
  expect(call({x, w}, target, {b.slice(0, 1)}), "weight tensor should be defined");
  expect(call({x, w.slice(0, 0, 0)}, target), "linear_weight: got ");
  expect(call({Tensor(), w}, target), "undefined tensor: got ");
  EXPECT_THROW(call({x, w}, target, {b.detach().requires_grad_()})(), NotImplementedError);
}

}  // namespace
}  // namespace ramet
