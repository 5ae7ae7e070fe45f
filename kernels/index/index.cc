#include "kernels/index/index.h"

#include "kernels/copy/cast.h"
#include "kernels/copy/chunk.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Integers wrap: they are added unsigned.
template <class T> struct Unsigned { using type = T; };
template <> struct Unsigned<int64_t> { using type = uint64_t; };

// One task's part of the loop: all of it except one dimension, of which it has [begin, begin +
// sizes[d]).
struct Box {
  int64_t sizes[kMaxKernelRank];
  int64_t x, y, index[kMaxIndexTensors];  // offsets of the first tuple
};

RAMET_INLINE int64_t place(int64_t i, int64_t size, int64_t step) {
  return (i < 0 ? i + size : i) * step;
}

// Can an index have the value to be skipped?
RAMET_INLINE bool may_skip(const IndexArgs& a) {
  return a.indices > 0 && a.skipped >= -a.index_size[0] && a.skipped < a.index_size[0];
}

template <class U>
void copy_run(void* to, int64_t to_stride, const void* from, int64_t from_stride, int64_t n) {
  U* t = static_cast<U*>(to);
  const U* f = static_cast<const U*>(from);
  for (int64_t i = 0; i < n; ++i) t[i * to_stride] = f[i * from_stride];
}
void copy_elements(void* to, int64_t to_stride, const void* from, int64_t from_stride, int64_t n,
                   int64_t bytes) {
  if (to_stride == 1 && from_stride == 1) {
    __builtin_memcpy(to, from, static_cast<size_t>(n * bytes));
    return;
  }
  switch (bytes) {
    case 1: return copy_run<uint8_t>(to, to_stride, from, from_stride, n);
    case 2: return copy_run<uint16_t>(to, to_stride, from, from_stride, n);
    case 4: return copy_run<uint32_t>(to, to_stride, from, from_stride, n);
    default: return copy_run<uint64_t>(to, to_stride, from, from_stride, n);
  }
}

// Rows are often a few cache lines, so it does not call memcpy for each.
RAMET_INLINE void copy_dense(char* __restrict to, const char* __restrict from, int64_t bytes) {
  int64_t i = 0;
  for (; i + 64 <= bytes; i += 64) {
    typedef char Line __attribute__((vector_size(64), aligned(1), may_alias));
    *reinterpret_cast<Line*>(to + i) = *reinterpret_cast<const Line*>(from + i);
  }
  if (i < bytes) __builtin_memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
}
template <class T> RAMET_INLINE void add_dense(T* to, const T* from, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) lstore(to + i, lload(to + i) + lload(from + i));
  for (; i < n; ++i) to[i] += from[i];
}

template <class T> RAMET_INLINE bool is_nan(T v) {
  if constexpr (std::is_integral<T>::value) return false;
  else return v != v;
}
// Joins n elements by the mode. L is T, unsigned where integers wrap.
template <class T> void join(IndexMode mode, T* to, const T* from, int64_t n) {
  using L = typename Unsigned<T>::type;
  L* p = reinterpret_cast<L*>(to);
  const L* q = reinterpret_cast<const L*>(from);
  switch (mode) {
    case IndexMode::kMul:
      for (int64_t i = 0; i < n; ++i) p[i] *= q[i];
      break;
    case IndexMode::kMax:
      for (int64_t i = 0; i < n; ++i) to[i] = to[i] > from[i] || is_nan(to[i]) ? to[i] : from[i];
      break;
    case IndexMode::kMin:
      for (int64_t i = 0; i < n; ++i) to[i] = to[i] < from[i] || is_nan(to[i]) ? to[i] : from[i];
      break;
    default:
      for (int64_t i = 0; i < n; ++i) p[i] += q[i];
  }
}
// x += y, or the mode's operation, for n elements at distinct places.
template <class T>
void join_run(IndexMode mode, void* x, int64_t x_stride, const void* y, int64_t y_stride, int64_t n,
              ScalarType t, ScalarType y_type) {
  T a[kChunk], b[kChunk];
  const bool whole = t == ComputeTag<T>::value && x_stride == 1;  // in place, any length
  for (int64_t i = 0; i < n;) {
    const int64_t m = whole && y_stride == 1 && y_type == t ? n - i : imin(kChunk, n - i);
    void* out = at(x, t, i * x_stride);
    const T* q = chunk_in(at(y, y_type, i * y_stride), y_type, y_stride, m, b);
    if (!whole) load_chunk(out, t, x_stride, m, a);
    join(mode, whole ? static_cast<T*>(out) : a, q, m);
    if (!whole) store_chunk(out, t, x_stride, m, a);
    i += m;
  }
}
void join_elements(const IndexArgs& a, int64_t x, int64_t x_stride, int64_t y, int64_t y_stride,
                   int64_t n) {
  void *to = at(a.x, a.dtype, x), *from = at(a.y, a.y_dtype, y);
  by_compute_type(a.dtype, [&](auto t) {
    join_run<decltype(t)>(a.mode, to, x_stride, from, y_stride, n, a.dtype, a.y_dtype);
  });
}

