#include "kernels/image/batch_norm_relu_pool.h"

#include "tests/kernels/raw.h"

namespace ramet::kernels::raw {
namespace {

struct Case {
  int64_t n, h, w, c;
  bool affine, training;
  Buffer x, dy, weight, bias, mean, invstd;
  Case(int64_t n_, int64_t h_, int64_t w_, int64_t c_, bool affine_, bool training_, uint64_t seed)
      : n(n_),
        h(h_),
        w(w_),
        c(c_),
        affine(affine_),
        training(training_),
        x(n * h * w * c, kFloat),
        dy(n * (h / 2) * (w / 2) * c, kFloat),
        weight(c, kFloat),
        bias(c, kFloat),
        mean(c, kFloat),
        invstd(c, kFloat) {
    Values v(seed);
    x.fill(v), dy.fill(v), weight.fill(v), bias.fill(v), mean.fill(v);
    for (int64_t i = 0; i < x.size; i += 3) x.set(i, std::floor(x[i] * 2) / 2);  // ties
    for (int64_t j = 0; j < c; ++j) invstd.set(j, 0.5 + v.unit());
  }
  const float* w_or_null(Buffer& b) { return affine ? b.as<float>() : nullptr; }
  void forward(Buffer& y) {
    Buffer work(batch_norm_relu_pool_workspace(n, h, c), kByte);
    batch_norm_relu_pool_forward(
        kCpuStream, {n, h, w, c, x.as<float>(), w_or_null(weight), w_or_null(bias),
                     mean.as<float>(), invstd.as<float>(), y.as<float>(), work.data()});
    EXPECT_TRUE(work.guards_intact());
  }
  void backward(float* dx, float* dw, float* db) {
    Buffer work(batch_norm_relu_pool_workspace(n, h, c), kByte);
    batch_norm_relu_pool_backward(
        kCpuStream,
        {n, h, w, c, x.as<float>(), w_or_null(weight), w_or_null(bias), mean.as<float>(),
         invstd.as<float>(), dy.as<float>(), dx, dw, db, training, work.data()});
    EXPECT_TRUE(work.guards_intact());
  }
};

// Normalisation, ReLU and pooling one after the other, with float values for the choice of the
// winner.
void check(Case k) {
  SCOPED_TRACE(detail::join(k.n, " ", k.h, "x", k.w, " ", k.c, " training ", k.training));
  Buffer y(k.dy.size, kFloat), dx(k.x.size, kFloat), dw(k.c, kFloat), db(k.c, kFloat);
  k.forward(y);
  k.backward(dx.as<float>(), dw.as<float>(), db.as<float>());
  EXPECT_TRUE(y.guards_intact() && dx.guards_intact() && dw.guards_intact() && db.guards_intact());
  const int64_t oh = k.h / 2, ow = k.w / 2;
  std::vector<double> routed(static_cast<size_t>(k.x.size), 0);
  for (int64_t n = 0; n < k.n; ++n)
    for (int64_t i = 0; i < oh; ++i)
      for (int64_t j = 0; j < ow; ++j)
        for (int64_t c = 0; c < k.c; ++c) {
          const double w = k.affine ? k.weight[c] : 1, b = k.affine ? k.bias[c] : 0;
          const auto scale = static_cast<float>(w * k.invstd[c]),
                     shift = static_cast<float>(b - k.mean[c] * (w * k.invstd[c]));
          double best = -INFINITY;
          int64_t at = -1;
          for (int64_t r = 0; r < 2; ++r)
            for (int64_t q = 0; q < 2; ++q) {
              const int64_t from = ((n * k.h + 2 * i + r) * k.w + 2 * j + q) * k.c + c;
              const double v = std::fma(static_cast<float>(k.x[from]), scale, shift);
              if (at < 0 || v > best || std::isnan(v)) best = v, at = from;
            }
          const int64_t o = ((n * oh + i) * ow + j) * k.c + c;
          if (std::isnan(best)) {
            ASSERT_TRUE(std::isnan(y[o]));
          } else {
            ASSERT_NEAR(y[o], std::max(best, 0.0), 1e-6) << o;
          }
          if (!(best <= 0)) routed[static_cast<size_t>(at)] += k.dy[o];
        }
  const double total = static_cast<double>(k.n * k.h * k.w);
  for (int64_t c = 0; c < k.c; ++c) {
    double sum = 0, dot = 0, size = 1;
    for (int64_t i = c; i < k.x.size; i += k.c) {
      const double g = routed[static_cast<size_t>(i)];
      if (g != 0) sum += g, dot += g * (k.x[i] - k.mean[c]), size += std::fabs(g);
    }
    const double inv = k.invstd[c], w = (k.affine ? k.weight[c] : 1) * inv;
    if (std::isfinite(dot)) {
      ASSERT_NEAR(db[c], sum, 1e-6 * size);
      ASSERT_NEAR(dw[c], dot * inv, 4e-6 * size);
    }
    for (int64_t i = c; i < k.x.size; i += k.c) {
      const double g = routed[static_cast<size_t>(i)];
      const double want =
          k.training ? w * (g - sum / total - (k.x[i] - k.mean[c]) * inv * inv * dot / total)
                     : w * g;
      if (std::isfinite(want)) { ASSERT_NEAR(dx[i], want, 4e-6) << i; }
    }
  }
}

TEST(BatchNormReluPool, AgreesWithTheThreeSteps) {
  for_each_variant([](Variant) {
    uint64_t seed = 0;
    for (bool training : {true, false})
      for (bool affine : {true, false}) {
        check({2, 4, 6, 16, affine, training, ++seed});
        check({3, 7, 5, 33, affine, training, ++seed});
        check({1, 40, 3, 5, affine, training, ++seed});
        check({9, 14, 14, 64, affine, training, ++seed});
        check({0, 4, 4, 8, affine, training, ++seed});
        check({2, 3, 2, 8, affine, training, ++seed});
      }
    Case nan(2, 4, 4, 20, true, false, 99);
    for (int64_t i = 7; i < nan.x.size; i += 13) nan.x.set(i, NAN);
    check(nan);
  });
}

TEST(BatchNormReluPool, SameBits) {
  Case k(5, 37, 21, 70, true, true, 7);
  Buffer y(k.dy.size, kFloat), dx(k.x.size, kFloat), dw(k.c, kFloat), db(k.c, kFloat);
  expect_same_bits(y, [&](Buffer& o) { k.forward(o); });
  expect_same_bits(dx, [&](Buffer& o) { k.backward(o.as<float>(), nullptr, nullptr); });
  expect_same_bits(dw, [&](Buffer& o) { k.backward(nullptr, o.as<float>(), nullptr); });
  expect_same_bits(db, [&](Buffer& o) { k.backward(nullptr, nullptr, o.as<float>()); });
}

}  // namespace
}  // namespace ramet::kernels::raw
