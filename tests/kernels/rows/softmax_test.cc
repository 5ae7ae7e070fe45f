// Softmax and log-softmax, forward and backward, against float64 references.
#include "kernels/rows/softmax.h"

#include <limits>

#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;
constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

double epsilon(ScalarType t) {
  return t == kDouble ? 1e-14 : t == kFloat ? 3e-7 : t == kHalf ? 1e-3 : 8e-3;
}

// Where element c of a row lies.
int64_t place(int64_t row, int64_t c, int64_t cols, int64_t inner) {
  if (inner == 0) return row * cols + c;
  return (row / inner * cols + c) * inner + row % inner;
}

std::vector<double> twin(const Buffer& x, int64_t row, int64_t cols, bool log, int64_t inner = 0) {
  const auto at = [&](int64_t c) { return x[place(row, c, cols, inner)]; };
  double top = -kInf, sum = 0;
  for (int64_t c = 0; c < cols; ++c) top = std::isnan(at(c)) ? kNaN : std::max(top, at(c));
  std::vector<double> y(static_cast<size_t>(cols));
  for (int64_t c = 0; c < cols; ++c) sum += std::exp(at(c) - top);
  for (int64_t c = 0; c < cols; ++c) {
    const double d = at(c) - top;
    y[static_cast<size_t>(c)] = log ? d - std::log(sum) : std::exp(d) / sum;
  }
  return y;
}

Buffer forward(const Buffer& x, int64_t rows, int64_t cols, bool log, int64_t inner = 0) {
  Buffer y(x.size, x.dtype),
      workspace(softmax_workspace(x.dtype, cols, max_parallel_slots()), kByte);
  softmax_forward(raw::kCpuStream,
                  {x.data(), y.data(), workspace.data(), rows, cols, x.dtype, log, inner});
  EXPECT_TRUE(workspace.guards_intact());
  return y;
}
Buffer backward(const Buffer& y, const Buffer& dy, int64_t rows, int64_t cols, bool log,
                int64_t inner = 0) {
  Buffer dx(y.size, y.dtype),
      workspace(softmax_workspace(y.dtype, cols, max_parallel_slots()), kByte);
  softmax_backward(raw::kCpuStream, {y.data(), dy.data(), dx.data(), workspace.data(), rows, cols,
                                     y.dtype, log, inner});
  EXPECT_TRUE(workspace.guards_intact());
  return dx;
}

void check(int64_t rows, int64_t cols, ScalarType t, bool log, int64_t inner = 0) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + (log ? " log " : " ") +
               name_of(t) + " inner " + std::to_string(inner));
  raw::Values values(static_cast<uint64_t>(rows * 1000 + cols));
  Buffer x(rows * cols, t), dy = x;
  x.fill(values, 6), dy.fill(values);
  Buffer y(x.size, t), dx(x.size, t);
  raw::expect_same_bits(y, [&](Buffer& o) { o = forward(x, rows, cols, log, inner); });
  raw::expect_same_bits(dx, [&](Buffer& o) { o = backward(y, dy, rows, cols, log, inner); });
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<double> want = twin(x, r, cols, log, inner);
    double sum = 0, size = 0;
    for (int64_t c = 0; c < cols; ++c) {
      const int64_t i = place(r, c, cols, inner);
      ASSERT_NEAR(y[i], want[static_cast<size_t>(c)],
                  epsilon(t) * std::max(log ? 20.0 : 0.0, 4 * want[static_cast<size_t>(c)]) +
                      (t == kHalf ? 3e-8 : 0));  // subnormal halves
      sum += (log ? 1 : y[i]) * dy[i], size += (log ? 1 : y[i]) * std::fabs(dy[i]);
    }
    for (int64_t c = 0; c < cols; ++c) {
      const int64_t i = place(r, c, cols, inner);
      const double factor = log ? std::exp(y[i]) : y[i],
                   want_dx = log ? dy[i] - factor * sum : factor * (dy[i] - sum);
      ASSERT_NEAR(
          dx[i], want_dx,
          4 * epsilon(t) * ((log ? std::fabs(dy[i]) : factor * std::fabs(dy[i])) + factor * size) +
              (t == kHalf ? 6e-8 : 0));
    }
  }
}

TEST(Softmax, AgainstTwin) {
  for (bool log : {false, true}) {
    for (int64_t cols = 1; cols <= 67; ++cols) check(3, cols, kFloat, log);
    for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16})
      for (auto [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{
               {128, 10}, {1, 1000}, {200, 129}, {7, 5000}, {70, 64}})
        check(rows, cols, t, log);
    check(2, 40000, kFloat, log);
    for (ScalarType t : {kFloat, kDouble})
      for (int64_t inner : {1, 2, 16, 63, 64, 65, 200})
        for (int64_t cols : {1, 16, 21, 300}) check(3 * inner, cols, t, log, inner);
    check(0, 5, kFloat, log);
    check(5, 0, kFloat, log);
  }
}

TEST(Softmax, PastTheCaches) {  // large outputs are stored another way
  raw::Values values(1);
  const int64_t rows = kStreamedElements / 1024, cols = 1024;
  Buffer x(rows * cols, kFloat);
  x.fill(values, 3);
  for (bool log : {false, true}) {
    const Buffer y = forward(x, rows, cols, log), dx = backward(y, x, rows, cols, log);
    for (int64_t r : {int64_t{0}, rows / 2, rows - 1}) {
      Buffer one(cols, kFloat);
      for (int64_t c = 0; c < cols; ++c) one.set(c, x[r * cols + c]);
      const Buffer want = forward(one, 1, cols, log), want_dx = backward(want, one, 1, cols, log);
      for (int64_t c = 0; c < cols; ++c) {
        ASSERT_EQ(y[r * cols + c], want[c]);
        ASSERT_EQ(dx[r * cols + c], want_dx[c]);
      }
    }
  }
}

TEST(Softmax, ExtremeValues) {
  raw::for_each_variant([&](Variant) {
    for (ScalarType t : {kFloat, kDouble}) {
      for (int64_t cols : {3, 16, 20, 70}) {
        Buffer x(cols, t);
        x.fill(-1e30).set(cols - 1, 1e30);
        EXPECT_EQ(forward(x, 1, cols, false)[cols - 1], 1);
        EXPECT_EQ(forward(x, 1, cols, false)[0], 0);
        EXPECT_EQ(forward(x, 1, cols, true)[cols - 1], 0);
        x.fill(0).set(1, -kInf);
        EXPECT_EQ(forward(x, 1, cols, false)[1], 0);
        EXPECT_EQ(forward(x, 1, cols, true)[1], -kInf);
        for (double bad : {kNaN, kInf}) {
          x.fill(0).set(cols / 2, bad);
          EXPECT_TRUE(std::isnan(forward(x, 1, cols, false)[cols / 2]));
          EXPECT_TRUE(std::isnan(forward(x, 1, cols, false)[0]));
        }
        x.fill(-kInf);
        EXPECT_TRUE(std::isnan(forward(x, 1, cols, false)[0]));
        // Next to other rows, which are not affected.
        const int64_t inner = 20;
        Buffer many(cols * inner, t);
        for (double bad : {kNaN, kInf}) {
          many.fill(0).set(place(17, cols / 2, cols, inner), bad);
          const Buffer y = forward(many, inner, cols, false, inner);
          for (int64_t r = 0; r < inner; ++r)
            EXPECT_EQ(std::isnan(y[place(r, 0, cols, inner)]), r == 17) << r;
        }
      }
    }
  });
}

}  // namespace
}  // namespace ramet::kernels
