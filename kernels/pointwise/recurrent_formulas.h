// The formulas of recurrent.h for one element: for vectors of floats, doubles and, on a GPU,
// floats. Each reads all of its operands x before it writes its results y.
#pragma once
#include "kernels/pointwise/formula.h"

namespace ramet::kernels::RAMET_VARIANT {

struct LstmStep {  // sums i, f, g, o, cell before -> i, f, g, o, cell, hidden
  static constexpr int kIn = 5, kOut = 6;
  template <class V> static RAMET_INLINE void run(const V (&x)[kIn], V (&y)[kOut]) {
    y[0] = vsigmoid(x[0]), y[1] = vsigmoid(x[1]), y[2] = vtanh(x[2]), y[3] = vsigmoid(x[3]);
    y[4] = fma(y[1], x[4], y[0] * y[2]);
    y[5] = y[3] * vtanh(y[4]);
  }
};

struct LstmStepBackward {  // i, f, g, o, before, cell, d_hidden, the same, d_cell -> d_sums,
                           // d_before
  static constexpr int kIn = 9, kOut = 5;
  template <class V> static RAMET_INLINE void run(const V (&x)[kIn], V (&y)[kOut]) {
    const V one = cst<V>(1), i = x[0], f = x[1], g = x[2], o = x[3], before = x[4],
            th = vtanh(x[5]), dh = x[6] + x[7], dc = fma(dh * o, one - th * th, x[8]);
    y[0] = dc * g * (i * (one - i));
    y[1] = dc * before * (f * (one - f));
    y[2] = dc * i * (one - g * g);
    y[3] = dh * th * (o * (one - o));
    y[4] = dc * f;
  }
};

struct GruStep {  // input r, z, n, state r, z, n, before -> r, z, n, state's n, hidden
  static constexpr int kIn = 7, kOut = 5;
  template <class V> static RAMET_INLINE void run(const V (&x)[kIn], V (&y)[kOut]) {
    y[0] = vsigmoid(x[0] + x[3]), y[1] = vsigmoid(x[1] + x[4]);
    y[2] = vtanh(fma(y[0], x[5], x[2]));
    y[3] = x[5];
    y[4] = fma(y[1], x[6] - y[2], y[2]);
  }
};

struct GruStepBackward {  // r, z, n, state's n, before, d_hidden, the same -> d_input, d_state,
                          // d_before
  static constexpr int kIn = 7, kOut = 7;
  template <class V> static RAMET_INLINE void run(const V (&x)[kIn], V (&y)[kOut]) {
    const V one = cst<V>(1), r = x[0], z = x[1], n = x[2], dh = x[5] + x[6];
    y[2] = dh * (one - z) * (one - n * n);
    y[0] = y[3] = y[2] * x[3] * (r * (one - r));
    y[1] = y[4] = dh * (x[4] - n) * (z * (one - z));
    y[5] = y[2] * r;
    y[6] = dh * z;
  }
};

/// The operands of a formula. Matrix k begins `part` columns into rows of `width` matrices'
/// columns, at p. Null: zeros, or an unwanted result.
struct StepPart {
  void* p;
  int32_t part, width;
};
template <class F> struct StepParts { StepPart in[F::kIn], out[F::kOut]; };

RAMET_INLINE void* not_const(const void* p) { return const_cast<void*>(p); }

inline StepParts<LstmStep> parts_of(const LstmStepArgs& a) {
  void *s = not_const(a.sums), *b = not_const(a.before);
  return {{{s, 0, 4}, {s, 1, 4}, {s, 2, 4}, {s, 3, 4}, {b, 0, 1}},
          {{a.gates, 0, 4},
           {a.gates, 1, 4},
           {a.gates, 2, 4},
           {a.gates, 3, 4},
           {a.cell, 0, 1},
           {a.hidden, 0, 1}}};
}
inline StepParts<LstmStepBackward> parts_of(const LstmStepBackwardArgs& a) {
  void* g = not_const(a.gates);
  return {
      {{g, 0, 4},
       {g, 1, 4},
       {g, 2, 4},
       {g, 3, 4},
       {not_const(a.before), 0, 1},
       {not_const(a.cell), 0, 1},
       {not_const(a.d_hidden), 0, 1},
       {not_const(a.d_hidden_too), 0, 1},
       {not_const(a.d_cell), 0, 1}},
      {{a.d_sums, 0, 4}, {a.d_sums, 1, 4}, {a.d_sums, 2, 4}, {a.d_sums, 3, 4}, {a.d_before, 0, 1}}};
}
inline StepParts<GruStep> parts_of(const GruStepArgs& a) {
  void *x = not_const(a.input), *s = not_const(a.state);
  return {{{x, 0, 3},
           {x, 1, 3},
           {x, 2, 3},
           {s, 0, 3},
           {s, 1, 3},
           {s, 2, 3},
           {not_const(a.before), 0, 1}},
          {{a.kept, 0, 4}, {a.kept, 1, 4}, {a.kept, 2, 4}, {a.kept, 3, 4}, {a.hidden, 0, 1}}};
}
inline StepParts<GruStepBackward> parts_of(const GruStepBackwardArgs& a) {
  void* k = not_const(a.kept);
  return {{{k, 0, 4},
           {k, 1, 4},
           {k, 2, 4},
           {k, 3, 4},
           {not_const(a.before), 0, 1},
           {not_const(a.d_hidden), 0, 1},
           {not_const(a.d_hidden_too), 0, 1}},
          {{a.d_input, 0, 3},
           {a.d_input, 1, 3},
           {a.d_input, 2, 3},
           {a.d_state, 0, 3},
           {a.d_state, 1, 3},
           {a.d_state, 2, 3},
           {a.d_before, 0, 1}}};
}

}  // namespace ramet::kernels::RAMET_VARIANT
