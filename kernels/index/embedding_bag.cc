// A bag's sum stays in registers during the loop over rows, strip by strip of its columns. For
// converted values, and for maxima, it stays in the first-level cache.
#include "kernels/index/embedding_bag.h"

#include "kernels/copy/chunk.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T> struct Piece {
  T sum[kChunk], row[kChunk];
  int64_t place[kChunk];
};

template <class T>
void columns(const EmbeddingBagArgs& a, int64_t bag, int64_t from, int64_t to, int64_t c, int64_t n,
             Piece<T>& p) {
  const T* scale = static_cast<const T*>(a.scale);
  T* __restrict sum = p.sum;
  int64_t* __restrict place = p.place;
  for (int64_t j = 0; j < n; ++j) sum[j] = T(0);
  if (a.mode == BagMode::kMax)
    for (int64_t j = 0; j < n; ++j) place[j] = 0;
  int64_t count = 0;
  for (int64_t k = from; k < to; ++k) {
    const int64_t r = a.indices[k];
    if (r == a.padding || r < 0 || r >= a.rows) continue;
    const T* __restrict x = chunk_in(at(a.weight, a.dtype, r * a.cols + c), a.dtype, 1, n, p.row);
    ++count;
    if (a.mode == BagMode::kMax) {
      for (int64_t j = 0; j < n; ++j) {
        const bool larger = count == 1 || x[j] > sum[j];
        sum[j] = larger ? x[j] : sum[j];
        place[j] = larger ? r : place[j];
      }
    } else if (scale) {
      const T s = scale[k];
      for (int64_t j = 0; j < n; ++j) sum[j] += s * x[j];
    } else {
      for (int64_t j = 0; j < n; ++j) sum[j] += x[j];
    }
  }
  if (a.mode == BagMode::kMean && count > 1) {
    const T by = static_cast<T>(count);
    for (int64_t j = 0; j < n; ++j) sum[j] /= by;
  }
  if (a.counts) a.counts[bag] = count;
  if (a.places) memcpy(a.places + bag * a.cols + c, place, static_cast<size_t>(n) * 8);
  store_chunk(at(a.y, a.dtype, bag * a.cols + c), a.dtype, 1, n, sum);
}

// n columns from c on of a bag's sum or mean: 16 of each strip, or fewer of a single one.
template <class T, int kStrips>
RAMET_INLINE void sum_strips(const EmbeddingBagArgs& a, int64_t bag, int64_t from, int64_t to,
                             int64_t c, int64_t n) {
  constexpr int64_t kAhead = 8;  // rows that are prefetched
  const T *weight = static_cast<const T*>(a.weight) + c, *scale = static_cast<const T*>(a.scale);
  const bool whole = kStrips > 1 || n == 16;
  Lanes<T> sum[kStrips];
  for (int q = 0; q < kStrips; ++q) sum[q] = lset<T>(0);
  int64_t count = 0;
  for (int64_t k = from; k < to; ++k) {
    const int64_t r = a.indices[k];
    if (r == a.padding || r < 0 || r >= a.rows) continue;
    if (k + kAhead < to) {
      const int64_t next = a.indices[k + kAhead];
      if (next >= 0 && next < a.rows)
        for (int q = 0; q < kStrips; ++q) __builtin_prefetch(weight + next * a.cols + 16 * q);
    }
    ++count;
    const T* x = weight + r * a.cols;
    for (int q = 0; q < kStrips; ++q) {
      Lanes<T> v = whole ? lload(x + 16 * q) : lload_n<T>(x, n, T(0));
      if (scale) v = lset(scale[k]) * v;
      sum[q] = sum[q] + v;
    }
  }
  T* y = static_cast<T*>(a.y) + bag * a.cols + c;
  for (int q = 0; q < kStrips; ++q) {
    if (whole) lstore(y + 16 * q, sum[q]);
    else lstore_n(y, sum[q], n);
  }
  if (a.mode == BagMode::kMean && count > 1) {
    const T by = static_cast<T>(count);
    for (int64_t j = 0; j < n; ++j) y[j] /= by;
  }
  if (a.counts) a.counts[bag] = count;
}

template <class T>
void one_bag(const EmbeddingBagArgs& a, int64_t bag, int64_t from, int64_t to, Piece<T>& p) {
  if (a.mode != BagMode::kMax && a.dtype == ComputeTag<T>::value && a.cols > 0) {
    int64_t c = 0;
    for (; c + 64 <= a.cols; c += 64) sum_strips<T, 4>(a, bag, from, to, c, 64);
    for (; c < a.cols; c += 16) sum_strips<T, 1>(a, bag, from, to, c, imin(16, a.cols - c));
    return;
  }
  // Without columns the counts are still written.
  for (int64_t c = 0; c < imax(1, a.cols); c += kChunk)
    columns(a, bag, from, to, c, imin(kChunk, a.cols - c), p);
}

template <class T> void run(const EmbeddingBagArgs& a) {
  const int64_t size = a.total / imax(1, a.bags) + 1,
                each = imax(1, 16384 / imax(1, size * a.cols));
  run_tasks(ceil_div(a.bags, each), (a.total + a.bags) * a.cols * bytes_of(a.dtype),
            [&](int64_t task, int) {
              Piece<T> p;
              for (int64_t b = task * each; b < imin(a.bags, (task + 1) * each); ++b) {
                const int64_t from = imax(0, a.offsets[b]),
                              to = imin(a.total, b + 1 < a.given ? a.offsets[b + 1] : a.total);
                one_bag(a, b, from, to, p);
              }
            });
}

}  // namespace

void embedding_bag(const EmbeddingBagArgs& a) {
  by_floating_type(a.dtype, [&](auto t) { run<decltype(t)>(a); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
