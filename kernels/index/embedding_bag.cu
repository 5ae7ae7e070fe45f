// A thread has a column of a bag: neighbours read neighbours.
#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/index/embedding_bag.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T>
__global__ void bag_kernel(EmbeddingBagArgs a, int64_t columns, Divisor<int64_t> by_columns) {
  const T* scale = static_cast<const T*>(a.scale);
  for (int64_t i = first_item(); i < a.bags * columns; i += item_step()) {
    int64_t bag = i;
    const int64_t c = by_columns.take(bag);
    const int64_t end = bag + 1 < a.given ? a.offsets[bag + 1] : a.total, to = imin(a.total, end);
    T sum = T(0);
    int64_t place = 0, count = 0;
    for (int64_t k = imax(0, a.offsets[bag]); k < to; ++k) {
      const int64_t r = a.indices[k];
      if (r == a.padding || r < 0 || r >= a.rows) continue;
      ++count;
      if (c >= a.cols) continue;
      const T x = load_element<T>(a.weight, a.dtype, r * a.cols + c);
      if (a.mode != BagMode::kMax) sum += scale ? scale[k] * x : x;
      else if (count == 1 || x > sum) sum = x, place = r;
    }
    if (a.mode == BagMode::kMean && count > 1) sum /= static_cast<T>(count);
    if (a.counts && c == 0) a.counts[bag] = count;
    if (c >= a.cols) continue;
    if (a.places) a.places[i] = place;
    store_element(a.y, a.dtype, i, sum);
  }
}

}  // namespace

void embedding_bag(const EmbeddingBagArgs& a, Stream where) {
  // Without columns the counts are still written.
  const int64_t columns = imax(1, a.cols);
  by_floating_type(a.dtype, [&](auto t) {
    start_for("embedding_bag", where, a.bags * columns, bag_kernel<decltype(t)>, a, columns,
              Divisor<int64_t>(columns));
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
