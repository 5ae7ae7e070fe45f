#include "kernels/index/index_segments_gpu.h"
#include "runtime/cuda/fault_words.h"

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

// In the order of y: neighbouring threads write neighbouring elements.
template <class T> __global__ void get_kernel(Loop loop, int64_t items) {
  const IndexArgs& a = loop.a;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    IndexTuple t;
    int64_t linear = i;
    for (int32_t d = a.rank - 1; d >= 0; --d) t.go(a, d, loop.by[d].take(linear));
    const int64_t from = t.place(a);
    static_cast<T*>(a.y)[t.y] = from == kNowhere ? T{} : static_cast<const T*>(a.x)[t.x + from];
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

// Many tuples are sorted by destination: the first of equal keys joins them all; with kPut the last
// one's value remains.
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
  if constexpr (kJoins) {
    if (loop.a.mode == IndexMode::kAdd) return add_segments<T>(name, where, loop, keys, by.none);
  }
  start_for(name, where, loop.items(), sorted_kernel<T, kJoins>, loop, keys, tuples, by.none,
            loop.items());
}

template <class T> void move_words(const IndexArgs& a, Stream where) {
  const Loop loop(a);
  if (a.mode == IndexMode::kGet)
    start_for("index", where, loop.items(), get_kernel<T>, loop, loop.items());
  else start_for("index_put", where, loop.items(), move_kernel<T>, loop, loop.items());
}
// Rows move by the widest words that fit.
void move_elements(const IndexArgs& args, Stream where) {
  IndexArgs a = args;
  if (in_words(a, 16)) return move_words<uint4>(a, where);
  if (in_words(a, 8)) return move_words<uint64_t>(a, where);
  if (in_words(a, 4)) return move_words<uint32_t>(a, where);
  by_word(bytes_of(a.dtype), [&](auto t) { move_words<decltype(t)>(a, where); });
}

}  // namespace

void check_index(const CheckIndexArgs& a, Stream where) {
  const ::ramet::cuda::Look look(::ramet::cuda::device_state(where.device.index(), "check_index"));
  start("check_index", where, blocks_for(ceil_div(a.n, kChecked)), kThreads, 0, check_index_kernel,
        a);
}

void index_elements(const IndexArgs& a, Stream where) {
  if (a.mode == IndexMode::kGet || a.mode == IndexMode::kMove) return move_elements(a, where);
  const Loop loop(a);
  if (a.mode == IndexMode::kPut)
    return by_word(bytes_of(a.dtype),
                   [&](auto t) { write_elements<decltype(t), false>(loop, where); });
  by_compute_type(a.dtype, [&](auto t) { write_elements<decltype(t), true>(loop, where); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
