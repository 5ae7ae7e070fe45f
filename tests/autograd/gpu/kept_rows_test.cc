// Rows that a GPU keeps in registers, and those that are too long (Note [Rows in registers] in
// kernels/rows/row_registers_gpu.h). Each element is compared with float64, within the rounding of
// its type. There is a length for each way to keep a row and for remainders at its end.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/layers/layer_norm.h"
#include "autograd/ops/layers/softmax.h"
#include "tests/autograd/gpu/gpu_tensors.h"

namespace ramet::kernels {
namespace {

using Values = std::vector<double>;

// One warp and one pack, several packs, a block, and what no block keeps.
const std::vector<int64_t> kLengths = {1,    31,   32,   33,   256,  264,  1000, 1023,
                                       1024, 1025, 1032, 4096, 8191, 8192, 8193};
const std::vector<int64_t> kLongLengths = {50257, 65537};

// Half a unit in the last place, relative; and the error of float arithmetic in a row.
double half_unit(ScalarType t) { return t == kFloat ? 0x1p-24 : t == kHalf ? 0x1p-11 : 0x1p-8; }
double least_step(ScalarType t) { return t == kHalf ? 0x1p-24 : 0x1p-126; }
constexpr double kArithmetic = 3e-6;

// |got - want| within the rounding of `t` and `slack[i]`.
void expect_rounded(const Values& got, const Values& want, ScalarType t, const Values& slack) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]) && std::isnan(got[i])) continue;
    if (got[i] == want[i]) continue;
    const double most = half_unit(t) * std::abs(want[i]) + least_step(t) + slack[i];
    ASSERT_LE(std::abs(got[i] - want[i]), most) << i << ": " << got[i] << ", not " << want[i];
  }
}
void expect_same_bits(const Tensor& a, const Tensor& b) {
  const Values x = numbers(a), y = numbers(b);
  ASSERT_EQ(x.size(), y.size());
  EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof(double)), 0)
      << "where it lies makes a difference";
}

// A tensor on the GPU, at the start of an allocation or one element after it.
Tensor placed_rows(const Tensor& x, bool apart) {
  if (!apart) return x.to(kGpu);
  const Tensor all = zeros({x.numel() + 1}, x.scalar_type());
  all.slice(0, 1).copy_(x.view({x.numel()}));
  return all.to(kGpu).slice(0, 1).view(x.sizes());
}

template <class F> void for_rows(const std::vector<int64_t>& lengths, const F& f) {
  for (ScalarType t : {kFloat, kHalf, kBFloat16})
    for (int64_t cols : lengths) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(cols));
      f(t, cols > 1100 ? int64_t{2} : int64_t{11}, cols);  // 11: a block of warps and a part of one
      if (::testing::Test::HasFailure()) return;
    }
}

