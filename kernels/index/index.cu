#include "kernels/rows/rows_gpu.h"
#include "runtime/cuda/data_faults.h"
// clang-format off: the first decides what the others mean
#include "kernels/index/index.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Items of one thread: few blocks meet in the word.
constexpr int64_t kChecked = 16;

// The smallest faulty position of all blocks, whichever of them finds it first: the last block to
// be done writes it down.
__global__ void check_index_kernel(CheckIndexArgs a) {
  using Bits = unsigned long long;
  auto* word = static_cast<::ramet::cuda::FaultWord*>(a.fault_word);
  if (word->check != 0) return;  // an earlier kernel's
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
  word->check = a.fault_check;
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

// Of the tuples that meet in an element one thread does the work of all, in the order of the loop:
// no atomics, one result. Here the first of few finds the others by looking.
// T: the compute type to add in, else a word of the element's size.
template <class T, bool kAdd> __global__ void few_kernel(Loop loop, int64_t items) {
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
    if constexpr (kAdd) value = load_element<T>(a.x, a.dtype, target);
    for (int64_t j = mine; j < d.meetings; ++j) {
      const IndexTuple other = tuple(j);
      if (other.place_unless_skipped(a) != place) continue;
      if constexpr (kAdd) value = vadd(value, load_element<T>(a.y, a.y_dtype, other.y));
      else value = static_cast<const T*>(a.y)[other.y];
    }
    if constexpr (kAdd) store_element(a.x, a.dtype, target, value);
    else static_cast<T*>(a.x)[target] = value;
  }
}

// Many are sorted by where they go. keys[row][tuple].
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

// The first of equal keys adds them up, the last one's value stays.
template <class T, bool kAdd>
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
    const int64_t neighbour = kAdd ? mine - 1 : mine + 1;
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
    if constexpr (kAdd) {
      T value = vadd(load_element<T>(a.x, a.dtype, target), load_element<T>(a.y, a.y_dtype, own.y));
      for (int64_t j = mine + 1; j < d.meetings && keys[j] == key; ++j)
        value = vadd(value, load_element<T>(a.y, a.y_dtype, tuple(j).y));
      store_element(a.x, a.dtype, target, value);
    } else {
      static_cast<T*>(a.x)[target] = static_cast<const T*>(a.y)[own.y];
    }
  }
}

template <class T, bool kAdd> void write_elements(const Loop& loop, Stream where) {
  const char* name = kAdd ? "index_add" : "index_put";
  const IndexDimensions& d = loop.d;
  if (!sorts_meetings(loop.a, false))
    return start_for(name, where, loop.items(), few_kernel<T, kAdd>, loop, loop.items());
  const IndexKeys by(loop.a);
  const int64_t pairs = d.rows * d.meetings;
  auto* keys = static_cast<uint64_t*>(loop.a.workspace);
  auto* tuples = reinterpret_cast<int64_t*>(keys + pairs);
  start_for(name, where, pairs, keys_kernel, loop, by, keys, pairs);
  sort_pairs({keys, tuples, d.rows, d.meetings, by.bits, tuples + pairs}, where);
  start_for(name, where, loop.items(), sorted_kernel<T, kAdd>, loop, keys, tuples, by.none,
            loop.items());
}

// ---- masks --------------------------------------------------------------------------------------

// The sum of the values of all threads before this one; `all` gets the sum of the block.
template <class Sum> __device__ Sum sum_before(Sum value, Sum* shared, Sum& all) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  Sum sum = value;
  for (int step = 1; step < kWarp; step *= 2) {
    const Sum other = __shfl_up_sync(0xffffffffu, sum, static_cast<unsigned>(step));
    if (lane >= step) sum += other;
  }
  Sum before = __shfl_up_sync(0xffffffffu, sum, 1u);
  if (lane == 0) before = 0;
  __syncthreads();  // what is in `shared` has been read
  if (lane == kWarp - 1) shared[warp] = sum;
  __syncthreads();
  Sum warps = 0;
  all = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) warps = all;
    all += shared[w];
  }
  return warps + before;
}

// A block counts a block of the mask.
__global__ void mask_blocks_kernel(MaskCountArgs a) {
  __shared__ int64_t shared[kWarps];
  const auto* mask = static_cast<const uint8_t*>(a.mask);
  const int64_t blocks = ceil_div(a.n, kMaskBlock);
  for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    int64_t count = 0;
    for (int64_t i = b * kMaskBlock + threadIdx.x; i < imin(a.n, (b + 1) * kMaskBlock);
         i += kThreads)
      count += mask[i] != 0;
    count = over_group<kThreads>(count, Plus(), shared);
    if (threadIdx.x == 0) a.offsets[b] = count;
  }
}

