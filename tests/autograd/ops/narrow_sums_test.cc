// Sixteen-bit numbers: what is added into one place is added in float and rounded once, and counts
// are kept in more than sixteen bits.
#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using namespace indexing;

constexpr ScalarType kNarrow[] = {kHalf, kBFloat16};

std::vector<double> wide(const Tensor& t) { return values(t.detach().to(kDouble)); }
// The values as this dtype has them.
Tensor narrow_leaf(const Tensor& t, ScalarType dtype) { return t.to(dtype).requires_grad_(); }

using Gradient = std::function<Tensor(const Tensor&)>;
// d sum(f(x)) / dx
std::vector<double> gradient(const Gradient& f, const Tensor& x) {
  return wide(autograd::grad({f(x)}, {x}, {ones_like(f(x))})[0]);
}

TEST(NarrowSums, ExtremaShareTheirGradientAmongManyEqualElements) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<const char*, Gradient>> all = {
      {"max", [](const Tensor& x) { return x.max(); }},
      {"min", [](const Tensor& x) { return x.min(); }},
      {"amax", [](const Tensor& x) { return amax(x); }},
      {"amin", [](const Tensor& x) { return amin(x); }},
      {"amax of a dimension",
       [](const Tensor& x) {
         return amax(x.view({-1, 1}), {0}, true);
       }},
      {"norm inf", [&](const Tensor& x) { return norm(x, inf); }},
      {"norm -inf", [&](const Tensor& x) { return norm(x, -inf); }},
  };
  for (ScalarType t : kNarrow)
    for (const auto& [name, f] : all)
      for (int64_t n : {300, 60000, 70000}) {
        SCOPED_TRACE(std::string(name) + " of " + std::to_string(n) + " " + name_of(t));
        const Tensor x = narrow_leaf(ones({n}), t);
        const std::vector<double> g = gradient(f, x);
        const double want = 1. / static_cast<double>(n),  // half a spacing, subnormal ones too
            spacing = t == kHalf ? std::max(want / 2048, 0x1p-25) : want / 256;
        EXPECT_NEAR(g[0], want, spacing);
        EXPECT_EQ(g[0], g[static_cast<size_t>(n - 1)]);
      }
}

TEST(NarrowSums, TheGradientOfTiesIsDifferentiable) {
  expect_derivatives(OF_X(x[0].max()), {leaf({2, 1, 2})}, false);
  const Tensor x = ones({3}, kHalf).requires_grad_(), g = full({}, 2, kHalf).requires_grad_();
  const Tensor dx = autograd::grad({x.max()}, {x}, {g}, true, true)[0];
  EXPECT_EQ(dx.scalar_type(), kHalf);
  EXPECT_NEAR(wide(autograd::grad({dx}, {g}, {ones_like(dx)})[0])[0], 1, 1e-3);
}

// d var = 2 / (n - 1) (x - mean), of 1 / n that is subnormal as half, and numbers far from 0.
TEST(NarrowSums, TheGradientOfAVarianceHasAWideMean) {
  for (ScalarType t : kNarrow) {
    for (int64_t n : {7, 70000}) {
      const Tensor x = narrow_leaf(arange(n).remainder(3).add(64.), t);
      const std::vector<double> g = gradient([](const Tensor&x) { return x.var().mul(8); }, x),
                                v = wide(x);
      double mean = 0;
      for (double e : v) mean += e / static_cast<double>(n);
      for (size_t i = 0; i < 7; ++i) {
        const double want = 16 / static_cast<double>(n - 1) * (v[i] - mean);
        EXPECT_NEAR(g[i], want, std::fabs(want) / (t == kHalf ? 1024 : 128) + 0x1p-24) << i;
      }
    }
  }
}