// Results of softmax or log-softmax of `x`, and how far float arithmetic may be off.
void softmax_of(const Values& x, int64_t cols, bool log, Values& want, Values& slack) {
  const auto n = static_cast<size_t>(cols);
  for (size_t r = 0; r < x.size(); r += n) {
    double top = -INFINITY, sum = 0;
    for (size_t c = r; c < r + n; ++c) top = std::fmax(top, x[c]);
    for (size_t c = r; c < r + n; ++c) sum += std::exp(x[c] - top);
    for (size_t c = r; c < r + n; ++c) {
      want.push_back(log ? x[c] - top - std::log(sum) : std::exp(x[c] - top) / sum);
      // x - top is off by half a unit, and its exponential by so much of itself.
      const double off = kArithmetic + 0x1p-22 * std::abs(x[c] - top);
      slack.push_back(std::isfinite(want.back()) ? off * (log ? 1 : want.back()) : 0);
    }
  }
}
// dx from the rounded results y.
void softmax_gradient_of(const Values& y, const Values& dy, int64_t cols, bool log, Values& want,
                         Values& slack) {
  const auto n = static_cast<size_t>(cols);
  for (size_t r = 0; r < y.size(); r += n) {
    double sum = 0, size = 0;
    for (size_t c = r; c < r + n; ++c) {
      sum += log ? dy[c] : y[c] * dy[c];
      size += std::abs(log ? dy[c] : y[c] * dy[c]);
    }
    for (size_t c = r; c < r + n; ++c) {
      const double p = log ? std::exp(y[c]) : y[c];
      want.push_back(log ? dy[c] - p * sum : p * (dy[c] - sum));
      slack.push_back((kArithmetic + (log ? 0x1p-22 * std::abs(y[c]) : 0)) *
                      (p * (size + std::abs(dy[c])) + (log ? std::abs(dy[c]) : 0)));
    }
  }
}
void check_softmax(const Tensor& x, bool log) {
  const int64_t cols = x.size(1);
  const Tensor dy = drawn(x.sizes(), x.scalar_type(), cols + 7);
  Tensor results[2], gradients[2];
  for (const bool apart : {false, true}) {
    const Tensor leaf = placed_rows(x, apart).detach().requires_grad_();
    results[apart] = log ? leaf.log_softmax(1) : leaf.softmax(1);
    gradients[apart] = autograd::grad({results[apart]}, {leaf}, {placed_rows(dy, apart)})[0];
  }
  expect_same_bits(results[0], results[1]);
  expect_same_bits(gradients[0], gradients[1]);
  Values want, slack;
  const Values y = numbers(results[0]);
  softmax_of(numbers(x), cols, log, want, slack);
  expect_rounded(y, want, x.scalar_type(), slack);
  want.clear(), slack.clear();
  softmax_gradient_of(y, numbers(dy), cols, log, want, slack);
  expect_rounded(numbers(gradients[0]), want, x.scalar_type(), slack);
}
TEST(KeptRows, Softmax) {
  for_rows(kLengths, [](ScalarType t, int64_t rows, int64_t cols) {
    check_softmax(drawn({rows, cols}, kDouble, cols).mul(12).to(t), false);
  });
  for_rows(kLongLengths, [](ScalarType t, int64_t rows, int64_t cols) {
    check_softmax(drawn({rows, cols}, kDouble, cols).mul(12).to(t), false);
  });
}
TEST(KeptRows, LogSoftmax) {
  for_rows(kLengths, [](ScalarType t, int64_t rows, int64_t cols) {
    check_softmax(drawn({rows, cols}, kDouble, cols).mul(12).to(t), true);
  });
  for_rows({50257}, [](ScalarType t, int64_t rows, int64_t cols) {
    check_softmax(drawn({rows, cols}, kDouble, cols).mul(12).to(t), true);
  });
}

// NaN and infinities at the first element, at the last one and alone; numbers far from 0; one
// number among -inf.
TEST(KeptRows, SoftmaxOfSpecialNumbers) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto special = [](int64_t row, int64_t c, int64_t n, double d) {
    switch (row) {
      case 0: return c == 0 ? NAN : d;
      case 1: return c == n - 1 ? NAN : d;
      case 2: return c == 0 ? kInf : d;
      case 3: return c == n - 1 ? kInf : d;
      case 4: return -kInf;
      case 5: return c == n / 2 ? -3 : -kInf;
      case 6: return c % 3 ? -kInf : 4 * d;
      case 7: return -60000 + 32 * std::floor(4 * d);
      case 8: return 60000 + 32 * std::floor(4 * d);
      case 9: return c == n / 2 ? NAN : -kInf;
      default: return 80. * double(c) / double(n) - 60 + d;
    }
  };
  for_rows({5, 300, 1025, 8200}, [&](ScalarType t, int64_t, int64_t cols) {
    const int64_t rows = 11;
    const Tensor x = drawn({rows, cols}, kDouble, cols);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) {
        double& at = x.data_ptr<double>()[r * cols + c];
        at = special(r, c, cols, at);
      }
    for (const bool log : {false, true}) {
      const Tensor rounded = x.to(t);
      Values want, slack;
      softmax_of(numbers(rounded), cols, log, want, slack);
      const Tensor y = rounded.to(kGpu);
      expect_rounded(numbers(log ? y.log_softmax(1) : y.softmax(1)), want, t, slack);
    }
  });
}