// Along the last dimension every element may have another place.
template <class Move>
RAMET_INLINE void each_element(const IndexArgs& a, int64_t x, int64_t y, const int64_t* offset,
                               int64_t n, Move move) {
  const int last = a.rank - 1;
  const int64_t xs = a.x_strides[last], ys = a.y_strides[last];
  const int64_t *i0 = a.index[0] + offset[0], s0 = a.index_strides[0][last], n0 = a.index_size[0],
                step0 = a.index_step[0];
  if (a.indices == 1 && s0 == 1 && ys == 1 && !may_skip(a)) {
    constexpr int64_t kTogether = 64;
    int64_t places[kTogether];
    for (int64_t first = 0; first < n; first += kTogether) {
      const int64_t count = imin(kTogether, n - first);
      for (int64_t j = 0; j < count; ++j) {
        const int64_t i = i0[first + j];
        places[j] = (i + ((i >> 63) & n0)) * step0 + j * xs;
      }
      for (int64_t j = 0; j < count; ++j) move(x + first * xs + places[j], y + first + j);
    }
    return;
  }
  for (int64_t j = 0; j < n; ++j) {
    const int64_t first = i0[j * s0];
    int64_t at_x = x + j * xs + place(first, n0, step0);
    for (int k = 1; k < a.indices; ++k)
      at_x += place(a.index[k][offset[k] + j * a.index_strides[k][last]], a.index_size[k],
                    a.index_step[k]);
    if (first != a.skipped) move(at_x, y + j * ys);
  }
}
template <class U>
void move_each(const IndexArgs& a, int64_t x, int64_t y, const int64_t* offset, int64_t n) {
  U* __restrict px = static_cast<U*>(a.x);
  U* __restrict py = static_cast<U*>(a.y);
  if (a.mode == IndexMode::kGet)
    each_element(a, x, y, offset, n, [=](int64_t i, int64_t j) { py[j] = px[i]; });
  else each_element(a, x, y, offset, n, [=](int64_t i, int64_t j) { px[i] = py[j]; });
}
template <class L, class S = L>
void add_each(const IndexArgs& a, int64_t x, int64_t y, const int64_t* offset, int64_t n) {
  L* __restrict px = static_cast<L*>(a.x);
  const S* __restrict py = static_cast<const S*>(a.y);
  each_element(a, x, y, offset, n, [=](int64_t i, int64_t j) {
    if constexpr (std::is_same<L, S>::value) px[i] += py[j];
    else px[i] += widen(py[j]);
  });
}
void run_each(const IndexArgs& a, int64_t x, int64_t y, const int64_t* offset, int64_t n) {
  if (a.mode == IndexMode::kAdd) {
    // Fast paths for a few types; the last one handles every dtype and mode.
    const auto is = [&](ScalarType to, ScalarType from) {
      return a.dtype == to && a.y_dtype == from;
    };
    if (is(ScalarType::Float, ScalarType::Float)) return add_each<float>(a, x, y, offset, n);
    if (is(ScalarType::Float, ScalarType::Half))
      return add_each<float, HalfBits>(a, x, y, offset, n);
    if (is(ScalarType::Float, ScalarType::BFloat16))
      return add_each<float, BfloatBits>(a, x, y, offset, n);
    if (is(ScalarType::Double, ScalarType::Double)) return add_each<double>(a, x, y, offset, n);
    if (is(ScalarType::Long, ScalarType::Long)) return add_each<uint64_t>(a, x, y, offset, n);
  }
  if (joins(a.mode))
    return each_element(a, x, y, offset, n,
                        [&](int64_t i, int64_t j) { join_elements(a, i, 1, j, 1, 1); });
  switch (bytes_of(a.dtype)) {
    case 1: return move_each<uint8_t>(a, x, y, offset, n);
    case 2: return move_each<uint16_t>(a, x, y, offset, n);
    case 4: return move_each<uint32_t>(a, x, y, offset, n);
    default: return move_each<uint64_t>(a, x, y, offset, n);
  }
}

