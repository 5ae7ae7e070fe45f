// Double and integer products. Both operands are packed (and converted) into slivers. There is one
// register tile, in the compiler's vector extension. No contraction, so every variant gives the
// same bits.
#include "kernels/matrix/gemm_wide.h"

#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64, kRows = 8;
#elif defined(__AVX2__)
constexpr int kBytes = 32, kRows = 4;
#elif defined(__aarch64__)
constexpr int kBytes = 16, kRows = 8;
#else
constexpr int kBytes = 16, kRows = 4;
#endif
constexpr int kLanes = kBytes / 8, kCols = 2 * kLanes;

// Integers are multiplied as unsigned numbers: they wrap.
template <class T> struct Wrapping { using type = T; };
template <> struct Wrapping<int64_t> { using type = uint64_t; };

template <class T> struct Vector {
  typedef typename Wrapping<T>::type type __attribute__((vector_size(kBytes)));
};

// dst[sliver][p][width] = element (i, p) of src, i < rows, p < k, zeros to the width of the last
// sliver.
template <class T>
void pack(const void* src, ScalarType dtype, int64_t row, int64_t col, int64_t rows, int64_t k,
          int64_t width, T* dst) {
  T line[kWideKC];
  for (int64_t i0 = 0; i0 < rows; i0 += width, dst += width * k)
    for (int64_t i = 0; i < width; ++i) {
      if (i0 + i >= rows) {
        for (int64_t p = 0; p < k; ++p) dst[p * width + i] = 0;
        continue;
      }
      const T* values = chunk_in(at(src, dtype, (i0 + i) * row), dtype, col, k, line);
      for (int64_t p = 0; p < k; ++p) dst[p * width + i] = values[p];
    }
}

template <class T> void tile(const T* a, const T* b, int64_t k, T* out) {  // out[kRows][kCols]
  using V = typename Vector<T>::type;
  using U = typename Wrapping<T>::type;
  V acc[kRows][2];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) acc[i][0] = acc[i][1] = V{};
  for (int64_t p = 0; p < k; ++p, a += kRows, b += kCols) {
    V b0, b1;
    __builtin_memcpy(&b0, b, kBytes);
    __builtin_memcpy(&b1, b + kLanes, kBytes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      acc[i][0] += static_cast<U>(a[i]) * b0;
      acc[i][1] += static_cast<U>(a[i]) * b1;
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) __builtin_memcpy(out + i * kCols, acc[i], 2 * kBytes);
}

// Writes the tile's values into C, a row at a time through the compute type.
template <class T>
void finish(const WideGemm<T>& g, const T* out, int64_t i0, int64_t rows, int64_t j0, int64_t cols,
            bool first, bool last) {
  using U = typename Wrapping<T>::type;
  const U alpha = static_cast<U>(g.alpha), beta = first ? static_cast<U>(g.beta) : U{1};
  T old[kCols], bias[kCols], result[kCols];
  const bool add_bias = last && g.bias;
  if (add_bias) load_chunk(at(g.bias, g.dtype, j0), g.dtype, 1, cols, bias);
  for (int64_t i = 0; i < rows; ++i) {
    char* c = at(g.c, g.dtype, (i0 + i) * g.c_row + j0);
    if (beta != 0) load_chunk(c, g.dtype, 1, cols, old);
    for (int64_t j = 0; j < cols; ++j) {
      U v = alpha * static_cast<U>(out[i * kCols + j]);
      if (beta != 0) v += beta * static_cast<U>(old[j]);
      if (add_bias) v += static_cast<U>(bias[j]);
      result[j] = static_cast<T>(v);
    }
    store_chunk(c, g.dtype, 1, cols, result);
  }
}

template <class T> void multiply(const WideGemm<T>& g) {
  const bool threads = g.parallel && static_cast<double>(g.m) * static_cast<double>(g.n) *
                                             static_cast<double>(g.k) >=
                                         2.0 * static_cast<double>(parallel_grain());
  // About 8 tasks, of whole tiles.
  const int64_t rows = g.m >= 8 * kWideMC || !threads
                           ? kWideMC
                           : imax(ceil_div(ceil_div(g.m, 8), kRows) * kRows, kRows);
  const int64_t tasks = ceil_div(g.m, rows);
  for (int64_t jc = 0; jc < g.n; jc += kWideNC) {
    const int64_t nc = imin(g.n - jc, kWideNC);
    int64_t pc = 0;
    do {  // once for k = 0
      const int64_t kc = imin(g.k - pc, kWideKC);
      pack(at(g.b, g.dtype, pc * g.b_row + jc * g.b_col), g.dtype, g.b_col, g.b_row, nc, kc, kCols,
           g.pack_b);
      const auto task = [&](int64_t t, int slot) {
        const int64_t i0 = t * rows, m = imin(g.m - i0, rows);
        T* pa = g.pack_a + slot * kWidePackA;
        pack(at(g.a, g.dtype, i0 * g.a_row + pc * g.a_col), g.dtype, g.a_row, g.a_col, m, kc, kRows,
             pa);
        alignas(64) T out[kRows * kCols];
        for (int64_t j = 0; j < nc; j += kCols)
          for (int64_t i = 0; i < m; i += kRows) {
            tile(pa + i * kc, g.pack_b + j * kc, kc, out);
            finish(g, out, i0 + i, imin(m - i, kRows), jc + j, imin(nc - j, kCols), pc == 0,
                   pc + kc == g.k);
          }
      };
      if (threads) parallel_tasks(tasks, task);
      else
        for (int64_t t = 0; t < tasks; ++t) task(t, 0);
      pc += kc;
    } while (pc < g.k);
  }
}

}  // namespace

void wide_gemm(const WideGemm<double>& g) { multiply(g); }
void wide_gemm(const WideGemm<int64_t>& g) { multiply(g); }

}  // namespace ramet::kernels::RAMET_VARIANT
