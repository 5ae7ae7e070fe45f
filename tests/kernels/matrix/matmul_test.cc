#include "kernels/matrix/matmul.h"

#include "tests/kernels/raw.h"

namespace ramet::kernels::raw {
namespace {

struct Product {
  int64_t batch = 1, m, n, k;
  bool ta = false, tb = false;
  ScalarType dtype = ScalarType::Float;
  double alpha = 1, beta = 0;
  bool bias = false, relu = false;
  int64_t pad = 0;        // further elements in a row of each operand
  bool shared_b = false;  // batch stride 0
};

struct Call {
  Product p;
  Buffer a, b, bias, c0;
  MatmulArgs args;

  Call(const Product& q, uint64_t seed)
      : p(q),
        a(q.batch * (q.ta ? q.k : q.m) * ((q.ta ? q.m : q.k) + q.pad), q.dtype),
        b((q.shared_b ? 1 : q.batch) * (q.tb ? q.n : q.k) * ((q.tb ? q.k : q.n) + q.pad), q.dtype),
        bias(q.n, q.dtype),
        c0(q.batch * q.m * (q.n + q.pad), q.dtype) {
    Values v(seed);
    a.fill(v), b.fill(v), bias.fill(v), c0.fill(v);
    const int64_t lda = (p.ta ? p.m : p.k) + p.pad, ldb = (p.tb ? p.k : p.n) + p.pad;
    args = {};
    args.a = a.data(), args.b = b.data(), args.bias = p.bias ? bias.data() : nullptr;
    args.batch = p.batch, args.m = p.m, args.n = p.n, args.k = p.k;
    args.a_row = p.ta ? 1 : lda, args.a_col = p.ta ? lda : 1,
    args.a_batch = (p.ta ? p.k : p.m) * lda;
    args.b_row = p.tb ? 1 : ldb, args.b_col = p.tb ? ldb : 1,
    args.b_batch = p.shared_b ? 0 : (p.tb ? p.n : p.k) * ldb;
    args.c_row = p.n + p.pad, args.c_batch = p.m * (p.n + p.pad);
    args.alpha = p.alpha, args.beta = p.beta;
    args.ialpha = static_cast<int64_t>(p.alpha), args.ibeta = static_cast<int64_t>(p.beta);
    args.dtype = p.dtype, args.relu = p.relu;
  }
  void operator()(Buffer& c) {
    const int64_t bytes = matmul_workspace(args, max_parallel_slots());
    Buffer work(bytes, ScalarType::Byte);
    args.c = c.data(), args.workspace = work.data();
    matmul(kCpuStream, args);
    ASSERT_TRUE(work.guards_intact()) << "a write outside the workspace";
  }
  // The largest difference from the naive product in double, in units of the sum of magnitudes;
  // elements between the rows of C must be untouched.
  double worst(const Buffer& c) const {
    double worst = 0;
    for (int64_t s = 0; s < p.batch; ++s)
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < p.n + p.pad; ++j) {
          const int64_t at = s * args.c_batch + i * args.c_row + j;
          if (j >= p.n) {
            EXPECT_EQ(c[at], c0[at]) << "written between the rows";
            continue;
          }
          double sum = 0, size = 1e-30;
          for (int64_t q = 0; q < p.k; ++q) {
            const double t = a[s * args.a_batch + i * args.a_row + q * args.a_col] *
                             b[s * args.b_batch + q * args.b_row + j * args.b_col];
            sum += t, size += std::fabs(t);
          }
          double want = p.alpha * sum;
          if (p.beta != 0) want += p.beta * c0[at], size += std::fabs(c0[at]);
          if (p.bias) want += bias[j], size += std::fabs(bias[j]);
          if (p.relu) want = std::max(want, 0.0);
          if (is_floating(p.dtype)) worst = std::max(worst, std::fabs(c[at] - want) / size);
          else {
            Buffer one(1, p.dtype);
            one.set(0, want);  // wraps
            EXPECT_EQ(c[at], one[0]);
          }
        }
    return worst;
  }
};

double bound(ScalarType t) {
  return t == ScalarType::Float      ? 4e-6
         : t == ScalarType::Double   ? 2e-14
         : t == ScalarType::Half     ? 2e-3
         : t == ScalarType::BFloat16 ? 1e-2
                                     : 0;
}

constexpr int64_t kDims[] = {1, 2, 3, 5, 7, 8, 13, 14, 15, 16, 17, 31, 32, 33, 64, 65, 129, 300};

TEST(Matmul, AgreesWithTheNaiveProductInEveryVariant) {
  for_each_variant([](Variant variant) {
    Values pick(7 + static_cast<int>(variant));
    for (int round = 0; round < 150; ++round) {
      Product p;
      p.m = kDims[pick.below(17)], p.n = kDims[pick.below(17)],
      p.k = round % 10 ? kDims[pick.below(18)] : 1100;
      p.ta = pick.below(2), p.tb = pick.below(2), p.pad = pick.below(3);
      p.alpha = pick.below(2) ? 1 : -0.5, p.beta = 0.75 * static_cast<double>(pick.below(3));
      p.bias = pick.below(2), p.relu = pick.below(2);
      Call run(p, 100 + static_cast<uint64_t>(round));
      Buffer c = run.c0;
      run(c);
      EXPECT_TRUE(c.guards_intact());
      EXPECT_LE(run.worst(c), bound(p.dtype))
          << p.m << " x " << p.n << " x " << p.k << " ta " << p.ta << " tb " << p.tb;
    }
  });
}

TEST(Matmul, OtherDtypes) {
  for_each_variant([](Variant variant) {
    Values pick(70 + static_cast<int>(variant));
    for (ScalarType t :
         {ScalarType::Double, ScalarType::Half, ScalarType::BFloat16, ScalarType::Long,
          ScalarType::Int, ScalarType::Short, ScalarType::Char, ScalarType::Byte})
      for (int round = 0; round < 12; ++round) {
        Product p;
        p.dtype = t;
        p.batch = 1 + pick.below(3), p.shared_b = pick.below(2);
        p.m = kDims[pick.below(16)], p.n = kDims[pick.below(16)],
        p.k = round ? kDims[pick.below(17)] : 600;
        p.ta = pick.below(2), p.tb = pick.below(2), p.pad = pick.below(3), p.bias = pick.below(2);
        p.alpha = is_floating(t) ? 0.5 : 3, p.beta = static_cast<double>(pick.below(3));
        p.relu = is_floating(t) && t < ScalarType::Float && pick.below(2);
        Call run(p, 300 + static_cast<uint64_t>(round));
        Buffer c = run.c0;
        run(c);
        EXPECT_TRUE(c.guards_intact());
        EXPECT_LE(run.worst(c), bound(t)) << t << " " << p.m << " x " << p.n << " x " << p.k;
      }
  });
}

// What a float C has is what a 16-bit C would have, before it is rounded.
TEST(Matmul, FloatSumsOf16Bits) {
  for_each_variant([](Variant variant) {
    Values pick(90 + static_cast<int>(variant));
    for (ScalarType t : {ScalarType::Half, ScalarType::BFloat16})
      for (int round = 0; round < 16; ++round) {
        Product p;
        p.dtype = t;
        p.batch = 1 + pick.below(3), p.shared_b = pick.below(2);
        p.m = kDims[pick.below(17)], p.n = kDims[pick.below(17)],
        p.k = round == 0   ? 0
              : round == 1 ? 1100
                           : kDims[pick.below(17)];
        p.ta = pick.below(2), p.tb = pick.below(2), p.pad = pick.below(3);
        p.alpha = pick.below(2) ? 1 : 0.3, p.beta = 0.5 * static_cast<double>(pick.below(3));
        Call run(p, 700 + static_cast<uint64_t>(round));
        Buffer narrow = run.c0, wide(run.c0.size, ScalarType::Float), rounded(run.c0.size, t);
        for (int64_t i = 0; i < wide.size; ++i) wide.set(i, run.c0[i]);
        run(narrow);
        run.args.float_c = true;
        run(wide);
        EXPECT_TRUE(wide.guards_intact());
        EXPECT_LE(run.worst(wide), 4e-6) << t << " " << p.m << " x " << p.n << " x " << p.k;
        for (int64_t i = 0; i < wide.size; ++i) rounded.set(i, wide[i]);
        EXPECT_TRUE(rounded.same_bits(narrow)) << t << " " << p.m << " x " << p.n << " x " << p.k;
      }
  });
}

TEST(Matmul, SameBitsForEveryThreadCountAndVectorWidth) {
  const Product products[] = {
      {.m = 65, .n = 64, .k = 64},
      {.m = 130, .n = 100, .k = 1100, .beta = 0.5, .bias = true, .relu = true},
      {.m = 100, .n = 33, .k = 700, .ta = true, .tb = true, .alpha = 0.25},
      {.m = 1, .n = 700, .k = 900},
      {.m = 3, .n = 300, .k = 100, .ta = true},
      {.m = 700, .n = 1, .k = 900, .ta = true},
      {.m = 128, .n = 200, .k = 1024},
      {.m = 40, .n = 2100, .k = 300, .tb = true},
      {.m = 250, .n = 80, .k = 2048, .ta = true},
      // Row-major B is packed (rows of 4 KB; more than a cache serves well), then A in columns.
      {.m = 40, .n = 1024, .k = 100, .beta = 0.5, .bias = true},
      {.m = 30, .n = 2203, .k = 64},
      {.m = 600, .n = 66, .k = 512, .ta = true, .relu = true},
      {.batch = 30, .m = 16, .n = 33, .k = 20, .tb = true},
      {.batch = 9, .m = 90, .n = 70, .k = 80, .shared_b = true},
      {.batch = 2, .m = 100, .n = 90, .k = 110, .dtype = ScalarType::Half, .bias = true},
      {.m = 200, .n = 70, .k = 300, .dtype = ScalarType::Double},
      {.batch = 20, .m = 20, .n = 17, .k = 30, .tb = true, .dtype = ScalarType::Double},
  };
  uint64_t seed = 1;
  for (const Product& p : products) {
    SCOPED_TRACE(detail::join(p.batch, " of ", p.m, " x ", p.n, " x ", p.k));
    Call run(p, ++seed);
    Buffer c = run.c0;
    expect_same_bits(c, [&](Buffer& out) { run(out); });
    EXPECT_LE(run.worst(c), bound(p.dtype));
  }
}

// A row of the product has the same bits for any other rows: 1 to 67 rows, few-row path, tails and
// packing included.
TEST(Matmul, ARowDoesNotDependOnTheNumberOfRowsOrColumns) {
  for_each_variant([](Variant) {
    for (int64_t k : {20, 600, 1024}) {
      const Product p{.m = 67, .n = 200, .k = k};
      Call run(p, 5);
      Buffer all = run.c0;
      run(all);
      for (int64_t rows = 1; rows <= 67; rows += rows < 8 ? 1 : 7)
        for (int64_t cols : {1, 7, 16, 33, 90, 200}) {
          Call part(p, 5);
          part.args.m = rows, part.args.n = cols;
          part.args.a = static_cast<const float*>(part.args.a) + (67 - rows) * k;
          part.args.b = static_cast<const float*>(part.args.b) + (200 - cols);
          Buffer c(67 * 200, ScalarType::Float);
          part(c);
          for (int64_t i = 0; i < rows; ++i)
            ASSERT_EQ(0, std::memcmp(c.as<float>() + i * 200,
                                     all.as<float>() + (67 - rows + i) * 200 + 200 - cols,
                                     static_cast<size_t>(cols) * 4))
                << rows << " rows, " << cols << " columns, k " << k << ", row " << i;
        }
    }
  });
}

TEST(Matmul, TheLayoutDoesNotChangeTheBits) {
  for_each_variant([](Variant) {
    for (int64_t n : {1, 40, 300}) {
      const int64_t m = 90, k = 700;
      Call run({.m = m, .n = n, .k = k}, 9);
      Buffer want = run.c0;
      run(want);
      for (int layout = 1; layout < 4; ++layout) {
        Call t({.m = m, .n = n, .k = k, .ta = (layout & 1) != 0, .tb = (layout & 2) != 0}, 9);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t p = 0; p < k; ++p)
            t.a.set(i * t.args.a_row + p * t.args.a_col, run.a[i * k + p]);
        for (int64_t p = 0; p < k; ++p)
          for (int64_t j = 0; j < n; ++j)
            t.b.set(p * t.args.b_row + j * t.args.b_col, run.b[p * n + j]);
        Buffer c = t.c0;
        t(c);
        EXPECT_TRUE(c.same_bits(want)) << "layout " << layout << ", n " << n;
      }
    }
  });
}

