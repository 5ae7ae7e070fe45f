// Elementary functions on vectors of float: our own minimax polynomials, at most 2 ulp. They work
// lane by lane: a result does not depend on the lane or, from v3 on, on the vector width. NaN and
// infinities as in C.
#pragma once
#include "kernels/simd/vec.h"

namespace ramet::kernels::RAMET_VARIANT {
/// a * b + c as this variant has it: `base` rounds twice.
struct Fused {
  RAMET_INLINE vf operator()(vf a, vf b, vf c) const { return fma(a, b, c); }
};
/// One rounding in every variant.
struct FusedOnce {
  RAMET_INLINE vf operator()(vf a, vf b, vf c) const {
#if RAMET_FUSED_MULTIPLY
    return fma(a, b, c);
#else
    float x[VL], y[VL], z[VL];
    store(x, a), store(y, b), store(z, c);
    for (int i = 0; i < VL; ++i) x[i] = __builtin_fmaf(x[i], y[i], z[i]);
    return load(x);
#endif
  }
};

template <class F> RAMET_INLINE vf poly_by(F, vf, vf acc) { return acc; }
template <class F, class... T> RAMET_INLINE vf poly_by(F f, vf x, vf acc, float c, T... rest) {
  return poly_by(f, x, f(acc, x, set1(c)), rest...);
}
template <class... T> RAMET_INLINE vf poly(vf x, vf acc, T... rest) {
  return poly_by(Fused{}, x, acc, rest...);
}
RAMET_INLINE vf vabs(vf x) { return float_of(andi(bits(x), seti(0x7fffffff))); }
RAMET_INLINE vf with_sign(vf mag, vf s) {
  return float_of(ori(bits(mag), andi(bits(s), seti(int(0x80000000u)))));
}

template <class F> RAMET_INLINE vf vexp_by(F f, vf x) {
  x = max(set1(-104.0f), min(set1(89.0f), x));  // this argument order keeps a NaN
  const vf n = round(x * set1(1.44269504f));
  vf r = f(n, set1(-0.693359375f), x);
  r = f(n, set1(2.12194440e-4f), r);
  const vf q = poly_by(f, r, set1(1.395048574e-03f), 8.368887939e-03f, 4.166620597e-02f,
                       1.666651815e-01f, 0.5f);
  const vf e = f(r * r, q, r) + set1(1.0f);
  // two exact factors: one rounding, in the denormal range too
  const vi k = toint(n), h = sra<1>(k);
  return e * float_of(shl<23>(addi(h, seti(127)))) * float_of(shl<23>(addi(subi(k, h), seti(127))));
}
RAMET_INLINE vf vexp(vf x) { return vexp_by(Fused{}, x); }

RAMET_INLINE vf vexp_mid(vf x) {  // |x| <= 80: no clamp, one factor
  const vf n = round(x * set1(1.44269504f));
  vf r = fma(n, set1(-0.693359375f), x);
  r = fma(n, set1(2.12194440e-4f), r);
  const vf q =
      poly(r, set1(1.395048574e-03f), 8.368887939e-03f, 4.166620597e-02f, 1.666651815e-01f, 0.5f);
  return (fma(r * r, q, r) + set1(1.0f)) * float_of(shl<23>(addi(toint(n), seti(127))));
}

template <class F> RAMET_INLINE vf vlog_by(F f, vf x) {
  const vm tiny = lt(x, set1(1.17549435e-38f));
  const vf y = pick(tiny, x * set1(8388608.0f), x);
  const vi b = bits(y), k = sra<23>(subi(b, seti(0x3f3504f3)));  // mantissa in [sqrt(1/2), sqrt(2))
  const vf t = float_of(subi(b, shl<23>(k))) - set1(1.0f), n = tofloat(k) - keep(tiny, set1(23.0f));
  const vf q = poly_by(f, t, set1(6.746601313e-02f), -1.167564094e-01f, 1.188817471e-01f,
                       -1.240559146e-01f, 1.421955079e-01f, -1.666799635e-01f, 2.000211924e-01f,
                       -2.500000894e-01f, 3.333331347e-01f);
  const vf t2 = t * t;
  vf r = f(t2 * t, q, n * set1(-2.12194440e-4f));
  r = f(t2, set1(-0.5f), r) + t;
  r = f(n, set1(0.693359375f), r);
  r = pick(lt(x, set1(__builtin_inff())), r, x);  // inf and NaN pass through
  r = pick(eq(x, vf{}), set1(-__builtin_inff()), r);
  return pick(lt(x, vf{}), set1(__builtin_nanf("")), r);
}
RAMET_INLINE vf vlog(vf x) { return vlog_by(Fused{}, x); }

RAMET_INLINE vf vtanh(vf x) {
  const vf a = vabs(x), b = min(set1(10.0f), a), u = x * x;
  const vf s = fma(x * u,
                   poly(u, set1(2.142958809e-03f), -8.177394979e-03f, 2.170070074e-02f,
                        -5.394676328e-02f, 1.333320588e-01f, -3.333333135e-01f),
                   x);
  const vf l = set1(1.0f) - set1(2.0f) / (vexp_mid(b + b) + set1(1.0f));
  return pick(lt(a, set1(0.625f)), s, with_sign(l, x));
}

RAMET_INLINE vf verf(vf x) {
  const vf a = min(set1(4.0f), vabs(x)), u = x * x;
  const vf s =
      fma(x,
          poly(u, set1(-9.641516044e-06f), 1.125694762e-04f, -8.482828853e-04f, 5.220945459e-03f,
               -2.686540037e-02f, 1.128378212e-01f, -3.761263788e-01f, 1.283791661e-01f),
          x);
  const vf p =
      poly(a, set1(2.169763866e-05f), -4.414729192e-04f, 4.205286037e-03f, -2.521034144e-02f,
           1.084221005e-01f, 6.332163811e-01f, 1.129580259f, -1.884677913e-04f);
  const vf l = set1(1.0f) - vexp_mid(vf{} - p);
  return pick(lt(a, set1(1.0f)), s, with_sign(l, x));
}

// f on every lane by itself: for functions with only a scalar library version.
template <class F> RAMET_INLINE vf each_lane(vf x, F f) {
  float t[VL];
  store(t, x);
  for (int i = 0; i < VL; ++i) t[i] = f(t[i]);
  return load(t);
}
template <class F> RAMET_INLINE vf each_lane(vf x, vf y, F f) {
  float t[VL], u[VL];
  store(t, x), store(u, y);
  for (int i = 0; i < VL; ++i) t[i] = f(t[i], u[i]);
  return load(t);
}

// 2^n (e^r - 1) + (2^n - 1), halved and doubled because 2^128 is no float
RAMET_INLINE vf vexpm1(vf x) {
  const vf y = max(set1(-20.0f), min(set1(89.0f), x));
  const vf n = round(y * set1(1.44269504f));
  vf r = fma(n, set1(-0.693359375f), y);
  r = fma(n, set1(2.12194440e-4f), r);
  const vf q =
      poly(r, set1(1.395048574e-03f), 8.368887939e-03f, 4.166620597e-02f, 1.666651815e-01f, 0.5f);
  const vf p = fma(r * r, q, r), s = float_of(shl<23>(addi(toint(n), seti(126))));
  const vf e = fma(p, s, s - set1(0.5f));
  return pick(lt(vabs(x), set1(1e-10f)), x, e + e);
}

RAMET_INLINE vf vlog_poly(vf t) {  // (log(1 + t) - t + t^2 / 2) / t^3
  return poly(t, set1(6.746601313e-02f), -1.167564094e-01f, 1.188817471e-01f, -1.240559146e-01f,
              1.421955079e-01f, -1.666799635e-01f, 2.000211924e-01f, -2.500000894e-01f,
              3.333331347e-01f);
}
// x: distance from the pole; inf and NaN pass through
RAMET_INLINE vf log_special(vf x, vf r, vf zero) {
  r = pick(lt(x, set1(__builtin_inff())), r, x);
  r = pick(eq(x, zero), set1(-__builtin_inff()), r);
  return pick(lt(x, zero), set1(__builtin_nanf("")), r);
}

// Powers of two give whole numbers: log2(e) is in two parts, and the exponent is added last.
RAMET_INLINE vf vlog2(vf x) {
  const vm tiny = lt(x, set1(1.17549435e-38f));
  const vf y = pick(tiny, x * set1(8388608.0f), x);
  const vi b = bits(y), k = sra<23>(subi(b, seti(0x3f3504f3)));
  const vf t = float_of(subi(b, shl<23>(k))) - set1(1.0f), n = tofloat(k) - keep(tiny, set1(23.0f)),
           t2 = t * t;
  const vf low = fma(t2, set1(-0.5f), t2 * t * vlog_poly(t));
  vf r = fma(low, set1(1.44269504f), t * set1(1.92596299e-8f));
  r = fma(t, set1(1.44269502f), r);
  return log_special(x, r + n, vf{});
}

// log of u = 1 + x, plus the correction (x - (u - 1)) / u for the rounding of u
RAMET_INLINE vf vlog1p(vf x) {
  const vf u = set1(1.0f) + x;
  const vi b = bits(u), k = sra<23>(subi(b, seti(0x3f3504f3)));
  const vf n = tofloat(k), lost = (x - (u - set1(1.0f))) * float_of(shl<23>(subi(seti(127), k)));
  const vf t = float_of(subi(b, shl<23>(k))) - set1(1.0f) + keep(lt(x, set1(1e7f)), lost),
           t2 = t * t;
  vf r = fma(t2 * t, vlog_poly(t), n * set1(-2.12194440e-4f));
  r = fma(t2, set1(-0.5f), r) + t;
  r = fma(n, set1(0.693359375f), r);
  r = log_special(x, r, set1(-1.0f));
  return pick(lt(vabs(x), set1(1e-8f)), x, r);
}

// sin and cos. Up to |x| = 1e5: x - k pi/2 with pi/2 in three parts; the first product is exact in
// an fma. Above that, and without fma, the C library's function, lane by lane (exact reduction at
// any size).
RAMET_INLINE vf vsincos(vf x, int quarter) {
  const vf k = round(x * set1(0.636619772f));
  vf r = fma(k, set1(-0x1.921fb6p+0f), x);
  r = fma(k, set1(0x1.777a5cp-25f), r);
  r = fma(k, set1(0x1.ee59dap-50f), r);
  const vf u = r * r;
  const vf s = fma(r * u, poly(u, set1(-1.951521699e-04f), 8.332160302e-03f, -1.666665524e-01f), r);
  const vf c = fma(u * u, poly(u, set1(2.443308040e-05f), -1.388731529e-03f, 4.166664556e-02f),
                   fma(u, set1(-0.5f), set1(1.0f)));
  const vi q = addi(toint(k), seti(quarter));
  const vf y = pick(ne(tofloat(andi(q, seti(1))), vf{}), c, s);
  return float_of(xori(bits(y), shl<30>(andi(q, seti(2)))));
}
// y, where |x| is small enough for it
template <class F> RAMET_INLINE vf far_by_lane(vf x, vf y, F f) {
  const vm near = le(vabs(x), set1(1e5f));
  if (__builtin_expect(any(andnot(eq(x, x), near)), 0)) return pick(near, y, each_lane(x, f));
  return y;
}
RAMET_INLINE vf vsin(vf x) {
  const auto library = [](float v) { return __builtin_sinf(v); };
  if (!RAMET_FUSED_MULTIPLY) return each_lane(x, library);
  return far_by_lane(x, pick(lt(vabs(x), set1(1e-10f)), x, vsincos(x, 0)), library);  // -0 stays -0
}
RAMET_INLINE vf vcos(vf x) {
  const auto library = [](float v) { return __builtin_cosf(v); };
  if (!RAMET_FUSED_MULTIPLY) return each_lane(x, library);
  return far_by_lane(x, vsincos(x, 1), library);
}

RAMET_INLINE vf vsigmoid(vf x) { return set1(1.0f) / (set1(1.0f) + vexp(vf{} - x)); }
}  // namespace ramet::kernels::RAMET_VARIANT
