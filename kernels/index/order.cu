// Elements of short lines count the elements before them. Long lines are sorted whole, as pairs of
// key and position. Then the results are taken from them.
#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/index/order.h"
#include "kernels/index/order_key.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

/// The start of line `line` in a block of `n` along the middle axis.
RAMET_INLINE int64_t begin_of(int64_t line, int64_t n, const Divisor<int64_t>& by_inner) {
  int64_t outer = line;
  const int64_t inner = by_inner.take(outer);
  return outer * n * by_inner.by + inner;
}

// A thread has an element. For the mode all elements are put in order, line by line.
template <class U>
__global__ void ranks_kernel(OrderArgs a, OrderKeys<U> keys, int64_t results, Divisor<int64_t> by_n,
                             Divisor<int64_t> by_inner, uint64_t* sorted, int64_t* positions) {
  for (int64_t i = first_item(); i < a.outer * a.inner * a.n; i += item_step()) {
    int64_t line = i;
    const int64_t own = by_n.take(line);
    const U* in = static_cast<const U*>(a.in) + begin_of(line, a.n, by_inner);
    const U key = keys.of(in[own * a.inner]);
    int64_t rank = 0, nans = 0;
    for (int64_t k = 0; k < a.n; ++k) {
      const U other = keys.of(in[k * a.inner]);
      rank += other < key || (other == key && k < own);
      nans += keys.nan(other);
    }
    if (a.pick == OrderPick::kMode) {
      sorted[line * a.n + rank] = key, positions[line * a.n + rank] = own;
      continue;
    }
    if (a.pick == OrderPick::kFirst) {
      if (rank >= results) continue;
    } else {
      const bool one = a.pick == OrderPick::kOne;
      if (rank != (one ? a.count : median_place(a.n, nans, a.pick == OrderPick::kNanMedian)))
        continue;
      rank = 0;
    }
    const int64_t to = begin_of(line, results, by_inner) + rank * a.inner;
    if (a.values) static_cast<U*>(a.values)[to] = in[own * a.inner];
    if (a.positions) a.positions[to] = own;
  }
}

template <class U>
__global__ void keys_kernel(OrderArgs a, OrderKeys<U> keys, uint64_t* out, Divisor<int64_t> by_n,
                            Divisor<int64_t> by_inner) {
  for (int64_t i = first_item(); i < a.outer * a.inner * a.n; i += item_step()) {
    int64_t line = i;
    const int64_t k = by_n.take(line);
    out[i] = keys.of(static_cast<const U*>(a.in)[begin_of(line, a.n, by_inner) + k * a.inner]);
  }
}

// The place of the mode in a sorted line.
template <class U>
__device__ int64_t mode_place(const uint64_t* sorted, int64_t n, const OrderKeys<U>& keys) {
  int64_t best = 0, most = 0;
  for (int64_t i = 0, begin = 0; i < n; ++i) {
    const uint64_t key = sorted[i];
    if (i + 1 < n && sorted[i + 1] == key && !keys.nan(static_cast<U>(key))) continue;
    if (i + 1 - begin > most) best = i, most = i + 1 - begin;
    begin = i + 1;
  }
  return best;
}
// The number of NaNs at the end of a sorted line.
template <class U>
__device__ int64_t nans_of(const uint64_t* sorted, int64_t n, const OrderKeys<U>& keys) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (keys.nan(static_cast<U>(sorted[middle]))) high = middle;
    else low = middle + 1;
  }
  return n - low;
}

template <class U>
__global__ void take_kernel(OrderArgs a, OrderKeys<U> keys, const uint64_t* sorted,
                            const int64_t* positions, int64_t results, Divisor<int64_t> by_results,
                            Divisor<int64_t> by_inner) {
  for (int64_t i = first_item(); i < a.outer * a.inner * results; i += item_step()) {
    int64_t line = i;
    const int64_t result = by_results.take(line);
    const uint64_t* own = sorted + line * a.n;
    int64_t place = a.count;
    if (a.pick == OrderPick::kFirst) place = result;
    else if (a.pick == OrderPick::kMode) place = mode_place(own, a.n, keys);
    else if (a.pick != OrderPick::kOne)
      place = median_place(a.n, nans_of(own, a.n, keys), a.pick == OrderPick::kNanMedian);
    const int64_t from = positions[line * a.n + place],
                  to = begin_of(line, results, by_inner) + result * a.inner;
    if (a.values)
      static_cast<U*>(a.values)[to] =
          static_cast<const U*>(a.in)[begin_of(line, a.n, by_inner) + from * a.inner];
    if (a.positions) a.positions[to] = from;
  }
}

}  // namespace

void order_lines(const OrderArgs& a, Stream where) {
  const int64_t lines = a.outer * a.inner, results = order_results(a);
  if (lines * a.n * results == 0) return;
  auto* keys = static_cast<uint64_t*>(a.workspace);
  int64_t* positions = keys ? reinterpret_cast<int64_t*>(keys + lines * a.n) : nullptr;
  const Divisor<int64_t> by_inner(a.inner);
  by_word(bytes_of(a.dtype), [&](auto word) {
    using U = decltype(word);
    const OrderKeys<U> format(a.dtype, a.descending);
    const Divisor<int64_t> by_n(a.n);
    if (order_counts(a)) {
      start_for("order_lines", where, lines * a.n, ranks_kernel<U>, a, format, results, by_n,
                by_inner, keys, positions);
      if (a.pick != OrderPick::kMode) return;
    } else {
      start_for("order_lines", where, lines * a.n, keys_kernel<U>, a, format, keys, by_n, by_inner);
      sort_pairs({keys, positions, lines, a.n, 8 * static_cast<int32_t>(sizeof(U)),
                  positions + lines * a.n},
                 where);
    }
    start_for("order_lines", where, lines * results, take_kernel<U>, a, format, keys, positions,
              results, Divisor<int64_t>(results), by_inner);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
