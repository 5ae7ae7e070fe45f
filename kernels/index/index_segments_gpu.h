// Sums of tuples that meet in an element, on a GPU: gradients of embeddings, index_add,
// scatter_add. For .cu files only.
//
// Tuples are sorted by destination, so those that meet are neighbours: a run. A run is cut from its
// start into pieces of kIndexPiece tuples. One thread adds a piece in the order of the loop. If
// there are more pieces than one, their sums are added in order. So a sum depends on its own tuples
// alone, and no thread adds thousands of rows of a frequent token.
#pragma once
#include "kernels/index/index_loop_gpu.h"

namespace ramet::kernels::RAMET_VARIANT {

// Many tuples are sorted by destination. keys[row][tuple].
__global__ void keys_kernel(Loop loop, IndexKeys by, uint64_t* keys, int64_t items) {
  const IndexArgs& a = loop.a;
  const IndexDimensions& d = loop.d;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    IndexTuple t;
    int64_t row = i;
    const int64_t meeting = loop.by_meetings.take(row);
    loop.add(t, d.row, d.row_rank, row);
    loop.add(t, d.meeting, d.meeting_rank, meeting);
    keys[i] = by.of(a, t);
  }
}

// The sums of the pieces of long runs have slots. A later piece of a run begins at position p, and
// has slot 2 (p / kIndexPiece) of its row. A first piece has the slot after that. No two share one:
// beginnings of the same kind are at least kIndexPiece positions apart.
struct Segments {
  Loop loop;
  const uint64_t* keys = nullptr;
  const int64_t* tuples = nullptr;
  int64_t* ordinals = nullptr;  // [row][position]: the position in the run
  int64_t* firsts = nullptr;    // [row][position / kIndexPiece]: where a long run begins, else -1
  void* partials = nullptr;     // [row][slot][column]
  uint64_t none = 0;
  int64_t buckets = 0, slots = 0;  // of a row; buckets are whole ones
  Divisor<int64_t> by_buckets{1};
};

// Where the run of position p begins.
RAMET_INLINE int64_t run_start(const uint64_t* keys, int64_t p) {
  const uint64_t key = keys[p];
  int64_t low = 0, high = p;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
RAMET_INLINE bool is_long(const uint64_t* keys, int64_t start, int64_t n) {
  return start + kIndexPiece < n && keys[start + kIndexPiece] == keys[start];
}

__global__ void runs_kernel(Segments s, int64_t pairs) {
  const int64_t n = s.loop.d.meetings;
  for (int64_t i = first_item(); i < pairs; i += item_step()) {
    int64_t row = i;
    const int64_t p = s.loop.by_meetings.take(row);
    const uint64_t* keys = s.keys + row * n;
    const int64_t start = run_start(keys, p);
    s.ordinals[i] = p - start;
    // A long run that begins in a bucket still has the bucket's last position.
    if (p % kIndexPiece != kIndexPiece - 1) continue;
    const bool begins = p - start < kIndexPiece && keys[p] != s.none && is_long(keys, start, n);
    s.firsts[row * s.buckets + p / kIndexPiece] = begins ? start : -1;
  }
}

// kWide neighbouring elements, by 16-byte accesses if there are several.
template <class T, int kWide>
RAMET_INLINE void load_wide(const void* p, ScalarType t, int64_t i, T (&v)[kWide]) {
  if constexpr (kWide == kPack) load_pack(p, t, i, v);
  else v[0] = load_element<T>(p, t, i);
}
template <class T, int kWide>
RAMET_INLINE void store_wide(void* p, ScalarType t, int64_t i, const T (&v)[kWide]) {
  if constexpr (kWide == kPack) store_pack(p, t, i, v);
  else store_element(p, t, i, v[0]);
}
template <class T, int kWide> RAMET_INLINE void add_wide(T (&to)[kWide], const T (&v)[kWide]) {
  RAMET_UNROLL
  for (int c = 0; c < kWide; ++c) to[c] = vadd(to[c], v[c]);
}
// The columns of a thread: loop.by_columns counts packs of kWide.
RAMET_INLINE IndexTuple tuple_at(const Segments& s, int64_t row, int64_t column, int64_t tuple) {
  IndexTuple t;
  s.loop.add(t, s.loop.d.column, s.loop.d.column_rank, column);
  s.loop.add(t, s.loop.d.row, s.loop.d.row_rank, row);
  s.loop.add(t, s.loop.d.meeting, s.loop.d.meeting_rank, tuple);
  return t;
}
template <class T>
RAMET_INLINE T* partial(const Segments& s, int64_t row, int64_t slot, int64_t column) {
  return static_cast<T*>(s.partials) + (row * s.slots + slot) * s.loop.d.columns + column;
}

template <class T, int kWide> __global__ void pieces_kernel(Segments s, int64_t items) {
  const IndexArgs& a = s.loop.a;
  const int64_t n = s.loop.d.meetings;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    int64_t row = i;
    const int64_t column = s.loop.by_columns.take(row) * kWide, p = s.loop.by_meetings.take(row);
    const uint64_t* keys = s.keys + row * n;
    const int64_t* tuples = s.tuples + row * n;
    const uint64_t key = keys[p];
    const int64_t ordinal = s.ordinals[row * n + p];
    if (key == s.none || ordinal % kIndexPiece != 0) continue;
    const IndexTuple own = tuple_at(s, row, column, tuples[p]);
    const int64_t target = own.x + own.place(a), end = imin(n, p + kIndexPiece);
    T sum[kWide], v[kWide];
    load_wide(a.y, a.y_dtype, own.y, sum);
    if (ordinal == 0) {
      load_wide(a.x, a.dtype, target, v);
      RAMET_UNROLL
      for (int c = 0; c < kWide; ++c) sum[c] = vadd(v[c], sum[c]);
    }
    const auto load = [&](int64_t j, T(&to)[kWide]) {
      load_wide(a.y, a.y_dtype, tuple_at(s, row, column, tuples[j]).y, to);
    };
    // Several at once, for one wait for memory.
    constexpr int kReads = 4;
    int64_t j = p + 1;
    for (; j + kReads <= end && keys[j + kReads - 1] == key; j += kReads) {
      T several[kReads][kWide];
      RAMET_UNROLL
      for (int k = 0; k < kReads; ++k) load(j + k, several[k]);
      RAMET_UNROLL
      for (int k = 0; k < kReads; ++k) add_wide(sum, several[k]);
    }
    for (; j < end && keys[j] == key; ++j) {
      load(j, v);
      add_wide(sum, v);
    }
    if (ordinal == 0 && !is_long(keys, p, n)) {
      store_wide(a.x, a.dtype, target, sum);
    } else {
      T* const to = partial<T>(s, row, 2 * (p / kIndexPiece) + (ordinal == 0), column);
      RAMET_UNROLL
      for (int c = 0; c < kWide; ++c) to[c] = sum[c];
    }
  }
}

