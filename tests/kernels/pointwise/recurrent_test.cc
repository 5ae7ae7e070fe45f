// Steps of recurrent cells, forward and backward, against float64 references.
#include "kernels/pointwise/recurrent.h"

#include <array>
#include <cmath>

#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;

double epsilon(ScalarType t) {
  return t == kDouble ? 1e-14 : t == kFloat ? 1e-6 : t == kHalf ? 2e-3 : 1.6e-2;
}
double sigma(double x) { return 1 / (1 + std::exp(-x)); }

struct Case {
  int64_t rows, cols;
  ScalarType t;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ScalarType t : {kFloat, kDouble, kHalf, kBFloat16})
    for (const auto& [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{
             {0, 3}, {2, 0}, {1, 1}, {3, 37}, {2, 300}, {70, 256}})
      all.push_back({rows, cols, t});
  return all;
}

// Buffers of some columns for each of the state's, with fixed values.
struct Made {
  const Case& k;
  raw::Values values{7};
  Buffer operator()(int64_t parts, double scale = 0) {
    Buffer b(k.rows * k.cols * parts, k.t);
    if (scale > 0) b.fill(values, scale);
    return b;
  }
};
// Gate `part` of `width` at an element.
int64_t at(const Case& k, int64_t row, int64_t col, int64_t part, int64_t width) {
  return (row * width + part) * k.cols + col;
}
void each(const Case& k, const std::function<void(int64_t, int64_t)>& f) {
  for (int64_t row = 0; row < k.rows; ++row)
    for (int64_t col = 0; col < k.cols; ++col) f(row, col);
}
TEST(RecurrentKernels, LstmSteps) {
  for (const Case& k : cases()) {
    SCOPED_TRACE(std::to_string(k.rows) + " x " + std::to_string(k.cols) + " " + name_of(k.t));
    Made made{k};
    Buffer sums = made(4, 3), before = made(1, 1), dh = made(1, 1), too = made(1, 1),
           dc = made(1, 1), gates = made(4), cell = made(1), hidden = made(1), d_sums = made(4),
           d_before = made(1);
    const auto run = [&] {
      lstm_step(raw::kCpuStream, {sums.data(), before.data(), gates.data(), cell.data(),
                                  hidden.data(), k.rows, k.cols, k.t});
      lstm_step_backward(raw::kCpuStream,
                         {gates.data(), before.data(), cell.data(), dh.data(), too.data(),
                          dc.data(), d_sums.data(), d_before.data(), k.rows, k.cols, k.t});
    };
    raw::expect_same_bits({&gates, &cell, &hidden, &d_sums, &d_before}, run);
    const double near = 4 * epsilon(k.t);
    each(k, [&](int64_t r, int64_t c) {
      double y[4];
      const int64_t e = at(k, r, c, 0, 1);
      for (int64_t p = 0; p < 4; ++p) {
        const double s = sums[at(k, r, c, p, 4)];
        y[p] = p == 2 ? std::tanh(s) : sigma(s);
        ASSERT_NEAR(gates[at(k, r, c, p, 4)], y[p], near);
      }
      const double want = y[1] * before[e] + y[0] * y[2];
      ASSERT_NEAR(cell[e], want, near);
      ASSERT_NEAR(hidden[e], y[3] * std::tanh(want), near);
      for (int64_t p = 0; p < 4; ++p) y[p] = gates[at(k, r, c, p, 4)];  // as they were rounded
      const double th = std::tanh(cell[e]), d = dh[e] + too[e],
                   all = dc[e] + d * y[3] * (1 - th * th);
      const double grads[4] = {all * y[2] * y[0] * (1 - y[0]), all * before[e] * y[1] * (1 - y[1]),
                               all * y[0] * (1 - y[2] * y[2]), d * th * y[3] * (1 - y[3])};
      for (int64_t p = 0; p < 4; ++p) ASSERT_NEAR(d_sums[at(k, r, c, p, 4)], grads[p], near);
      ASSERT_NEAR(d_before[e], all * y[1], near);
    });
    // What is null counts as zeros; results may lie where operands are.
    Buffer none = made(1), d_plain = made(4), d_before_plain = made(1), moved = dc;
    none.fill(0.0);
    lstm_step_backward(raw::kCpuStream,
                       {gates.data(), before.data(), cell.data(), none.data(), none.data(),
                        dc.data(), d_plain.data(), d_before_plain.data(), k.rows, k.cols, k.t});
    Buffer d_null = made(4);
    lstm_step_backward(raw::kCpuStream,
                       {gates.data(), before.data(), cell.data(), nullptr, nullptr, moved.data(),
                        d_null.data(), moved.data(), k.rows, k.cols, k.t});
    EXPECT_TRUE(d_plain.same_bits(d_null));
    EXPECT_TRUE(d_before_plain.same_bits(moved));
    lstm_step(raw::kCpuStream, {sums.data(), before.data(), sums.data(), before.data(), none.data(),
                                k.rows, k.cols, k.t});
    EXPECT_TRUE(sums.same_bits(gates));
    EXPECT_TRUE(before.same_bits(cell));
    EXPECT_TRUE(none.same_bits(hidden));
  }
}

