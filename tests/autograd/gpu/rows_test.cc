// Kernels of rows on a GPU: the same bits wherever a row lies, and the CPU's values.
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/ops/layers/group_norm.h"
#include "autograd/ops/layers/layer_norm.h"
#include "autograd/ops/layers/softmax.h"
#include "autograd/ops/loss/ctc_loss.h"
#include "autograd/ops/loss/linear_cross_entropy.h"
#include "autograd/ops/loss/loss.h"
#include "tests/autograd/gpu/gpu_tensors.h"
#include "tests/share.h"

namespace ramet::kernels {
namespace {

double row_tolerance(ScalarType t) {
  return t == kDouble ? 1e-13 : t == kFloat ? 1e-5 : t == kHalf ? 4e-3 : 3e-2;
}

// Rows that begin at multiples of 16 bytes are read 16 bytes at a time, others are not.
template <class F> void check(const F& f, const std::vector<int64_t>& lengths = {8, 40, 2048}) {
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16})
    for (int64_t cols : lengths) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(cols));
      const int64_t rows = 5;
      const Tensor x = drawn({rows * cols + 1}, t, cols),
                   aligned = x.slice(0, 1).clone().to(kGpu).view({rows, cols}),
                   apart = x.to(kGpu).slice(0, 1).view({rows, cols});
      const std::vector<double> a = numbers(f(aligned)), b = numbers(f(apart));
      EXPECT_EQ(a, b) << "where it lies makes a difference";
      expect_near(f(aligned), numbers(f(aligned.to(kHost))), row_tolerance(t), "values");
    }
}

template <class F> Tensor gradient(const Tensor& x, const F& f) {
  const Tensor leaf = x.detach().requires_grad_();
  f(leaf).backward();
  return leaf.grad();
}

TEST(RowsOnGpu, Softmax) {
  check([](const Tensor& x) { return x.softmax(1); });
  check([](const Tensor& x) { return x.log_softmax(1); });
  check([](const Tensor& x) {
    return gradient(x, [](const Tensor& v) { return v.softmax(1).square().sum(); });
  });
}
TEST(RowsOnGpu, LayerNorm) {
  check([](const Tensor& x) { return layer_norm(x, {x.size(1)}, x[0], x[1]); });
  check([](const Tensor& x) { return std::get<0>(residual_layer_norm(x, x, {x.size(1)}, x[0])); });
  check([](const Tensor& x) { return std::get<1>(residual_layer_norm(x, x, {x.size(1)})); });
  check([](const Tensor& x) {
    return gradient(x, [](const Tensor& v) {
      const auto [y, sum] = residual_layer_norm(v, v, {v.size(1)});
      return y.mul(sum).sum();
    });
  });
}

TEST(RowsOnGpu, GroupNorm) {
  const auto grouped = [](const Tensor& x) {  // four channels in two groups
    const Tensor w = x[0].slice(0, 0, 4);
    return group_norm(x.view({5, 4, x.size(1) / 4}), 2, w, w.mul(2));
  };
  check(grouped, {8, 40, 44, 2048, 12000, 40000});
  check([&](const Tensor& x) {
    return gradient(x, [&](const Tensor& v) { return grouped(v).square().sum(); });
  });
}

