// Fused cross entropy and nll_loss against float64 references.
#include "kernels/rows/cross_entropy.h"

#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;

struct Case {
  int64_t rows, cols;
  ScalarType t = kFloat;
  LossReduction reduction = LossReduction::kMean;
  double smoothing = 0;
  bool weight = false, ignored = false, log_probs = false;
  int64_t inner = 1;

  // Where class c of row r lies.
  int64_t at(int64_t r, int64_t c) const { return (r / inner * cols + c) * inner + r % inner; }
};

// The operands and the results of a case.
struct Loss {
  Case k;
  int64_t ignore;
  bool each = k.reduction == LossReduction::kNone;
  Buffer x{k.rows * k.cols, k.t}, target{k.rows, kLong}, w{k.cols, k.t},
      grad{each ? k.rows : 1, k.t}, loss{each ? k.rows : 1, k.t},
      statistics{k.rows * 2, k.t == kDouble ? kDouble : kFloat}, total{1, kDouble}, dx{x};

  const void* weights() { return k.weight ? w.data() : nullptr; }
  void forward() {
    Buffer workspace = scratch();
    cross_entropy_forward(
        raw::kCpuStream,
        {x.data(), target.as<int64_t>(), weights(), loss.data(),
         k.log_probs ? nullptr : statistics.data(), total.as<double>(), workspace.data(), k.rows,
         k.cols, ignore, k.smoothing, k.t, k.reduction, k.log_probs, k.inner});
    EXPECT_TRUE(workspace.guards_intact() && loss.guards_intact() && statistics.guards_intact());
  }
  void backward() {
    Buffer workspace = scratch();
    cross_entropy_backward(
        raw::kCpuStream, {x.data(), target.as<int64_t>(), weights(), grad.data(), statistics.data(),
                          total.as<double>(), dx.data(), workspace.data(), k.rows, k.cols, ignore,
                          k.smoothing, k.t, k.reduction, k.log_probs, k.inner});
    EXPECT_TRUE(workspace.guards_intact() && dx.guards_intact());
  }

 private:
  Buffer scratch() const {
    return {cross_entropy_workspace(k.t, k.rows, k.cols, max_parallel_slots()), kByte};
  }
};

