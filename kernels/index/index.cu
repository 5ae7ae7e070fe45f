#include "kernels/rows/rows_gpu.h"
#include "runtime/cuda/fault_words.h"
// clang-format off: the first decides what the others mean
#include "kernels/index/index.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Items of one thread, so that few blocks access the word.
constexpr int64_t kChecked = 16;

// The smallest faulty position of all blocks, whichever block finds it first. The last block that
// ends writes it.
__global__ void check_index_kernel(CheckIndexArgs a) {
  using Bits = unsigned long long;
  auto* word = static_cast<::ramet::cuda::FaultWord*>(a.fault_word);
  if (word->check != 0) return;  // set by an earlier kernel; cleared on this stream, too
  __shared__ int64_t shared[kWarps];
  int64_t first = a.n;
  for (int64_t i = first_item(); i < a.n && first == a.n; i += item_step()) {
    const int64_t v = a.index[i * a.stride];
    if ((v < a.low || v >= a.high) && !(a.ignores && v == a.ignored)) first = i;
  }
  first = over_group<kThreads>(first, Smaller(), shared);
  if (threadIdx.x != 0) return;
  if (first < a.n) atomicMax(&word->most, ~static_cast<Bits>(first));
  __threadfence();
  if (atomicAdd(&word->arrived, Bits{1}) + 1 != gridDim.x) return;
  const Bits most = atomicExch(&word->most, Bits{0});
  word->arrived = 0;
  if (most == 0) return;
  word->position = static_cast<int64_t>(~most);
  word->value = a.index[word->position * a.stride];
  atomicExch(&word->check, Bits{a.fault_check});  // concurrently with readers
}

// ---- the loop over index tensors ----------------------------------------------------------------

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

// In the order of y: neighbouring threads write neighbouring elements.
template <class T> __global__ void get_kernel(Loop loop, int64_t items) {
  const IndexArgs& a = loop.a;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    IndexTuple t;
    int64_t linear = i;
    for (int32_t d = a.rank - 1; d >= 0; --d) t.go(a, d, loop.by[d].take(linear));
    const int64_t from = t.place(a);
    static_cast<T*>(a.y)[t.y] = from == kNowhere ? T(0) : static_cast<const T*>(a.x)[t.x + from];
  }
}

template <class T> __global__ void move_kernel(Loop loop, int64_t items) {
  const IndexArgs& a = loop.a;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    IndexTuple t;
    int64_t linear = i;
    for (int32_t d = a.rank - 1; d >= 0; --d) t.go(a, d, loop.by[d].take(linear));
    const int64_t to = t.place(a);
    if (to != kNowhere) static_cast<T*>(a.x)[t.x + to] = static_cast<const T*>(a.y)[t.y];
  }
}

// The new value of an element to which y's value is joined.
template <class T> RAMET_INLINE T joined(IndexMode mode, T x, T y) {
  switch (mode) {
    case IndexMode::kMul: return vmul(x, y);
    case IndexMode::kMax: return pick(ne(x, x), x, max(x, y));
    case IndexMode::kMin: return pick(ne(x, x), x, min(x, y));
    default: return vadd(x, y);
  }
}

// One thread does the work of all tuples that meet in an element, in the order of the loop. So
// there are no atomics and one result. If tuples are few, the first one finds the others by a
// search.
// T: the compute type of the join, or without a join a word of the element's size.
template <class T, bool kJoins> __global__ void few_kernel(Loop loop, int64_t items) {
  const IndexArgs& a = loop.a;
  const IndexDimensions& d = loop.d;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    int64_t row = i;
    const int64_t column = loop.by_columns.take(row), mine = loop.by_meetings.take(row);
    IndexTuple base;
    loop.add(base, d.column, d.column_rank, column);
    loop.add(base, d.row, d.row_rank, row);
    const auto tuple = [&](int64_t j) {
      IndexTuple t = base;
      loop.add(t, d.meeting, d.meeting_rank, j);
      return t;
    };
    const int64_t place = tuple(mine).place_unless_skipped(a), target = base.x + place;
    bool first = place != kNowhere;
    for (int64_t j = 0; j < mine && first; ++j) first = tuple(j).place_unless_skipped(a) != place;
    if (!first) continue;
    T value = T(0);
    if constexpr (kJoins) value = load_element<T>(a.x, a.dtype, target);
    for (int64_t j = mine; j < d.meetings; ++j) {
      const IndexTuple other = tuple(j);
      if (other.place_unless_skipped(a) != place) continue;
      if constexpr (kJoins) value = joined(a.mode, value, load_element<T>(a.y, a.y_dtype, other.y));
      else value = static_cast<const T*>(a.y)[other.y];
    }
    if constexpr (kJoins) store_element(a.x, a.dtype, target, value);
    else static_cast<T*>(a.x)[target] = value;
  }
}

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