// Half counts ones to 2,048, bfloat16 to 256.
TEST(NarrowSums, FourThousandOnesInOnePlace) {
  const int64_t n = 4096;
  const Tensor at = zeros({n}, kLong), column = at.view({n, 1});
  for (ScalarType t : kNarrow)
    // So much may lie around that place: copied to float, or not.
    for (int64_t extent : {1, 100, 30000}) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(extent));
      const Tensor x = zeros({extent}, t), one = ones({n}, t);
      const auto filled = [&](const Tensor& sums) {
        const std::vector<double> v = wide(sums.flatten());
        EXPECT_EQ(v[0], 4096);
        for (size_t i = 1; i < v.size(); ++i) ASSERT_EQ(v[i], 0);
      };
      filled(x.scatter_add(0, at, one));
      filled(index_add(x, 0, at, one));
      filled(index_add(x.view({extent, 1}), 0, at, one.view({n, 1})));
      filled(index_add(x.view({1, extent}), 1, at, one.view({1, n})));
      filled(index_put(x, {at}, one, true));
      filled(index_put(x, {at}, ones({}, t), true));
      filled(index_put(x.view({1, extent}), {at, at}, one, true));
      filled(x.clone().scatter_add_(0, at, one));
      filled(x.clone().index_add_(0, at, one));
      filled(x.clone().index_put_({at}, one, true));
      const Tensor w = narrow_leaf(zeros({extent}), t);
#define READ(name, ...)                                \
  {                                                    \
    name, [&](const Tensor& w) { return __VA_ARGS__; } \
  }
      const std::vector<std::pair<const char*, Gradient>> reads = {
          READ("gather", w.gather(0, at)),
          READ("gather, columns", w.view({-1, 1}).gather(0, column)),
          READ("index_select", w.index_select(0, at)),
          READ("index_select, rows", w.view({1, -1}).index_select(1, at)),
          READ("take", w.take(at)),
          READ("index", w.index({at})),
          READ("index, two", w.view({1, -1}).index({at, at})),
          READ("index, number", w.view({1, -1}).index({0, at})),
          READ("embedding", embedding(w.view({-1, 1}), at)),
          READ("expand", w.narrow(0, 0, 1).expand({64, n / 64})),
          READ("repeat", w.narrow(0, 0, 1).repeat({64, n / 64})),
          READ("add", w.narrow(0, 0, 1) + zeros({64, n / 64}, t)),
      };
#undef READ
      for (const auto& [name, f] : reads) {
        SCOPED_TRACE(name);
        const std::vector<double> g = gradient(f, w);
        EXPECT_EQ(g[0], 4096);
        EXPECT_EQ(g.back(), extent == 1 ? 4096 : 0);
      }
    }
}

// Windows that overlap, read as unfold leaves them and after the base was written (as_strided).
TEST(NarrowSums, ElementsOfManyWindows) {
  const int64_t size = 600, n = 2 * size - 1;
  for (ScalarType t : kNarrow)
    for (bool written : {false, true}) {
      SCOPED_TRACE(std::string(name_of(t)) + (written ? " written" : ""));
      const Tensor x = narrow_leaf(ones({n}), t), base = x * 1, w = base.unfold(0, size, 1);
      if (written) base.mul_(1);
      const std::vector<double> g = wide(autograd::grad({w}, {x}, {ones_like(w)})[0]);
      for (int64_t i = 0; i < n; ++i) {
        const double want = static_cast<double>(std::min(i + 1, n - i));
        EXPECT_NEAR(g[static_cast<size_t>(i)], want, want / (t == kHalf ? 2048 : 256)) << i;
      }
    }
  const Tensor x = narrow_leaf(ones({2}), kBFloat16), base = x * 1, w = base.expand({300, 300, 2});
  base.mul_(1);
  EXPECT_EQ(wide(autograd::grad({w}, {x}, {ones_like(w)})[0]), (std::vector<double>{90112, 90112}));
}