void check(const Case& k) {
  SCOPED_TRACE(std::to_string(k.rows) + " x " + std::to_string(k.cols) + " " + name_of(k.t) +
               " reduction " + std::to_string(static_cast<int>(k.reduction)) + " smoothing " +
               std::to_string(k.smoothing) + " inner " + std::to_string(k.inner));
  const double eps = k.t == kDouble ? 1e-13 : k.t == kFloat ? 1e-6 : k.t == kHalf ? 2e-3 : 1.6e-2;
  const int64_t ignore = -100;
  Loss f{k, ignore};
  auto& [of, none, each, x, target, w, grad, loss, statistics, total, dx] = f;
  raw::Values values(static_cast<uint64_t>(k.rows * 31 + k.cols));
  x.fill(values, 4), w.fill(values), grad.fill(values);
  for (int64_t c = 0; c < k.cols; ++c) w.set(c, 0.25 + std::fabs(w[c]));
  for (int64_t r = 0; r < k.rows; ++r)
    target.set(r, static_cast<double>(k.ignored && r % 3 == 1 ? ignore : values.below(k.cols)));

  raw::expect_same_bits({&loss, &dx}, [&] { f.forward(), f.backward(); });

  double sum = 0, weight_sum = 0;
  std::vector<double> losses(static_cast<size_t>(k.rows)), p(static_cast<size_t>(k.rows * k.cols)),
      a = p;
  for (int64_t r = 0; r < k.rows; ++r) {
    double top = -1e300, s = 0;
    for (int64_t c = 0; c < k.cols; ++c) top = std::max(top, x[k.at(r, c)]);
    for (int64_t c = 0; c < k.cols; ++c) s += std::exp(x[k.at(r, c)] - top);
    const int64_t t = static_cast<int64_t>(target[r]);
    if (t == ignore) continue;
    for (int64_t c = 0; c < k.cols; ++c) {
      const double wc = k.weight ? w[c] : 1,
                   l = k.log_probs ? x[k.at(r, c)] : x[k.at(r, c)] - top - std::log(s);
      const auto i = static_cast<size_t>(r * k.cols + c);
      p[i] = std::exp(l);
      a[i] = (c == t ? (1 - k.smoothing) * wc : 0) + k.smoothing * wc / static_cast<double>(k.cols);
      losses[static_cast<size_t>(r)] -= a[i] * l;
    }
    sum += losses[static_cast<size_t>(r)], weight_sum += k.weight ? w[t] : 1;
  }
  EXPECT_NEAR(total[0], weight_sum, 1e-5 * weight_sum);
  const auto near = [&](double got, double want, double scale) {
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got));
    } else {
      EXPECT_NEAR(got, want, 8 * eps * (std::fabs(want) + scale));
    }
  };
  if (each) {
    for (int64_t r = 0; r < k.rows; ++r) near(loss[r], losses[static_cast<size_t>(r)], 1);
  } else {
    near(loss[0], k.reduction == LossReduction::kMean ? sum / weight_sum : sum, 1);
  }
  for (int64_t r = 0; r < k.rows; ++r) {
    double all = 0;
    for (int64_t c = 0; c < k.cols; ++c) all += a[static_cast<size_t>(r * k.cols + c)];
    const double g =
        (each ? grad[r] : grad[0]) / (k.reduction == LossReduction::kMean ? weight_sum : 1);
    for (int64_t c = 0; c < k.cols; ++c) {
      const auto i = static_cast<size_t>(r * k.cols + c);
      near(dx[k.at(r, c)], g * ((k.log_probs ? 0 : all * p[i]) - a[i]), std::fabs(g) * 0.2);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(CrossEntropy, AgainstTwin) {
  for (LossReduction reduction : {LossReduction::kNone, LossReduction::kMean, LossReduction::kSum})
    for (double smoothing : {0.0, 0.1})
      for (bool weight : {false, true})
        for (bool ignored : {false, true})
          for (bool log_probs : {false, true})
            for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16})
              check({37, 19, t, reduction, smoothing, weight, ignored, log_probs});
  for (int64_t cols = 1; cols <= 67; ++cols) check({3, cols});
  check({500, 10});
  check({130, 1000, kFloat, LossReduction::kMean, 0.2, true, true});
  check({4, 20000, kFloat, LossReduction::kSum, 0.2, true, true});
}

TEST(CrossEntropy, PixelsOfImages) {
  for (LossReduction reduction : {LossReduction::kNone, LossReduction::kMean, LossReduction::kSum})
    for (double smoothing : {0.0, 0.1})
      for (bool weight : {false, true})
        for (bool log_probs : {false, true})
          for (ScalarType t : {kFloat, kDouble})
            check({3 * 41, 19, t, reduction, smoothing, weight, true, log_probs, 41});
  for (int64_t inner : {2, 15, 16, 17, 63, 64, 65, 127, 200})
    check({2 * inner, 35, kFloat, LossReduction::kMean, 0.1, true, true, false, inner});
  check({4 * 4096, 21, kFloat, LossReduction::kMean, 0, false, false, false, 4096});
  check({64, 3000, kFloat, LossReduction::kNone, 0, false, false, false, 64});
}

