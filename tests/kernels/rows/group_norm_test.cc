// Group norm forward and backward against float64 references.
#include "kernels/rows/group_norm.h"

#include <array>
#include <functional>
#include <limits>

#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;

struct Case {
  int64_t n, c, l, groups;
  ScalarType t;
  bool inside = false, weight = true, bias = true;
};

double epsilon(ScalarType t) {
  return t == kDouble ? 1e-13 : t == kFloat ? 1e-6 : t == kHalf ? 2e-3 : 1.6e-2;
}

void check(const Case& k) {
  SCOPED_TRACE(std::to_string(k.n) + " x " + std::to_string(k.c) + " x " + std::to_string(k.l) +
               ", " + std::to_string(k.groups) + " groups, " + name_of(k.t) +
               (k.inside ? ", channels innermost" : ""));
  const ScalarType compute = k.t == kDouble ? kDouble : kFloat;
  const GroupNormShape shape{k.n, k.c, k.l, k.groups, k.inside};
  raw::Values values(static_cast<uint64_t>(k.n * 977 + k.c * 31 + k.l));
  const int64_t size = k.n * k.c * k.l, rows = k.n * k.groups, channels = k.c / k.groups;
  const double eps = 1e-3;
  Buffer x(size, k.t), dy(size, k.t), w(k.c, compute), b(k.c, compute);
  x.fill(values, 2), dy.fill(values), w.fill(values), b.fill(values);
  for (int64_t i = 0; i < size; ++i) x.set(i, x[i] + 3);
  Buffer y(size, k.t), mean(rows, compute), rstd(rows, compute), dx(size, k.t), dw(k.c, compute),
      db(k.c, compute);
  const auto run = [&] {
    Buffer work(group_norm_backward_workspace(shape), kByte);
    const void *weight = k.weight ? w.data() : nullptr, *bias = k.bias ? b.data() : nullptr;
    group_norm_forward(raw::kCpuStream, {shape, x.data(), weight, bias, y.data(), mean.data(),
                                         rstd.data(), eps, k.t});
    group_norm_backward(raw::kCpuStream,
                        {shape, x.data(), weight, dy.data(), mean.data(), rstd.data(), dx.data(),
                         dw.data(), db.data(), work.data(), k.t});
    EXPECT_TRUE(work.guards_intact());
  };
  raw::expect_same_bits({&y, &mean, &rstd, &dx, &dw, &db}, run);

  const auto at = [&](int64_t n, int64_t c, int64_t i) {
    return k.inside ? (n * k.l + i) * k.c + c : (n * k.c + c) * k.l + i;
  };
  const auto weight = [&](int64_t c) { return k.weight ? w[c] : 1.0; };
  std::vector<double> want_dw(static_cast<size_t>(k.c)), want_db = want_dw;
  const double m = static_cast<double>(channels * k.l), tolerance = 16 * epsilon(k.t);
  for (int64_t row = 0; m > 0 && row < rows; ++row) {
    const int64_t n = row / k.groups, c0 = row % k.groups * channels;
    // f(channel, place) for the values of a group.
    const auto each = [&](const std::function<void(int64_t, int64_t)>& f) {
      for (int64_t c = c0; c < c0 + channels; ++c)
        for (int64_t i = 0; i < k.l; ++i) f(c, at(n, c, i));
    };
    double mu = 0, var = 0, gs = 0, gh = 0;
    each([&](int64_t, int64_t p) { mu += x[p] / m; });
    each([&](int64_t, int64_t p) { var += (x[p] - mu) * (x[p] - mu) / m; });
    const double s = 1 / std::sqrt(var + eps);
    ASSERT_NEAR(mean[row], mu, 8 * epsilon(compute));
    ASSERT_NEAR(rstd[row], s, 40 * epsilon(compute) * s);
    const double loose = tolerance * (1 + s * .1);  // where rstd is large differences cancel
    each([&](int64_t c, int64_t p) {
      const double h = (x[p] - mu) * s, g = dy[p] * weight(c);
      gs += g / m, gh += g * h / m;
      want_dw[static_cast<size_t>(c)] += dy[p] * h, want_db[static_cast<size_t>(c)] += dy[p];
      ASSERT_NEAR(y[p], h * weight(c) + (k.bias ? b[c] : 0), loose) << c;
    });
    each([&](int64_t c, int64_t p) {
      const double h = (x[p] - mu) * s;
      ASSERT_NEAR(dx[p], s * (dy[p] * weight(c) - gs - h * gh), 4 * loose * (1 + s * .1)) << c;
    });
  }
  // Sums have the compute type, whatever type the elements are stored in.
  for (int64_t c = 0; c < k.c; ++c) {
    const double terms = std::sqrt(static_cast<double>(k.n * k.l)) + 1;
    const double most = 40 * epsilon(compute) * terms * (m == 1 ? 32 : 1);
    ASSERT_NEAR(dw[c], want_dw[static_cast<size_t>(c)], most);
    ASSERT_NEAR(db[c], want_db[static_cast<size_t>(c)], most);
  }
}

