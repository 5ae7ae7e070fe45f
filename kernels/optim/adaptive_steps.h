// Optimizer steps that divide by a state of past gradients, element by element:
// kernels/optim/optimizer_step.h.
#pragma once
#include "kernels/optim/step.h"

namespace ramet {
namespace kernels {

/// g = grad + weight_decay p;  sum += g g;  p -= rate g / (sqrt(sum) + eps)
/// rate = lr / (1 + (t - 1) lr_decay) (Duchi, Hazan and Singer 2011)
struct AdagradArgs : StepArgs<1> {  // sum
  double rate, eps, weight_decay;
};
RAMET_KERNEL(adagrad_step, AdagradArgs);

/// g = grad + weight_decay p;  m = beta1 m + (1 - beta1) g;  u = max(beta2 u, |g| + eps)
/// p -= rate m / u, rate = lr / (1 - beta1^t) (Kingma and Ba 2014)
struct AdamaxArgs : StepArgs<2> {  // m, u
  double rate, beta1, beta2, eps, weight_decay;
};
RAMET_KERNEL(adamax_step, AdamaxArgs);

/// decoupled: g = grad;  p *= shrink;  else: g = grad + weight_decay p
/// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g
/// p -= adaptive ? rate m / (sqrt(v) + eps) : rate m (Liu et al. 2019)
struct RAdamArgs : StepArgs<2> {  // m, v
  double rate, beta1, beta2, eps, weight_decay, shrink;
  bool decoupled, adaptive;
};
RAMET_KERNEL(radam_step, RAdamArgs);

/// g = grad + weight_decay p;  v = rho v + (1 - rho) g g
/// step = sqrt(u + eps) / sqrt(v + eps) g;  u = rho u + (1 - rho) step step;  p -= lr step
/// (Zeiler 2012)
struct AdadeltaArgs : StepArgs<2> {  // v, u
  double lr, rho, eps, weight_decay;
};
RAMET_KERNEL(adadelta_step, AdadeltaArgs);

/// decoupled: g = grad;  p *= shrink;  else: g = grad + weight_decay p
/// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g
/// p -= (gradient_rate g + moment_rate m) / (sqrt(v / bias2) + eps), bias2 = 1 - beta2^t
/// (Dozat 2016)
struct NAdamArgs : StepArgs<2> {  // m, v
  double gradient_rate, moment_rate, beta1, beta2, eps, weight_decay, shrink, bias2;
  bool decoupled;
};
RAMET_KERNEL(nadam_step, NAdamArgs);

#if defined(RAMET_VARIANT)
namespace RAMET_VARIANT {

template <class P> struct AdagradStep {
  using V = typename P::V;
  using Args = AdagradArgs;
  using Uses = StatesInUse<0b1>;
  V minus_rate, eps, decay;
  bool decays;

  RAMET_INLINE explicit AdagradStep(const AdagradArgs& a)
      : minus_rate(cst<V>(-a.rate)),
        eps(cst<V>(a.eps)),
        decay(cst<V>(a.weight_decay)),
        decays(a.weight_decay != 0) {}
  template <unsigned kUse> RAMET_INLINE void take(V& w, V d, V (&states)[1]) const {
    V& sum = states[0];
    if (decays) d = fma(w, decay, d);
    sum = fma(d, d, sum);
    w = fma(d / (sqrt(sum) + eps), minus_rate, w);
  }
};

template <class P> struct AdamaxStep {
  using V = typename P::V;
  using Args = AdamaxArgs;
  using Uses = StatesInUse<0b11>;
  V minus_rate, beta1, rest1, beta2, eps, decay;
  bool decays;

  RAMET_INLINE explicit AdamaxStep(const AdamaxArgs& a)
      : minus_rate(cst<V>(-a.rate)),
        beta1(cst<V>(a.beta1)),
        rest1(cst<V>(1 - a.beta1)),
        beta2(cst<V>(a.beta2)),
        eps(cst<V>(a.eps)),
        decay(cst<V>(a.weight_decay)),
        decays(a.weight_decay != 0) {}
  template <unsigned kUse> RAMET_INLINE void take(V& w, V d, V (&states)[2]) const {
    auto& [m, u] = states;
    if (decays) d = fma(w, decay, d);
    m = fma(d, rest1, m * beta1);
    u = u * beta2;
    u = pick(ne(u, u), u, max(u, vabs(d) + eps));  // a NaN wins
    w = fma(m / u, minus_rate, w);
  }
};

template <class P> struct RAdamStep {
  using V = typename P::V;
  using Args = RAdamArgs;
  using Uses = StatesInUse<0b11>;
  V minus_rate, beta1, rest1, beta2, rest2, eps, decay, shrink;
  bool decays, decoupled, adaptive;

  RAMET_INLINE explicit RAdamStep(const RAdamArgs& a)
      : minus_rate(cst<V>(-a.rate)),
        beta1(cst<V>(a.beta1)),
        rest1(cst<V>(1 - a.beta1)),
        beta2(cst<V>(a.beta2)),
        rest2(cst<V>(1 - a.beta2)),
        eps(cst<V>(a.eps)),
        decay(cst<V>(a.weight_decay)),
        shrink(cst<V>(a.shrink)),
        decays(a.weight_decay != 0),
        decoupled(a.decoupled),
        adaptive(a.adaptive) {}
  template <unsigned kUse> RAMET_INLINE void take(V& w, V d, V (&states)[2]) const {
    auto& [m, v] = states;
    if (decays) {
      if (decoupled) w = w * shrink;
      else d = fma(w, decay, d);
    }
    m = fma(d, rest1, m * beta1);
    v = fma(d * d, rest2, v * beta2);
    w = fma(adaptive ? m / (sqrt(v) + eps) : m, minus_rate, w);
  }
};

template <class P> struct AdadeltaStep {
  using V = typename P::V;
  using Args = AdadeltaArgs;
  using Uses = StatesInUse<0b11>;
  V minus_lr, rho, rest, eps, decay;
  bool decays;

  RAMET_INLINE explicit AdadeltaStep(const AdadeltaArgs& a)
      : minus_lr(cst<V>(-a.lr)),
        rho(cst<V>(a.rho)),
        rest(cst<V>(1 - a.rho)),
        eps(cst<V>(a.eps)),
        decay(cst<V>(a.weight_decay)),
        decays(a.weight_decay != 0) {}
  template <unsigned kUse> RAMET_INLINE void take(V& w, V d, V (&states)[2]) const {
    auto& [v, u] = states;
    if (decays) d = fma(w, decay, d);
    v = fma(d * d, rest, v * rho);
    d = sqrt(u + eps) / sqrt(v + eps) * d;
    u = fma(d * d, rest, u * rho);
    w = fma(d, minus_lr, w);
  }
};

template <class P> struct NAdamStep {
  using V = typename P::V;
  using Args = NAdamArgs;
  using Uses = StatesInUse<0b11>;
  V minus_rate, minus_moment, beta1, rest1, beta2, rest2, eps, decay, shrink, root2;
  bool decays, decoupled;

  RAMET_INLINE explicit NAdamStep(const NAdamArgs& a)
      : minus_rate(cst<V>(-a.gradient_rate)),
        minus_moment(cst<V>(-a.moment_rate)),
        beta1(cst<V>(a.beta1)),
        rest1(cst<V>(1 - a.beta1)),
        beta2(cst<V>(a.beta2)),
        rest2(cst<V>(1 - a.beta2)),
        eps(cst<V>(a.eps)),
        decay(cst<V>(a.weight_decay)),
        shrink(cst<V>(a.shrink)),
        root2(cst<V>(RAMET_LIBM(sqrt)(a.bias2))),
        decays(a.weight_decay != 0),
        decoupled(a.decoupled) {}
  template <unsigned kUse> RAMET_INLINE void take(V& w, V d, V (&states)[2]) const {
    auto& [m, v] = states;
    if (decays) {
      if (decoupled) w = w * shrink;
      else d = fma(w, decay, d);
    }
    m = fma(d, rest1, m * beta1);
    v = fma(d * d, rest2, v * beta2);
    w = w + fma(d, minus_rate, m * minus_moment) / (sqrt(v) / root2 + eps);
  }
};

}  // namespace RAMET_VARIANT
#endif

}  // namespace kernels
}  // namespace ramet
