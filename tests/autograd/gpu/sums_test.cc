// Long sums on a GPU that are cut into segments. They have the CPU's values, for any remainder at
// their ends, and the same bits again.
#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/graph/layout.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/layers/conv.h"
#include "autograd/ops/loss/loss.h"
#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/reduce/reduce.h"
#include "kernels/index/mask.h"
#include "runtime/cuda/device_state.h"
#include "tests/autograd/gpu/gpu_tensors.h"
#include "tests/share.h"

namespace ramet::kernels {
namespace {

double tolerance_of(ScalarType t) {
  return t == kDouble ? 1e-12 : t == kFloat ? 2e-6 : t == kHalf ? 1e-3 : t == kBFloat16 ? 8e-3 : 0;
}
uint64_t most_threads() { return ::ramet::cuda::device_state(0, "test").launches().most_threads; }
// How many kernels f() starts.
template <class F> uint64_t launches_of(const F& f) {
  ::ramet::cuda::device_state(0, "test").forget_launches();
  f();
  return ::ramet::cuda::device_state(0, "test").launches().count;
}

TEST(SumsOnGpu, Dot) {
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16, kInt, kLong})
    for (int64_t n : {0, 1, 300, 4096, 4097, 12288, 50001}) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(n));
      if (t == kHalf && n > 5000) continue;  // more than it can hold
      // Of both signs; small whole numbers among integers.
      const auto operand = [&](int64_t seed) { return drawn({2 * n}, kFloat, seed).mul(9).to(t); };
      const Tensor a = operand(1).slice(0, 0, 2 * n, 2), b = operand(2).slice(0, 0, n),
                   size = a.to(kDouble).abs().dot(b.to(kDouble).abs());
      const Tensor there = a.to(kGpu), with = b.to(kGpu);
      ::ramet::cuda::device_state(0, "test").forget_launches();
      const Tensor y = there.dot(with);
      if (n > 4 * 4096) { EXPECT_GE(most_threads(), 1024u); }
      const double want = a.to(kDouble).dot(b.to(kDouble)).item<double>();
      EXPECT_NEAR(numbers(y)[0], want, tolerance_of(t) * std::max(1.0, size.item<double>()));
      EXPECT_EQ(numbers(there.dot(with)), numbers(y));
    }
}

TEST(SumsOnGpu, RunningSum) {
  const std::vector<std::vector<int64_t>> shapes = {{1024}, {1025},    {5000},      {2, 3000},
                                                    {3, 0}, {2500, 3}, {2, 1500, 2}};
  for (ScalarType t : {kFloat, kDouble, kBFloat16, kShort, kBool})
    for (const std::vector<int64_t>& sizes : shapes) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(sizes[0]));
      const int64_t dim = sizes.size() == 3 ? 1 : sizes.back() == 3 ? 0 : -1;
      const Tensor x = drawn(sizes, kFloat, 7).mul(9).to(t), there = x.to(kGpu);
      const std::vector<double> want = numbers((t == kBFloat16 ? x.to(kDouble) : x).cumsum(dim));
      expect_near(there.cumsum(dim), want, 4 * tolerance_of(t), "values");
      EXPECT_EQ(numbers(there.cumsum(dim)), numbers(there.cumsum(dim)));
      if (t != kDouble) continue;
      const auto gradient = [&](Device device) {  // sums from the end
        const Tensor leaf = x.to(device).detach().requires_grad_();
        leaf.cumsum(dim).mul(x.to(device)).sum().backward();
        return leaf.grad();
      };
      expect_near(gradient(kGpu), numbers(gradient(kHost)), 1e-11, "gradient");
    }
}

