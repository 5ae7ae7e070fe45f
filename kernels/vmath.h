// exp, log, tanh, erf on vectors: own minimax polynomials (fit_polynomials.py), at most 2 ulp, lane by lane:
// a value's result does not depend on its position or, from v3 on, on the vector width.
#pragma once
#include "kernels/vec.h"

namespace ramet::kernels::RAMET_VARIANT {
RAMET_INLINE vf poly(vf, vf acc) { return acc; }
template <class... T> RAMET_INLINE vf poly(vf x, vf acc, float c, T... rest) { return poly(x, fma(acc, x, set1(c)), rest...); }
RAMET_INLINE vf vabs(vf x) { return float_of(andi(bits(x), seti(0x7fffffff))); }
RAMET_INLINE vf with_sign(vf mag, vf s) { return float_of(ori(bits(mag), andi(bits(s), seti(int(0x80000000u))))); }

RAMET_INLINE vf vexp(vf x) {
  x = max(set1(-104.0f), min(set1(89.0f), x));  // this argument order keeps a NaN
  const vf n = round(x * set1(1.44269504f));
  vf r = fma(n, set1(-0.693359375f), x);
  r = fma(n, set1(2.12194440e-4f), r);
  const vf q = poly(r, set1(1.395048574e-03f), 8.368887939e-03f, 4.166620597e-02f, 1.666651815e-01f, 0.5f);
  const vf e = fma(r * r, q, r) + set1(1.0f);
  const vi k = toint(n), h = sra<1>(k);  // two exact factors: one rounding, in the denormal range too
  return e * float_of(shl<23>(addi(h, seti(127)))) * float_of(shl<23>(addi(subi(k, h), seti(127))));
}

RAMET_INLINE vf vexp_mid(vf x) {  // |x| <= 80: no clamp, one factor
  const vf n = round(x * set1(1.44269504f));
  vf r = fma(n, set1(-0.693359375f), x);
  r = fma(n, set1(2.12194440e-4f), r);
  const vf q = poly(r, set1(1.395048574e-03f), 8.368887939e-03f, 4.166620597e-02f, 1.666651815e-01f, 0.5f);
  return (fma(r * r, q, r) + set1(1.0f)) * float_of(shl<23>(addi(toint(n), seti(127))));
}

RAMET_INLINE vf vlog(vf x) {
  const vm tiny = lt(x, set1(1.17549435e-38f));
  const vf y = pick(tiny, x * set1(8388608.0f), x);
  const vi b = bits(y), k = sra<23>(subi(b, seti(0x3f3504f3)));  // mantissa in [sqrt(1/2), sqrt(2))
  const vf t = float_of(subi(b, shl<23>(k))) - set1(1.0f), n = tofloat(k) - keep(tiny, set1(23.0f));
  const vf q = poly(t, set1(6.746601313e-02f), -1.167564094e-01f, 1.188817471e-01f, -1.240559146e-01f, 1.421955079e-01f,
                    -1.666799635e-01f, 2.000211924e-01f, -2.500000894e-01f, 3.333331347e-01f);
  const vf t2 = t * t;
  vf r = fma(t2 * t, q, n * set1(-2.12194440e-4f));
  r = fma(t2, set1(-0.5f), r) + t;
  r = fma(n, set1(0.693359375f), r);
  r = pick(lt(x, set1(__builtin_inff())), r, x);                        // inf and NaN pass through
  r = pick(eq(x, vf{}), set1(-__builtin_inff()), r);
  return pick(lt(x, vf{}), set1(__builtin_nanf("")), r);
}

RAMET_INLINE vf vtanh(vf x) {
  const vf a = vabs(x), b = min(set1(10.0f), a), u = x * x;
  const vf s = fma(x * u, poly(u, set1(2.142958809e-03f), -8.177394979e-03f, 2.170070074e-02f, -5.394676328e-02f,
                               1.333320588e-01f, -3.333333135e-01f), x);
  const vf l = set1(1.0f) - set1(2.0f) / (vexp_mid(b + b) + set1(1.0f));
  return pick(lt(a, set1(0.625f)), s, with_sign(l, x));
}

RAMET_INLINE vf verf(vf x) {
  const vf a = min(set1(4.0f), vabs(x)), u = x * x;
  const vf s = fma(x, poly(u, set1(-9.641516044e-06f), 1.125694762e-04f, -8.482828853e-04f, 5.220945459e-03f, -2.686540037e-02f,
                           1.128378212e-01f, -3.761263788e-01f, 1.283791661e-01f), x);
  const vf p = poly(a, set1(2.169763866e-05f), -4.414729192e-04f, 4.205286037e-03f, -2.521034144e-02f, 1.084221005e-01f,
                    6.332163811e-01f, 1.129580259f, -1.884677913e-04f);
  const vf l = set1(1.0f) - vexp_mid(vf{} - p);
  return pick(lt(a, set1(1.0f)), s, with_sign(l, x));
}

RAMET_INLINE vf vgelu(vf x) { const vf h = x * set1(0.5f); return fma(h, verf(x * set1(0.707106781f)), h); }
}  // namespace ramet::kernels::RAMET_VARIANT