// The wanted ones of dx, dweight and dbias.
std::vector<Tensor> norm_gradients(const Tensor& x, const Tensor& w, const Tensor& dy,
                                   bool residual, std::array<bool, 3> wanted) {
  const Tensor leaves[] = {x.detach(), w.detach(), w.detach()};
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < 3; ++i)
    if (wanted[i]) inputs.push_back(leaves[i].requires_grad_());
  const std::vector<int64_t> shape = {x.size(1)};
  if (!residual)
    return autograd::grad({layer_norm(leaves[0], shape, leaves[1], leaves[2], 0.1)}, inputs, {dy});
  const auto [y, sum] =
      residual_layer_norm(leaves[0], zeros_like(x), shape, leaves[1], leaves[2], 0.1);
  if (!wanted[0]) return autograd::grad({y}, inputs, {dy});
  return autograd::grad({y, sum}, inputs, {dy, dy});
}
void check_norm_sums(ScalarType t, int64_t rows, int64_t cols) {
  const double row_tolerance = t == kDouble ? 1e-13 : t == kFloat ? 1e-5 : t == kHalf ? 4e-3 : 3e-2;
  const Tensor x = drawn({rows * cols + 1}, t, cols), dy = drawn({rows * cols + 1}, t, cols + 1),
               w = drawn({cols + 1}, t, 3);
  const auto placed = [](const Tensor& v, IntArrayRef sizes, bool apart) {
    return apart ? v.to(kGpu).slice(0, 1).view(sizes) : v.slice(0, 1).clone().to(kGpu).view(sizes);
  };
  const auto there = [&](bool apart, bool residual, std::array<bool, 3> wanted) {
    return norm_gradients(placed(x, {rows, cols}, apart), placed(w, {cols}, apart),
                          placed(dy, {rows, cols}, apart), residual, wanted);
  };
  const auto wide = [](const Tensor& v, IntArrayRef sizes) {
    return v.slice(0, 1).to(kDouble).view(sizes);
  };
  for (bool residual : {false, true}) {
    SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(rows) + " x " +
                 std::to_string(cols) + (residual ? " of a sum" : ""));
    const std::array<bool, 3> all = {true, true, true};
    const std::vector<Tensor> got = there(false, residual, all), apart = there(true, residual, all),
                              want = norm_gradients(wide(x, {rows, cols}), wide(w, {cols}),
                                                    wide(dy, {rows, cols}), residual, all);
    for (size_t i = 0; i < 3; ++i) {
      const std::vector<double> values = numbers(got[i]);
      const double terms = i == 0 ? 1 : std::sqrt(static_cast<double>(rows)) + 1;
      expect_near(got[i], numbers(want[i]), row_tolerance * terms, "values");
      EXPECT_EQ(numbers(apart[i]), values) << i << ": where it lies makes a difference";
      std::array<bool, 3> one{};
      one[i] = true;
      EXPECT_EQ(numbers(there(false, residual, one)[0]), values) << i << ": alone it is another";
    }
  }
}
// A warp has a row or several, and the last block fewer; a block has rows; rows are too long for
// sums in registers.
TEST(RowsOnGpu, LayerNormSumsOverRows) {
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16}) {
    // What kHalf computes kBFloat16 does, and kDouble's kernels are those of kFloat.
    if ((t == kHalf || t == kDouble) && testing::one_repeat_in() > 1) continue;
    for (auto [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{{0, 8},
                                                                      {1, 40},
                                                                      {13, 33},
                                                                      {40, 519},
                                                                      {20, 768},
                                                                      {9, 1024},
                                                                      {40, 1100},
                                                                      {5, 4104},
                                                                      {3, 8192},
                                                                      {3, 8201}})
      check_norm_sums(t, rows, cols);
  }
  check_norm_sums(kFloat, 2100, 9);    // a warp has several rows
  check_norm_sums(kFloat, 270, 1100);  // a block has several rows
  if (testing::one_repeat_in() == 1) check_norm_sums(kBFloat16, 66, 8201);
}
TEST(RowsOnGpu, CrossEntropy) {
  const auto target = [](const Tensor& x) { return arange(5, kLong).to(x.device()); };
  const auto plain = [&](const Tensor& x) {
    return gradient(x, [&](const Tensor& v) { return cross_entropy_loss(v, target(v)); });
  };
  const auto consuming = [&](const Tensor& x) {
    return gradient(x, [&](const Tensor& v) {
      return cross_entropy_loss_consuming(v.mul(2), target(v), {}, Reduction::Sum, 3, 0.1);
    });
  };
  check(plain), check(consuming);
  // Rows of large blocks, of whole packs and not.
  check(plain, {16392}), check(consuming, {16392, 16397});
}