TEST(GroupNorm, AgainstTwin) {
  for (bool inside : {false, true}) {
    for (int64_t l = 1; l <= 35; ++l) check({2, 6, l, 3, kFloat, inside});
    for (int64_t c = 1; c <= 35; ++c) check({2, c, 5, 1, kFloat, inside});
    for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16})
      for (auto [n, c, l, groups] : std::vector<std::array<int64_t, 4>>{{5, 12, 49, 4},
                                                                        {3, 64, 64, 32},
                                                                        {2, 96, 130, 1},
                                                                        {1, 40, 3, 40},
                                                                        {33, 160, 1, 80},
                                                                        {2, 3, 4111, 3},
                                                                        {9, 130, 20, 2}})
        check({n, c, l, groups, t, inside});
    check({4, 10, 20, 5, kFloat, inside, false, false});
    check({4, 10, 20, 5, kFloat, inside, true, false});
    check({4, 10, 20, 5, kDouble, inside, false, true});
    check({4, 10, 21, 5, kHalf, inside, false, false});
    check({1, 8, 9000, 2, kFloat, inside});
    check({0, 6, 4, 3, kFloat, inside});
    check({2, 6, 0, 3, kFloat, inside});
    check({2, 0, 4, 3, kFloat, inside});
  }
}

// A large mean costs no digits: differences are squared, not squares subtracted.
TEST(GroupNorm, FarFromZero) {
  for (bool inside : {false, true}) {
    const GroupNormShape shape{1, 4, 512, 2, inside};
    Buffer x(2048, kFloat), y(2048, kFloat), mean(2, kFloat), rstd(2, kFloat);
    for (int64_t i = 0; i < 2048; ++i)
      x.set(i, 4096 + static_cast<double>((inside ? i / 4 : i) * 7 % 16) / 16 - 7.5 / 16);
    group_norm_forward(raw::kCpuStream, {shape, x.data(), nullptr, nullptr, y.data(), mean.data(),
                                         rstd.data(), 0, kFloat});
    for (int64_t g : {0, 1}) {
      EXPECT_EQ(mean[g], 4096);
      EXPECT_NEAR(rstd[g], 16 / std::sqrt(255.0 / 12), 1e-6);
    }
  }
}

TEST(GroupNorm, OnlyWhatIsAskedFor) {
  for (bool inside : {false, true}) {
    raw::Values values(4);
    const GroupNormShape shape{2, 4, 3, 2, inside};
    Buffer x(24, kFloat), dy(24, kFloat), mean(4, kFloat), rstd(4, kFloat), dw(4, kFloat),
        db(4, kFloat), dx(24, kFloat);
    x.fill(values), dy.fill(values), mean.fill(values), rstd.fill(1);
    Buffer work(group_norm_backward_workspace(shape), kByte);
    GroupNormBackwardArgs all{shape,       x.data(),    nullptr,   dy.data(),
                              mean.data(), rstd.data(), dx.data(), dw.data(),
                              db.data(),   work.data(), kFloat};
    group_norm_backward(raw::kCpuStream, all);
    const auto alone = [&](void* GroupNormBackwardArgs::*member, const Buffer& want) {
      GroupNormBackwardArgs one = all;
      one.dx = one.dweight = one.dbias = nullptr;
      Buffer got(want.size, kFloat);
      one.*member = got.data();
      group_norm_backward(raw::kCpuStream, one);
      EXPECT_TRUE(got.same_bits(want));
    };
    alone(&GroupNormBackwardArgs::dx, dx);
    alone(&GroupNormBackwardArgs::dweight, dw);
    alone(&GroupNormBackwardArgs::dbias, db);
  }
}

// What is not a number stays in its group; the sums of its channels have it.
TEST(GroupNorm, NotANumber) {
  const double inf = std::numeric_limits<double>::infinity();
  for (bool inside : {false, true})
    for (double bad : {inf, -inf, std::nan("")}) {
      const GroupNormShape shape{1, 4, 20, 2, inside};
      raw::Values values(9);
      Buffer x(80, kFloat), y(80, kFloat), dx(80, kFloat), mean(2, kFloat), rstd(2, kFloat),
          dw(4, kFloat), db(4, kFloat), work(group_norm_backward_workspace(shape), kByte);
      x.fill(values);
      x.set(inside ? 17 * 4 : 17, bad);
      group_norm_forward(raw::kCpuStream, {shape, x.data(), nullptr, nullptr, y.data(), mean.data(),
                                           rstd.data(), 1e-5, kFloat});
      group_norm_backward(raw::kCpuStream,
                          {shape, x.data(), nullptr, x.data(), mean.data(), rstd.data(), dx.data(),
                           dw.data(), db.data(), work.data(), kFloat});
      for (int64_t i = 0; i < 80; ++i) {
        const bool first = (inside ? i % 4 : i / 20) < 2;
        EXPECT_EQ(std::isnan(y[i]), first) << bad << " " << i;
        EXPECT_EQ(std::isnan(dx[i]), first) << bad << " " << i;
      }
      for (int64_t c = 0; c < 4; ++c) EXPECT_EQ(std::isnan(dw[c]), c < 2) << bad << " " << c;
    }
}

}  // namespace
}  // namespace ramet::kernels