// A sum of ones is exact: what a segment adds twice, or leaves out, shows.
TEST(SumsOnGpu, EverySegmentCountsOnce) {
  const int64_t n = 5 * 1024 * 1024 + 5, line = 1024 * 1024 + 5;
  const Tensor one = ones({1}, TensorOptions(kLong).device(kGpu)), many = one.expand({n});
  EXPECT_EQ(many.dot(many).item<int64_t>(), n);
  const Tensor sums = ones({line}, TensorOptions(kBool).device(kGpu)).cumsum(0);
  EXPECT_TRUE(sums.eq(arange(1, line + 1, one.options())).all().item<bool>());
}

// Sums of ones again, of sequences and of columns, where the last segment is whole, short or one
// element. Also the maximum, placed in each of their first and last elements.
TEST(SumsOnGpu, EverySegmentOfAReductionCountsOnce) {
  const TensorOptions there = TensorOptions(kInt).device(kGpu);
  const auto check = [&](int64_t rows, int64_t columns, int64_t dim, int64_t segment) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns) + ", " +
                 std::to_string(dim));
    const Tensor x = ones({rows, columns}, there);
    const int64_t count = x.size(dim);
    const Tensor sums = x.sum(dim);
    EXPECT_TRUE(sums.eq(count).all().item<bool>());
    EXPECT_EQ(x.prod(dim).sum().item<int64_t>(), sums.numel());
    for (int64_t at : {int64_t{0}, segment - 1, segment, count - count % segment - 1, count - 1}) {
      const Tensor line = x.narrow(dim, at, 1);
      line.fill_(2);
      EXPECT_TRUE(x.argmax(dim).eq(at).all().item<bool>()) << at;
      EXPECT_TRUE(x.amax(dim).eq(2).all().item<bool>()) << at;
      line.fill_(1);
    }
  };
  for (int64_t n : {16384, 16385, 18431}) check(2, n, 1, 2048);
  for (int64_t n : {512, 513, 575}) check(n, 33, 0, 64);
  ::ramet::cuda::device_state(0, "test").forget_launches();
  const Tensor million = ones({1}, there).expand({1 << 20});
  EXPECT_EQ(million.sum().item<int64_t>(), 1 << 20);
  EXPECT_EQ(most_threads(), 512u * 256) << "as planned";
}

// Means and variances of many segments, joined by groups of 2 to 256 threads.
TEST(SumsOnGpu, JoinsOfAnyNumberOfSegments) {
  for (int64_t rows : {576, 1000, 2000, 4000, 8000, 16000, 34000}) {
    SCOPED_TRACE(rows);
    const Tensor x = drawn({rows, 2}, kFloat, rows).add(5), there = x.to(kGpu),
                 wide = x.to(kDouble);
    const auto [var, mean] = var_mean(there, {0}, 1, false);
    expect_near(mean, numbers(wide.mean(0)), 1e-6, "means");
    expect_near(var, numbers(wide.var(0)), 1e-5, "variances");
    expect_near(there.sum(0), numbers(wide.sum(0)), 1e-6 * static_cast<double>(5 * rows), "sums");
  }
}

// In the first part of many, in the last, or in a part of its own; whichever way channels lie.
TEST(SumsOnGpu, MeansOfInfinities) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const Device device : {kHost, kGpu})
    for (const std::vector<int64_t>& sizes :
         std::vector<std::vector<int64_t>>{{8, 2}, {5000, 2}, {4, 2, 3}, {1000, 2, 5}})
      for (int64_t at : {int64_t{0}, sizes[0] - 1}) {
        SCOPED_TRACE(std::string(device == kGpu ? "GPU, " : "CPU, ") + std::to_string(sizes[0]) +
                     " of " + std::to_string(sizes.size()) + " dimensions, at " +
                     std::to_string(at));
        const Tensor on_host = drawn(sizes, kFloat, 3);
        on_host.narrow(0, at, 1).narrow(1, 0, 1).fill_(-inf);
        const Tensor x = on_host.to(device), mean = zeros({2}, TensorOptions(device)),
                     var = ones({2}, TensorOptions(device));
        batch_norm(x, {}, {}, mean, var, true, 0.25, 1e-3, true);
        EXPECT_EQ(numbers(mean)[0], -inf);
        EXPECT_TRUE(std::isfinite(numbers(mean)[1]));
        EXPECT_TRUE(std::isnan(numbers(var)[0]));
        EXPECT_TRUE(std::isfinite(numbers(var)[1]));
        // As LibTorch, which has it from the deviations.
        const Tensor both = std::get<1>(var_mean(x, {0}, 1, false));
        EXPECT_TRUE(std::isnan(numbers(both)[0]));
      }
}

