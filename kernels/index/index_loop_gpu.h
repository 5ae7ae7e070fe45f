// The loop over index tensors on a GPU. For .cu files only.
#pragma once
#include "kernels/rows/rows_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/index/index.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {

constexpr int64_t kNowhere = IndexTuple::kNowhere;

struct Loop {
  IndexArgs a;
  IndexDimensions d;
  Divisor<int64_t> by[kMaxKernelRank], by_meetings, by_columns;
  explicit Loop(const IndexArgs& args)
      : a(args), d(args), by_meetings(d.meetings), by_columns(d.columns) {
    for (int32_t i = 0; i < kMaxKernelRank; ++i)
      by[i] = Divisor<int64_t>(i < a.rank ? a.sizes[i] : 1);
  }
  int64_t items() const { return d.rows * d.meetings * d.columns; }
  // IndexTuple::add without a division.
  RAMET_INLINE void add(IndexTuple& t, const int32_t* dims, int32_t rank, int64_t linear) const {
    for (int32_t i = rank - 1; i >= 0; --i) t.go(a, dims[i], by[dims[i]].take(linear));
  }
};

// The new value of an element to which y's value is joined.
template <class T> RAMET_INLINE T joined(IndexMode mode, T x, T y) {
  switch (mode) {
    case IndexMode::kMul: return vmul(x, y);
    case IndexMode::kMax: return pick(ne(x, x), x, max(x, y));
    case IndexMode::kMin: return pick(ne(x, x), x, min(x, y));
    default: return vadd(x, y);
  }
}

// The same loop over words of `word` bytes, each several neighbouring elements. False where the
// memory of a row does not consist of such words: then `a` is as it was.
inline bool in_words(IndexArgs& a, int64_t word) {
  const int64_t per = word / bytes_of(a.dtype), last = a.rank - 1;
  const auto whole = [&](int64_t elements) { return elements % per == 0; };
  if (per <= 1 || a.rank == 0 || a.x_strides[last] != 1 || a.y_strides[last] != 1 ||
      !whole(a.sizes[last]) || reinterpret_cast<uintptr_t>(a.x) % static_cast<uintptr_t>(word) ||
      reinterpret_cast<uintptr_t>(a.y) % static_cast<uintptr_t>(word))
    return false;
  for (int32_t k = 0; k < a.indices; ++k)
    if (a.index_strides[k][last] != 0 || !whole(a.index_step[k])) return false;
  for (int32_t d = 0; d < last; ++d)
    if (!whole(a.x_strides[d]) || !whole(a.y_strides[d])) return false;
  a.sizes[last] /= per;
  for (int32_t d = 0; d < last; ++d) a.x_strides[d] /= per, a.y_strides[d] /= per;
  for (int32_t k = 0; k < a.indices; ++k) a.index_step[k] /= per;
  return true;
}

}  // namespace ramet::kernels::RAMET_VARIANT