// The loss, and the gradients that the forward pass computes or, for None and float16, the backward
// pass. Under autocast classes have float32 weights. The CPU's values are compared with float64 in
// tests/autograd/ops.
TEST(RowsOnGpu, LinearCrossEntropy) {
  for (auto [t, cast_to] :
       {std::pair(kFloat, kFloat), std::pair(kDouble, kDouble), std::pair(kHalf, kHalf),
        std::pair(kBFloat16, kBFloat16), std::pair(kFloat, kHalf), std::pair(kFloat, kBFloat16)})
    for (int64_t reduction : {Reduction::None, Reduction::Mean})
      for (std::optional<int64_t> chunk : {std::optional<int64_t>(), std::optional<int64_t>(24)}) {
        SCOPED_TRACE(std::string(name_of(cast_to)) + (chunk ? " in chunks" : ""));
        const bool casts = t != cast_to;
        const ScalarType lower = casts ? cast_to : kBFloat16;
        const Tensor x = drawn({70, 40}, t, 1), w = drawn({130, 40}, t, 2), b = drawn({130}, t, 3),
                     target = arange(70, kLong), g = drawn({70}, t, 4);
        const auto on = [&](Device d) {
          std::vector<Tensor> leaves;
          for (const Tensor& v : {x, w, b})
            leaves.push_back(v.to(d).detach().clone().requires_grad_());
          std::optional<Tensor> weight;
          if (casts) weight = arange(1, 131, kFloat).div(65).to(d);
          const AutocastGuard autocast(d.type(), lower, casts);
          const Tensor loss = linear_cross_entropy(leaves[0], leaves[1], target.to(d), leaves[2],
                                                   weight, reduction, 3, 0.1, chunk),
                       seed = (reduction == Reduction::None ? g : g[0]).to(d);
          std::vector<Tensor> all = autograd::grad({loss}, leaves, {seed});
          all.push_back(loss.detach());
          return all;
        };
        const std::vector<Tensor> got = on(kGpu), again = on(kGpu), want = on(kHost);
        for (size_t i = 0; i < want.size(); ++i) {
          EXPECT_EQ(got[i].scalar_type(), t);
          expect_near(got[i], numbers(want[i]), 4 * row_tolerance(cast_to), "values");
          EXPECT_EQ(numbers(got[i]), numbers(again[i])) << i << ": another the second time";
        }
      }
}

constexpr double kInf = std::numeric_limits<double>::infinity();

// A row's values in the order in which its threads read them.
struct Order {
  const char* name;
  std::function<double(int64_t column, int64_t columns, double drawn)> at;
};
const std::vector<Order> orders = {
    {"rising", [](int64_t c, int64_t n, double d) { return 80. * double(c) / double(n) - 60 + d; }},
    {"falling",
     [](int64_t c, int64_t n, double d) { return 20 - 80. * double(c) / double(n) + d; }},
    {"-inf first", [](int64_t c, int64_t n, double d) { return c < n / 4 * 3 ? -kInf : 4 * d; }},
    {"-inf last", [](int64_t c, int64_t n, double d) { return c > n / 4 ? -kInf : 4 * d; }},
    {"-inf here and there", [](int64_t c, int64_t, double d) { return c % 3 ? -kInf : 4 * d; }},
    {"one number at the end", [](int64_t c, int64_t n, double) { return c < n - 1 ? -kInf : 2; }},
    {"one number", [](int64_t c, int64_t n, double) { return c == n / 2 ? -3 : -kInf; }},
    {"far below 0", [](int64_t, int64_t, double d) { return -60000 + 4 * d; }},
    {"nothing but -inf", [](int64_t, int64_t, double) { return -kInf; }},
    {"inf at the end", [](int64_t c, int64_t n, double d) { return c < n - 1 ? d : kInf; }},
    {"inf first", [](int64_t c, int64_t, double d) { return c > 0 ? d : kInf; }},
    {"NaN first", [](int64_t c, int64_t, double d) { return c > 0 ? d : NAN; }},
    {"NaN at the end", [](int64_t c, int64_t n, double d) { return c < n - 1 ? d : NAN; }},
    {"NaN among -inf", [](int64_t c, int64_t n, double) { return c == n / 2 ? NAN : -kInf; }},
    {"nothing but NaN", [](int64_t, int64_t, double) { return NAN; }},
};

