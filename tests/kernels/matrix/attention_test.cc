// Attention forward and backward against the whole matrix of scores in float64.
#include "kernels/matrix/attention.h"

#include "runtime/base/float_modes_internal.h"
#include "tests/kernels/matrix/attention_twin.h"
#include "tests/kernels/matrix/bfloat_model.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;

double epsilon(ScalarType t) {
  return t == kDouble ? 1e-14 : t == kFloat ? 1e-6 : t == kHalf ? 1e-3 : 8e-3;
}

struct Case {
  int64_t batch, heads, q_rows, k_rows, columns;
  ScalarType t;
  bool causal = false;
};

// q, k, v, grad lie as [batch, rows, heads, columns] with two columns between rows.
struct Operand {
  Buffer buffer;
  AttentionMatrix m;
  Operand(const Case& c, int64_t rows)
      : buffer(c.batch * rows * c.heads * (c.columns + 2), c.t),
        m{buffer.data(), rows * c.heads * (c.columns + 2), c.columns + 2,
          c.heads * (c.columns + 2)} {}
  Operand(const Operand&) = delete;
  // As dense [batch * heads, rows, columns].
  std::vector<double> dense(const Case& c, int64_t rows) const {
    std::vector<double> out;
    for (int64_t i = 0; i < c.batch * c.heads; ++i)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < c.columns; ++j)
          out.push_back(buffer[i / c.heads * m.batch + i % c.heads * m.head + r * m.row + j]);
    return out;
  }
};

void check(const Case& c) {
  SCOPED_TRACE(std::string(name_of(c.t)) + " " + std::to_string(c.q_rows) + " x " +
               std::to_string(c.k_rows) + " x " + std::to_string(c.columns) +
               (c.causal ? " causal" : ""));
  raw::Values values(static_cast<uint64_t>(c.q_rows * 91 + c.k_rows * 7 + c.columns));
  Operand q(c, c.q_rows), k(c, c.k_rows), v(c, c.k_rows), grad(c, c.q_rows);
  for (Operand* o : {&q, &k, &v, &grad}) o->buffer.fill(values, 2);
  AttentionTwin twin{c.batch * c.heads,
                     c.q_rows,
                     c.k_rows,
                     c.columns,
                     0.3,
                     c.causal,
                     q.dense(c, c.q_rows),
                     k.dense(c, c.k_rows),
                     v.dense(c, c.k_rows),
                     grad.dense(c, c.q_rows)};
  twin.run();
  const int64_t rows = c.batch * c.heads * c.q_rows, keys = c.batch * c.heads * c.k_rows;
  const ScalarType stat = c.t == kDouble ? kDouble : kFloat;
  Buffer o(rows * c.columns, c.t), dq = o, dk(keys * c.columns, c.t), dv = dk, log_sum(rows, stat);
  const auto dense = [&](Buffer& b, int64_t n) {
    return AttentionMatrix{b.data(), c.heads * n * c.columns, n * c.columns, c.columns};
  };
  const auto run = [&] {
    const int slots = max_parallel_slots();
    Buffer f(attention_workspace(c.t, rows, c.columns, false, true, slots), kByte),
        r(attention_workspace(c.t, rows, c.columns, true, true, slots), kByte);
    attention_forward(raw::kCpuStream, {q.m, k.m, v.m, dense(o, c.q_rows), log_sum.data(), f.data(),
                                        c.batch, c.heads, c.q_rows, c.k_rows, c.columns, 0.3, c.t,
                                        c.causal, AttentionBody::kAuto});
    attention_backward(
        raw::kCpuStream,
        {q.m, k.m, v.m, dense(o, c.q_rows), grad.m, dense(dq, c.q_rows), dense(dk, c.k_rows),
         dense(dv, c.k_rows), log_sum.data(), r.data(), c.batch, c.heads, c.q_rows, c.k_rows,
         c.columns, 0.3, c.t, c.causal, AttentionBody::kAuto});
    EXPECT_TRUE(f.guards_intact() && r.guards_intact());
  };
  raw::expect_same_bits({&o, &log_sum, &dq, &dk, &dv}, run);
  const auto close = [&](const char* what, const Buffer& got, const std::vector<double>& want) {
    // The backward starts from o as it was rounded.
    double largest = 1;
    for (double x : want) largest = std::max(largest, std::isfinite(x) ? std::fabs(x) : 0);
    for (int64_t i = 0; i < got.size; ++i) {
      const double w = want[static_cast<size_t>(i)];
      if (got[i] == w) continue;
      ASSERT_NEAR(got[i], w, 12 * epsilon(got.dtype) * largest) << what << " " << i;
    }
  };
  close("o", o, twin.o), close("log_sum", log_sum, twin.log_sum);
  close("dq", dq, twin.dq), close("dk", dk, twin.dk), close("dv", dv, twin.dv);
}

TEST(Attention, AgainstTwin) {
  for (bool causal : {false, true}) {
    check({1, 1, 1, 1, 1, kFloat, causal});
    check({2, 3, 70, 133, 24, kFloat, causal});
    check({2, 1, 133, 70, 64, kFloat, causal});
    check({1, 2, 64, 128, 128, kFloat, causal});
    check({1, 1, 3, 200, 127, kFloat, causal});
    for (ScalarType t : {kDouble, kHalf, kBFloat16}) {
      check({1, 2, 70, 66, 17, t, causal});
      check({1, 1, 65, 130, 128, t, causal});
    }
  }
  check({1, 2, 5, 0, 8, kFloat});
  check({1, 2, 0, 5, 8, kFloat});
}

