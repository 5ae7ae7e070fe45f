#include "kernels/image/batch_norm.h"

#include "tests/kernels/raw.h"

namespace ramet::kernels::raw {
namespace {

ChannelView view(Buffer& b, int64_t c, int64_t l, bool inside) {
  if (inside) return {b.data(), c * l, 1, c};
  return {b.data(), c * l, l, 1};
}

struct Case {
  int64_t n, c, l;
  bool inside, affine, training;
  ScalarType t;
  double offset;  // of the values from zero
  Buffer x, dy, weight, bias, running_mean, running_var;

  Case(int64_t n_, int64_t c_, int64_t l_, bool inside_, bool affine_, bool training_,
       ScalarType t_, double offset_, uint64_t seed)
      : n(n_),
        c(c_),
        l(l_),
        inside(inside_),
        affine(affine_),
        training(training_),
        t(t_),
        offset(offset_),
        x(n * c * l, t),
        dy(n * c * l, t),
        weight(c, t),
        bias(c, t),
        running_mean(c, t),
        running_var(c, t) {
    Values v(seed);
    x.fill(v), dy.fill(v), weight.fill(v), bias.fill(v), running_mean.fill(v);
    for (int64_t i = 0; i < x.size; ++i) x.set(i, x[i] + offset);
    for (int64_t i = 0; i < c; ++i) running_var.set(i, 0.5 + v.unit());
  }
  BatchNormArgs args(Buffer& y, Buffer& mean, Buffer& invstd, Buffer& work) {
    BatchNormArgs a{};
    a.n = n, a.c = c, a.l = l, a.x = view(x, c, l, inside), a.y = view(y, c, l, inside);
    a.weight = affine ? weight.data() : nullptr, a.bias = affine ? bias.data() : nullptr;
    a.mean = mean.data(), a.invstd = invstd.data(), a.running_mean = running_mean.data(),
    a.running_var = running_var.data();
    a.momentum = 0.1, a.eps = 1e-5, a.training = training, a.dtype = t, a.workspace = work.data();
    return a;
  }
  int64_t at(int64_t s, int64_t j, int64_t i) const {
    return inside ? s * c * l + i * c + j : s * c * l + j * l + i;
  }
};

void check(Case k) {
  SCOPED_TRACE(detail::join(k.n, " x ", k.c, " x ", k.l, " inside ", k.inside, " training ",
                            k.training, " ", k.t, " offset ", k.offset));
  const double tolerance = k.t == ScalarType::Double ? 1e-12 : 2e-6 * (1 + std::fabs(k.offset));
  const double of_mean = std::min(tolerance, 2e-6 + 4.6e-8 * k.offset);
  Buffer y(k.x.size, k.t), mean(k.c, k.t), invstd(k.c, k.t), dx(k.x.size, k.t), dw(k.c, k.t),
      db(k.c, k.t);
  Buffer work(batch_norm_workspace(k.n, k.c, k.l), ScalarType::Byte);
  const Buffer old_mean = k.running_mean, old_var = k.running_var;
  const BatchNormArgs a = k.args(y, mean, invstd, work);
  batch_norm_statistics(kCpuStream, a);
  batch_norm_forward(kCpuStream, a);
  batch_norm_backward(
      kCpuStream,
      {k.n, k.c, k.l, a.x, view(k.dy, k.c, k.l, k.inside), view(dx, k.c, k.l, k.inside), a.weight,
       mean.data(), invstd.data(), dw.data(), db.data(), k.training, k.t, work.data()});
  EXPECT_TRUE(work.guards_intact() && y.guards_intact() && dx.guards_intact() &&
              mean.guards_intact() && dw.guards_intact());
  const double m = static_cast<double>(k.n * k.l);
  for (int64_t j = 0; j < k.c; ++j) {
    double mu = 0, var = 0;
    for (int64_t s = 0; s < k.n; ++s)
      for (int64_t i = 0; i < k.l; ++i) mu += k.x[k.at(s, j, i)];
    mu /= m;
    for (int64_t s = 0; s < k.n; ++s)
      for (int64_t i = 0; i < k.l; ++i)
        var += (k.x[k.at(s, j, i)] - mu) * (k.x[k.at(s, j, i)] - mu);
    if (k.training) {
      ASSERT_NEAR(k.running_mean[j], 0.9 * old_mean[j] + 0.1 * mu, tolerance) << j;
      ASSERT_NEAR(k.running_var[j], 0.9 * old_var[j] + 0.1 * var / (m - 1), 1e-6) << j;
      var /= m;
    } else {
      mu = old_mean[j], var = old_var[j];
      ASSERT_EQ(k.running_mean[j], old_mean[j]);
    }
    const double inv = 1 / std::sqrt(var + 1e-5), w = k.affine ? k.weight[j] : 1,
                 b = k.affine ? k.bias[j] : 0;
    ASSERT_NEAR(mean[j], mu, of_mean) << j;
    ASSERT_NEAR(invstd[j], inv, 1e-6 * inv) << j;
    double sum = 0, dot = 0, size = 1;
    for (int64_t s = 0; s < k.n; ++s)
      for (int64_t i = 0; i < k.l; ++i) {
        const int64_t q = k.at(s, j, i);
        sum += k.dy[q], dot += k.dy[q] * (k.x[q] - mu), size += std::fabs(k.dy[q] * (k.x[q] - mu));
      }
    ASSERT_NEAR(db[j], sum, 1e-6 * m) << j;
    ASSERT_NEAR(dw[j], dot * inv, tolerance * size * inv) << j;
    for (int64_t s = 0; s < k.n; ++s)
      for (int64_t i = 0; i < k.l; ++i) {
        const int64_t q = k.at(s, j, i);
        ASSERT_NEAR(y[q], (k.x[q] - mu) * inv * w + b, 4 * tolerance) << q;
        const double want =
            k.training ? w * inv * (k.dy[q] - sum / m - (k.x[q] - mu) * inv * inv * dot / m)
                       : w * inv * k.dy[q];
        ASSERT_NEAR(dx[q], want, 4 * tolerance) << q;
      }
  }
}

TEST(BatchNorm, AgreesWithTheDefinition) {
  for_each_variant([](Variant) {
    uint64_t seed = 0;
    for (ScalarType t : {ScalarType::Float, ScalarType::Double})
      for (bool training : {true, false})
        for (bool inside : {false, true}) {
          check({5, 3, 1, true, true, training, t, 0, ++seed});
          check({300, 17, 1, true, false, training, t, 0, ++seed});
          check({2, 1, 70, inside, true, training, t, 0, ++seed});
          check({3, 5, 63, inside, true, training, t, 0, ++seed});
          check({4, 33, 200, inside, inside, training, t, 0, ++seed});
          check({2, 2, 9000, inside, true, training, t, 0, ++seed});
          check({2, 600, 20, inside, true, training, t, 0, ++seed});
        }
  });
}

// The variance must survive a mean that is large compared with the spread, as it would not with
// E[x^2] - E[x]^2 in float.
TEST(BatchNorm, LargeMeanBesideASmallSpread) {
  for_each_variant([](Variant) {
    for (bool inside : {false, true}) check({8, 20, 500, inside, false, true, kFloat, 300, 5});
  });
}

TEST(BatchNorm, SameBits) {
  for (bool inside : {false, true}) {
    Case k(9, 70, 333, inside, true, true, ScalarType::Float, 1, 3);
    Buffer y(k.x.size, k.t), mean(k.c, k.t), invstd(k.c, k.t), dw(k.c, k.t), db(k.c, k.t),
        ignored(k.c, k.t);
    Buffer work(batch_norm_workspace(k.n, k.c, k.l), ScalarType::Byte);
    expect_same_bits(
        mean, [&](Buffer& o) { batch_norm_statistics(kCpuStream, k.args(y, o, invstd, work)); });
    expect_same_bits(
        invstd, [&](Buffer& o) { batch_norm_statistics(kCpuStream, k.args(y, mean, o, work)); });
    expect_same_bits(
        y, [&](Buffer& o) { batch_norm_forward(kCpuStream, k.args(o, mean, invstd, work)); });
    const ChannelView x = view(k.x, k.c, k.l, inside), dy = view(k.dy, k.c, k.l, inside);
    const auto backward = [&](void* dx, void* w, void* b) {
      ChannelView out = x;
      out.data = dx;
      batch_norm_backward(kCpuStream, {k.n, k.c, k.l, x, dy, out, k.weight.data(), mean.data(),
                                       invstd.data(), w, b, true, k.t, work.data()});
    };
    Buffer dx(k.x.size, k.t);
    expect_same_bits(dx, [&](Buffer& o) { backward(o.data(), nullptr, nullptr); });
    expect_same_bits(dw, [&](Buffer& o) { backward(nullptr, o.data(), nullptr); });
    expect_same_bits(db, [&](Buffer& o) { backward(nullptr, nullptr, o.data()); });
  }
}

// Of values in bfloat16: what floats of the same values give, rounded once.
TEST(BatchNorm, ValuesInBfloat) {
  const auto halves = [](const Buffer& floats) {
    Buffer out(floats.size, kBFloat16);
    for (int64_t i = 0; i < floats.size; ++i) out.set(i, floats[i]);
    return out;
  };
  struct Results {
    Buffer y, dx, mean, invstd, dw, db;
  };
  const auto run = [](Case& k, Buffer& x, Buffer& dy) {
    const ScalarType values = x.dtype;
    Results r{Buffer(x.size, values), Buffer(x.size, values), Buffer(k.c, kFloat),
              Buffer(k.c, kFloat),    Buffer(k.c, kFloat),    Buffer(k.c, kFloat)};
    Buffer work(batch_norm_workspace(k.n, k.c, k.l), kByte);
    BatchNormArgs a = k.args(r.y, r.mean, r.invstd, work);
    a.x = view(x, k.c, k.l, k.inside), a.values = values;
    batch_norm_statistics(kCpuStream, a);
    batch_norm_forward(kCpuStream, a);
    batch_norm_backward(kCpuStream,
                        {k.n, k.c, k.l, a.x, view(dy, k.c, k.l, k.inside),
                         view(r.dx, k.c, k.l, k.inside), a.weight, r.mean.data(), r.invstd.data(),
                         r.dw.data(), r.db.data(), k.training, kFloat, work.data(), values});
    EXPECT_TRUE(r.y.guards_intact() && r.dx.guards_intact() && work.guards_intact());
    return r;
  };
  for_each_variant([&](Variant) {
    uint64_t seed = 0;
    for (bool training : {true, false})
      for (bool inside : {false, true})
        for (const auto [n, c, l] : {std::array<int64_t, 3>{3, 5, 63}, {4, 77, 33}, {2, 2, 9000}}) {
          Case k(n, c, l, inside, true, training, kFloat, 1, ++seed);
          Buffer x = halves(k.x), dy = halves(k.dy);
          for (int64_t i = 0; i < x.size; ++i) k.x.set(i, x[i]), k.dy.set(i, dy[i]);
          Case same = k;
          const Results want = run(k, k.x, k.dy), got = run(same, x, dy);
          EXPECT_TRUE(got.y.same_bits(halves(want.y)) && got.dx.same_bits(halves(want.dx)));
          EXPECT_TRUE(got.mean.same_bits(want.mean) && got.invstd.same_bits(want.invstd));
          EXPECT_TRUE(got.dw.same_bits(want.dw) && got.db.same_bits(want.db));
          EXPECT_TRUE(same.running_var.same_bits(k.running_var));
        }
  });
}

}  // namespace
}  // namespace ramet::kernels::raw