// An image's bits are its own. They do not depend on the rest of the batch, the place of its pixels
// in a sweep, or on the number of its pixels.
TEST(CrossEntropy, ImagesAloneAndInABatch) {
  const int64_t images = 5, cols = 37;
  for (const ScalarType t : {kFloat, kDouble})
    for (const double smoothing : {0.0, 0.1}) {
      // Of the first `n` images from `from` on, the first `inner` of `all` pixels each.
      const int64_t all = 83;
      raw::Values values(7);
      Buffer x(images * cols * all, t), grad(images * all, t), target(images * all, kLong);
      x.fill(values, 4), grad.fill(values);
      for (int64_t r = 0; r < target.size; ++r)
        target.set(r, static_cast<double>(r % 5 == 1 ? -100 : values.below(cols)));
      const auto run = [&](int64_t from, int64_t n, int64_t inner) {
        const int64_t rows = n * inner;
        Loss f{{rows, cols, t, LossReduction::kNone, smoothing, false, false, false, inner}, -100};
        for (int64_t k = 0; k < n; ++k)
          for (int64_t i = 0; i < inner; ++i) {
            f.grad.set(k * inner + i, grad[(from + k) * all + i]);
            f.target.set(k * inner + i, target[(from + k) * all + i]);
            for (int64_t c = 0; c < cols; ++c)
              f.x.set((k * cols + c) * inner + i, x[((from + k) * cols + c) * all + i]);
          }
        f.forward(), f.backward();
        std::vector<double> found;  // by image and pixel: loss, then gradients
        for (int64_t k = 0; k < n; ++k)
          for (int64_t i = 0; i < std::min<int64_t>(inner, 17); ++i) {
            found.push_back(f.loss[k * inner + i]);
            for (int64_t c = 0; c < cols; ++c) found.push_back(f.dx[(k * cols + c) * inner + i]);
          }
        return found;
      };
      const std::vector<double> whole = run(0, images, all);
      for (const int64_t inner : {17, 64, 83}) {
        SCOPED_TRACE(inner);
        EXPECT_EQ(run(0, images, inner), whole);
        std::vector<double> joined;
        for (const auto& [from, n] : {std::pair<int64_t, int64_t>{0, 2}, {2, 1}, {3, 2}}) {
          const std::vector<double> part = run(from, n, inner);
          joined.insert(joined.end(), part.begin(), part.end());
        }
        EXPECT_EQ(joined, whole);
      }
    }
}

// Beyond the class that is meant, and what is ignored: an infinity, a NaN.
TEST(CrossEntropy, PixelsThatAreNotFinite) {
  const int64_t pixels = 20;
  Loss f{{pixels, 2, kFloat, LossReduction::kNone, 0, false, false, false, pixels}, -1};
  f.x.fill(0), f.target.fill(0), f.grad.fill(1);
  f.x.set(3, NAN), f.x.set(5, INFINITY), f.x.set(pixels + 18, -INFINITY), f.x.set(7, NAN);
  f.target.set(7, -1);
  f.forward(), f.backward();
  for (int64_t i = 0; i < pixels; ++i) {
    const bool nan = i == 3 || i == 5, nothing = i == 7 || i == 18;
    const double want = nan       ? NAN
                        : nothing ? 0
                                  : std::log(2.0),
                 slope = nan       ? NAN
                         : nothing ? 0
                                   : 0.5;
    for (const auto& [got, expected] : {std::pair(f.loss[i], want), std::pair(f.dx[i], -slope),
                                        std::pair(f.dx[pixels + i], slope)}) {
      if (std::isnan(expected)) EXPECT_TRUE(std::isnan(got)) << i;
      else EXPECT_NEAR(got, expected, 1e-6) << i;
    }
  }
}

TEST(CrossEntropy, NothingCounts) {
  for (LossReduction reduction : {LossReduction::kMean, LossReduction::kSum}) {
    Loss f{{2, 3, kFloat, reduction}, 7};
    f.x.fill(1), f.target.fill(7), f.forward();
    EXPECT_EQ(std::isnan(f.loss[0]), reduction == LossReduction::kMean);
    EXPECT_EQ(f.loss[0] == 0, reduction == LossReduction::kSum);
  }
  Loss f{{0, 3}, 7};
  f.forward();
  EXPECT_TRUE(std::isnan(f.loss[0]));
}

TEST(CrossEntropy, LargeLogits) {
  raw::for_each_variant([&](Variant) {
    Loss f{{1, 3}, -100};
    f.x.set(0, 1e30), f.x.set(1, -1e30), f.x.set(2, 0), f.target.set(0, 0), f.forward();
    EXPECT_EQ(f.loss[0], 0);
  });
}

}  // namespace
}  // namespace ramet::kernels
