// Code shared by random draws: keys, fills, checks. Private to autograd/ops.
#pragma once
#include <optional>

#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/random/mersenne_internal.h"
#include "autograd/ops/reduce/reduce.h"
#include "kernels/random/random.h"
#include "runtime/devices/generator.h"

namespace ramet {
namespace autograd {

inline Generator given(const std::optional<Generator>& g) { return g.value_or(Generator()); }

inline kernels::RandomKey key_for(const TensorBase& t, const Generator& generator) {
  const PhiloxKey k = reserve_random(t.device(), t.sizes(), generator);
  return {k.seed, k.offset, k.base};
}

// Calls draw(dense tensor, key) for x. Elements are numbered in row-major order, whatever the
// memory layout.
template <class Draw>
void draw_into(const Tensor& x, const Generator& generator, const Draw& draw) {
  const kernels::RandomKey key = key_for(x, generator);
  if (x.numel() == 0) return;
  if (x.raw_contiguous()) return draw(x, key);
  const TensorBase dense = TensorBase::empty(x.sizes(), x.scalar_type(), x.device());
  draw(dense, key);
  copy_values(x, dense);
}

// Fills x. `op` is for the Error where LibTorch's numbers cannot be drawn.
inline void uniform_into(const char* op, const Tensor& x, double a, double b,
                         const Generator& generator = {}) {
  if (draws_from_mersenne(x.device(), generator)) return mersenne::uniform(op, x, a, b, generator);
  draw_into(x, generator, [&](const TensorBase& t, const kernels::RandomKey& key) {
    kernels::random_uniform(t.stream(), {t.ptr(), t.numel(), key, a, b, t.scalar_type()});
  });
}
inline void normal_into(const char* op, const Tensor& x, double mean, double std,
                        const Generator& generator = {}) {
  if (draws_from_mersenne(x.device(), generator))
    return mersenne::normal(op, x, mean, std, generator);
  draw_into(x, generator, [&](const TensorBase& t, const kernels::RandomKey& key) {
    kernels::random_normal(t.stream(), {t.ptr(), t.numel(), key, mean, std, t.scalar_type()});
  });
}

inline void check_floating(const char* op, const Tensor& x) {
  check_defined(op, x);
  RAMET_CHECK(is_floating(x.scalar_type()), op, "only for floating-point dtypes: got ",
              describe(x));
}
// The steps around the kernel of every in-place fill.
template <class Fill>
Tensor& in_place(const char* op, const char* node, const Tensor& x, const Fill& fill) {
  check_inplace(op, x);
  fill();
  wrote(op, x);
  if (recording(x)) cut_history(node, x);
  return as_mutable(x);
}

}  // namespace autograd
}  // namespace ramet
