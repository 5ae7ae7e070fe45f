// How a Mersenne's numbers get into a tensor: its elements in the order of memory, a chunk of
// values at a time. Private to autograd/ops/random/mersenne*.cc.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/ops/make/copy.h"
#include "autograd/ops/random/mersenne_internal.h"

namespace ramet {
namespace autograd {
namespace mersenne {

inline constexpr int64_t kChunk = 256;

/// Puts n values into the elements from number `at` on, converted to `dtype`.
void store(void* elements, ScalarType dtype, int64_t at, const double* values, int64_t n);
void store(void* elements, ScalarType dtype, int64_t at, const int64_t* values, int64_t n);
/// The elements of dense memory as doubles.
std::vector<double> loaded(const Tensor& dense);

/// x with its dimensions in the order of the memory of `of`, the slowest first.
Tensor in_memory_order(const Tensor& x, const Tensor& of);
/// Calls write(memory) with the elements of x, dense and in the order of memory; unless there are
/// none.
template <class Write> void written(const Tensor& x, const Write& write) {
  if (x.numel() == 0) return;
  if (x.raw_contiguous()) return write(x.ptr());
  const Tensor order = in_memory_order(x, x);
  if (order.raw_contiguous()) return write(order.ptr());
  const TensorBase dense = TensorBase::empty(order.sizes(), x.scalar_type(), x.device());
  write(dense.ptr());
  copy_values(order, dense);
}

/// x[i] = draw(engine, i), for each i in the order of memory. V: double or int64_t.
template <class V, class Draw>
void fill(const char* op, const Tensor& x, const Generator& generator, const Draw& draw) {
  written(x, [&](void* elements) {
    const MersenneDraw engine(op, generator);
    const int64_t n = x.numel();
    V values[kChunk];
    for (int64_t at = 0; at < n; at += kChunk) {
      const int64_t count = std::min(kChunk, n - at);
      for (int64_t i = 0; i < count; ++i) values[i] = draw(*engine, at + i);
      store(elements, x.scalar_type(), at, values, count);
    }
  });
}

}  // namespace mersenne
}  // namespace autograd
}  // namespace ramet
