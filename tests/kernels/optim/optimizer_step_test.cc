// Fused optimizer steps against the textbook loop in long double.
#include "kernels/optim/optimizer_step.h"

#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;
using raw::Values;
using R = long double;

double tolerance(ScalarType t) { return t == kFloat ? 4e-6 : 1e-14; }

AdamArgs adam_args() {
  AdamArgs a{};
  a.lr = 0.01, a.beta1 = 0.9, a.beta2 = 0.999, a.eps = 1e-8, a.weight_decay = 0.05, a.bias1 = 0.1,
  a.bias2 = 0.001;
  return a;
}

// A step of Adam or AdamW over elements [from[i], from[i + 1]) of each buffer, one tensor for each
// i.
void adam(const Buffer& p, const Buffer& g, const Buffer& m, const Buffer& v,
          const std::vector<int64_t>& from, bool decoupled) {
  AdamArgs a = adam_args();
  a.decoupled = decoupled;
  a.dtype = a.gradient_dtype = a.state_dtype = p.dtype;
  a.count = static_cast<int>(from.size()) - 1;
  for (size_t i = 0; i + 1 < from.size(); ++i) {
    const auto at = [&](const Buffer& b) -> void* {
      return const_cast<Buffer&>(b).as<char>() + from[i] * static_cast<int64_t>(item_size(b.dtype));
    };
    a.tensors[i] = {at(p), at(g), {at(m), at(v)}, from[i + 1] - from[i], nullptr};
  }
  adam_step(raw::kCpuStream, a);
}

TEST(OptimizerStep, SgdForEveryCombinationOfOptions) {
  raw::for_each_variant([](Variant) {
    for (ScalarType t : {kFloat, kDouble})
      for (int options = 0; options < 8; ++options) {
        const bool with_momentum = options & 1, nesterov = (options & 2) && with_momentum,
                   decays = options & 4;
        const int64_t n = 131;
        Buffer p(n, t), g(n, t), buffer(n, t);
        Values v(static_cast<uint64_t>(options) + 1);
        p.fill(v), buffer.fill(NAN);  // the first step must not read it
        std::vector<R> want(static_cast<size_t>(n)), velocity(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i) want[static_cast<size_t>(i)] = p[i];
        const R lr = 0.1L, momentum = with_momentum ? 0.9L : 0, dampening = nesterov ? 0 : 0.2L,
                decay = decays ? 0.05L : 0;
        for (int step = 0; step < 4; ++step) {
          g.fill(v);
          SgdArgs a{};
          a.count = 1;
          a.tensors[0] = {
              p.data(), g.data(), {with_momentum ? buffer.data() : nullptr}, n, nullptr};
          a.lr = 0.1, a.momentum = static_cast<double>(momentum),
          a.dampening = static_cast<double>(dampening), a.weight_decay = static_cast<double>(decay);
          a.dtype = a.gradient_dtype = a.state_dtype = t;
          a.nesterov = nesterov, a.first = step == 0;
          sgd_step(raw::kCpuStream, a);
          for (size_t i = 0; i < want.size(); ++i) {
            R d = static_cast<R>(g[static_cast<int64_t>(i)]) + decay * want[i];
            if (with_momentum) {
              velocity[i] = step == 0 ? d : momentum * velocity[i] + (1 - dampening) * d;
              d = nesterov ? d + momentum * velocity[i] : velocity[i];
            }
            want[i] -= lr * d;
          }
        }
        for (int64_t i = 0; i < n; ++i)
          ASSERT_NEAR(p[i], static_cast<double>(want[static_cast<size_t>(i)]), tolerance(t))
              << "options " << options;
        EXPECT_TRUE(p.guards_intact() && buffer.guards_intact());
      }
  });
}

