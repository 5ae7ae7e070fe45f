#include "kernels/copy/copy.h"

#include "kernels/copy/chunk.h"
#include "kernels/copy/copy_plan.h"
#include "kernels/simd/vec.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int64_t kTaskElements = 16 * 1024;

template <int kBytes> struct Word;
template <> struct Word<1> { using type = uint8_t; };
template <> struct Word<2> { using type = uint16_t; };
template <> struct Word<4> { using type = uint32_t; };
template <> struct Word<8> { using type = uint64_t; };

template <class F> RAMET_INLINE void by_size(ScalarType t, F f) {
  switch (bytes_of(t)) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    default: return f(uint64_t{});
  }
}

// n elements from `in` to `out`, any types and strides.
template <class C>
void convert(const char* in, ScalarType in_type, int64_t is, char* out, ScalarType out_type,
             int64_t os, int64_t n) {
  C buffer[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t m = imin(kChunk, n - i);
    if (out_type == ComputeTag<C>::value && os == 1) {
      load_chunk(at(in, in_type, i * is), in_type, is, m,
                 reinterpret_cast<C*>(at(out, out_type, i)));
    } else {
      const C* x = chunk_in(at(in, in_type, i * is), in_type, is, m, buffer);
      store_chunk(at(out, out_type, i * os), out_type, os, m, x);
    }
  }
}
void convert_any(const char* in, ScalarType in_type, int64_t is, char* out, ScalarType out_type,
                 int64_t os, int64_t n) {
  by_compute_type(in_type,
                  [&](auto t) { convert<decltype(t)>(in, in_type, is, out, out_type, os, n); });
}

template <class T> void move_row(const T* in, int64_t is, T* out, int64_t os, int64_t n) {
  if (os == 1 && is == 0) {
    const T value = *in;
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  } else if (os == 1 && is == -1) {
    for (int64_t i = 0; i < n; ++i) out[i] = in[-i];
  } else if (os == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = in[i * is];
  } else {
    for (int64_t i = 0; i < n; ++i) out[i * os] = in[i * is];
  }
}

// out[j * os + i] = in[i * is + j] for i < m, j < n. Full tiles go through registers, edges element
// by element.
template <class T>
void transpose_block(const T* in, int64_t is, T* out, int64_t os, int64_t m, int64_t n) {
  constexpr int64_t kTile = 16;
  for (int64_t j0 = 0; j0 < n; j0 += kTile)
    for (int64_t i0 = 0; i0 < m; i0 += kTile) {
      const int64_t jn = imin(kTile, n - j0), in_rows = imin(kTile, m - i0);
      if constexpr (sizeof(T) == 4) {
        if (jn == kTile && in_rows == kTile) {
          for (int64_t j = j0; j < j0 + kTile; j += VL)
            for (int64_t i = i0; i < i0 + kTile; i += VL) {
              vf r[VL];
#pragma GCC unroll 16
              for (int k = 0; k < VL; ++k)
                r[k] = load(reinterpret_cast<const float*>(in + (i + k) * is + j));
              transpose(r);
#pragma GCC unroll 16
              for (int k = 0; k < VL; ++k)
                store(reinterpret_cast<float*>(out + (j + k) * os + i), r[k]);
            }
          continue;
        }
      }
      for (int64_t j = j0; j < j0 + jn; ++j)
        for (int64_t i = i0; i < i0 + in_rows; ++i) out[j * os + i] = in[i * is + j];
    }
}

void copy_transposed(const CopyStridedArgs& a, bool small) {
  const int last = a.rank - 1, row = a.rank - 2;
  const int64_t m = a.sizes[last], n = a.sizes[row], matrices = product(a.sizes, row);
  const int64_t strip = imax(16, kTaskElements / m / 16 * 16), strips = ceil_div(n, strip);
  auto task = [&](int64_t t, int) {
    Odometer<2> at_matrix{row, a.sizes, {a.in_strides, a.out_strides}, {}, {}};
    at_matrix.seek(t / strips);
    const int64_t j0 = t % strips * strip, jn = imin(strip, n - j0);
    by_size(a.in_type, [&](auto word) {
      using T = decltype(word);
      transpose_block(static_cast<const T*>(a.in) + at_matrix.offset[0] + j0, a.in_strides[last],
                      static_cast<T*>(a.out) + at_matrix.offset[1] + j0 * a.out_strides[row],
                      a.out_strides[row], m, jn);
    });
  };
  if (small)
    for (int64_t t = 0; t < matrices * strips; ++t) task(t, 0);
  else parallel_tasks(matrices * strips, task);
}

}  // namespace

void copy_dense(const CopyDenseArgs& a) {
  const int64_t bytes = a.n * (bytes_of(a.in_type) + bytes_of(a.out_type));
  auto part = [&](int64_t i, int64_t n) {
    const char* in = at(a.in, a.in_type, i);
    char* out = at(a.out, a.out_type, i);
    if (a.in_type == a.out_type) memcpy(out, in, static_cast<size_t>(n * bytes_of(a.in_type)));
    else convert_any(in, a.in_type, 1, out, a.out_type, 1, n);
  };
  if (bytes < parallel_grain()) return part(0, a.n);
  parallel_tasks(ceil_div(a.n, kTaskElements), [&](int64_t t, int) {
    part(t * kTaskElements, imin(kTaskElements, a.n - t * kTaskElements));
  });
}

void copy_strided(const CopyStridedArgs& args) {
  if (args.rank == 0) return copy_dense({args.in, args.out, 1, args.in_type, args.out_type});
  CopyStridedArgs a = args;
  const int last = a.rank - 1;
  const int64_t rows = product(a.sizes, last), n = a.sizes[last];
  if (rows == 0 || n == 0) return;
  const bool small = rows * n * (bytes_of(a.in_type) + bytes_of(a.out_type)) < parallel_grain();
  if (as_transpose(a)) return copy_transposed(a, small);

  // Segments of at most kTaskElements; a task takes as many short rows as fit, or one segment.
  const int64_t is = a.in_strides[last], os = a.out_strides[last];
  const int64_t segments = ceil_div(n, kTaskElements),
                per_task = segments > 1 ? 1 : imax(1, kTaskElements / n);
  auto task = [&](int64_t t, int) {
    const int64_t begin = t * per_task, end = imin(begin + per_task, rows * segments);
    Odometer<2> row{last, a.sizes, {a.in_strides, a.out_strides}, {}, {}};
    row.seek(begin / segments);
    for (int64_t s = begin; s < end; ++s, row.next()) {
      const int64_t i = s % segments * kTaskElements, m = imin(n - i, kTaskElements);
      const char* in = at(a.in, a.in_type, row.offset[0] + i * is);
      char* out = at(a.out, a.out_type, row.offset[1] + i * os);
      if (a.in_type != a.out_type) convert_any(in, a.in_type, is, out, a.out_type, os, m);
      else if (is == 1 && os == 1) memcpy(out, in, static_cast<size_t>(m * bytes_of(a.in_type)));
      else
        by_size(a.in_type, [&](auto word) {
          using T = decltype(word);
          move_row(reinterpret_cast<const T*>(in), is, reinterpret_cast<T*>(out), os, m);
        });
    }
  };
  const int64_t tasks = ceil_div(rows * segments, per_task);
  if (small)
    for (int64_t t = 0; t < tasks; ++t) task(t, 0);
  else parallel_tasks(tasks, task);
}

}  // namespace ramet::kernels::RAMET_VARIANT
