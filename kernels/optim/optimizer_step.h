// One optimizer step of many tensors, in one pass over memory and one launch. Also the norm of
// their gradients and its limit. Order of operations as in LibTorch (torch/csrc/api/src/optim). For
// dense tensors or runs of a module's flat store. An element's bits depend neither on the other
// tensors nor on its position, and are the same on CPUs and GPUs.
//
// A step is an argument block, a formula and a name in RAMET_OPTIMIZER_STEPS. From these the
// kernels for all dtypes, CPUs and GPUs are made. Where a dtype is a 16-bit one, a step computes in
// float and rounds each result once.
// Only kernels use the formula. Its compute type P::V is a vector of floats, a float or a double.
// SGD, Adam and RMSprop are here, the others in the included headers.
#pragma once
#include "kernels/optim/adaptive_steps.h"
#include "kernels/optim/plain_steps.h"
#include "kernels/optim/step.h"

namespace ramet {
namespace kernels {

/// g = grad + weight_decay p
/// with momentum: buffer = first ? g : momentum buffer + (1 - dampening) g
///                g = nesterov ? g + momentum buffer : buffer
/// p -= lr g
struct SgdArgs : StepArgs<1> {  // momentum buffer
  double lr, momentum, dampening, weight_decay;
  bool nesterov, first;
};
RAMET_KERNEL(sgd_step, SgdArgs);

/// decoupled (AdamW, Loshchilov and Hutter 2017): g = grad;  p *= 1 - lr weight_decay
/// else (Adam, Kingma and Ba 2014): g = grad + weight_decay p
/// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g
/// amsgrad (max_v in use): max_v = max(max_v, v), in place of v
/// p -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps), bias1 = 1 - beta1^t, bias2 = 1 - beta2^t
struct AdamArgs : StepArgs<3> {  // m, v, max_v
  double lr, beta1, beta2, eps, weight_decay, bias1, bias2;
  bool decoupled;
};
RAMET_KERNEL(adam_step, AdamArgs);

/// g = grad + weight_decay p;  v = alpha v + (1 - alpha) g g
/// centered (mean in use): mean = alpha mean + (1 - alpha) g, and v - mean^2 in place of v
/// step = g / (sqrt(v) + eps);  with momentum (buffer in use): buffer = momentum buffer + step
/// p -= lr (with momentum: buffer, else: step)
/// (Tieleman and Hinton 2012; centered: Graves 2013)
struct RmspropArgs : StepArgs<3> {  // v, buffer, mean
  double lr, alpha, eps, weight_decay, momentum;
};
RAMET_KERNEL(rmsprop_step, RmspropArgs);

/// sums[t] = the sum of x[i]^2 over tensor t, in double. It uses 32 lanes over blocks of 8192
/// elements, then 32 lanes over the blocks' sums, folded in a fixed order. Dense tensors of any
/// type. `partials` holds sum_squares_partials(n) doubles for each tensor, one after the other.
struct DenseTensor {
  void* x;
  int64_t n;
};
struct SumSquaresArgs {
  double* partials;
  double* sums;
  ScalarType dtype;
  int32_t count;
  DenseTensor tensors[kOptimizerTensors];
};
RAMET_KERNEL(sum_squares, SumSquaresArgs);
inline constexpr int64_t kSumSquaresBlock = 8192;
constexpr int64_t sum_squares_partials(int64_t n) {
  return (n + kSumSquaresBlock - 1) / kSumSquaresBlock;
}

/// *norm = sqrt(sums[0] + sums[1] + ...), in order.
struct TotalNormArgs {
  const double* sums;
  double* norm;
  int64_t count;
};
RAMET_KERNEL(total_norm, TotalNormArgs);

/// x *= factor, factor = max_norm / (*norm + 1e-6), if that is less than 1 or NaN. Otherwise
/// nothing. Floating dtypes; 16-bit ones in float.
struct LimitNormArgs {
  const double* norm;
  double max_norm;
  ScalarType dtype;
  int32_t count;
  DenseTensor tensors[kOptimizerTensors];
};
RAMET_KERNEL(limit_norm, LimitNormArgs);

/// x *= 1 / *scale, rounded to float first as PyTorch does. *found = 1 if an x was infinite or NaN
/// before; otherwise *found does not change. Floating dtypes; 16-bit ones in float.
struct UnscaleArgs {
  const float* scale;
  float* found;
  ScalarType dtype;
  int32_t count;
  DenseTensor tensors[kOptimizerTensors];
};
RAMET_KERNEL(unscale, UnscaleArgs);

/// *found != 0: *scale *= backoff and *tracker = 0. Else ++*tracker; at `interval` it becomes 0 and
/// *scale *= growth, unless the product is infinite.
struct UpdateScaleArgs {
  float* scale;
  int32_t* tracker;
  const float* found;
  double growth, backoff;
  int64_t interval;
};
RAMET_KERNEL(update_scale, UpdateScaleArgs);

#if defined(RAMET_VARIANT)
namespace RAMET_VARIANT {

/// update_scale by one thread.
RAMET_INLINE void update_scale_of(const UpdateScaleArgs& a) {
  if (*a.found != 0) {
    *a.scale = static_cast<float>(*a.scale * a.backoff);
    *a.tracker = 0;
  } else if (*a.tracker + 1 != a.interval) {
    ++*a.tracker;
  } else {
    const float more = static_cast<float>(*a.scale * a.growth);
    if (more - more == 0) *a.scale = more;
    *a.tracker = 0;
  }
}

template <class P> struct SgdStep {
  using V = typename P::V;
  using Args = SgdArgs;
  using Uses = StatesInUse<0, 1>;
  V minus_lr, decay, momentum, damped;
  bool decays, first, nesterov;

  RAMET_INLINE explicit SgdStep(const SgdArgs& a)
      : minus_lr(cst<V>(-a.lr)),
        decay(cst<V>(a.weight_decay)),
        momentum(cst<V>(a.momentum)),
        damped(cst<V>(1 - a.dampening)),
        decays(a.weight_decay != 0),
        first(a.first),
        nesterov(a.nesterov) {}
  /// A parameter, its gradient, its states.
  template <unsigned kUse> RAMET_INLINE void take(V& w, V d, V (&states)[1]) const {
    if (decays) d = fma(w, decay, d);
    if (kUse & 1) {
      V& buffer = states[0];
      buffer = first ? d : fma(d, damped, buffer * momentum);
      d = nesterov ? fma(buffer, momentum, d) : buffer;
    }
    w = fma(d, minus_lr, w);
  }
};

template <class P> struct AdamStep {
  using V = typename P::V;
  using Args = AdamArgs;
  using Uses = StatesInUse<0b011, 0b111>;
  V beta1, rest1, beta2, rest2, eps, decay, shrink, minus_step, root2;
  bool decays, decoupled;

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
        decays(a.weight_decay != 0),
        decoupled(a.decoupled) {}
  template <unsigned kUse> RAMET_INLINE void take(V& w, V d, V (&states)[3]) const {
    auto& [m, v, most] = states;
    if (decays) {
      if (decoupled) w = w * shrink;
      else d = fma(w, decay, d);
    }
    m = fma(d, rest1, m * beta1);
    v = fma(d * d, rest2, v * beta2);
    V second = v;
    if (kUse & 4) second = most = pick(ne(most, most), most, max(most, v));  // a NaN wins
    w = w + minus_step * m / (sqrt(second) / root2 + eps);
  }
};

template <class P> struct RmspropStep {
  using V = typename P::V;
  using Args = RmspropArgs;
  using Uses = StatesInUse<0b001, 0b011, 0b101, 0b111>;
  V minus_lr, alpha, rest, eps, decay, momentum;
  bool decays;

  RAMET_INLINE explicit RmspropStep(const RmspropArgs& a)
      : minus_lr(cst<V>(-a.lr)),
        alpha(cst<V>(a.alpha)),
        rest(cst<V>(1 - a.alpha)),
        eps(cst<V>(a.eps)),
        decay(cst<V>(a.weight_decay)),
        momentum(cst<V>(a.momentum)),
        decays(a.weight_decay != 0) {}
  template <unsigned kUse> RAMET_INLINE void take(V& w, V d, V (&states)[3]) const {
    auto& [v, buffer, mean] = states;
    if (decays) d = fma(w, decay, d);
    v = fma(d * d, rest, v * alpha);
    V second = v;
    if (kUse & 4) {
      mean = fma(d, rest, mean * alpha);
      second = v - mean * mean;
    }
    d = d / (sqrt(second) + eps);
    if (kUse & 2) d = buffer = fma(buffer, momentum, d);
    w = fma(d, minus_lr, w);
  }
};

#define RAMET_OPTIMIZER_STEPS(X) \
  X(sgd_step, SgdStep)           \
  X(adam_step, AdamStep)         \
  X(rmsprop_step, RmspropStep)   \
  X(adagrad_step, AdagradStep)   \
  X(adamax_step, AdamaxStep)     \
  X(radam_step, RAdamStep)       \
  X(adadelta_step, AdadeltaStep) \
  X(rprop_step, RpropStep)       \
  X(lion_step, LionStep)         \
  X(nadam_step, NAdamStep)       \
  X(asgd_step, AsgdStep)

/// f(constant with the states in use in `a`), on the host.
template <class Args, unsigned... kUse, class F>
inline __attribute__((always_inline)) void by_use(const Args& a, StatesInUse<kUse...>, const F& f) {
  if (a.count == 0) return;
  // By doubling, not by a shift: under UBSan GCC 12 treated a null pointer here as not null.
  unsigned use = 0, bit = 1;
  for (const void* state : a.tensors[0].states) {
    if (state) use |= bit;
    bit += bit;
  }
  if (!((use == kUse && (f(std::integral_constant<unsigned, kUse>()), true)) || ...))
    __builtin_trap();
}

}  // namespace RAMET_VARIANT
#endif

}  // namespace kernels
}  // namespace ramet