// Losses and the consuming form's gradient of rows in those orders: by warps, by blocks and by
// large blocks. Each thread has several packs, and a piece of one at the end.
TEST(RowsOnGpu, CrossEntropyOrders) {
  const auto rows = static_cast<int64_t>(orders.size());
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16})
    for (int64_t cols : {5, 803, 5003, 20008}) {
      Tensor all = drawn({rows, cols}, kDouble, cols), target = full({rows}, cols / 2, kLong);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) {
          double& x = all.data_ptr<double>()[r * cols + c];
          x = orders[static_cast<size_t>(r)].at(c, cols, x);
        }
      target.data_ptr<int64_t>()[5] = cols - 1;  // the one number at the end
      const Tensor rounded = all.to(t);
      const std::vector<double> x = numbers(rounded);
      std::vector<double> losses, slopes(x.size());
      for (int64_t r = 0; r < rows; ++r) {
        const double* row = x.data() + r * cols;
        double top = -kInf, sum = 0;
        for (int64_t c = 0; c < cols; ++c) top = std::fmax(top, row[c]);
        for (int64_t c = 0; c < cols; ++c) sum += std::exp(row[c] - top);
        const int64_t at = target.data_ptr<int64_t>()[r];
        losses.push_back(std::log(sum) - (row[at] - top));
        for (int64_t c = 0; c < cols; ++c)
          slopes[static_cast<size_t>(r * cols + c)] = std::exp(row[c] - top) / sum - (c == at);
      }
      const auto expect = [&](const Tensor& got, const std::vector<double>& want, int64_t each) {
        const std::vector<double> g = numbers(got);
        ASSERT_EQ(g.size(), want.size());
        for (size_t i = 0; i < g.size(); ++i) {
          const double most = row_tolerance(t) * std::max(1.0, std::abs(want[i]));
          const bool right = std::isnan(want[i])
                                 ? std::isnan(g[i])
                                 : g[i] == want[i] || std::abs(g[i] - want[i]) <= most;
          ASSERT_TRUE(right) << name_of(t) << " x " << cols << ", "
                             << orders[i / static_cast<size_t>(each)].name << ": " << g[i]
                             << ", not " << want[i];
        }
      };
      for (const Device& d : {kHost, kGpu}) {
        const Tensor logits = rounded.to(d), classes = target.to(d);
        expect(cross_entropy_loss(logits, classes, {}, Reduction::None), losses, 1);
        const auto consumed = [&] {
          return gradient(logits, [&](const Tensor& v) {
            return cross_entropy_loss_consuming(v.mul(1), classes, {}, Reduction::Sum);
          });
        };
        const Tensor got = consumed();
        expect(got, slopes, cols);
        const std::vector<double> once = numbers(got), twice = numbers(consumed());
        EXPECT_EQ(std::memcmp(once.data(), twice.data(), once.size() * sizeof(double)), 0)
            << "another gradient the second time";
      }
      if (::testing::Test::HasFailure()) return;
    }
}

// More states than a block has threads, labels that come again and again, and the blank among them.
// Some samples have no steps, no labels or no alignment.
TEST(RowsOnGpu, CtcLoss) {
  const int64_t steps = 330, batch = 5, classes = 40, longest = 300;
  std::vector<int64_t> labels(static_cast<size_t>(batch * longest));
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<int64_t>(i % 7 == 0 ? 2 : i / 2 * i % 40);
  const Tensor targets = tensor(labels).view({batch, longest}),
               inputs = tensor(std::vector<int64_t>{330, 0, 100, 310, 329}),
               lengths = tensor(std::vector<int64_t>{20, 3, 0, 300, 131});
  for (const bool zero : {false, true}) {
    const ScalarType t = zero ? kDouble : kFloat;
    const Tensor x = drawn({steps, batch, classes}, kDouble, 3).mul(4).log_softmax(2).to(t);
    const auto on = [&](Device d) {
      const Tensor leaf = x.to(d).detach().requires_grad_();
      const Tensor loss =
          ctc_loss(leaf, targets.to(d), inputs.to(d), lengths.to(d), 2, Reduction::None, zero);
      loss.sum().backward();
      return std::array<std::vector<double>, 2>{numbers(loss), numbers(leaf.grad())};
    };
    const auto want = on(kHost), got = on(kGpu), again = on(kGpu);
    // The states that matter are 500 below the largest, of which a float32 rounds 3e-5.
    const double near = t == kFloat ? 3e-4 : row_tolerance(t);
    EXPECT_EQ(want[0][1], zero ? 0 : kInf);
    EXPECT_EQ(want[0][3], zero ? 0 : kInf) << "equal labels need blanks between";
    for (const size_t k : {0, 1}) {
      ASSERT_EQ(got[k].size(), want[k].size());
      for (size_t i = 0; i < want[k].size(); ++i)
        ASSERT_TRUE(got[k][i] == want[k][i] || (std::isnan(got[k][i]) && std::isnan(want[k][i])) ||
                    std::abs(got[k][i] - want[k][i]) <= near * std::max(1.0, std::abs(want[k][i])))
            << name_of(t) << ", " << (k ? "slope " : "loss ") << i << ": " << got[k][i] << ", not "
            << want[k][i];
      EXPECT_EQ(std::memcmp(got[k].data(), again[k].data(), got[k].size() * sizeof(double)), 0)
          << "something else the second time";
    }
  }
}

}  // namespace
}  // namespace ramet::kernels
