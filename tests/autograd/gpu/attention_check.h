// A body of attention against the whole matrix of scores in float64: what its tests share.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "kernels/matrix/attention.h"
#include "tests/autograd/gpu/gpu_tensors.h"
#include "tests/kernels/matrix/attention_twin.h"

namespace ramet::kernels {

struct Case {
  int64_t batch, heads, q_rows, k_rows, columns;
  ScalarType t;
  bool causal = false;
  AttentionBody body = AttentionBody::kAuto;
  double scale = 0.7;
};

inline double epsilon(ScalarType t) {
  return t == kDouble ? 1e-14 : t == kFloat ? 1e-6 : t == kHalf ? 1e-3 : 8e-3;
}

// Operands lie as [batch, rows, heads, columns], results as [batch, heads, rows, columns].
inline AttentionMatrix apart(const Tensor& t) {
  const int64_t h = t.size(2), c = t.size(3);
  return {t.data_ptr(), t.size(1) * h * c, c, h * c};
}
inline AttentionMatrix dense(const Tensor& t) {
  const int64_t r = t.size(2), c = t.size(3);
  return {t.data_ptr(), t.size(1) * r * c, r * c, c};
}

/// o and log_sum of the forward alone, of drawn operands; with `one_head` all have the same keys.
struct Forward {
  std::vector<double> o, log_sum;
};
inline Forward forward_of(const Case& c, bool one_head = false) {
  const auto operand = [&](int64_t rows, int64_t seed) {
    return drawn({c.batch, rows, c.heads, c.columns}, c.t, seed).to(kGpu);
  };
  const Tensor q = operand(c.q_rows, 1), k = operand(c.k_rows, 2), v = operand(c.k_rows, 3),
               o(TensorBase::empty({c.batch, c.heads, c.q_rows, c.columns}, c.t, kGpu)),
               log_sum(TensorBase::empty(c.batch * c.heads * c.q_rows, kFloat, kGpu));
  AttentionMatrix keys = apart(k);
  if (one_head) keys.head = 0;
  attention_forward(q.stream(),
                    {apart(q), keys, apart(v), dense(o), log_sum.data_ptr(), nullptr, c.batch,
                     c.heads, c.q_rows, c.k_rows, c.columns, c.scale, c.t, c.causal, c.body});
  return {numbers(o), numbers(log_sum)};
}

/// Compares o, dq, dk and dv with the reference, and runs the same again.
inline std::vector<std::vector<double>> check(const Case& c) {
  SCOPED_TRACE(std::string(name_of(c.t)) + " " + std::to_string(c.q_rows) + " x " +
               std::to_string(c.k_rows) + " x " + std::to_string(c.columns) +
               (c.causal ? " causal" : "") + " body " + std::to_string(static_cast<int>(c.body)));
  const auto operand = [&](int64_t rows, int64_t seed) {
    return drawn({c.batch, rows, c.heads, c.columns}, c.t, seed);
  };
  const Tensor q = operand(c.q_rows, 1), k = operand(c.k_rows, 2), v = operand(c.k_rows, 3),
               grad = operand(c.q_rows, 4);
  const auto plain = [](const Tensor& t) { return numbers(t.transpose(1, 2)); };
  AttentionTwin twin{c.batch * c.heads, c.q_rows, c.k_rows, c.columns, c.scale,
                     c.causal,          plain(q), plain(k), plain(v),  plain(grad)};
  twin.run();
  const Tensor gq = q.to(kGpu), gk = k.to(kGpu), gv = v.to(kGpu), gg = grad.to(kGpu);
  const auto result = [&](int64_t rows) {
    return Tensor(TensorBase::empty({c.batch, c.heads, rows, c.columns}, c.t, kGpu));
  };
  const int64_t rows = c.batch * c.heads * c.q_rows;
  const Tensor o = result(c.q_rows), dq = result(c.q_rows), dk = result(c.k_rows),
               dv = result(c.k_rows),
               log_sum(TensorBase::empty(rows, c.t == kDouble ? kDouble : kFloat, kGpu)),
               workspace(TensorBase::empty(
                   attention_workspace(c.t, rows, c.columns, true, false, 1), kByte, kGpu));
  const auto run = [&] {
    attention_forward(gq.stream(), {apart(gq), apart(gk), apart(gv), dense(o), log_sum.data_ptr(),
                                    workspace.data_ptr(), c.batch, c.heads, c.q_rows, c.k_rows,
                                    c.columns, c.scale, c.t, c.causal, c.body});
    attention_backward(gq.stream(),
                       {apart(gq), apart(gk), apart(gv), dense(o), apart(gg), dense(dq), dense(dk),
                        dense(dv), log_sum.data_ptr(), workspace.data_ptr(), c.batch, c.heads,
                        c.q_rows, c.k_rows, c.columns, c.scale, c.t, c.causal, c.body});
  };
  run();
  const double tolerance = 12 * epsilon(c.t);
  expect_near(o, twin.o, tolerance, "o");
  expect_near(log_sum, twin.log_sum, 12 * epsilon(c.t == kDouble ? kDouble : kFloat), "log_sum");
  expect_near(dq, twin.dq, tolerance, "dq");
  expect_near(dk, twin.dk, tolerance, "dk");
  expect_near(dv, twin.dv, tolerance, "dv");
  std::vector<std::vector<double>> first;
  for (const Tensor& t : {o, dq, dk, dv}) first.push_back(numbers(t));
  run();
  size_t i = 0;
  for (const Tensor& t : {o, dq, dk, dv}) EXPECT_EQ(first[i++], numbers(t)) << "not the same again";
  return first;
}

}  // namespace ramet::kernels