// Squares of such numbers are infinite, their deviations are 0: in one part, in several, and where
// most threads have none.
TEST(SumsOnGpu, VariancesOfEqualHugeNumbers) {
  for (const Device device : {kHost, kGpu})
    for (const std::vector<int64_t>& sizes :
         std::vector<std::vector<int64_t>>{{8, 2}, {5000, 2}, {100000, 1}, {4, 2, 3}}) {
      SCOPED_TRACE(std::string(device == kGpu ? "GPU, " : "CPU, ") + std::to_string(sizes[0]));
      const Tensor x = full(sizes, std::ldexp(1.0, 600), TensorOptions(kDouble).device(device));
      const int64_t channels = sizes[1];
      const auto zeros_of = [&](const Tensor& t) { return numbers(t) == numbers(zeros_like(t)); };
      EXPECT_TRUE(zeros_of(x.var(0)) && zeros_of(x.var()) && zeros_of(x.std(-1, false)));
      const Tensor mean = x.new_zeros({channels}), var = x.new_ones({channels});
      EXPECT_TRUE(zeros_of(batch_norm(x, {}, {}, mean, var, true, 1.0, 1e-3, true)));
      EXPECT_TRUE(zeros_of(var) && zeros_of(mean - std::ldexp(1.0, 600)));
    }
}

// What linear's backward adds up for a bias, in one part or in several. A column for each thread,
// or, of a multiple of eight columns, eight.
TEST(SumsOnGpu, GradientOfABias) {
  struct Case {
    int64_t rows, columns;
    uint64_t launches;
  };
  const std::vector<Case> cases = {{0, 3, 1},    {1, 40, 1},    {300, 1, 1},
                                   {7000, 3, 2}, {2100, 10, 2}, {300, 33, 2},
                                   {40, 264, 1}, {250, 264, 2}, {2800, 16, 2}};
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16}) {
    if (t == kHalf && testing::one_repeat_in() > 1) continue;
    for (const auto& [rows, columns, launches] : cases) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(rows) + " x " +
                   std::to_string(columns));
      const Tensor wide = drawn({rows, columns + 1}, t, columns), there = wide.to(kGpu),
                   dy = there.slice(1, 0, columns).contiguous(), bias = dy.new_zeros({columns}),
                   nothing = dy.new_zeros({rows, 0}), weight = dy.new_zeros({columns, 0});
      const auto gradient = [&](const Tensor& g) {
        const Tensor leaf = bias.detach().requires_grad_();
        return autograd::grad({linear(nothing, weight, leaf)}, {leaf}, {g})[0];
      };
      const Tensor leaf = bias.detach().requires_grad_(), y = linear(nothing, weight, leaf);
      Tensor got;
      EXPECT_EQ(launches_of([&] { got = autograd::grad({y}, {leaf}, {dy})[0]; }), launches);
      expect_near(got, numbers(wide.to(kDouble).slice(1, 0, columns).sum(0)), tolerance_of(t),
                  "values");
      EXPECT_EQ(numbers(gradient(dy)), numbers(got));
      // Rows that begin anywhere are not read 16 bytes at a time.
      EXPECT_EQ(numbers(gradient(there.slice(1, 0, columns))), numbers(got))
          << "where it lies makes a difference";
    }
  }
}

