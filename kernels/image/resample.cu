// A thread has a result and finds its inputs in tables, which small kernels make first.
#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/image/resample_weights.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Output o is made of count[o] inputs from first[o] on; input i is in the outputs low[i] ..
// high[i].
template <class T> struct AxisTable {
  int64_t *first, *count, *low, *high;
  T* weight;
  int64_t taps;
  bool backward;
  AxisTable(const ResampleAxis& a, bool backward_, char* memory)
      : first(reinterpret_cast<int64_t*>(memory)),
        count(first + a.out),
        low(count + a.out),
        high(low + a.in),
        weight(reinterpret_cast<T*>(high + a.in)),
        taps(resample_taps(a)),
        backward(backward_) {}
};

template <class T> __global__ void rows_kernel(ResampleAxis a, AxisTable<T> t) {
  for (int64_t o = first_item(); o < a.out; o += item_step()) {
    int64_t first = 0;
    t.count[o] = resample_row(a, t.taps, o, &first, t.weight + o * t.taps);
    t.first[o] = first;
  }
}
template <class T> __global__ void spans_kernel(ResampleAxis a, AxisTable<T> t) {
  for (int64_t i = first_item(); i < a.in; i += item_step()) {
    // The first output that ends at input i or later, and the first that begins after i.
    const auto first_where = [&](const auto& holds) {
      int64_t from = 0, to = a.out;
      while (from < to) {
        const int64_t middle = from + (to - from) / 2;
        if (holds(middle)) to = middle;
        else from = middle + 1;
      }
      return from;
    };
    t.low[i] = first_where([&](int64_t o) { return t.first[o] + t.count[o] > i; });
    t.high[i] = first_where([&](int64_t o) { return t.first[o] > i; });
  }
}

// The inputs of result r: `count` elements from `from` on.
template <class T, class I> struct Inputs {
  const AxisTable<T>& table;
  I result, from, count;
  __device__ __forceinline__ Inputs(const AxisTable<T>& t, I r) : table(t), result(r) {
    from = static_cast<I>(t.backward ? t.low[r] : t.first[r]);
    count = static_cast<I>(t.backward ? t.high[r] - t.low[r] : t.count[r]);
  }
  __device__ __forceinline__ T weight(I k) const {
    if (!table.backward) return table.weight[result * table.taps + k];
    const I o = from + k;
    return table.weight[o * table.taps + result - table.first[o]];
  }
};

template <class T, class I>
__global__ void resample_kernel(const void* x, void* y, ScalarType dtype, Divisor<I> by_inner,
                                Divisor<I> by_w, Divisor<I> by_h, I high, I wide, AxisTable<T> of_h,
                                AxisTable<T> of_w, I items) {
  for (I i = static_cast<I>(first_item()); i < items; i += static_cast<I>(item_step())) {
    I plane = i;
    const I lane = by_inner.take(plane);
    const Inputs<T, I> columns(of_w, by_w.take(plane)), rows(of_h, by_h.take(plane));
    T sum = T(0);
    for (I k = 0; k < rows.count; ++k) {
      const I row = (plane * high + rows.from + k) * wide + columns.from;
      T line = T(0);
      for (I j = 0; j < columns.count; ++j) {
        const T v = columns.weight(j) * load_element<T>(x, dtype, (row + j) * by_inner.by + lane);
        line = j == 0 ? v : line + v;
      }
      sum = k == 0 ? rows.weight(k) * line : sum + rows.weight(k) * line;
    }
    store_element(y, dtype, i, sum);
  }
}

template <class T> void run(const ResampleArgs& a, Stream where) {
  const char* name = "resample";
  char* memory = static_cast<char*>(a.workspace);
  const AxisTable<T> h(a.h, a.backward, memory), w(a.w, a.backward, memory + resample_table(a.h));
  const auto fill = [&](const ResampleAxis& axis, const AxisTable<T>& table) {
    start_for("resample_weights", where, axis.out, rows_kernel<T>, axis, table);
    if (a.backward) start_for("resample_weights", where, axis.in, spans_kernel<T>, axis, table);
  };
  fill(a.h, h), fill(a.w, w);
  const int64_t outputs = a.planes * a.inner * a.h.out * a.w.out,
                inputs = a.planes * a.inner * a.h.in * a.w.in,
                results = a.backward ? inputs : outputs;
  const double tables = static_cast<double>(imax(h.taps * a.h.out, w.taps * a.w.out));
  by_index(
      largest_of({static_cast<double>(outputs), static_cast<double>(inputs), tables}), [&](auto i) {
        using I = decltype(i);
        start_for(name, where, results, resample_kernel<T, I>, a.x, a.y, a.dtype,
                  Divisor<I>(a.inner), Divisor<I>(a.backward ? a.w.in : a.w.out),
                  Divisor<I>(a.backward ? a.h.in : a.h.out),
                  static_cast<I>(a.backward ? a.h.out : a.h.in),
                  static_cast<I>(a.backward ? a.w.out : a.w.in), h, w, static_cast<I>(results));
      });
}

}  // namespace

void resample(const ResampleArgs& a, Stream where) {
  if (a.dtype == ScalarType::Double) run<double>(a, where);
  else run<float>(a, where);
}

}  // namespace ramet::kernels::RAMET_VARIANT
