// The steps of optimizer_step.h for a P::V: a vector of floats, a float or a double. Written once
// for CPUs and GPUs, whose results have the same bits.
#pragma once
#include "kernels/optim/optimizer_step.h"
#if !defined(RAMET_GPU_MATH)
#include "kernels/simd/smath.h"
#endif

namespace ramet::kernels::RAMET_VARIANT {

template <class P> struct SgdStep {
  using V = typename P::V;
  V minus_lr, decay, momentum, damped;
  bool maximize, decays, first, nesterov;

  RAMET_INLINE explicit SgdStep(const SgdArgs& a)
      : minus_lr(cst<V>(-a.lr)),
        decay(cst<V>(a.weight_decay)),
        momentum(cst<V>(a.momentum)),
        damped(cst<V>(1 - a.dampening)),
        maximize(a.maximize),
        decays(a.weight_decay != 0),
        first(a.first),
        nesterov(a.nesterov) {}
  /// A parameter, its gradient, its momentum buffer.
  template <bool kMomentum> RAMET_INLINE void take(V& w, V d, V& buffer) const {
    if (maximize) d = cst<V>(0) - d;
    if (decays) d = fma(w, decay, d);
    if (kMomentum) {
      buffer = first ? d : fma(d, damped, buffer * momentum);
      d = nesterov ? fma(buffer, momentum, d) : buffer;
    }
    w = fma(d, minus_lr, w);
  }
};

template <class P> struct AdamStep {
  using V = typename P::V;
  V beta1, rest1, beta2, rest2, eps, decay, shrink, minus_step, root2;
  bool maximize, decays, decoupled;

  RAMET_INLINE explicit AdamStep(const AdamArgs& a)
      : beta1(cst<V>(a.beta1)),
        rest1(cst<V>(1 - a.beta1)),
        beta2(cst<V>(a.beta2)),
        rest2(cst<V>(1 - a.beta2)),
        eps(cst<V>(a.eps)),
        decay(cst<V>(a.weight_decay)),
        shrink(cst<V>(1 - a.lr * a.weight_decay)),
        minus_step(cst<V>(-a.lr / a.bias1)),
        root2(cst<V>(RAMET_LIBM(sqrt)(a.bias2))),
        maximize(a.maximize),
        decays(a.weight_decay != 0),
        decoupled(a.decoupled) {}
  /// A parameter, its gradient, its moments, the largest second moment so far.
  template <bool kAmsgrad> RAMET_INLINE void take(V& w, V d, V& m, V& v, V& most) const {
    if (maximize) d = cst<V>(0) - d;
    if (decays) {
      if (decoupled) w = w * shrink;
      else d = fma(w, decay, d);
    }
    m = fma(d, rest1, m * beta1);
    v = fma(d * d, rest2, v * beta2);
    V second = v;
    if (kAmsgrad) second = most = pick(ne(most, most), most, max(most, v));  // a NaN wins
    w = w + minus_step * m / (sqrt(second) / root2 + eps);
  }
};

}  // namespace ramet::kernels::RAMET_VARIANT