// Calls row(place of its first element, element of y) for the tuples along the last dimension but
// one.
template <class F>
RAMET_INLINE void each_row(const IndexArgs& a, int64_t x, int64_t y, const int64_t* index,
                           int64_t rows, const F& row) {
  const int d = a.rank - 2;
  const int64_t xs = a.x_strides[d], ys = a.y_strides[d], step = a.index_strides[0][d],
                size = a.index_size[0], index_step = a.index_step[0], skipped = a.skipped;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t i = index[r * step];
    if (i != skipped) row(x + r * xs + place(i, size, index_step), y + r * ys);
  }
}
// Are the tuples along the last dimension dense rows in x and y, for run_rows?
bool is_of_rows(const IndexArgs& a) {
  const int last = a.rank - 1;
  if (a.indices != 1 || last < 1 || a.index_strides[0][last] != 0 || a.x_strides[last] != 1 ||
      a.y_strides[last] != 1)
    return false;
  return !joins(a.mode) || (a.mode == IndexMode::kAdd && a.dtype == a.y_dtype &&
                            (a.dtype == ScalarType::Float || a.dtype == ScalarType::Double));
}
// `rows` of n elements each.
void run_rows(const IndexArgs& a, int64_t x, int64_t y, const int64_t* index, int64_t rows,
              int64_t n) {
  const auto add = [&](auto t) {
    using T = decltype(t);
    T *px = static_cast<T*>(a.x), *py = static_cast<T*>(a.y);
    each_row(a, x, y, index, rows, [=](int64_t i, int64_t j) { add_dense(px + i, py + j, n); });
  };
  if (joins(a.mode)) return a.dtype == ScalarType::Float ? add(0.0f) : add(0.0);
  const int64_t bytes = bytes_of(a.dtype);
  const bool get = a.mode == IndexMode::kGet;
  char *px = static_cast<char*>(a.x), *py = static_cast<char*>(a.y);
  each_row(a, x, y, index, rows, [=](int64_t i, int64_t j) {
    char *at_x = px + i * bytes, *at_y = py + j * bytes;
    copy_dense(get ? at_y : at_x, get ? at_x : at_y, n * bytes);
  });
}

