// Layer norm forward and backward against float64 references.
#include "kernels/rows/layer_norm.h"

#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;

struct Case {
  int64_t rows, cols;
  ScalarType t;
  bool weight = true, bias = true;
};

double epsilon(ScalarType t) {
  return t == kDouble ? 1e-13 : t == kFloat ? 1e-6 : t == kHalf ? 2e-3 : 1.6e-2;
}

void check(const Case& k) {
  SCOPED_TRACE(std::to_string(k.rows) + " x " + std::to_string(k.cols) + " " + name_of(k.t));
  const ScalarType stat = k.t == kDouble ? kDouble : kFloat;
  raw::Values values(static_cast<uint64_t>(k.rows * 977 + k.cols));
  const int64_t n = k.rows * k.cols;
  const double eps = 1e-5;
  Buffer x(n, k.t), dy(n, k.t), w(k.cols, k.t), b(k.cols, k.t);
  x.fill(values, 2), dy.fill(values), w.fill(values), b.fill(values);
  for (int64_t i = 0; i < n; ++i) x.set(i, x[i] + 3);
  Buffer y(n, k.t), mean(k.rows, stat), rstd(k.rows, stat), dx(n, k.t), dw(k.cols, k.t),
      db(k.cols, k.t);
  const auto run = [&] {
    const int slots = max_parallel_slots();
    Buffer f(layer_norm_workspace(k.t, k.cols, slots), kByte),
        r(layer_norm_backward_workspace(k.t, k.rows, k.cols, slots), kByte);
    layer_norm_forward(raw::kCpuStream,
                       {x.data(), k.weight ? w.data() : nullptr, k.bias ? b.data() : nullptr,
                        y.data(), mean.data(), rstd.data(), f.data(), k.rows, k.cols, eps, k.t});
    layer_norm_backward(raw::kCpuStream, {x.data(), k.weight ? w.data() : nullptr, dy.data(),
                                          mean.data(), rstd.data(), dx.data(), dw.data(), db.data(),
                                          r.data(), k.rows, k.cols, k.t});
    EXPECT_TRUE(f.guards_intact() && r.guards_intact());
  };
  raw::expect_same_bits({&y, &mean, &rstd, &dx, &dw, &db}, run);

  std::vector<double> want_dw(static_cast<size_t>(k.cols)), want_db = want_dw;
  const double c = static_cast<double>(k.cols), tolerance = 8 * epsilon(k.t);
  for (int64_t r = 0; k.cols > 0 && r < k.rows; ++r) {
    const auto at = [&](int64_t j) { return r * k.cols + j; };
    const auto weight = [&](int64_t j) { return k.weight ? w[j] : 1.0; };
    double m = 0, v = 0, gs = 0, gh = 0;
    for (int64_t j = 0; j < k.cols; ++j) m += x[at(j)] / c;
    for (int64_t j = 0; j < k.cols; ++j) v += (x[at(j)] - m) * (x[at(j)] - m) / c;
    const double s = 1 / std::sqrt(v + eps);
    ASSERT_NEAR(mean[r], m, 4 * epsilon(stat));
    ASSERT_NEAR(rstd[r], s, 40 * epsilon(stat) * s);
    const double loose =
        tolerance * (k.cols == 1 ? 400 : 1);  // one column: rstd is 316, and everything cancels
    for (int64_t j = 0; j < k.cols; ++j) {
      const double h = (x[at(j)] - m) * s, g = dy[at(j)] * weight(j);
      gs += g / c, gh += g * h / c;
      want_dw[static_cast<size_t>(j)] += dy[at(j)] * h,
          want_db[static_cast<size_t>(j)] += dy[at(j)];
      ASSERT_NEAR(y[at(j)], h * weight(j) + (k.bias ? b[j] : 0), loose * 2);
    }
    for (int64_t j = 0; j < k.cols; ++j) {
      const double h = (x[at(j)] - m) * s;
      ASSERT_NEAR(dx[at(j)], s * (dy[at(j)] * weight(j) - gs - h * gh), loose * 4 * (1 + s * 0.01));
    }
  }
  for (int64_t j = 0; j < k.cols; ++j) {
    const double size = std::sqrt(static_cast<double>(k.rows)) + 1;
    ASSERT_NEAR(dw[j], want_dw[static_cast<size_t>(j)], tolerance * size * (k.cols == 1 ? 400 : 2));
    ASSERT_NEAR(db[j], want_db[static_cast<size_t>(j)], tolerance * size);
  }
}

TEST(LayerNorm, AgainstTwin) {
  for (int64_t cols = 1; cols <= 67; ++cols) check({3, cols, kFloat});
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16})
    for (auto [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{
             {128, 33}, {1, 1000}, {200, 129}, {7, 5000}, {70, 64}, {65, 300}})
      check({rows, cols, t});
  check({20, 40, kFloat, false, false});
  check({20, 40, kFloat, true, false});
  check({20, 40, kDouble, false, true});
  check({20, 41, kHalf, false, false});
  check({2, 40000, kFloat});
  check({0, 7, kFloat});
  check({7, 0, kFloat});
}

TEST(LayerNorm, OnlyWhatIsAskedFor) {
  raw::Values values(4);
  Buffer x(40, kFloat), dy(40, kFloat), stat(4, kFloat), db(10, kFloat);
  x.fill(values), dy.fill(values), stat.fill(1);
  Buffer workspace(layer_norm_backward_workspace(kFloat, 4, 10, max_parallel_slots()), kByte);
  layer_norm_backward(raw::kCpuStream,
                      {x.data(), nullptr, dy.data(), stat.data(), stat.data(), nullptr, nullptr,
                       db.data(), workspace.data(), 4, 10, kFloat});
  for (int64_t j = 0; j < 10; ++j)
    EXPECT_NEAR(db[j], dy[j] + dy[10 + j] + dy[20 + j] + dy[30 + j], 1e-6);
}

TEST(LayerNorm, PastTheCaches) {  // large outputs are stored another way
  raw::Values values(1);
  const int64_t rows = kStreamedElements / 1024, cols = 1024;
  Buffer x(rows * cols, kFloat), y = x, w(cols, kFloat), mean(rows, kFloat), rstd = mean,
                                 none(0, kByte);
  x.fill(values, 3), w.fill(values);
  layer_norm_forward(raw::kCpuStream, {x.data(), w.data(), w.data(), y.data(), mean.data(),
                                       rstd.data(), none.data(), rows, cols, 1e-5, kFloat});
  for (int64_t r : {int64_t{0}, rows - 1}) {
    Buffer one(cols, kFloat), m(1, kFloat), s = m;
    layer_norm_forward(raw::kCpuStream, {x.as<float>() + r * cols, w.data(), w.data(), one.data(),
                                         m.data(), s.data(), none.data(), 1, cols, 1e-5, kFloat});
    for (int64_t c = 0; c < cols; ++c) ASSERT_EQ(y[r * cols + c], one[c]);
  }
}

}  // namespace
}  // namespace ramet::kernels