// Against sums in float, in the order of the loop, rounded once: the same bits.
TEST(NarrowSums, AreTheFloatSumsRounded) {
  struct Case {
    std::vector<int64_t> x, index;
    int64_t dim;
  };
  const std::vector<Case> cases = {{{5}, {700}, 0},           {{40000}, {700}, 0},
                                   {{7, 6}, {90, 6}, 0},      {{700, 6}, {90, 5}, 0},
                                   {{6, 7}, {5, 90}, 1},      {{600, 700}, {500, 3}, 1},
                                   {{3, 9, 4}, {3, 70, 4}, 1}};
  for (ScalarType t : kNarrow)
    for (const Case& c : cases) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(c.x[0]));
      const Tensor x = varied(c.x, 1).to(t), y = varied(c.index, 2).to(t);
      const int64_t extent = c.x[static_cast<size_t>(c.dim)];
      const Tensor at =
          varied(c.index, 3).abs().mul(static_cast<double>(extent)).to(kLong).remainder(extent);
      const Tensor want = x.to(kFloat).scatter_add(c.dim, at, y.to(kFloat)).to(t);
      EXPECT_TRUE(equal(x.scatter_add(c.dim, at, y), want));
      // In place, into every second element of a tensor.
      std::vector<int64_t> sizes = c.x;
      sizes.back() *= 2;
      const Tensor room = zeros(sizes, t), part = room.slice(-1, 0, sizes.back(), 2);
      part.copy_(x);
      part.scatter_add_(c.dim, at, y);
      EXPECT_TRUE(equal(part, want));
      EXPECT_FALSE(room.slice(-1, 1, sizes.back(), 2).any().item<bool>());
    }
}

// Rows of columns: where the index stands still along other dimensions.
TEST(NarrowSums, RowsAreTheFloatSumsRounded) {
  for (ScalarType t : kNarrow)
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{3, 5, 4}, {3, 5000, 4}, {1, 5000, 1300}, {2, 7, 1300}}) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(shape[2]));
      const int64_t n = 200;
      const Tensor x = varied(shape, 1).to(t), y = varied({shape[0], n, shape[2]}, 2).to(t);
      const Tensor at =
          varied({n}, 3).abs().mul(1e6).to(kLong).remainder(std::min<int64_t>(shape[1], 50));
      const Tensor want = index_add(x.to(kFloat), 1, at, y.to(kFloat)).to(t);
      EXPECT_TRUE(equal(index_add(x, 1, at, y), want));
      EXPECT_TRUE(equal(x.clone().index_put_({Slice(), at}, y, true), want));
      const Tensor turned = x.transpose(1, 2).contiguous().transpose(1, 2);
      EXPECT_TRUE(
          equal(turned.index_add_(1, at, y.transpose(0, 2).contiguous().transpose(0, 2)), want));
    }
}

// More dimensions than a kernel takes: the loop is cut, the sum is not.
TEST(NarrowSums, ManyDimensions) {
  const std::vector<int64_t> two(10, 2), order = {0, 2, 4, 6, 8, 1, 3, 5, 7, 9};
  const Tensor one = ones(two, kBFloat16).mul(1.0078125).permute(order);
  const Tensor at = zeros(two, kLong).permute(order);
  const std::vector<int64_t> shape(9, 1);
  Tensor x = zeros({1}, kBFloat16);
  x.index_put_({at}, one, true);
  EXPECT_EQ(wide(x)[0], 1032);  // 1,024 times that, exactly
}

TEST(NarrowSums, APaddingRowStaysOut) {
  for (ScalarType t : kNarrow)
    for (int64_t rows : {3, 20000}) {
      const Tensor w = narrow_leaf(zeros({rows, 2}), t);
      const Tensor at = arange(3000).remainder(3);
      const std::vector<double> g =
          gradient([&](const Tensor& w) { return embedding(w, at, 1); }, w);
      EXPECT_EQ((std::vector<double>(g.begin(), g.begin() + 6)),
                (std::vector<double>{1000, 1000, 0, 0, 1000, 1000}));
    }
}

}  // namespace
}  // namespace ramet
