#include "kernels/matrix/blas_gpu.h"
#include "kernels/matrix/gemm_gpu.h"
#include "kernels/reduce/finish_gpu.h"
#include "kernels/rows/row_sums_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/matrix/matmul.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T> struct MatrixProduct {
  using Value = T;
  using Index = int64_t;
  using Batch = int64_t;
  using Row = int64_t;     // start of the row of A
  using Column = int64_t;  // start of the column of B
  struct alignas(16) Depth {
    int64_t a, b;  // offsets from there
  };
  using Out = int64_t;  // start of the row of C
  MatmulArgs g;
  ScalarType c_type;
  int64_t batch, m, n, k;
  bool rows_adjacent, columns_adjacent;
  explicit MatrixProduct(const MatmulArgs& args)
      : g(args),
        c_type(c_type_of(args)),
        batch(g.batch),
        m(g.m),
        n(g.n),
        k(g.k),
        rows_adjacent(g.a_row == 1),
        columns_adjacent(g.b_col == 1) {}

  RAMET_INLINE Batch of(int64_t s) const { return s; }
  RAMET_INLINE Row row(int64_t s, int64_t i) const { return s * g.a_batch + i * g.a_row; }
  RAMET_INLINE Column column(int64_t s, int64_t j) const { return s * g.b_batch + j * g.b_col; }
  RAMET_INLINE Depth depth(Batch, int64_t k) const { return {k * g.a_col, k * g.b_row}; }
  RAMET_INLINE T a(Row start, const Depth& d) const {
    return load_element<T>(g.a, g.dtype, start + d.a);
  }
  RAMET_INLINE T b(const Depth& d, Column start) const {
    return load_element<T>(g.b, g.dtype, start + d.b);
  }
  RAMET_INLINE Out out(Batch s, int64_t i) const { return s * g.c_batch + i * g.c_row; }
  RAMET_INLINE void put(Out row, int64_t j, T sum) const {
    const int64_t at = row + j;
    T y;
    if constexpr (std::is_integral<T>::value) {
      y = vmul(sum, g.ialpha);
      if (g.ibeta != 0) y = vadd(y, vmul(g.ibeta, load_element<T>(g.c, c_type, at)));
      if (g.bias) y = vadd(y, load_element<T>(g.bias, g.dtype, j));
    } else {
      y = sum * static_cast<T>(g.alpha);
      if (g.beta != 0) y = fma(static_cast<T>(g.beta), load_element<T>(g.c, c_type, at), y);
      if (g.bias) y = y + load_element<T>(g.bias, g.dtype, j);
      if (g.relu) y = y < T(0) ? T(0) : y;  // keeps a NaN, unlike max()
    }
    store_element(g.c, c_type, at, y);
  }
};

template <class T>
using DotSum = typename std::conditional<std::is_integral<T>::value, uint64_t, double>::type;

// A block has a segment. If there is only one segment, its sum is the result.
template <class T> __global__ void dot_kernel(DotArgs a, int64_t segment) {
  using Sum = DotSum<T>;
  __shared__ Sum shared[kWarps];
  Sum sum = 0;
  const int64_t begin = blockIdx.x * segment, end = imin(a.n, begin + segment);
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads)
    sum += static_cast<Sum>(load_element<T>(a.a, a.dtype, i * a.a_stride)) *
           static_cast<Sum>(load_element<T>(a.b, a.dtype, i * a.b_stride));
  sum = over_group<kThreads>(sum, Plus(), shared);
  if (threadIdx.x != 0) return;
  if (gridDim.x > 1) static_cast<Sum*>(a.workspace)[blockIdx.x] = sum;
  else store_element(a.out, a.dtype, 0, static_cast<T>(sum));
}
// One block.
template <class T> __global__ void dot_segments_kernel(DotArgs a, int64_t segments) {
  using Sum = DotSum<T>;
  __shared__ Sum shared[kWarps];
  Sum sum = 0;
  for (int64_t s = threadIdx.x; s < segments; s += kThreads)
    sum += static_cast<const Sum*>(a.workspace)[s];
  sum = over_group<kThreads>(sum, Plus(), shared);
  if (threadIdx.x == 0) store_element(a.out, a.dtype, 0, static_cast<T>(sum));
}

// Computes it by cuBLASLt if the library is there, the product is large enough, and the layout of
// the matrices suits it.
bool by_blas(const MatmulArgs& g, Stream where) {
  using ::ramet::cuda::BlasResult;
  // A kernel computes the ReLU after the product, and would round 16-bit results twice.
  if (g.relu && bytes_of(g.dtype) < 4) return false;
  ::ramet::cuda::BlasProduct product;
  if (!suits_blas(g, where, &product)) return false;
  const int device = static_cast<int>(where.device.index());
  const BlasResult done = ::ramet::cuda::blas_multiply("matmul", device, product);
  if (done == BlasResult::kNone) return false;
  const void* const bias = done == BlasResult::kWithoutBias ? g.bias : nullptr;
  if (bias || g.relu)
    finish_product("matmul", where,
                   {g.c, bias, g.batch, g.m, g.n, g.c_batch, product.ldc, c_type_of(g), g.relu});
  return true;
}

}  // namespace

void matmul(const MatmulArgs& g, Stream where) {
  if (g.batch == 0 || g.m == 0 || g.n == 0) return;
  if (by_blas(g, where)) return;
  by_compute_type(g.dtype,
                  [&](auto t) { multiply("matmul", where, MatrixProduct<decltype(t)>(g)); });
}

void dot(const DotArgs& a, Stream where) {
  const GpuCut cut = dot_cut(a.n);
  by_compute_type(a.dtype, [&](auto t) {
    using T = decltype(t);
    start("dot", where, grid_of(cut.pieces), kThreads, 0, dot_kernel<T>, a, cut.length);
    if (cut.pieces > 1)
      start("dot", where, dim3(1), kThreads, 0, dot_segments_kernel<T>, a, cut.pieces);
  });
}

void sum_rows(const SumRowsArgs& a, Stream where) {
  by_row_type(a.dtype, [&](auto s) {
    using S = decltype(s);
    sum_rows_of<S, ComputeOf<S>>("sum_rows", where,
                                 row_sums(a.a, {{a.rows, a.row}}, a.n, 1, a.out, a.out_dtype));
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