TEST(OptimizerStep, AdamForEveryCombinationOfOptions) {
  raw::for_each_variant([](Variant) {
    for (ScalarType t : {kFloat, kDouble})
      for (int options = 0; options < 8; ++options) {
        const bool amsgrad = options & 1, decoupled = options & 2, decays = options & 4;
        const int64_t n = 131;
        Buffer p(n, t), g(n, t), m(n, t), s(n, t), top(n, t);
        Values v(static_cast<uint64_t>(options) + 1);
        p.fill(v), m.fill(0.0), s.fill(0.0), top.fill(0.0);
        std::vector<R> want(static_cast<size_t>(n)), wm(static_cast<size_t>(n)),
            wv(static_cast<size_t>(n)), wx(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i) want[static_cast<size_t>(i)] = p[i];
        const R lr = 0.01L, b1 = 0.9L, b2 = 0.99L, eps = 1e-6L, decay = decays ? 0.1L : 0;
        for (int step = 1; step <= 5; ++step) {
          // a smaller gradient: amsgrad keeps the larger second moment
          g.fill(v, step == 3 ? 0.1 : 1);
          AdamArgs a{};
          a.count = 1;
          a.tensors[0] = {
              p.data(), g.data(), {m.data(), s.data(), amsgrad ? top.data() : nullptr}, n, nullptr};
          a.lr = 0.01, a.beta1 = 0.9, a.beta2 = 0.99, a.eps = 1e-6,
          a.weight_decay = static_cast<double>(decay);
          a.bias1 = 1 - std::pow(0.9, step), a.bias2 = 1 - std::pow(0.99, step);
          a.dtype = a.gradient_dtype = a.state_dtype = t, a.decoupled = decoupled;
          adam_step(raw::kCpuStream, a);
          for (size_t i = 0; i < want.size(); ++i) {
            R d = static_cast<R>(g[static_cast<int64_t>(i)]);
            if (decoupled) want[i] *= 1 - lr * decay;
            else d += decay * want[i];
            wm[i] = b1 * wm[i] + (1 - b1) * d, wv[i] = b2 * wv[i] + (1 - b2) * d * d;
            wx[i] = std::max(wx[i], wv[i]);
            const R second = amsgrad ? wx[i] : wv[i];
            want[i] -= lr / (1 - std::pow(b1, step)) * wm[i] /
                       (std::sqrt(second) / std::sqrt(1 - std::pow(b2, step)) + eps);
          }
        }
        for (int64_t i = 0; i < n; ++i)
          ASSERT_NEAR(p[i], static_cast<double>(want[static_cast<size_t>(i)]), tolerance(t))
              << "options " << options;
        EXPECT_TRUE(p.guards_intact() && m.guards_intact() && s.guards_intact());
      }
  });
}

TEST(OptimizerStep, SameBitsForAnyLengthThreadsAndVariant) {
  const int64_t n = 60007;
  Buffer g(n, kFloat), m(n, kFloat), s(n, kFloat), p(n, kFloat);
  Values v(5);
  g.fill(v), m.fill(v, 0.1), s.fill(0.5), p.fill(v);
  const Buffer start = p;
  auto step = [&](Buffer& out, int64_t begin, int64_t count) {
    Buffer m2 = m, s2 = s;
    adam(out, g, m2, s2, {begin, begin + count}, true);
  };
  raw::expect_same_bits(p, [&](Buffer& y) { step(y, 0, n); });
  for (int64_t begin = 0; begin < 16; ++begin)
    for (int64_t count = 0; count <= 67; count += 3) {
      Buffer part = start;
      step(part, begin, count);
      for (int64_t i = 0; i < n; i += i < 100 ? 1 : 5000) {
        const bool inside = i >= begin && i < begin + count;
        ASSERT_EQ(part.as<float>()[i], (inside ? p : start)[i]);
      }
    }
}