TEST(Matmul, EmptyOperands) {
  for_each_variant([](Variant) {
    for (ScalarType t :
         {ScalarType::Float, ScalarType::Double, ScalarType::Half, ScalarType::Int}) {
      Product p{.m = 3, .n = 20, .k = 0, .dtype = t, .beta = 2, .bias = true};
      Call run(p, 4);
      Buffer c = run.c0;
      run(c);
      EXPECT_LE(run.worst(c), bound(t));  // beta * C + bias
      for (int64_t which = 0; which < 3; ++which) {
        Product q{.m = 3, .n = 4, .k = 5, .dtype = t};
        (which == 0 ? q.m : which == 1 ? q.n : q.batch) = 0;
        Call none(q, 4);
        Buffer d(1, t);
        const Buffer before = d;
        none(d);
        EXPECT_TRUE(d.same_bits(before));
      }
    }
  });
}

TEST(Matmul, NotANumberAndInfinity) {
  for_each_variant([](Variant) {
    for (ScalarType t : {ScalarType::Float, ScalarType::Double}) {
      Call run({.m = 9, .n = 20, .k = 11, .dtype = t, .relu = t == ScalarType::Float}, 3);
      run.a.set(2 * 11 + 4, NAN), run.a.set(5 * 11, INFINITY);
      for (int64_t j = 0; j < 20; ++j) run.b.set(j, 1);
      Buffer c(9 * 20, t);
      c.fill(NAN);  // beta is 0: never read
      run(c);
      for (int64_t i = 0; i < 9; ++i)
        for (int64_t j = 0; j < 20; ++j) {
          if (i == 2) EXPECT_TRUE(std::isnan(c[i * 20 + j]));
          else if (i == 5) EXPECT_EQ(c[i * 20 + j], INFINITY);
          else EXPECT_TRUE(std::isfinite(c[i * 20 + j]));
        }
    }
  });
}