template <class T, int kWide> __global__ void runs_sum_kernel(Segments s, int64_t items) {
  const IndexArgs& a = s.loop.a;
  const int64_t n = s.loop.d.meetings;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    int64_t row = i;
    const int64_t column = s.loop.by_columns.take(row) * kWide, bucket = s.by_buckets.take(row),
                  first = s.firsts[row * s.buckets + bucket];
    if (first < 0) continue;
    const uint64_t* keys = s.keys + row * n;
    const uint64_t key = keys[first];
    T sum[kWide];
    const auto take = [&](int64_t slot, auto&& each) {
      const T* from = partial<T>(s, row, slot, column);
      RAMET_UNROLL
      for (int c = 0; c < kWide; ++c) each(c, from[c]);
    };
    take(2 * bucket + 1, [&](int c, T v) { sum[c] = v; });
    for (int64_t p = first + kIndexPiece; p < n && keys[p] == key; p += kIndexPiece)
      take(2 * (p / kIndexPiece), [&](int c, T v) { sum[c] = vadd(sum[c], v); });
    const IndexTuple own = tuple_at(s, row, column, s.tuples[row * n + first]);
    store_wide(a.x, a.dtype, own.x + own.place(a), sum);
  }
}

// Do the columns consist of packs, whose elements are neighbours in x and in y?
inline bool columns_packed(const Loop& loop) {
  const IndexArgs& a = loop.a;
  const IndexDimensions& d = loop.d;
  if (d.column_rank == 0 || !packs_fit(a.x, a.dtype) || !packs_fit(a.y, a.y_dtype)) return false;
  const int32_t last = d.column[d.column_rank - 1];
  if (a.x_strides[last] != 1 || a.y_strides[last] != 1 || a.sizes[last] % kPack != 0) return false;
  for (int32_t e = 0; e < a.rank; ++e)
    if (e != last && (a.x_strides[e] % kPack != 0 || a.y_strides[e] % kPack != 0)) return false;
  for (int32_t k = 0; k < a.indices; ++k)
    if (a.index_step[k] % kPack != 0) return false;
  return true;
}

/// x[...] += y for sorted tuples: keys and, after them in the workspace, tuples. What the sort has
/// used is free again.
template <class T>
void add_segments(const char* name, Stream where, const Loop& loop, const uint64_t* keys,
                  uint64_t none) {
  const IndexDimensions& d = loop.d;
  const int64_t pairs = d.rows * d.meetings;
  Segments s{loop};
  s.keys = keys, s.none = none;
  s.tuples = reinterpret_cast<const int64_t*>(keys + pairs);
  s.ordinals = const_cast<int64_t*>(s.tuples) + pairs;
  s.firsts = s.ordinals + pairs;
  s.partials =
      static_cast<char*>(loop.a.workspace) + 16 * pairs + sort_workspace(d.rows, d.meetings);
  s.buckets = d.meetings / kIndexPiece, s.slots = index_slots(d.meetings);
  s.by_buckets = Divisor<int64_t>(s.buckets);
  start_for(name, where, pairs, runs_kernel, s, pairs);
  const auto sum = [&](auto wide) {
    constexpr int kWide = decltype(wide)::value;
    const int64_t packs = d.columns / kWide;
    s.loop.by_columns = Divisor<int64_t>(packs);
    start_for(name, where, pairs * packs, pieces_kernel<T, kWide>, s, pairs * packs);
    const int64_t joins = d.rows * s.buckets * packs;
    start_for(name, where, joins, runs_sum_kernel<T, kWide>, s, joins);
  };
  if (columns_packed(loop)) sum(std::integral_constant<int, kPack>());
  else sum(std::integral_constant<int, 1>());
}

}  // namespace ramet::kernels::RAMET_VARIANT