// The gradients of weight and bias, in parts of several images and in bands of one.
TEST(SumsOnGpu, GradientsOfAConvolution) {
  struct Case {
    std::vector<int64_t> x, weight;
    int64_t padding, groups;
  };
  const std::vector<Case> cases = {
      {{3, 2, 37, 40}, {3, 2, 1, 1}, 0, 1},   // bands, the last one shorter; parts for the bias
      {{1, 1, 1, 1100}, {3, 1, 1, 3}, 0, 1},  // a line
      {{11, 1, 9, 11}, {2, 1, 3, 3}, 1, 1},   // the last part has fewer images
      {{2, 4, 22, 25}, {16, 2, 3, 3}, 1, 2},  // packs of channels
      {{1, 70, 5, 5}, {1, 70, 3, 3}, 1, 1}};  // one part, several tiles
  for (ScalarType t : {kFloat, kDouble}) {
    if (t == kDouble && testing::one_repeat_in() > 1) continue;
    for (const Case& c : cases) {
      const Tensor x = drawn(c.x, t, 1), weight = drawn(c.weight, t, 2),
                   bias = drawn({c.weight[0]}, t, 3);
      const auto gradients = [&](Device device, ScalarType dtype, bool channels_last) {
        const Tensor w = weight.to(device).to(dtype).requires_grad_(),
                     b = bias.to(device).to(dtype).requires_grad_(),
                     y = conv2d(x.to(device).to(dtype), w, b, 1, c.padding, 1, c.groups);
        Tensor dy = drawn(y.sizes(), t, 4).to(device).to(dtype);
        if (channels_last) {
          const Tensor rows = dy;
          dy = autograd::empty_channels_last(y.size(0), y.size(1), y.size(2), y.size(3), dtype,
                                             device);
          dy.copy_(rows);
        }
        return autograd::grad({y}, {w, b}, {dy});
      };
      const std::vector<Tensor> want = gradients(kHost, kDouble, false);
      for (bool channels_last : {false, true}) {
        SCOPED_TRACE(std::string(name_of(t)) + (channels_last ? " channels last, " : ", ") +
                     std::to_string(c.x[0]) + " images");
        const std::vector<Tensor> got = gradients(kGpu, t, channels_last);
        for (size_t i = 0; i < 2; ++i) {
          // Of both signs: errors grow as the root of the number of products.
          const auto products = static_cast<double>(c.x[0] * c.x[2] * c.x[3]);
          expect_near(got[i], numbers(want[i]), tolerance_of(t) * std::sqrt(products),
                      i == 0 ? "weight" : "bias");
        }
      }
    }
  }
}

// Reductions with few results: each is cut into segments, lines and columns.
TEST(SumsOnGpu, SegmentsOfAReduction) {
  const Tensor x = drawn({7000, 10}, kFloat, 5), there = x.to(kGpu), wide = x.to(kDouble);
  const auto check = [&](const auto& f) {
    Tensor y;
    EXPECT_EQ(launches_of([&] { y = f(there); }), 2u);
    expect_near(y, numbers(f(wide)), tolerance_of(kFloat), "values");
    EXPECT_EQ(numbers(f(there)), numbers(y));
  };
  check([](const Tensor& v) { return v.sum(0); });
  check([](const Tensor& v) { return v.var(0); });
  check([](const Tensor& v) { return v.argmax(0); });
  check([](const Tensor& v) { return v.sum(); });
  check([](const Tensor& v) { return v.var(); });
  check([](const Tensor& v) { return v.argmax(); });
}

// Whichever way channels lie, their sums are made in several parts.
TEST(SumsOnGpu, GradientsOfABatchNorm) {
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{700, 3}, {2, 3, 350}, {9000, 3}, {3, 3, 13000}}) {
    const Tensor x = drawn(sizes, kFloat, 1), w = drawn({3}, kFloat, 2), b = drawn({3}, kFloat, 3),
                 dy = drawn(sizes, kFloat, 4);
    const auto gradients = [&](Device device, ScalarType t) {
      std::vector<Tensor> leaves;
      for (const Tensor& v : {x, w, b}) leaves.push_back(v.to(device).to(t).requires_grad_());
      const Tensor y = batch_norm(leaves[0], leaves[1], leaves[2], {}, {}, true, 0.1, 1e-3, true);
      return autograd::grad({y}, leaves, {dy.to(device).to(t)});
    };
    const std::vector<Tensor> want = gradients(kHost, kDouble), got = gradients(kGpu, kFloat),
                              again = gradients(kGpu, kFloat);
    for (size_t i = 0; i < 3; ++i) {
      expect_near(got[i], numbers(want[i]), 1e-5, "values");
      EXPECT_EQ(numbers(again[i]), numbers(got[i]));
    }
  }
}

