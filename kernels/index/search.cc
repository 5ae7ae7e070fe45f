#include "kernels/index/search.h"

#include "kernels/index/search_place.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {

void search_sorted(const SearchArgs& a) {
  constexpr int64_t kEach = 1024;
  by_dtype<float, double, int64_t>(a.dtype, [&](auto t) {
    run_tasks(ceil_div(a.count, kEach), a.count * 64, [&](int64_t task, int) {
      for (int64_t i = task * kEach; i < imin(a.count, (task + 1) * kEach); ++i) {
        const int64_t place = search_place<decltype(t)>(a, i, a.per_line > 0 ? i / a.per_line : 0);
        if (a.narrow) static_cast<int32_t*>(a.out)[i] = static_cast<int32_t>(place);
        else static_cast<int64_t*>(a.out)[i] = place;
      }
    });
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
