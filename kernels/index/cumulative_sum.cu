// Running sums along an axis, by threads or by blocks.
#include "kernels/index/running_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/index/cumulative_sum.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

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

// A block has a segment of a line. First the sums of whole segments are made. Then a block adds
// those before its own and goes along it, each thread with kRun neighbours at a time. All orders
// follow from the shape.
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
/// The segment of a task: elements [begin, end) of its line in the order of the sum. The k-th is
/// at(k). `own` of the line's segments are before it.
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

}  // namespace

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