// One block makes running sums of the counts, each thread of kRun neighbours at a time.
__global__ void mask_sums_kernel(MaskCountArgs a) {
  __shared__ int64_t shared[kWarps];
  constexpr int kRun = 4;
  const int64_t blocks = ceil_div(a.n, kMaskBlock);
  int64_t before = 0;
  for (int64_t b = 0; b < blocks; b += kThreads * kRun) {
    const int64_t first = b + static_cast<int>(threadIdx.x) * kRun;
    int64_t counts[kRun], sum = 0, all;
    RAMET_UNROLL
    for (int j = 0; j < kRun; ++j) {
      counts[j] = first + j < blocks ? a.offsets[first + j] : 0;
      sum += counts[j];
    }
    sum = before + sum_before(sum, shared, all);
    RAMET_UNROLL
    for (int j = 0; j < kRun; ++j) {
      if (first + j < blocks) a.offsets[first + j] = sum;
      sum += counts[j];
    }
    before += all;
  }
  if (threadIdx.x == 0) a.offsets[blocks] = before;
}

// Calls f(i, k) for the elements under a true mask: the k-th of all is element i. A thread has a
// run of the block and counts what the threads before it have.
template <class F>
__device__ void over_true(const uint8_t* mask, const int64_t* offsets, int64_t n, const F& f) {
  __shared__ int32_t shared[kWarps];
  constexpr int64_t kRun = kMaskBlock / kThreads;
  for (int64_t b = blockIdx.x; b * kMaskBlock < n; b += gridDim.x) {
    const int64_t begin = b * kMaskBlock + threadIdx.x * kRun, end = imin(n, begin + kRun);
    int32_t count = 0, all;
    for (int64_t i = begin; i < end; ++i) count += mask[i] != 0;
    int64_t k = offsets[b] + sum_before(count, shared, all);
    for (int64_t i = begin; i < end; ++i)
      if (mask[i] != 0) f(i, k++);
  }
}

template <class T> __global__ void mask_move_kernel(MaskMoveArgs a) {
  over_true(static_cast<const uint8_t*>(a.mask), a.offsets, a.n, [&](int64_t i, int64_t k) {
    T *dense = static_cast<T*>(a.dense), *packed = static_cast<T*>(a.packed);
    if (a.scatter) dense[i] = packed[k];
    else packed[k] = dense[i];
  });
}

struct Extents {
  Divisor<int64_t> by[kMaxKernelRank];
  explicit Extents(const NonzeroArgs& a) {
    for (int32_t d = 0; d < kMaxKernelRank; ++d)
      by[d] = Divisor<int64_t>(d < a.rank ? a.sizes[d] : 1);
  }
};
__global__ void nonzero_kernel(NonzeroArgs a, Extents extents, int64_t n) {
  over_true(static_cast<const uint8_t*>(a.mask), a.offsets, n, [&](int64_t i, int64_t k) {
    for (int32_t d = a.rank - 1; d >= 0; --d) a.out[k * a.rank + d] = extents.by[d].take(i);
  });
}

template <class T>
using RunningSum = typename std::conditional<std::is_integral<T>::value, uint64_t, double>::type;

// A thread has a line.
template <class T>
__global__ void cumulative_sum_kernel(CumulativeSumArgs a, Divisor<int64_t> by_inner) {
  using Sum = RunningSum<T>;
  for (int64_t line = first_item(); line < a.outer * a.inner; line += item_step()) {
    int64_t outer = line;
    const int64_t inner = by_inner.take(outer), step = a.reverse ? -a.inner : a.inner;
    int64_t at = (outer * a.n + (a.reverse ? a.n - 1 : 0)) * a.inner + inner;
    Sum sum = 0;
    for (int64_t k = 0; k < a.n; ++k, at += step) {
      sum += static_cast<Sum>(load_element<T>(a.in, a.in_dtype, at));
      store_element(a.out, a.out_dtype, at, static_cast<T>(sum));
    }
  }
}

