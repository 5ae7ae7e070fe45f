// Bias and ReLU for a product that cuBLASLt has written without them: Note [Epilogues of cuBLASLt]
// in runtime/cuda/blas.h.
#pragma once
#include "kernels/gpu/gpu_launch.h"
#include "kernels/util.h"
#include "runtime/base/dtype.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

/// c[s][i][j] = act(c[s][i][j] + bias[j]), for adjacent j < n. bias may be null. act is max(0, x)
/// with `relu`, which keeps a NaN. Floats or doubles.
struct FinishArgs {
  void* c;
  const void* bias;
  int64_t batch, m, n, c_batch, c_row;
  ScalarType dtype;
  bool relu;
};

// A block takes a row at a time.
template <class T> __global__ void finish_kernel(FinishArgs a) {
  for (int64_t s = blockIdx.y; s < a.batch; s += gridDim.y)
    for (int64_t i = blockIdx.x; i < a.m; i += gridDim.x) {
      T* const c = static_cast<T*>(a.c) + s * a.c_batch + i * a.c_row;
      for (int64_t j = threadIdx.x; j < a.n; j += blockDim.x) {
        T y = c[j];
        if (a.bias) y = y + static_cast<const T*>(a.bias)[j];
        if (a.relu) y = y < T(0) ? T(0) : y;  // keeps a NaN, unlike max()
        c[j] = y;
      }
    }
}

inline void finish_product(const char* name, Stream where, const FinishArgs& a) {
  dim3 grid = grid_of(a.m);
  grid.y = static_cast<unsigned>(imin(a.batch, 65535));
  by_dtype<float, double>(a.dtype, [&](auto t) {
    start(name, where, grid, kThreads, 0, finish_kernel<decltype(t)>, a);
  });
}

}  // namespace
}  // namespace ramet::kernels::RAMET_VARIANT
