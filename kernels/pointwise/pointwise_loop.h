// The loops that run a row's formula (row.h) over memory. For pointwise_*.cc only.
//
// Each operation becomes one function per compute type (a Loop: dense memory of that type in and
// out). It also becomes two kernels, which share their drivers. The drivers do everything else:
// broadcasting, conversion, cutting into tasks. See pointwise.cc.
#pragma once
#include "kernels/copy/chunk.h"
#include "kernels/pointwise/formula.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/simd/independent.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {

/// n elements, dense memory of the compute type in and out. The types in `a` are not read. An
/// operand with its bit in `fixed` is one value repeated VL times (float loops only).
using Loop = void (*)(const PointwiseArgs& a, unsigned fixed);

/// A driver's view of an operation.
struct PointwiseOp {
  Loop loops[3];  // by compute type: float, double, int64; null where there is none
  int operands;
  PointwiseResult result;

  RAMET_INLINE Loop loop_of(float) const { return loops[0]; }
  RAMET_INLINE Loop loop_of(double) const { return loops[1]; }
  RAMET_INLINE Loop loop_of(int64_t) const { return loops[2]; }
};

/// The drivers (pointwise.cc).
void run_dense(const PointwiseArgs& a, const PointwiseOp& op);
void run_strided(const PointwiseStridedArgs& a, const PointwiseOp& op);

template <class Row> void float_loop(const PointwiseArgs& r, unsigned fixed) {
  constexpr int kOperands = Row::kOperands;
  const float* in[3] = {static_cast<const float*>(r.a)};
  if constexpr (kOperands > 1) in[1] = static_cast<const float*>(r.b);
  if constexpr (kOperands > 2) in[2] = static_cast<const float*>(r.c);
  const vf s = set1(static_cast<float>(r.s.d)), t = set1(static_cast<float>(r.t.d));
  const int64_t step_a = ~fixed & 1, step_b = (~fixed >> 1) & 1, step_c = (~fixed >> 2) & 1;
  int64_t i = 0;
  const int64_t whole = r.n - r.n % VL;
  for (; i < whole; i += VL) {
    const vf a = load(in[0] + i * step_a), b = kOperands > 1 ? load(in[1] + i * step_b) : vf{};
    const vf c = kOperands > 2 ? load(in[2] + i * step_c) : vf{};
    const auto y = formula<Row, vf>(a, b, c, s, t);
    if constexpr (Row::kResult == PointwiseResult::kTruth)
      store_mask(static_cast<uint8_t*>(r.out) + i, y);
    else store(static_cast<float*>(r.out) + i, y);
  }
  if (i < r.n) {  // the same code on a padded register
    const int64_t m = r.n - i;
    const vf a = loadn(in[0] + i * step_a, m),
             b = kOperands > 1 ? loadn(in[1] + i * step_b, m) : vf{};
    const vf c = kOperands > 2 ? loadn(in[2] + i * step_c, m) : vf{};
    const auto y = formula<Row, vf>(a, b, c, s, t);
    if constexpr (Row::kResult == PointwiseResult::kTruth) {
      uint8_t truth[VL];
      store_mask(truth, y);
      for (int64_t j = 0; j < m; ++j) static_cast<uint8_t*>(r.out)[i + j] = truth[j];
    } else {
      storen(static_cast<float*>(r.out) + i, y, m);
    }
  }
}

template <class Row, class V> void scalar_loop(const PointwiseArgs& r, unsigned) {
  constexpr int kOperands = Row::kOperands;
  const V* in[3] = {static_cast<const V*>(r.a)};
  if constexpr (kOperands > 1) in[1] = static_cast<const V*>(r.b);
  if constexpr (kOperands > 2) in[2] = static_cast<const V*>(r.c);
  V s, t;
  memcpy(&s, &r.s, sizeof s), memcpy(&t, &r.t, sizeof t);
  using Out = typename std::conditional<Row::kResult == PointwiseResult::kTruth, uint8_t, V>::type;
  Out* out = static_cast<Out*>(r.out);
  const int64_t n = r.n;
  RAMET_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<Out>(formula<Row, V>(in[0][i], kOperands > 1 ? in[1][i] : V{},
                                              kOperands > 2 ? in[2][i] : V{}, s, t));
}

template <class Row> constexpr PointwiseOp make_op() {
  PointwiseOp op{{nullptr, nullptr, nullptr}, Row::kOperands, Row::kResult};
  if constexpr (Row::kTypes & kOnFloating)
    op.loops[0] = float_loop<Row>, op.loops[1] = scalar_loop<Row, double>;
  if constexpr (Row::kTypes & kOnInteger) op.loops[2] = scalar_loop<Row, int64_t>;
  return op;
}

/// The common small call: dense floats (or one scalar) in and out. It takes one pass and no driver.
template <class Row> RAMET_INLINE void run(const PointwiseArgs& a) {
  static constexpr PointwiseOp op = make_op<Row>();
  if constexpr (Row::kTypes & kOnFloating) {
    constexpr int kOperands = Row::kOperands;
    constexpr ScalarType kOut =
        Row::kResult == PointwiseResult::kTruth ? ScalarType::Bool : ScalarType::Float;
    const bool plain = a.n <= 4096 && a.compute == ScalarType::Float && a.out_type == kOut &&
                       a.a_type == ScalarType::Float &&
                       (kOperands < 2 || a.b_type == ScalarType::Float) &&
                       (kOperands < 3 || a.c_type == ScalarType::Float);
    if (__builtin_expect(plain, 1)) {
      const bool number = (kOperands > 1 && (!a.a || !a.b)) || (kOperands > 2 && !a.c);
      if (__builtin_expect(!number, 1)) return float_loop<Row>(a, 0);
      float scalar[VL];
      store(scalar, set1(static_cast<float>(a.t.d)));
      PointwiseArgs whole = a;
      unsigned fixed = 0;
      if (!a.a) whole.a = scalar, fixed |= 1;
      if (kOperands > 1 && !a.b) whole.b = scalar, fixed |= 2;
      if (kOperands > 2 && !a.c) whole.c = scalar, fixed |= 4;
      return float_loop<Row>(whole, fixed);
    }
  }
  run_dense(a, op);
}

#define RAMET_DEFINE_POINTWISE(name, Row)              \
  void name(const PointwiseArgs& a) { run<Row>(a); }   \
  void name##_strided(const PointwiseStridedArgs& a) { \
    static constexpr PointwiseOp op = make_op<Row>();  \
    run_strided(a, op);                                \
  }

}  // namespace ramet::kernels::RAMET_VARIANT
