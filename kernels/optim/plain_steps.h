// Optimizer steps that use only the sign or the size of a gradient: kernels/optim/optimizer_step.h.
#pragma once
#include "kernels/optim/step.h"

namespace ramet {
namespace kernels {

/// s = g prev;  size = size times plus (s > 0), minus (s < 0), 1 (else, a NaN too), in [low, high]
/// g = s < 0 ? 0 : grad;  p -= sign(g) size;  prev = g (Riedmiller and Braun 1993; Igel and Huesken
/// 2000: iRprop-). The sign of a NaN is 0.
struct RpropArgs : StepArgs<2> {  // prev, size
  double minus, plus, low, high;
};
RAMET_KERNEL(rprop_step, RpropArgs);

/// p *= shrink;  p -= lr sign(beta1 m + (1 - beta1) grad);  m = beta2 m + (1 - beta2) grad
/// (Chen et al. 2023). The sign of a NaN is NaN.
struct LionArgs : StepArgs<1> {  // m
  double lr, beta1, beta2, shrink;
};
RAMET_KERNEL(lion_step, LionArgs);

/// g = grad + weight_decay p;  p = shrink p - eta g;  ax += mu (p - ax), where mu is 1: ax = p
/// shrink = 1 - lambd eta (Polyak and Juditsky 1992)
struct AsgdArgs : StepArgs<1> {  // ax
  double eta, shrink, mu, weight_decay;
};
RAMET_KERNEL(asgd_step, AsgdArgs);

#if defined(RAMET_VARIANT)
namespace RAMET_VARIANT {

template <class P> struct RpropStep {
  using V = typename P::V;
  using Args = RpropArgs;
  using Uses = StatesInUse<0b11>;
  V minus, plus, low, high;

  RAMET_INLINE explicit RpropStep(const RpropArgs& a)
      : minus(cst<V>(a.minus)), plus(cst<V>(a.plus)), low(cst<V>(a.low)), high(cst<V>(a.high)) {}
  template <unsigned kUse> RAMET_INLINE void take(V& w, V d, V (&states)[2]) const {
    auto& [prev, size] = states;
    const V zero = cst<V>(0), one = cst<V>(1), s = d * prev;
    size = size * pick(lt(zero, s), plus, pick(lt(s, zero), minus, one));
    size = min(high, max(low, size));
    d = pick(lt(s, zero), zero, d);
    w = w - pick(lt(zero, d), size, pick(lt(d, zero), -size, zero));
    prev = d;
  }
};

template <class P> struct LionStep {
  using V = typename P::V;
  using Args = LionArgs;
  using Uses = StatesInUse<0b1>;
  V lr, beta1, rest1, beta2, rest2, shrink;

  RAMET_INLINE explicit LionStep(const LionArgs& a)
      : lr(cst<V>(a.lr)),
        beta1(cst<V>(a.beta1)),
        rest1(cst<V>(1 - a.beta1)),
        beta2(cst<V>(a.beta2)),
        rest2(cst<V>(1 - a.beta2)),
        shrink(cst<V>(a.shrink)) {}
  template <unsigned kUse> RAMET_INLINE void take(V& w, V d, V (&states)[1]) const {
    V& m = states[0];
    const V zero = cst<V>(0), way = fma(d, rest1, m * beta1);
    w = w * shrink - pick(lt(zero, way), lr, pick(lt(way, zero), -lr, way));
    m = fma(d, rest2, m * beta2);
  }
};

template <class P> struct AsgdStep {
  using V = typename P::V;
  using Args = AsgdArgs;
  using Uses = StatesInUse<0b1>;
  V minus_eta, shrink, mu, decay;
  bool decays, averages;

  RAMET_INLINE explicit AsgdStep(const AsgdArgs& a)
      : minus_eta(cst<V>(-a.eta)),
        shrink(cst<V>(a.shrink)),
        mu(cst<V>(a.mu)),
        decay(cst<V>(a.weight_decay)),
        decays(a.weight_decay != 0),
        averages(a.mu != 1) {}
  template <unsigned kUse> RAMET_INLINE void take(V& w, V d, V (&states)[1]) const {
    V& ax = states[0];
    if (decays) d = fma(w, decay, d);
    w = fma(d, minus_eta, w * shrink);
    ax = averages ? fma(w - ax, mu, ax) : w;
  }
};

}  // namespace RAMET_VARIANT
#endif

}  // namespace kernels
}  // namespace ramet
