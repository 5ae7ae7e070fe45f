// Rows that fuse several operations: losses and gated units (kernels/pointwise/row.h). Their
// derivatives are rows too. The second derivatives are compositions in the fronts (autograd/ops).
#pragma once
#include "kernels/pointwise/row.h"

namespace RAMET_ROWS {

struct OfTwoValues : kernels::Row {
  static constexpr int kOperands = 2;
  static constexpr kernels::PointwiseTypes kTypes = kernels::kOnFloating;
};
struct OfThreeValues : OfTwoValues {
  static constexpr int kOperands = 3;
};

/// a sigmoid(b)
struct Glu : OfTwoValues {
  RAMET_FORMULA value(V a, V b) { return a * vsigmoid(b); }
};
/// g a y (1 - y), y = sigmoid(b): the gradient of b. With h = exp(-|b| / 2) it is g a (h / (1 +
/// h^2))^2, because 1 - y is inaccurate near 1. Square roots, because e^-|b| is denormal from 88
/// on.
struct GluBackward : OfThreeValues {
  RAMET_FORMULA value(V g, V a, V b) {
    const V h = vexp(cst<V>(-0.5) * vabs(b)), root = h / (cst<V>(1) + h * h);
    return g * a * root * root;
  }
};

/// For d = a - b: quadratic where |d| < bend, linear with the slopes +-limit elsewhere.
struct Huber : OfTwoValues {
  // limit / bend: 1 where both are infinite or 0, too.
  RAMET_FORMULA curvature(V bend, V limit) {
    return pick(eq(bend, limit), cst<V>(1), limit / bend);
  }
  RAMET_FORMULA value(V a, V b, V bend, V limit) {
    const V d = a - b, size = vabs(d), half = cst<V>(0.5);
    return pick(lt(size, bend), d * d * (curvature(bend, limit) * half),
                (size - bend * half) * limit);
  }
};
/// Its slope times g; a NaN stays NaN.
struct HuberBackward : OfThreeValues {
  RAMET_FORMULA value(V g, V a, V b, V bend, V limit) {
    const V d = a - b, sign = keep(lt(cst<V>(0), d), cst<V>(1)) - keep(lt(d, cst<V>(0)), cst<V>(1));
    return g * pick(le(bend, vabs(d)), sign * limit, d * Huber::curvature(bend, limit));
  }
};

/// (1 - t) x - log sigmoid(x), without intermediate overflow.
struct BceLogits : OfTwoValues {
  RAMET_FORMULA value(V x, V t) {
    const V zero = cst<V>(0),
            log_terms = vlog1p(vexp(zero - vabs(x))) + pick(lt(x, zero), zero - x, zero);
    return (cst<V>(1) - t) * x + log_terms;  // at infinity x - t x would be NaN
  }
};
/// g (sigmoid(x) - t)
struct BceLogitsBackward : OfThreeValues {
  RAMET_FORMULA value(V g, V x, V t) { return g * (vsigmoid(x) - t); }
};

}  // namespace RAMET_ROWS