TEST(Dot, AgreesWithDoubleAndKeepsItsBits) {
  for (ScalarType t : {ScalarType::Float, ScalarType::Double, ScalarType::Half,
                       ScalarType::BFloat16, ScalarType::Long, ScalarType::Int, ScalarType::Char})
    for (int64_t n : {0, 1, 5, 63, 64, 65, 511, 512, 513, 20000, 100001})
      for (int64_t stride : {1, 3}) {
        Values v(static_cast<uint64_t>(n));
        Buffer a(n * stride, t), b(n, t), out(1, t);
        a.fill(v), b.fill(v);
        double want = 0, size = 1e-30;
        for (int64_t i = 0; i < n; ++i)
          want += a[i * stride] * b[i], size += std::fabs(a[i * stride] * b[i]);
        expect_same_bits(out, [&](Buffer& o) {
          dot(kCpuStream, {a.data(), b.data(), o.data(), n, stride, 1, t, nullptr});
        });
        if (is_floating(t)) EXPECT_LE(std::fabs(out[0] - want), bound(t) * size) << t << " " << n;
        else {
          Buffer one(1, t);
          one.set(0, want);
          EXPECT_EQ(out[0], one[0]) << t << " " << n;
        }
        if (stride == 3 && n) {  // the same values, dense: the same bits
          Buffer dense(n, t), again(1, t);
          for (int64_t i = 0; i < n; ++i) dense.set(i, a[i * 3]);
          dot(kCpuStream, {dense.data(), b.data(), again.data(), n, 1, 1, t, nullptr});
          EXPECT_TRUE(again.same_bits(out));
        }
      }
}