void run_box(const IndexArgs& a, const Box& b) {
  const int last = a.rank - 1;
  const int64_t n = b.sizes[last], bytes = bytes_of(a.dtype);
  // Is the index constant along the last dimension? (Sums into one place are made one by one.)
  bool runs = !joins(a.mode) || a.x_strides[last] != 0;
  for (int k = 0; k < a.indices; ++k) runs = runs && a.index_strides[k][last] == 0;
  int64_t x = b.x, y = b.y, offset[kMaxIndexTensors], tuple[kMaxKernelRank] = {};
  for (int k = 0; k < a.indices; ++k) offset[k] = b.index[k];
  const bool of_rows = is_of_rows(a);
  for (;;) {
    int d = last - 1;
    if (of_rows) {
      run_rows(a, x, y, a.index[0] + offset[0], b.sizes[d], n);
      --d;
    } else if (runs) {
      int64_t at_x = x;
      for (int k = 0; k < a.indices; ++k)
        at_x += place(a.index[k][offset[k]], a.index_size[k], a.index_step[k]);
      void *px = at(a.x, a.dtype, at_x), *py = at(a.y, a.y_dtype, y);
      if (a.indices > 0 && a.index[0][offset[0]] == a.skipped) {
      } else if (a.mode == IndexMode::kGet) {
        copy_elements(py, a.y_strides[last], px, a.x_strides[last], n, bytes);
      } else if (!joins(a.mode)) {
        copy_elements(px, a.x_strides[last], py, a.y_strides[last], n, bytes);
      } else {
        join_elements(a, at_x, a.x_strides[last], y, a.y_strides[last], n);
      }
    } else {
      run_each(a, x, y, offset, n);
    }
    for (; d >= 0; --d) {
      const bool wraps = ++tuple[d] == b.sizes[d];
      const int64_t steps = wraps ? 1 - b.sizes[d] : 1;
      x += a.x_strides[d] * steps, y += a.y_strides[d] * steps;
      for (int k = 0; k < a.indices; ++k) offset[k] += a.index_strides[k][d] * steps;
      if (!wraps) break;
      tuple[d] = 0;
    }
    if (d < 0) return;
  }
}

constexpr int64_t kColumns = 64;  // of the last dimension stay together: whole cache lines

// Sums that are rounded when they are stored. Tuples are sorted by destination, so the tuples of an
// element are neighbours, still in the order of the loop. The element is read once, added to in
// float, and rounded once.
void add_sorted(const IndexArgs& a) {
  const IndexDimensions d(a);
  const IndexKeys by(a);
  const int64_t pairs = d.rows * d.meetings;
  auto* keys = static_cast<uint64_t*>(a.workspace);
  auto* tuples = reinterpret_cast<int64_t*>(keys + pairs);
  run_tasks(ceil_div(pairs, 4096), pairs * 64, [&](int64_t task, int) {
    for (int64_t i = task * 4096; i < imin(pairs, (task + 1) * 4096); ++i) {
      IndexTuple t;
      t.add(a, d.row, d.row_rank, i / d.meetings);
      t.add(a, d.meeting, d.meeting_rank, i % d.meetings);
      keys[i] = by.of(a, t);
    }
  });
  sort_pairs({keys, tuples, d.rows, d.meetings, by.bits, tuples + pairs});
  // A task has the destinations that begin in its range of pairs, and a range of the columns.
  const int32_t last = d.column_rank - 1;
  const int64_t width = last < 0 ? 1 : a.sizes[d.column[last]],
                xs = last < 0 ? 1 : a.x_strides[d.column[last]],
                ys = last < 0 ? 1 : a.y_strides[d.column[last]];
  const int64_t stretches = ceil_div(width, kChunk), columns = d.columns / width * stretches,
                each = imax(1, 16384 / imin(width, kChunk));
  run_tasks(ceil_div(pairs, each) * columns, pairs * d.columns * 16, [&](int64_t task, int) {
    const int64_t column = task % columns, start = column % stretches * kChunk,
                  n = imin(kChunk, width - start), begin = task / columns * each;
    IndexTuple base;
    base.add(a, d.column, last, column / stretches);
    float sum[kChunk], part[kChunk];
    for (int64_t i = begin; i < imin(pairs, begin + each); ++i) {
      const int64_t row = i / d.meetings, end = (row + 1) * d.meetings;
      const uint64_t key = keys[i];
      if (key == by.none || (i > row * d.meetings && keys[i - 1] == key)) continue;
      IndexTuple mine = base;
      mine.add(a, d.row, d.row_rank, row);
      IndexTuple first = mine;
      first.add(a, d.meeting, d.meeting_rank, tuples[i]);
      void* x = at(a.x, a.dtype, mine.x + first.place(a) + start * xs);
      load_chunk(x, a.dtype, xs, n, sum);
      for (int64_t j = i; j < end && keys[j] == key; ++j) {
        IndexTuple t = mine;
        t.add(a, d.meeting, d.meeting_rank, tuples[j]);
        load_chunk(at(a.y, a.y_dtype, t.y + start * ys), a.y_dtype, ys, n, part);
        for (int64_t c = 0; c < n; ++c) sum[c] += part[c];
      }
      store_chunk(x, a.dtype, xs, n, sum);
    }
  });
}

}  // namespace