// Sixteen-bit numbers that are added in one element: the CPU's bits, which are those of float sums
// rounded once. Few of them and many, in the kernel's dimensions and in more.
TEST(SumsOnGpu, ManyNarrowNumbersInOnePlace) {
  for (ScalarType t : {kHalf, kBFloat16}) {
    for (int64_t n : {40, 3000})
      for (int64_t extent : {3, 20000}) {
        SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(n));
        const Tensor x = drawn({extent, 3}, t, 1), y = drawn({n, 3}, t, 2),
                     at = drawn({n, 3}, kFloat, 3).abs().mul(3).to(kLong), rows = at.select(1, 0);
        const auto same = [&](const auto& f) {
          const Tensor want = f(x.to(kFloat), y.to(kFloat), kHost).to(t);
          EXPECT_EQ(numbers(f(x.to(kGpu), y.to(kGpu), kGpu)), numbers(want));
          EXPECT_EQ(numbers(f(x, y, kHost)), numbers(want));
        };
        same([&](const Tensor& a, const Tensor& b, Device on) {
          return a.scatter_add(0, at.to(on), b);
        });
        same([&](const Tensor& a, const Tensor& b, Device on) {
          return index_add(a, 0, rows.to(on), b);
        });
        same([&](const Tensor& a, const Tensor& b, Device on) {
          return index_put(a, {rows.to(on)}, b, true);
        });
        same([&](const Tensor& a, const Tensor& b, Device on) {
          const Tensor leaf = a.detach().requires_grad_();
          return autograd::grad({leaf.index_select(0, rows.to(on))}, {leaf}, {b})[0];
        });
      }
    const std::vector<int64_t> two(10, 2), order = {0, 2, 4, 6, 8, 1, 3, 5, 7, 9};
    Tensor x = zeros({1}, TensorOptions(t).device(kGpu));
    x.index_put_({zeros(two, kLong).permute(order).to(kGpu)},
                 full(two, 1.0078125, t).to(kGpu).permute(order), true);
    EXPECT_EQ(x.item<float>(), 1032);
  }
}

TEST(SumsOnGpu, TiesAreCountedInMoreThanSixteenBits) {
  const Tensor x = ones({70000}, TensorOptions(kHalf).device(kGpu)).requires_grad_();
  for (const Tensor& y : {x.max(), amin(x), norm(x, std::numeric_limits<double>::infinity())})
    EXPECT_NEAR(autograd::grad({y}, {x})[0][69999].item<float>(), 1. / 70000, 0x1p-25);
}

// How many are true before a block of a mask is a sum, too.
TEST(SumsOnGpu, MasksOfSeveralBlocks) {
  const int64_t n = 3 * kMaskBlock + 5;
  const Tensor x = drawn({n}, kFloat, 1), mask = drawn({n}, kFloat, 2).gt(0.3), there = x.to(kGpu),
               with = mask.to(kGpu);
  EXPECT_EQ(numbers(masked_select(there, with)), numbers(masked_select(x, mask)));
  EXPECT_EQ(numbers(nonzero(with)), numbers(nonzero(mask)));
  EXPECT_EQ(numbers(masked_scatter(there, with, there)), numbers(masked_scatter(x, mask, x)));
}