TEST(Attention, ScoresOfMinusInfinity) {  // give nothing, rows without any other give 0
  Buffer q(4, kFloat), k(4, kFloat), v(4, kFloat), o(4, kFloat), log_sum(2, kFloat);
  q.fill(1), v.fill(3);
  for (int64_t i = 0; i < 4; ++i) k.set(i, -INFINITY);
  Buffer workspace(attention_workspace(kFloat, 2, 2, true, true, max_parallel_slots()), kByte);
  const auto m = [](Buffer& b) { return AttentionMatrix{b.data(), 4, 4, 2}; };
  attention_forward(raw::kCpuStream, {m(q), m(k), m(v), m(o), log_sum.data(), workspace.data(), 1,
                                      1, 2, 2, 2, 1.0, kFloat, false, AttentionBody::kAuto});
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(o[i], 0);
  EXPECT_EQ(log_sum[0], -INFINITY);
  Buffer dq = o, dk = o, dv = o;
  attention_backward(raw::kCpuStream,
                     {m(q), m(k), m(v), m(o), m(v), m(dq), m(dk), m(dv), log_sum.data(),
                      workspace.data(), 1, 1, 2, 2, 2, 1.0, kFloat, false, AttentionBody::kAuto});
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(dv[i], 0);
}

// One head of bfloat16 with its results.
struct Halves {
  int64_t q_rows, k_rows, columns;
  double scale = 0.5;
  Buffer q{q_rows * columns, kBFloat16}, k{k_rows * columns, kBFloat16},
      v = k, grad = q, o = q, dq = q, dk = k, dv = k, log_sum{q_rows, kFloat};
  void run() {
    Buffer work(attention_workspace(kBFloat16, q_rows, columns, true, true, max_parallel_slots()),
                kByte);
    const auto m = [&](Buffer& b) { return AttentionMatrix{b.data(), b.size, b.size, columns}; };
    attention_forward(raw::kCpuStream,
                      {m(q), m(k), m(v), m(o), log_sum.data(), work.data(), 1, 1, q_rows, k_rows,
                       columns, scale, kBFloat16, false, AttentionBody::kAuto});
    attention_backward(raw::kCpuStream, {m(q), m(k), m(v), m(o), m(grad), m(dq), m(dk), m(dv),
                                         log_sum.data(), work.data(), 1, 1, q_rows, k_rows, columns,
                                         scale, kBFloat16, false, AttentionBody::kAuto});
    EXPECT_TRUE(work.guards_intact());
  }
};

// Where the softmax is known, results show the order of a product's sum. A single key has a
// probability of 1: a row's logarithm is its score, and dv the sum of gradients. With queries of 0
// all keys have the same probability, here a power of two: o is the sum of values.
TEST(Attention, SumsInBfloatAreTheModel) {
  using raw::as_bits;
  using raw::as_float;
  raw::Values values(7);
  for (int64_t columns : {1, 17, 40, 128}) {
    SCOPED_TRACE(columns);
    Halves one{131, 1, columns}, all{3, 128, columns};
    for (Buffer* b : {&one.q, &one.k, &one.v, &one.grad, &all.k, &all.v}) b->fill(values, 2);
    all.q.fill(0);
    const auto half = [](const Buffer& b) {
      return [&b](int64_t i) { return static_cast<const uint16_t*>(b.data())[i]; };
    };
    raw::for_each_way([&] {
      one.run(), all.run();
      for (int64_t i = 0; i < one.q_rows; ++i) {
        const uint32_t sum = raw::model_chain(
            0, columns, [&](int64_t c) { return half(one.q)(i * columns + c); }, half(one.k));
        ASSERT_EQ(as_bits(one.log_sum.as<float>()[i]), as_bits(as_float(sum) * 0.5f)) << i;
      }
      for (int64_t c = 0; c < columns; ++c) {
        const uint32_t dv = raw::model_chain(
            0, one.q_rows, [](int64_t) { return uint16_t{0x3f80}; },
            [&](int64_t i) { return half(one.grad)(i * columns + c); });
        ASSERT_EQ(half(one.dv)(c), raw::to_bfloat(dv)) << c;
        const uint32_t o = raw::model_chain(
            0, all.k_rows, [](int64_t) { return uint16_t{0x3f80}; },
            [&](int64_t j) { return half(all.v)(j * columns + c); });
        for (int64_t i = 0; i < all.q_rows; ++i)
          ASSERT_EQ(half(all.o)(i * columns + c), raw::to_bfloat(as_bits(as_float(o) / 128))) << c;
      }
    });
  }
}

TEST(Attention, BfloatHasTheSameBitsInEveryVariant) {
  raw::Values values(8);
  const uint64_t before = ramet::detail::float_modes();
  for (const bool special : {false, true}) {
    Halves h{70, 133, 23};
    for (Buffer* b : {&h.q, &h.k, &h.v, &h.grad}) b->fill(values, 2);
    if (special)
      for (Buffer* b : {&h.q, &h.k, &h.v, &h.grad})
        for (int i = 0; i < 4; ++i)
          b->as<uint16_t>()[values.below(b->size)] = static_cast<uint16_t>(values.bits() >> 40);
    std::vector<Buffer> want;
    raw::for_each_way([&] {
      h.run();
      const std::vector<Buffer> got{h.o, h.dq, h.dk, h.dv, h.log_sum};
      if (want.empty()) want = got;
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(got[i].same_bits(want[i])) << "result " << i;
      EXPECT_EQ(ramet::detail::float_modes(), before);
    });
  }
}

}  // namespace
}  // namespace ramet::kernels