// 16-bit tensors: what floats of the same values give, rounded once; in any place, several chunks
// long.
TEST(OptimizerStep, SixteenBitTensorsAreRoundedOnce) {
  const int64_t n = 20011;
  for (ScalarType t : {kHalf, kBFloat16}) {
    Buffer p(n, t), g(n, t), m(n, t), v(n, t);
    Values values(8);
    p.fill(values), g.fill(values), m.fill(values, 0.1), v.fill(0.5);
    const auto as_float = [&](const Buffer& from) {
      Buffer to(n, kFloat);
      for (int64_t i = 0; i < n; ++i) to.set(i, from[i]);
      return to;
    };
    Buffer wide_p = as_float(p), wide_m = as_float(m), wide_v = as_float(v), wide_g = as_float(g);
    for (int64_t begin : {0, 1, 5}) {
      Buffer p2 = p, m2 = m, v2 = v, q = wide_p, qm = wide_m, qv = wide_v;
      adam(q, wide_g, qm, qv, {begin, n}, false);
      raw::expect_same_bits(p2, [&](Buffer& b) {
        m2 = m, v2 = v;
        adam(b, g, m2, v2, {begin, n}, false);
      });
      Buffer rounded(n, t);
      for (const auto& [got, want] : {std::pair(&p2, &q), {&m2, &qm}, {&v2, &qv}}) {
        for (int64_t i = 0; i < n; ++i) rounded.set(i, (*want)[i]);
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ((*got)[i], rounded[i]) << i;
      }
      EXPECT_TRUE(p2.guards_intact() && m2.guards_intact() && v2.guards_intact());
    }
  }
}

// A 16-bit parameter with a master, states and a gradient in float: what a parameter in float
// gives. Elements that were written since begin anew.
TEST(OptimizerStep, MastersAreFloatParameters) {
  const int64_t n = 20011;
  for (ScalarType t : {kHalf, kBFloat16})
    for (ScalarType gradient : {t, kFloat}) {
      Buffer p(n, t), g(n, gradient), wide_g(n, kFloat), w(n, kFloat), m(n, kFloat), v(n, kFloat);
      Values values(8);
      w.fill(values), g.fill(values), m.fill(values, 0.1), v.fill(0.5);
      for (int64_t i = 0; i < n; ++i) {
        p.set(i, i % 7 == 3 ? 0.375 * static_cast<double>(i % 5) : w[i]);
        wide_g.set(i, g[i]);
      }
      Buffer wide = w;
      for (int64_t i = 0; i < n; ++i)
        if (i % 7 == 3) wide.set(i, p[i]);
      for (int64_t begin : {0, 1, 5}) {
        Buffer masters = w, narrow = p, narrow_m = m, narrow_v = v, q = wide, qm = m, qv = v;
        adam(q, wide_g, qm, qv, {begin, n}, false);
        raw::expect_same_bits(masters, [&](Buffer& b) {
          narrow = p, narrow_m = m, narrow_v = v;
          AdamArgs a = adam_args();
          a.dtype = t, a.gradient_dtype = gradient, a.state_dtype = kFloat, a.count = 1;
          const auto at = [&](Buffer& x) {
            return x.as<char>() + begin * static_cast<int64_t>(item_size(x.dtype));
          };
          a.tensors[0] = {
              at(narrow), at(g), {at(narrow_m), at(narrow_v), nullptr}, n - begin, at(b)};
          adam_step(raw::kCpuStream, a);
        });
        for (int64_t i = begin; i < n; ++i) ASSERT_EQ(masters[i], q[i]) << i;
        EXPECT_TRUE(narrow_m.same_bits(qm) && narrow_v.same_bits(qv));
        Buffer rounded = p;
        for (int64_t i = begin; i < n; ++i) rounded.set(i, q[i]);
        EXPECT_TRUE(narrow.same_bits(rounded));
        EXPECT_TRUE(narrow.guards_intact() && masters.guards_intact());
      }
    }
}

TEST(OptimizerStep, NothingChangesWhereItIsSkipped) {
  Buffer p(100, kFloat), g = p, m = p, v = p;
  Values values(3);
  p.fill(values), g.fill(values), m.fill(values), v.fill(0.5);
  for (const float skip : {0.0f, 1.0f, 3.0f}) {
    Buffer p2 = p, m2 = m, v2 = v;
    AdamArgs a = adam_args();
    a.dtype = a.gradient_dtype = a.state_dtype = kFloat, a.count = 1, a.skip = &skip;
    a.tensors[0] = {p2.data(), g.data(), {m2.data(), v2.data(), nullptr}, 100, nullptr};
    raw::for_each_variant([&](Variant) { adam_step(raw::kCpuStream, a); });
    EXPECT_EQ(p2.same_bits(p) && m2.same_bits(m) && v2.same_bits(v), skip != 0);
  }
}