TEST(RecurrentKernels, GruSteps) {
  for (const Case& k : cases()) {
    SCOPED_TRACE(std::to_string(k.rows) + " x " + std::to_string(k.cols) + " " + name_of(k.t));
    Made made{k};
    Buffer x = made(3, 2), s = made(3, 2), before = made(1, 1), dh = made(1, 1), too = made(1, 1),
           kept = made(4), hidden = made(1), d_x = made(3), d_s = made(3), d_before = made(1);
    const auto run = [&] {
      gru_step(raw::kCpuStream, {x.data(), s.data(), before.data(), kept.data(), hidden.data(),
                                 k.rows, k.cols, k.t});
      gru_step_backward(raw::kCpuStream,
                        {kept.data(), before.data(), dh.data(), too.data(), d_x.data(), d_s.data(),
                         d_before.data(), k.rows, k.cols, k.t});
    };
    raw::expect_same_bits({&kept, &hidden, &d_x, &d_s, &d_before}, run);
    const double near = 8 * epsilon(k.t);
    each(k, [&](int64_t row, int64_t c) {
      const int64_t e = at(k, row, c, 0, 1);
      const auto in = [&](const Buffer& b, int64_t p) { return b[at(k, row, c, p, 3)]; };
      double r = sigma(in(x, 0) + in(s, 0)), z = sigma(in(x, 1) + in(s, 1)),
             n = std::tanh(in(x, 2) + r * in(s, 2));
      const double want[4] = {r, z, n, in(s, 2)};
      for (int64_t p = 0; p < 4; ++p) ASSERT_NEAR(kept[at(k, row, c, p, 4)], want[p], near);
      ASSERT_NEAR(hidden[e], (1 - z) * n + z * before[e], near);
      r = kept[at(k, row, c, 0, 4)], z = kept[at(k, row, c, 1, 4)], n = kept[at(k, row, c, 2, 4)];
      const double d = dh[e] + too[e], dn = d * (1 - z) * (1 - n * n),
                   dr = dn * in(s, 2) * r * (1 - r), dz = d * (before[e] - n) * z * (1 - z);
      const double of_x[3] = {dr, dz, dn}, of_s[3] = {dr, dz, dn * r};
      for (int64_t p = 0; p < 3; ++p) {
        ASSERT_NEAR(in(d_x, p), of_x[p], near);
        ASSERT_NEAR(in(d_s, p), of_s[p], near);
      }
      ASSERT_NEAR(d_before[e], d * z, near);
    });
    Buffer moved = too, again = made(3), other = made(3), unkept = made(1);
    gru_step_backward(raw::kCpuStream,
                      {kept.data(), before.data(), dh.data(), moved.data(), again.data(),
                       other.data(), moved.data(), k.rows, k.cols, k.t});
    EXPECT_TRUE(moved.same_bits(d_before));
    EXPECT_TRUE(again.same_bits(d_x) && other.same_bits(d_s));
    gru_step(raw::kCpuStream,
             {x.data(), s.data(), before.data(), nullptr, unkept.data(), k.rows, k.cols, k.t});
    EXPECT_TRUE(unkept.same_bits(hidden));
  }
}

}  // namespace
}  // namespace ramet::kernels