TEST(SumRows, AgreesWithDoubleAndKeepsItsBits) {
  for (ScalarType t :
       {ScalarType::Float, ScalarType::Double, ScalarType::Half, ScalarType::BFloat16})
    for (int64_t rows : {0, 1, 63, 64, 65, 700})
      for (int64_t n : {1, 7, 10, 256, 300}) {
        const int64_t row = n + rows % 3;
        Values v(static_cast<uint64_t>(rows + n));
        Buffer a(rows * row, t), out(n, t);
        a.fill(v);
        expect_same_bits(out, [&](Buffer& o) {
          sum_rows(kCpuStream, {a.data(), o.data(), rows, n, row, t, t});
        });
        if (t == ScalarType::Half || t == ScalarType::BFloat16) {  // before they are rounded
          Buffer wide(n, ScalarType::Float), rounded(n, t);
          sum_rows(kCpuStream, {a.data(), wide.data(), rows, n, row, t, ScalarType::Float});
          for (int64_t j = 0; j < n; ++j) rounded.set(j, wide[j]);
          EXPECT_TRUE(rounded.same_bits(out)) << t << " " << rows << " x " << n;
        }
        for (int64_t j = 0; j < n; ++j) {
          double want = 0, size = 1e-30;
          for (int64_t i = 0; i < rows; ++i)
            want += a[i * row + j], size += std::fabs(a[i * row + j]);
          ASSERT_LE(std::fabs(out[j] - want), bound(t) * size) << t << " " << rows << " x " << n;
        }
      }
}

}  // namespace
}  // namespace ramet::kernels::raw
