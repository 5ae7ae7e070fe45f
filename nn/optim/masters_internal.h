// Masters that operations keep, where no kernel does: Note [Masters] in kernels/optim/step.h.
#pragma once
#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/where.h"

namespace ramet::optim::detail {

using autograd::is_narrow;

/// `t` in float32 if it has 16 bits. There its elements are those of `master`, a float32 tensor of
/// its sizes or undefined, where these round to `t`.
inline Tensor widened(const Tensor& t, const Tensor& master = {}) {
  if (!is_narrow(t.scalar_type())) return t;
  const Tensor now = t.to(kFloat);
  if (!master.defined()) return now;
  const Tensor there = master.to(now.device(), kFloat);
  return where(there.to(t.scalar_type()).to(kFloat).eq(now), there, now);
}

}  // namespace ramet::optim::detail
