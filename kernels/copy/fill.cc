#include "kernels/copy/fill.h"

#include "kernels/copy/chunk.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int64_t kTaskElements = 32 * 1024;

// Runs part(begin, count) over [0, n) in blocks of a fixed size.
template <class F> RAMET_INLINE void in_blocks(int64_t n, int64_t bytes, const F& part) {
  if (bytes < parallel_grain()) return part(int64_t{0}, n);
  parallel_tasks(ceil_div(n, kTaskElements), [&](int64_t t, int) {
    part(t * kTaskElements, imin(kTaskElements, n - t * kTaskElements));
  });
}

template <class T> void fill_run(void* p, int64_t stride, int64_t n, uint64_t bits) {
  T* out = static_cast<T*>(p);
  const T value = static_cast<T>(bits);
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  else
    for (int64_t i = 0; i < n; ++i) out[i * stride] = value;
}
void fill_any(void* p, int64_t stride, int64_t n, uint64_t bits, int32_t item_size) {
  switch (item_size) {
    case 1: return fill_run<uint8_t>(p, stride, n, bits);
    case 2: return fill_run<uint16_t>(p, stride, n, bits);
    case 4: return fill_run<uint32_t>(p, stride, n, bits);
    default: return fill_run<uint64_t>(p, stride, n, bits);
  }
}

// out[i] = f(i), computed in C and stored as `dtype`.
template <class C, class F> void sequence(void* out, ScalarType dtype, int64_t n, const F& f) {
  in_blocks(n, n * bytes_of(dtype), [&](int64_t begin, int64_t count) {
    C buffer[kChunk];
    for (int64_t i = 0; i < count; i += kChunk) {
      const int64_t m = imin(kChunk, count - i);
      for (int64_t j = 0; j < m; ++j) buffer[j] = f(begin + i + j);
      store_chunk(at(out, dtype, begin + i), dtype, 1, m, buffer);
    }
  });
}

}  // namespace

void fill_dense(const FillDenseArgs& a) {
  in_blocks(a.n, a.n * a.item_size, [&](int64_t begin, int64_t count) {
    fill_any(static_cast<char*>(a.out) + begin * a.item_size, 1, count, a.bits, a.item_size);
  });
}

void fill_strided(const FillStridedArgs& a) {
  if (a.rank == 0) return fill_any(a.out, 1, 1, a.bits, a.item_size);
  const int last = a.rank - 1;
  int64_t rows = 1;
  for (int d = 0; d < last; ++d) rows *= a.sizes[d];
  const int64_t n = a.sizes[last];
  if (rows == 0 || n == 0) return;
  const int64_t per_task = imax(1, kTaskElements / n);
  auto task = [&](int64_t t, int) {
    Odometer<1> row{last, a.sizes, {a.strides}, {}, {}};
    row.seek(t * per_task);
    for (int64_t r = t * per_task, end = imin(r + per_task, rows); r < end; ++r, row.next())
      fill_any(static_cast<char*>(a.out) + row.offset[0] * a.item_size, a.strides[last], n, a.bits,
               a.item_size);
  };
  if (rows * n * a.item_size < parallel_grain())
    for (int64_t t = 0; t < ceil_div(rows, per_task); ++t) task(t, 0);
  else parallel_tasks(ceil_div(rows, per_task), task);
}

void arange(const ArangeArgs& a) {
  if (compute_type_of(a.dtype) == ScalarType::Long)
    sequence<int64_t>(a.out, a.dtype, a.n, [&](int64_t i) {
      return static_cast<int64_t>(static_cast<uint64_t>(a.istart) +
                                  static_cast<uint64_t>(i) * static_cast<uint64_t>(a.istep));
    });
  else
    sequence<double>(a.out, a.dtype, a.n,
                     [&](int64_t i) { return a.start + static_cast<double>(i) * a.step; });
}

void linspace(const LinspaceArgs& a) {
  const double step = a.n > 1 ? (a.end - a.start) / static_cast<double>(a.n - 1) : 0;
  sequence<double>(a.out, a.dtype, a.n, [&](int64_t i) {
    return i < a.n / 2 || a.n == 1 ? a.start + step * static_cast<double>(i)
                                   : a.end - step * static_cast<double>(a.n - i - 1);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