// The sum, its normalised rows and their gradient. `plain`: without a sum, weight and bias.
void check_layer_norm(ScalarType t, int64_t rows, int64_t cols, bool plain) {
  const double eps = 0.01;
  const Tensor x = drawn({rows, cols}, kDouble, cols).add(0.5).to(t), r = drawn({rows, cols}, t, 5),
               w = drawn({cols}, t, 3), b = drawn({cols}, t, 4);
  Tensor results[2], sums[2];
  for (const bool apart : {false, true}) {
    const auto at = [&](const Tensor& v) { return placed_rows(v, apart); };
    if (plain) results[apart] = layer_norm(at(x), {cols}, {}, {}, eps), sums[apart] = x;
    else
      std::tie(results[apart], sums[apart]) =
          residual_layer_norm(at(x), at(r), {cols}, at(w), at(b), eps);
  }
  expect_same_bits(results[0], results[1]);
  if (!plain) { EXPECT_EQ(numbers(sums[0]), numbers(x.add(r))) << "the rounded sum"; }
  const Values v = numbers(sums[0]), scale = numbers(w), shift = numbers(b);
  Values want, slack;
  for (int64_t row = 0; row < rows; ++row) {
    const double* p = v.data() + row * cols;
    double mean = 0, var = 0;
    for (int64_t c = 0; c < cols; ++c) mean += p[c] / double(cols);
    for (int64_t c = 0; c < cols; ++c) var += (p[c] - mean) * (p[c] - mean) / double(cols);
    for (int64_t c = 0; c < cols; ++c) {
      const auto i = static_cast<size_t>(c);
      const double h = (p[c] - mean) / std::sqrt(var + eps);
      want.push_back(plain ? h : h * scale[i] + shift[i]);
      slack.push_back(4 * kArithmetic * (1 + std::abs(h)));
    }
  }
  expect_rounded(numbers(results[0]), want, t, slack);
}
TEST(KeptRows, LayerNorm) {
  for (const bool plain : {true, false}) {
    const auto f = [&](ScalarType t, int64_t rows, int64_t cols) {
      check_layer_norm(t, rows, cols, plain);
    };
    for_rows(kLengths, f);
    for_rows({50257}, f);
  }
}
TEST(KeptRows, LayerNormOfSpecialNumbers) {
  for_rows({5, 300, 1025, 8200}, [](ScalarType t, int64_t, int64_t cols) {
    const Tensor x = drawn({4, cols}, kDouble, cols);
    double* p = x.data_ptr<double>();
    p[0] = NAN, p[2 * cols - 1] = INFINITY;
    for (int64_t c = 0; c < cols; ++c) p[2 * cols + c] = 3;  // no variance
    const Values got = numbers(layer_norm(x.to(t).to(kGpu), {cols}));
    for (int64_t i = 0; i < 4 * cols; ++i) {
      const double y = got[static_cast<size_t>(i)];
      if (i < 2 * cols) ASSERT_TRUE(std::isnan(y)) << i;
      else if (i < 3 * cols) ASSERT_EQ(y, 0) << i;
      else ASSERT_TRUE(std::isfinite(y)) << i;
    }
  });
}

TEST(KeptRows, WithoutElements) {
  for (const auto& [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{{0, 40}, {3, 0}})
    for (ScalarType t : {kFloat, kHalf, kBFloat16}) {
      const Tensor x = zeros({rows, cols}, t).to(kGpu);
      EXPECT_EQ(x.softmax(1).numel(), 0);
      EXPECT_EQ(x.log_softmax(1).numel(), 0);
      if (cols == 0) continue;  // which layer_norm refuses
      EXPECT_EQ(layer_norm(x, {cols}).numel(), 0);
    }
}

}  // namespace
}  // namespace ramet::kernels
