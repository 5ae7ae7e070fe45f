// The search of kernels/index/search.h, on CPUs and GPUs.
#pragma once
#include "kernels/index/search.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

/// The place of value i in its line `of`, which is i / per_line, or 0 if there is only one.
template <class T> RAMET_INLINE int64_t search_place(const SearchArgs& a, int64_t i, int64_t of) {
  const int64_t begin = of * a.n;
  const T* line = static_cast<const T*>(a.boundaries) + begin;
  const int64_t* sorter = a.sorter ? a.sorter + begin : nullptr;
  const T value = static_cast<const T*>(a.values)[i];
  int64_t low = 0, high = a.n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    int64_t at = sorter ? sorter[middle] : middle;
    at = at >= 0 && at < a.n ? at : 0;
    // Negated, so that a value for which no comparison is true goes to the end.
    const bool after = !(a.right ? line[at] > value : line[at] >= value);
    low = after ? middle + 1 : low;
    high = after ? high : middle;
  }
  return low;
}

}  // namespace ramet::kernels::RAMET_VARIANT
