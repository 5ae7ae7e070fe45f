#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first decides what the others mean
#include "kernels/gpu/divisor.h"
#include "kernels/index/search.h"
#include "kernels/index/search_place.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T> __global__ void search_kernel(SearchArgs a, Divisor<int64_t> by_line) {
  for (int64_t i = first_item(); i < a.count; i += item_step()) {
    const int64_t place = search_place<T>(a, i, a.per_line > 0 ? by_line(i) : 0);
    if (a.narrow) static_cast<int32_t*>(a.out)[i] = static_cast<int32_t>(place);
    else static_cast<int64_t*>(a.out)[i] = place;
  }
}

}  // namespace

void search_sorted(const SearchArgs& a, Stream where) {
  by_dtype<float, double, int64_t>(a.dtype, [&](auto t) {
    start_for("search_sorted", where, a.count, search_kernel<decltype(t)>, a,
              Divisor<int64_t>(a.per_line));
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
