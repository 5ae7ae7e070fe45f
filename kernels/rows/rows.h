// Shared parts of row kernels (softmax, layer norm, cross entropy): rows as their compute type, and
// their division into tasks.
#pragma once
#include "kernels/copy/chunk.h"
#include "kernels/rows/row_tasks.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {

/// f(first row, end row, slot), on the pool if there is enough work. Results of a row never depend
/// on the cut.
template <class F> RAMET_INLINE void by_rows(int64_t rows, int64_t cols, ScalarType t, const F& f) {
  const int64_t each = imax(1, imin(64, 32768 / imax(1, cols)));
  run_tasks(ceil_div(rows, each), rows * cols * bytes_of(t),
            [&](int64_t task, int slot) { f(task * each, imin(rows, (task + 1) * each), slot); });
}

/// Row r of a dense rows x cols block as T: in place, or converted into buffer number `which` of
/// this slot. (Buffers: row_workspace in row_tasks.h; null if the dtype is T.)
template <class T>
RAMET_INLINE const T* row_in(const void* x, ScalarType t, int64_t r, int64_t cols, char* buffers,
                             int which) {
  const void* p = at(x, t, r * cols);
  if (t == ComputeTag<T>::value) return static_cast<const T*>(p);
  T* buffer = reinterpret_cast<T*>(buffers) + which * row_stride(cols);
  load_chunk(p, t, 1, cols, buffer);
  return buffer;
}
/// The place to write row r. Then row_done converts it.
template <class T>
RAMET_INLINE T* row_out(void* y, ScalarType t, int64_t r, int64_t cols, char* buffers, int which) {
  if (t == ComputeTag<T>::value) return static_cast<T*>(y) + r * cols;
  return reinterpret_cast<T*>(buffers) + which * row_stride(cols);
}
template <class T>
RAMET_INLINE void row_done(void* y, ScalarType t, int64_t r, int64_t cols, const T* row) {
  if (t != ComputeTag<T>::value) store_chunk(at(y, t, r * cols), t, 1, cols, row);
}
RAMET_INLINE char* slot_buffers(void* workspace, int64_t cols, int buffers, int slot) {
  return static_cast<char*>(workspace) + slot * buffers * row_stride(cols) * 4;
}

/// Non-temporal stores pay for results that fit no cache. They need whole aligned groups.
RAMET_INLINE bool streams_past_caches(const void* y, ScalarType t, int64_t rows, int64_t cols) {
  return t == ScalarType::Float && reinterpret_cast<uintptr_t>(y) % 64 == 0 && cols % 16 == 0 &&
         rows * cols >= kStreamedElements;
}

}  // namespace ramet::kernels::RAMET_VARIANT