void check_index(const CheckIndexArgs& a) {
  constexpr int64_t kBlock = 1024, kBlocks = 16;  // checked together; blocks of a task
  const auto bad = [&](int64_t v) {
    return ((v < a.low) | (v >= a.high)) & !(a.ignores & (v == a.ignored));
  };
  int64_t least = a.n;  // the smallest one found, so it does not depend on which task is first
  run_tasks(ceil_div(a.n, kBlock * kBlocks), a.n * 8, [&](int64_t task, int) {
    for (int64_t block = task * kBlocks; block < (task + 1) * kBlocks; ++block) {
      const int64_t first = block * kBlock, end = imin(a.n, first + kBlock);
      if (first >= __atomic_load_n(&least, __ATOMIC_RELAXED)) return;
      int64_t any = 0;
      if (a.stride == 1)
        for (int64_t i = first; i < end; ++i) any |= bad(a.index[i]);
      else
        for (int64_t i = first; i < end; ++i) any |= bad(a.index[i * a.stride]);
      if (!any) continue;
      int64_t i = first;
      while (!bad(a.index[i * a.stride])) ++i;
      int64_t now = __atomic_load_n(&least, __ATOMIC_RELAXED);
      while (i < now && !__atomic_compare_exchange_n(&least, &now, i, true, __ATOMIC_RELAXED,
                                                     __ATOMIC_RELAXED)) {}
      return;
    }
  });
  *a.first_bad = least < a.n ? least : -1;
}

void index_elements(const IndexArgs& a) {
  const bool apart = a.mode == IndexMode::kGet || a.mode == IndexMode::kMove;
  int64_t total = 1, split = -1, units = 1;
  for (int d = 0; d < a.rank; ++d) {
    total *= a.sizes[d];
    // No two tasks may write the same element. So the cut is along a dimension in which x moves
    // with the tuple, preferably the longest.
    const int64_t n = d == a.rank - 1 ? ceil_div(a.sizes[d], kColumns) : a.sizes[d];
    if ((apart || a.x_strides[d] != 0) && n > units) split = d, units = n;
  }
  if (total == 0) return;
  if (sorts_meetings(a, true)) return add_sorted(a);
  Box whole{};
  for (int d = 0; d < a.rank; ++d) whole.sizes[d] = a.sizes[d];
  const int64_t bytes = total * (bytes_of(a.dtype) + 8);
  if (split < 0 || bytes < 16384) return run_box(a, whole);
  const int64_t tasks = imin(units, imin(64, ceil_div(bytes, 16384))),
                each = ceil_div(units, tasks);
  const int64_t unit = split == a.rank - 1 ? kColumns : 1;
  run_tasks(ceil_div(units, each), bytes, [&](int64_t task, int) {
    Box b = whole;
    const int64_t begin = task * each * unit;
    b.sizes[split] = imin(each * unit, a.sizes[split] - begin);
    b.x = begin * a.x_strides[split], b.y = begin * a.y_strides[split];
    for (int k = 0; k < a.indices; ++k) b.index[k] = begin * a.index_strides[k][split];
    run_box(a, b);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
