// Rows of activations and of their fused derivatives (kernels/pointwise/row.h). Numbers follow the
// operands.
#pragma once
#include "kernels/pointwise/row.h"

namespace RAMET_ROWS {

/// x where x > 0, else slope x.
struct LeakyRelu : kernels::Function {
  RAMET_FORMULA value(V x, V slope) { return pick(lt(cst<V>(0), x), x, x * slope); }
  template <class T, class S> static T gradient(const T& g, const T& x, const S& slope) {
    return leaky_relu_backward(g, x, slope, false);
  }
};

/// g where x > 0, else slope g.
struct LeakyReluBackward : kernels::Backward {
  RAMET_FORMULA value(V g, V x, V slope) { return pick(lt(cst<V>(0), x), g, g * slope); }
};

/// g where x > threshold, else 0. If x is NaN, the result is g, as in LibTorch.
struct ThresholdBackward : kernels::Backward {
  RAMET_FORMULA value(V g, V x, V threshold) { return pick(le(x, threshold), cst<V>(0), g); }
};

/// g (1 - y^2)
struct TanhBackward : kernels::Backward {
  RAMET_FORMULA value(V g, V y) { return g * (cst<V>(1) - y * y); }
  RAMET_GRADIENT gradient(const T& v, const T& g, const T& y) { return mul(mul(mul(v, g), y), -2); }
};

/// g y (1 - y)
struct SigmoidBackward : kernels::Backward {
  RAMET_FORMULA value(V g, V y) { return g * ((cst<V>(1) - y) * y); }
  RAMET_GRADIENT gradient(const T& v, const T& g, const T& y) {
    return mul(mul(v, g), add(mul(y, -2), 1));
  }
};

/// x Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2 (Hendrycks and Gimpel 2016).
struct Gelu : kernels::Function {
  RAMET_FORMULA value(V x) {
    const V h = x * cst<V>(0.5);
    return fma(h, verf(x * cst<V>(0.70710678118654752440)), h);
  }
  RAMET_GRADIENT gradient(const T& g, const T& x) { return gelu_backward(g, x); }
};

/// g (Phi(x) + x phi(x))
struct GeluBackward : kernels::Backward {
  RAMET_FORMULA value(V g, V x) {
    const V cdf = cst<V>(0.5) * (cst<V>(1) + verf(x * cst<V>(0.70710678118654752440)));
    const V pdf = cst<V>(0.39894228040143267794) * vexp(cst<V>(-0.5) * x * x);
    return g * (cdf + x * pdf);
  }
  // phi(x) (2 - x^2)
  RAMET_GRADIENT gradient(const T& v, const T& g, const T& x) {
    const T squared = square(x);
    return mul(mul(v, g), mul(mul(exp(mul(squared, -0.5)), 0.3989422804014327), rsub(squared, 2)));
  }
};

/// x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3): the same paper's approximation.
struct GeluTanh : kernels::Function {
  static constexpr const char* kNode = "GeluBackward0";
  RAMET_FORMULA value(V x) {
    const V u = cst<V>(0.79788456080286535588) * (x + cst<V>(0.044715) * x * x * x),
            h = x * cst<V>(0.5);
    return fma(h, vtanh(u), h);
  }
  RAMET_GRADIENT gradient(const T& g, const T& x) { return gelu_backward(g, x, "tanh"); }
};

/// g ((1 + th) / 2 + x (1 - th^2) u' / 2), th = tanh(u(x))
struct GeluTanhBackward : kernels::Backward {
  static constexpr const char* kNode = "GeluBackwardBackward0";
  RAMET_FORMULA value(V g, V x) {
    const V k = cst<V>(0.79788456080286535588), x2 = x * x;
    const V th = vtanh(k * (x + cst<V>(0.044715) * x2 * x)),
            slope = k * (cst<V>(1) + cst<V>(3 * 0.044715) * x2);
    return g * (cst<V>(0.5) * (cst<V>(1) + th) + cst<V>(0.5) * x * (cst<V>(1) - th * th) * slope);
  }
  RAMET_GRADIENT gradient(const T& v, const T& g, const T& x) {
    const double k = 0.7978845608028654, c = 0.044715;
    const T squared = square(x), th = tanh(mul(mul(x, add(mul(squared, c), 1)), k));
    // u', and x u'' / 2
    const T slope = mul(add(mul(squared, 3 * c), 1), k), bend = mul(squared, 3 * c * k);
    return mul(mul(v, g),
               mul(rsub(square(th), 1), sub(add(slope, bend), mul(mul(x, th), square(slope)))));
  }
};

/// log(1 + e^(beta x)) / beta; x itself where beta x > threshold.
struct Softplus : kernels::Function {
  static constexpr kernels::Autocast kAutocast = kernels::Autocast::kFloat32;
  RAMET_FORMULA value(V x, V beta, V threshold) {
    return pick(lt(threshold, x * beta), x, vlog1p(vexp(x * beta)) / beta);
  }
  template <class T, class S>
  static T gradient(const T& g, const T& x, const S& beta, const S& threshold) {
    return softplus_backward(g, x, beta, threshold);
  }
};

/// g sigmoid(beta x); g where beta x > threshold.
struct SoftplusBackward : kernels::Backward {
  RAMET_FORMULA value(V g, V x, V beta, V threshold) {
    return pick(lt(threshold, x * beta), g, g * vsigmoid(x * beta));
  }
  // beta y (1 - y), 0 above the threshold
  template <class T, class S>
  static T gradient(const T& v, const T& g, const T& x, const S& beta, const S& threshold) {
    const T scaled = mul(x, beta), y = sigmoid(scaled);
    return where(gt(scaled, threshold), 0, mul(mul(mul(v, g), mul(y, rsub(y, 1))), beta));
  }
};

/// x sigmoid(x)
struct Silu : kernels::Function {
  RAMET_FORMULA value(V x) { return x * vsigmoid(x); }
  RAMET_GRADIENT gradient(const T& g, const T& x) { return silu_backward(g, x); }
};

/// g s (1 + x (1 - s)), s = sigmoid(x)
struct SiluBackward : kernels::Backward {
  RAMET_FORMULA value(V g, V x) {
    const V s = vsigmoid(x);
    return g * (s * (cst<V>(1) + x * (cst<V>(1) - s)));
  }
  // s (1 - s) (2 + x (1 - 2 s))
  RAMET_GRADIENT gradient(const T& v, const T& g, const T& x) {
    const T s = sigmoid(x);
    return mul(mul(v, g), mul(mul(s, rsub(s, 1)), add(mul(x, rsub(mul(s, 2), 1)), 2)));
  }
};

}  // namespace RAMET_ROWS
