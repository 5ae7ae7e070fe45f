// Kernels of the usual kinds against float64 references, under every schedule.
#include "tests/tools/emulated_gpu/kernels.h"

#include <array>
#include <cmath>
#include <numeric>

#include "tests/tools/emulated_gpu/emulated_devices.h"

namespace ramet::testing {
namespace {

class Kernels : public ::testing::TestWithParam<Schedule> {
 protected:
  Kernels() : devices_(GetParam().settings) {}
  Devices devices_;
};

INSTANTIATE_TEST_SUITE_P(Schedules, Kernels, ::testing::ValuesIn(schedules()),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           for (char& c : name)
                             if (c == ' ') c = '_';
                           return name;
                         });

TEST_P(Kernels, Add) {
  for (const long count : {1L, 3L, 1000L, 65537L}) {
    const auto a = uniform(size_t(count), 1), b = uniform(size_t(count), 2);
    DeviceArray<float> da(a), db(b), dc{size_t(count)};
    ASSERT_CUDA(add(da, db, dc, count, nullptr), cudaSuccess);
    const auto c = dc.host();
    for (size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
  }
}

template <class T> void check_softmax(int rows, int columns, double tolerance) {
  const auto drawn = uniform(size_t(rows * columns), 3, 4.0f);
  const std::vector<T> x(drawn.begin(), drawn.end());
  DeviceArray<T> dx(x), dy{x.size()};
  ASSERT_CUDA(softmax<T>(dx, dy, rows, columns, nullptr), cudaSuccess);
  const auto y = dy.host();
  for (int r = 0; r < rows; ++r) {
    const auto at = [&](int c) { return double(float(x[size_t(r * columns + c)])); };
    double total = 0;
    for (int c = 0; c < columns; ++c) total += std::exp(at(c));
    for (int c = 0; c < columns; ++c)
      ASSERT_NEAR(float(y[size_t(r * columns + c)]), std::exp(at(c)) / total, tolerance);
  }
}

TEST_P(Kernels, Softmax) {
  check_softmax<float>(5, 7, 1e-6);
  check_softmax<float>(3, 1000, 1e-6);
  check_softmax<__half>(4, 129, 1e-3);
  check_softmax<__nv_bfloat16>(4, 300, 4e-3);
}

TEST_P(Kernels, Transpose) {
  const int rows = 45, columns = 70;
  const auto x = uniform(size_t(rows * columns), 10);
  DeviceArray<float> dx(x), dy{x.size()};
  ASSERT_CUDA(transpose(dx, dy, rows, columns, nullptr), cudaSuccess);
  const auto y = dy.host();
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      ASSERT_EQ(y[size_t(c * rows + r)], x[size_t(r * columns + c)]);
}

TEST_P(Kernels, Matmul) {
  const int m = 33, n = 50, k = 41;
  const auto a = uniform(size_t(m * k), 8), b = uniform(size_t(k * n), 9);
  DeviceArray<float> da(a), db(b);
  for (const int tile : {0, 8, 16}) {
    DeviceArray<float> dc{size_t(m * n)};
    if (tile) ASSERT_CUDA(matmul_dynamic(da, db, dc, m, n, k, tile, nullptr), cudaSuccess);
    else ASSERT_CUDA(matmul(da, db, dc, m, n, k, nullptr), cudaSuccess);
    const auto c = dc.host();
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double expected = 0;
        for (int t = 0; t < k; ++t)
          expected += double(a[size_t(i * k + t)]) * double(b[size_t(t * n + j)]);
        ASSERT_NEAR(c[size_t(i * n + j)], expected, 1e-5)
            << "tile " << tile << ": " << i << " " << j;
      }
  }
}

// Blocks that communicate by a fence and an atomic counter.
TEST_P(Kernels, SumByTheLastBlock) {
  const auto x = uniform(3001, 4);
  DeviceArray<float> dx(x), partial{kSumBlocks}, total{1};
  DeviceArray<unsigned> counter(std::vector<unsigned>{0});
  ASSERT_CUDA(sum(dx, int(x.size()), partial, counter, total, nullptr), cudaSuccess);
  EXPECT_NEAR(total.host()[0], std::accumulate(x.begin(), x.end(), 0.0), 1e-4);
}

TEST_P(Kernels, Atomics) {
  std::vector<int> x(5000), expected(17);
  for (size_t i = 0; i < x.size(); ++i) ++expected[size_t(x[i] = int(i * i % 17))];
  DeviceArray<int> dx(x), bins(std::vector<int>(17, 0));
  ASSERT_CUDA(histogram(dx, int(x.size()), bins, nullptr), cudaSuccess);
  EXPECT_EQ(bins.host(), expected);
}

// Each result as CUDA's documentation defines it, lane by lane.
TEST_P(Kernels, WarpPrimitives) {
  for (const int lanes : {32, 20}) {
    std::vector<int> x(static_cast<size_t>(lanes));
    for (int i = 0; i < lanes; ++i) x[size_t(i)] = (i * 11 + 3) % 37;
    DeviceArray<int> dx(x), results{size_t(lanes * kWarpResults)};
    ASSERT_CUDA(warp_primitives(dx, results, lanes, nullptr), cudaSuccess);
    const auto r = results.host();
    const auto value = [&](int lane) { return x[size_t(lane)]; };
    unsigned odd = 0;
    for (int i = 0; i < lanes; ++i) odd |= unsigned(value(i) & 1) << i;
    for (int i = 0; i < lanes; ++i) {
      unsigned same = 0;
      for (int k = 0; k < lanes; ++k) same |= unsigned(value(k) % 5 == value(i) % 5) << k;
      const bool whole = lanes == 32;
      const std::array<int, kWarpResults> expected = {value((i * 7 + 3) % lanes),
                                                      value(i / 4 * 4 + 1),
                                                      whole ? value(i ^ 5) : 0,
                                                      value(i ^ 1),
                                                      i >= 3 ? value(i - 3) : value(i),
                                                      whole ? value(i + 3 < 32 ? i + 3 : i) : 0,
                                                      whole ? value(i % 8 + 2 < 8 ? i + 2 : i) : 0,
                                                      int(odd),
                                                      1 + 2,
                                                      int(same),
                                                      value(lanes - 1),
                                                      i % 2 ? lanes / 2 : -(lanes / 2)};
      for (int k = 0; k < kWarpResults; ++k)
        EXPECT_EQ(r[size_t(i * kWarpResults + k)], expected[size_t(k)])
            << "lane " << i << " of " << lanes << ", result " << k;
    }
  }
}

TEST_P(Kernels, BlockVotes) {
  for (const int ones : {0, 1, 50, 100}) {
    std::vector<int> x(100);
    for (int i = 0; i < ones; ++i) x[size_t(i * 7 % 100)] = 1 + i;
    DeviceArray<int> dx(x), results{300};
    ASSERT_CUDA(block_votes(dx, results, 100, nullptr), cudaSuccess);
    const auto r = results.host();
    for (size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(r[3 * i], ones);
      EXPECT_EQ(r[3 * i + 1], ones == 100);
      EXPECT_EQ(r[3 * i + 2], ones > 0);
    }
  }
}

TEST_P(Kernels, Coordinates) {
  const dim3 grid(3, 2, 2), block(4, 3, 2);
  DeviceArray<unsigned> results{12 * 12 * 24};
  ASSERT_CUDA(coordinates(results, grid, block, nullptr), cudaSuccess);
  const auto r = results.host();
  size_t at = 0;
  for (unsigned b = 0; b < 12; ++b)
    for (unsigned t = 0; t < 24; ++t, at += 12) {
      const std::array<unsigned, 12> expected = {t % 4, t / 4 % 3, t / 12, b % 3, b / 3 % 2, b / 6,
                                                 4,     3,         2,      3,     2,         2};
      for (size_t i = 0; i < 12; ++i)
        ASSERT_EQ(r[at + i], expected[i]) << b << " " << t << " " << i;
    }
}

// Barriers and warp primitives count the threads that have not left.
TEST_P(Kernels, ThreadsMayLeaveBeforeABarrier) {
  DeviceArray<int> results(std::vector<int>(70, -1));
  ASSERT_CUDA(early_exit(results, 70, nullptr), cudaSuccess);
  const auto r = results.host();
  for (size_t i = 0; i < r.size(); ++i) {
    const int lanes = i < 64 ? 16 : 3;
    EXPECT_EQ(r[i], i % 2 ? -1 : 35 + 1000 * lanes) << i;
  }
}

}  // namespace
}  // namespace ramet::testing