// A block has a segment of a line. Sums of whole segments first; then a block adds up those before
// its own and goes along it, each thread with kRun neighbours at a time. All orders follow from the
// shape.
struct Segments {
  CumulativeSumArgs a;
  int64_t length;                      // elements of a segment
  Divisor<int64_t> of_line, by_inner;  // so many segments a line has
  explicit Segments(const CumulativeSumArgs& args) : a(args), by_inner(a.inner) {
    const GpuCut cut = cumulative_sum_cut(a.outer, a.n, a.inner);
    of_line = Divisor<int64_t>(cut.pieces), length = cut.length;
  }
  RAMET_INLINE int64_t all() const { return a.outer * a.inner * of_line.by; }
};
/// The segment of a task: elements [begin, end) of its line in the order of the sum, the k-th of
/// them at(k); `own` of the line's segments are before it.
struct Segment {
  int64_t own, begin, end, first, step;
  RAMET_INLINE Segment(const Segments& s, int64_t task) {
    const CumulativeSumArgs& a = s.a;
    int64_t outer = task;
    own = s.of_line.take(outer);
    begin = own * s.length, end = imin(a.n, begin + s.length);
    const int64_t inner = s.by_inner.take(outer);
    step = a.reverse ? -a.inner : a.inner;
    first = (outer * a.n + (a.reverse ? a.n - 1 : 0)) * a.inner + inner;
  }
  RAMET_INLINE int64_t at(int64_t k) const { return first + k * step; }
};
template <class T> __global__ void segment_sums_kernel(Segments s) {
  using Sum = RunningSum<T>;
  __shared__ Sum shared[kWarps];
  for (int64_t task = blockIdx.x; task < s.all(); task += gridDim.x) {
    const Segment segment(s, task);
    Sum sum = 0;
    for (int64_t k = segment.begin + threadIdx.x; k < segment.end; k += kThreads)
      sum += static_cast<Sum>(load_element<T>(s.a.in, s.a.in_dtype, segment.at(k)));
    sum = over_group<kThreads>(sum, Plus(), shared);
    if (threadIdx.x == 0) static_cast<Sum*>(s.a.workspace)[task] = sum;
  }
}

template <class T> __global__ void segments_kernel(Segments s) {
  using Sum = RunningSum<T>;
  constexpr int kRun = 4;
  __shared__ Sum shared[kWarps];
  for (int64_t task = blockIdx.x; task < s.all(); task += gridDim.x) {
    const Segment segment(s, task);
    const int64_t own = segment.own, end = segment.end;
    Sum before = 0;
    for (int64_t j = threadIdx.x; j < own; j += kThreads)
      before += static_cast<const Sum*>(s.a.workspace)[task - own + j];
    before = over_group<kThreads>(before, Plus(), shared);
    for (int64_t k = segment.begin; k < end; k += kThreads * kRun) {
      const int64_t first = k + threadIdx.x * kRun;
      Sum v[kRun], sum = 0, all;
      RAMET_UNROLL
      for (int j = 0; j < kRun; ++j) {
        v[j] = first + j < end
                   ? static_cast<Sum>(load_element<T>(s.a.in, s.a.in_dtype, segment.at(first + j)))
                   : Sum(0);
        sum += v[j];
      }
      sum = before + sum_before(sum, shared, all);
      RAMET_UNROLL
      for (int j = 0; j < kRun; ++j) {
        sum += v[j];
        if (first + j < end)
          store_element(s.a.out, s.a.out_dtype, segment.at(first + j), static_cast<T>(sum));
      }
      before += all;
    }
  }
}

dim3 mask_grid(int64_t n) { return grid_of(mask_offsets(n) - 1); }

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
  if (a.mode == IndexMode::kPut)
    return by_word(bytes_of(a.dtype),
                   [&](auto t) { write_elements<decltype(t), false>(loop, where); });
  by_compute_type(a.dtype, [&](auto t) { write_elements<decltype(t), true>(loop, where); });
}

void mask_count(const MaskCountArgs& a, Stream where) {
  start("mask_count", where, mask_grid(a.n), kThreads, 0, mask_blocks_kernel, a);
  start("mask_count", where, dim3(1), kThreads, 0, mask_sums_kernel, a);
}

void mask_move(const MaskMoveArgs& a, Stream where) {
  if (a.n == 0) return;
  by_word(a.bytes, [&](auto word) {
    start("mask_move", where, mask_grid(a.n), kThreads, 0, mask_move_kernel<decltype(word)>, a);
  });
}

void nonzero_positions(const NonzeroArgs& a, Stream where) {
  const int64_t n = product(a.sizes, a.rank);
  if (n > 0) start("nonzero", where, mask_grid(n), kThreads, 0, nonzero_kernel, a, Extents(a), n);
}

void cumulative_sum(const CumulativeSumArgs& a, Stream where) {
  if (a.outer * a.n * a.inner == 0) return;
  const char* name = "cumulative_sum";
  const Segments s(a);
  by_compute_type(a.in_dtype, [&](auto t) {
    using T = decltype(t);
    if (cumulative_sum_by_threads(a.outer, a.n, a.inner))
      return start_for(name, where, a.outer * a.inner, cumulative_sum_kernel<T>, a,
                       Divisor<int64_t>(a.inner));
    if (s.of_line.by > 1)
      start(name, where, grid_of(s.all()), kThreads, 0, segment_sums_kernel<T>, s);
    start(name, where, grid_of(s.all()), kThreads, 0, segments_kernel<T>, s);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