TEST(OptimizerStep, SumOfSquares) {
  for (ScalarType t : {kFloat, kDouble, kHalf})
    for (int64_t n : {0, 1, 31, 33, 8192, 8193, 100000}) {
      Buffer x(n, t), partials(sum_squares_partials(n), kDouble), out(1, kDouble);
      Values v(7);
      x.fill(v);
      R want = 0;
      for (int64_t i = 0; i < n; ++i) want += static_cast<R>(x[i]) * static_cast<R>(x[i]);
      raw::expect_same_bits(out, [&](Buffer& y) {
        SumSquaresArgs a{partials.as<double>(), y.as<double>(), t, 1, {{x.data(), n}}};
        sum_squares(raw::kCpuStream, a);
      });
      EXPECT_NEAR(out[0], static_cast<double>(want), 1e-13 * static_cast<double>(want));
      EXPECT_TRUE(partials.guards_intact());
    }
}

// Tensors of one call give what each gives alone, for any number of threads.
TEST(OptimizerStep, ManyTensorsAsOneAtATime) {
  constexpr int kCount = 7;
  const std::vector<int64_t> start{0, 1, 1, 20001, 20008, 28201, 36393, 69393};
  Buffer p(start.back(), kFloat), g = p, m = p, v = p;
  Values values(11);
  p.fill(values), g.fill(values), m.fill(values, 0.1), v.fill(0.25);
  const auto step = [&](Buffer& out, const std::vector<int64_t>& from) {
    Buffer m2 = m, v2 = v;
    adam(out, g, m2, v2, from, true);
  };
  Buffer one = p, all = p;
  raw::expect_same_bits(all, [&](Buffer& b) { step(b, start); });
  for (size_t i = 0; i < kCount; ++i) step(one, {start[i], start[i + 1]});
  EXPECT_TRUE(one.same_bits(all));

  Buffer sums(kCount, kDouble), norm(1, kDouble), partials(20, kDouble);
  SumSquaresArgs s{partials.as<double>(), sums.as<double>(), kFloat, kCount, {}};
  R want = 0;
  for (size_t i = 0; i < kCount; ++i) {
    s.tensors[i] = {p.as<float>() + start[i], start[i + 1] - start[i]};
    R sum = 0;
    for (int64_t k = start[i]; k < start[i + 1]; ++k) sum += static_cast<R>(p[k]) * p[k];
    want += sum;
  }
  raw::expect_same_bits(norm, [&](Buffer& b) {
    sum_squares(raw::kCpuStream, s);
    total_norm(raw::kCpuStream, {sums.as<double>(), b.as<double>(), kCount});
  });
  EXPECT_NEAR(norm[0], static_cast<double>(std::sqrt(want)), 1e-13 * norm[0]);
  EXPECT_EQ(sums[1], 0);
  EXPECT_TRUE(partials.guards_intact());
}

TEST(OptimizerStep, LimitOfTheNorm) {
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16}) {
    Buffer x(9000, t), norm(1, kDouble);
    Values values(3);
    x.fill(values);
    const auto limit = [&](Buffer& b, double total) {
      norm.set(0, total);
      LimitNormArgs a{norm.as<double>(),
                      1.0,
                      t,
                      2,
                      {{b.data(), 5000}, {b.as<char>() + 5000 * item_size(t), 4000}}};
      limit_norm(raw::kCpuStream, a);
    };
    Buffer same = x, less = x, nan = x;
    limit(same, 0.5);
    EXPECT_TRUE(same.same_bits(x));
    raw::expect_same_bits(less, [&](Buffer& b) { limit(b, 4); });
    const double factor = 1 / (4 + 1e-6), eps = t == kDouble ? 1e-15 : t == kFloat ? 1e-7 : 4e-3;
    for (int64_t i = 0; i < x.size; ++i) ASSERT_NEAR(less[i], x[i] * factor, eps);
    limit(nan, NAN);
    EXPECT_TRUE(std::isnan(nan[8999]));
  }
}

}  // namespace
}  // namespace ramet::kernels