// So many blocks that one block of threads has several turns at their counts.
TEST(SumsOnGpu, MasksOfManyBlocks) {
  const int64_t blocks = 1024 + 3, n = blocks * kMaskBlock;
  const Tensor mask = zeros({n}, TensorOptions(kBool).device(kGpu));
  std::vector<double> want;
  for (int64_t b = 0; b < blocks; b += b % 5 + 1) {  // some are empty
    mask.narrow(0, b * kMaskBlock + b, 1).fill_(true);
    want.push_back(static_cast<double>(b * kMaskBlock + b));
  }
  EXPECT_EQ(numbers(nonzero(mask)), want);
}

// From 1e-300 to 1e300, in one sequence: what threads, warps and segments join.
TEST(SumsOnGpu, NormsOfWhatHasNoSquare) {
  for (const ScalarType t : {kDouble, kFloat}) {
    const std::vector<double> sizes = t == kDouble
                                          ? std::vector<double>{1e300, 1e200, 1, 1e-200, 1e-300}
                                          : std::vector<double>{1e35, 1e20, 1, 1e-20, 1e-30};
    for (const double first : sizes)
      for (const double second : sizes)
        for (const int64_t n : {1, 3000}) {
          SCOPED_TRACE(std::to_string(n) + " " + std::to_string(first));
          const Tensor a = drawn({n, 5}, kDouble, 1).mul(first), b = drawn({n, 5}, kDouble, 2);
          const Tensor x = cat({a, b.mul(second), zeros_like(a)}, 0).to(t), y = x.to(kGpu);
          const auto near = [&](const Tensor& got, const Tensor& want) {
            const Tensor w = want.to(kDouble);
            EXPECT_LE(got.to(kHost).to(kDouble).sub(w).abs().div(w).max().item<double>(),
                      tolerance_of(t));
          };
          near(y.norm(2, 0), x.norm(2, 0));
          near(y.t().contiguous().norm(2, 1), x.norm(2, 0));
          near(y.norm(), x.norm());
        }
  }
  const double inf = INFINITY, nan = NAN;
  EXPECT_EQ(tensor({1e200, inf}, kDouble).to(kGpu).norm().item<double>(), inf);
  EXPECT_EQ(zeros({3}, kDouble).to(kGpu).norm().item<double>(), 0);
  EXPECT_TRUE(std::isnan(tensor({1e-200, nan}, kDouble).to(kGpu).norm().item<double>()));
}

// Losses of so many rows that their groups are joined by several warps; weights of more classes
// than a block of threads has packs for.
TEST(SumsOnGpu, LossesOfManyRows) {
  struct Case {
    int64_t rows, classes;
    double smoothing;
    bool weighted;
  };
  for (const Case& c : {Case{64, 3, 0, true}, Case{130, 3, 0.1, false}, Case{4500, 3, 0, true},
                        Case{3, 2100, 0.1, true}}) {
    SCOPED_TRACE(std::to_string(c.rows) + " x " + std::to_string(c.classes));
    const Tensor x = drawn({c.rows, c.classes}, kFloat, 1),
                 weight = drawn({c.classes}, kFloat, 2).abs(),
                 target = drawn({c.rows}, kFloat, 3).abs().mul(1e3).to(kLong).remainder(c.classes);
    for (const int64_t reduction : {int64_t{Reduction::Mean}, int64_t{Reduction::Sum}}) {
      const auto of = [&](Device device, ScalarType t, const auto& loss) {
        const Tensor w = c.weighted ? weight.to(device).to(t) : Tensor();
        return loss(x.to(device).to(t).mul(1), target.to(device), w, reduction, -100, c.smoothing)
            .template item<double>();
      };
      const double want = of(kHost, kDouble, cross_entropy_loss);
      EXPECT_NEAR(of(kGpu, kFloat, cross_entropy_loss), want, 3e-6 * want);
      EXPECT_NEAR(of(kGpu, kFloat, cross_entropy_loss_consuming), want, 3e-6 * want);
    }
  }
}

}  // namespace
}  // namespace ramet::kernels