// The first of equal keys joins them all; with kPut the last one's value remains.
template <class T, bool kJoins>
__global__ void sorted_kernel(Loop loop, const uint64_t* all_keys, const int64_t* all_tuples,
                              uint64_t none, int64_t items) {
  const IndexArgs& a = loop.a;
  const IndexDimensions& d = loop.d;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    int64_t row = i;
    const int64_t column = loop.by_columns.take(row), mine = loop.by_meetings.take(row);
    const uint64_t* keys = all_keys + row * d.meetings;
    const int64_t* tuples = all_tuples + row * d.meetings;
    const uint64_t key = keys[mine];
    const int64_t neighbour = kJoins ? mine - 1 : mine + 1;
    if (key == none || (neighbour >= 0 && neighbour < d.meetings && keys[neighbour] == key))
      continue;
    IndexTuple base;
    loop.add(base, d.column, d.column_rank, column);
    loop.add(base, d.row, d.row_rank, row);
    const auto tuple = [&](int64_t j) {
      IndexTuple t = base;
      loop.add(t, d.meeting, d.meeting_rank, tuples[j]);
      return t;
    };
    const IndexTuple own = tuple(mine);
    const int64_t target = own.x + own.place(a);
    if constexpr (kJoins) {
      T value = joined(a.mode, load_element<T>(a.x, a.dtype, target),
                       load_element<T>(a.y, a.y_dtype, own.y));
      for (int64_t j = mine + 1; j < d.meetings && keys[j] == key; ++j)
        value = joined(a.mode, value, load_element<T>(a.y, a.y_dtype, tuple(j).y));
      store_element(a.x, a.dtype, target, value);
    } else {
      static_cast<T*>(a.x)[target] = static_cast<const T*>(a.y)[own.y];
    }
  }
}

template <class T, bool kJoins> void write_elements(const Loop& loop, Stream where) {
  const char* name = kJoins ? "index_add" : "index_put";
  const IndexDimensions& d = loop.d;
  if (!sorts_meetings(loop.a, false))
    return start_for(name, where, loop.items(), few_kernel<T, kJoins>, loop, loop.items());
  const IndexKeys by(loop.a);
  const int64_t pairs = d.rows * d.meetings;
  auto* keys = static_cast<uint64_t*>(loop.a.workspace);
  auto* tuples = reinterpret_cast<int64_t*>(keys + pairs);
  start_for(name, where, pairs, keys_kernel, loop, by, keys, pairs);
  sort_pairs({keys, tuples, d.rows, d.meetings, by.bits, tuples + pairs}, where);
  start_for(name, where, loop.items(), sorted_kernel<T, kJoins>, loop, keys, tuples, by.none,
            loop.items());
}

}  // namespace

void check_index(const CheckIndexArgs& a, Stream where) {
  const ::ramet::cuda::Look look(::ramet::cuda::device_state(where.device.index(), "check_index"));
  start("check_index", where, blocks_for(ceil_div(a.n, kChecked)), kThreads, 0, check_index_kernel,
        a);
}

void index_elements(const IndexArgs& a, Stream where) {
  const Loop loop(a);
  if (a.mode == IndexMode::kGet)
    return by_word(bytes_of(a.dtype), [&](auto t) {
      start_for("index", where, loop.items(), get_kernel<decltype(t)>, loop, loop.items());
    });
  if (a.mode == IndexMode::kMove)
    return by_word(bytes_of(a.dtype), [&](auto t) {
      start_for("index_put", where, loop.items(), move_kernel<decltype(t)>, loop, loop.items());
    });
  if (a.mode == IndexMode::kPut)
    return by_word(bytes_of(a.dtype),
                   [&](auto t) { write_elements<decltype(t), false>(loop, where); });
  by_compute_type(a.dtype, [&](auto t) { write_elements<decltype(t), true>(loop, where); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
