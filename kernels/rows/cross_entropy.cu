#include "kernels/reduce/joins_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/rows/cross_entropy.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

struct Partial {
  double loss, weight;
};
struct PlusPartial {
  __device__ Partial operator()(const Partial& a, const Partial& b) const {
    return {a.loss + b.loss, a.weight + b.weight};
  }
};
// The pieces of the workspace: partial sums, then the weights' sum over the classes.
RAMET_INLINE Partial* partials_of(void* workspace) { return static_cast<Partial*>(workspace); }
double* weight_sum_of(void* workspace, int64_t rows) {
  return reinterpret_cast<double*>(partials_of(workspace) + ceil_div(rows, kLossGroup));
}

template <class T>
__device__ __forceinline__ T class_weight(const void* weight, ScalarType t, int64_t c) {
  return weight ? load_element<T>(weight, t, c) : T(1);
}

// Weights of a dtype that need not be the row's. Smoothing alone reads all of them.
template <class T> struct TypedWeights {
  const void* p;
  ScalarType dtype;
  int64_t cols;
  // As Row::get().
  __device__ __forceinline__ void get(int64_t c, T (&v)[kPack], T fill) const {
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j)
      v[j] = p && c + j < cols ? load_element<T>(p, dtype, c + j) : fill;
  }
};

// A target that is no class counts as nothing. check_index has already reported it.
RAMET_INLINE bool counts_for(int64_t target, int64_t ignored, int64_t classes) {
  return target != ignored && target >= 0 && target < classes;
}

// One block.
template <class S>
__global__ void weight_sum_kernel(const void* weight, int64_t cols, double* out, bool packed) {
  __shared__ double shared[kWarps];
  double sum = 0;
  const Row<S> row = row_of<S>(weight, 0, cols, packed);
  over_row_packs<kThreads>(row.n, static_cast<int>(threadIdx.x), [&](int64_t c) {
    ComputeOf<S> w[kPack];
    row.get(c, w);
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) sum += static_cast<double>(w[j]);
  });
  sum = over_group<kThreads>(sum, Plus(), shared);
  if (threadIdx.x == 0) *out = weight ? sum : static_cast<double>(cols);
}

// The sum of f(i) over the rows of a loss group, i < count, by one warp; its first lane has the
// result.
template <class Sum, class F, class Join>
__device__ __forceinline__ Sum over_loss_group(int64_t count, const F& f, const Join& join) {
  return join_pieces(Sum{}, count, kWarp, static_cast<Sum*>(nullptr), f, join);
}

// With two large blocks one works while the other waits; with doubles there are registers for only
// one.
template <class S, int kGroup>
constexpr int kBlocksAtOnce = kGroup > kThreads && sizeof(ComputeOf<S>) == 4 ? 2 : 1;

// max and log sum exp(x - max) of a row, for all threads of its group, in one pass. A thread scales
// its sum down when its maximum rises (Milakov and Gimelshein 2018).
template <class S, int kGroup>
__device__ __forceinline__ void statistics_of(const Row<S>& x, int place, ComputeOf<S>& top,
                                              ComputeOf<S>& log_sum, ComputeOf<S>* shared) {
  using T = ComputeOf<S>;
  const T none = static_cast<T>(-INFINITY);
  T v[kPack], own = none, sum = T(0);  // the maximum may miss a NaN; the sum never does
  over_row_packs<kGroup>(x.n, place, [&](int64_t c) {
    x.get(c, v, none);
    T most = own;
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) most = Larger()(v[j], most);
    if (most > own) sum *= vexp(own - most), own = most;
    const T from = own > none ? own : T(0);  // -inf - -inf is NaN, and greater ones may follow
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) sum += vexp(v[j] - from);
  });
  top = over_group<kGroup>(own, Larger(), shared);
  // NaN if nothing in the row is above -inf: such a row has no softmax.
  log_sum = vlog(over_group<kGroup>(sum * vexp(own - top), Plus(), shared));
}
template <class S, int kGroup>
__global__ void __launch_bounds__(kBlockOf<kGroup>, (kBlocksAtOnce<S, kGroup>))
    statistics_kernel(CrossEntropyArgs a, bool packed) {
  using T = ComputeOf<S>;
  __shared__ T shared[kWarpsOf<kGroup>];
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    T top, log_sum;
    statistics_of<S, kGroup>(row_of<S>(a.x, row, a.cols, packed), place, top, log_sum, shared);
    if (row < 0 || place != 0) return;
    static_cast<T*>(a.statistics)[2 * row] = top;
    static_cast<T*>(a.statistics)[2 * row + 1] = log_sum;
  });
}

// The terms of the gradient of a row.
template <class T> struct Slope {
  T top, log_sum, all, each;  // all softmax(x) + each w - [c = target] one
  double one;
  int64_t target;
  bool log_probs;
};
// dx = the gradient of a row. x is not read with log_probs, and may be dx. Weights: Row<S> or
// TypedWeights.
template <class S, int kGroup, class Weights>
__device__ __forceinline__ void write_slopes(const Row<S>& x, const Row<S>& dx,
                                             const Weights& weight, int place,
                                             const Slope<ComputeOf<S>>& s) {
  using T = ComputeOf<S>;
  T v[kPack], w[kPack];
  over_row_packs<kGroup>(dx.n, place, [&](int64_t c) {
    if (!s.log_probs) x.get(c, v);
    if (s.each != T(0)) weight.get(c, w, T(1));
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) {
      v[j] = s.log_probs ? T(0) : vexp(v[j] - s.top - s.log_sum) * s.all;
      if (s.each != T(0)) v[j] = fma(w[j], s.each, v[j]);
    }
    if (c <= s.target && s.target < c + kPack) {
      const int at = static_cast<int>(s.target - c);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j)
        if (j == at) v[j] = static_cast<T>(static_cast<double>(v[j]) - s.one);
    }
    dx.put(c, v);
  });
}
template <class S>
__device__ __forceinline__ void write_zeros(const Row<S>& dx, int place, int step) {
  const ComputeOf<S> none[kPack] = {};
  for (int64_t c = static_cast<int64_t>(place) * kPack; c < dx.n; c += step * kPack)
    dx.put(c, none);
}

// Each warp takes the rows of a loss group one after the other. Then one warp adds them.
template <class T> __global__ void losses_kernel(CrossEntropyArgs a, const double* weight_sum) {
  __shared__ Partial of_row[kLossGroup];
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t groups = ceil_div(a.rows, kLossGroup);
  const double sharp = 1 - a.smoothing, smooth = a.smoothing / static_cast<double>(a.cols);
  for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
    const int64_t first = group * kLossGroup, count = imin(kLossGroup, a.rows - first);
    for (int64_t i = warp; i < count; i += kWarps) {
      const int64_t row = first + i, target = a.target[row];
      const bool counts = counts_for(target, a.ignore_index, a.cols);
      T top = T(0), log_sum = T(0);
      if (!a.log_probs) {
        top = static_cast<const T*>(a.statistics)[2 * row];
        log_sum = static_cast<const T*>(a.statistics)[2 * row + 1];
      }
      double spread = 0;  // sum_c w[c] (x[c] - max)
      if (a.smoothing != 0 && counts) {
        for (int64_t c = lane; c < a.cols; c += kWarp)
          spread += static_cast<double>(class_weight<T>(a.weight, a.dtype, c)) *
                    static_cast<double>(load_element<T>(a.x, a.dtype, row * a.cols + c) - top);
        for (int step = kWarp / 2; step > 0; step /= 2)
          spread += __shfl_xor_sync(0xffffffffu, spread, step);
      }
      if (lane != 0) continue;
      Partial p{0, 0};
      if (counts) {
        p.weight = static_cast<double>(class_weight<T>(a.weight, a.dtype, target));
        const T x = load_element<T>(a.x, a.dtype, row * a.cols + target);
        const double l = static_cast<double>(log_sum);
        p.loss = sharp * p.weight * (l - (static_cast<double>(x) - static_cast<double>(top)));
        if (a.smoothing != 0) p.loss += smooth * (l * *weight_sum - spread);
      }
      of_row[i] = p;
      if (a.reduction == LossReduction::kNone)
        store_element(a.loss, a.dtype, row, static_cast<T>(p.loss));
    }
    __syncthreads();
    if (warp == 0) {
      const Partial sum = over_loss_group<Partial>(
          count, [&](int64_t i) { return of_row[i]; }, PlusPartial());
      if (lane == 0) static_cast<Partial*>(a.workspace)[group] = sum;
    }
    __syncthreads();
  }
}

// One block. Args: CrossEntropyArgs, or CrossEntropyConsumeArgs.
template <class T, class Args> __global__ void total_kernel(Args a) {
  __shared__ Partial shared[kThreads];
  const Partial* partials = partials_of(a.workspace);
  const Partial total = join_pieces(
      Partial{0, 0}, ceil_div(a.rows, kLossGroup), static_cast<int>(blockDim.x), shared,
      [&](int64_t g) { return partials[g]; }, PlusPartial());
  if (threadIdx.x != 0) return;
  *a.total_weight = total.weight;
  if (a.reduction == LossReduction::kNone) return;
  const double loss = a.reduction == LossReduction::kMean ? total.loss / total.weight : total.loss;
  store_element(a.loss, a.dtype, 0, static_cast<T>(loss));
}

template <class S, int kGroup>
__global__ void backward_kernel(CrossEntropyBackwardArgs a, const double* weight_sum, bool packed) {
  using T = ComputeOf<S>;
  const double sharp = 1 - a.smoothing, smooth = a.smoothing / static_cast<double>(a.cols);
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    if (row < 0) return;
    const int64_t target = a.target[row];
    const Row<S> dx = row_of<S>(a.dx, row, a.cols, packed);
    if (!counts_for(target, a.ignore_index, a.cols)) return write_zeros(dx, place, kGroup);
    double g = static_cast<double>(
        load_element<T>(a.grad, a.dtype, a.reduction == LossReduction::kNone ? row : 0));
    if (a.reduction == LossReduction::kMean) g /= *a.total_weight;
    const double one = sharp * static_cast<double>(class_weight<T>(a.weight, a.dtype, target)),
                 all = one + (smooth != 0 ? smooth * *weight_sum : 0);
    Slope<T> s{T(0),   T(0),       static_cast<T>(g * all), static_cast<T>(-g * smooth), g * one,
               target, a.log_probs};
    if (!a.log_probs) {
      s.top = static_cast<const T*>(a.statistics)[2 * row];
      s.log_sum = static_cast<const T*>(a.statistics)[2 * row + 1];
    }
    write_slopes<S, kGroup>(row_of<S>(a.log_probs ? nullptr : a.x, row, a.cols, packed), dx,
                            row_of<S>(a.weight, 0, a.cols, packed), place, s);
  });
}

// ---- the loss and its gradient in one pass ------------------------------------------------------

// f(row) summed over each loss group, by a warp each; then put(group, sum).
template <class F, class Put>
__device__ __forceinline__ void over_loss_groups(int64_t rows, const F& f, const Put& put) {
  for (int64_t g = first_item() / kWarp; g < ceil_div(rows, kLossGroup);
       g += item_step() / kWarp) {  // a warp leaves the loop as a whole
    const int64_t first = g * kLossGroup;
    const double sum = over_loss_group<double>(
        imin(kLossGroup, rows - first), [&](int64_t i) { return f(first + i); }, Plus());
    if (threadIdx.x % kWarp == 0) put(g, sum);
  }
}
// Each loss group's sum of weights, or of the rows' losses.
template <class T> __global__ void group_weights_kernel(CrossEntropyConsumeArgs a) {
  over_loss_groups(
      a.rows,
      [&](int64_t r) {
        const int64_t target = a.target[r];
        if (!counts_for(target, a.ignore_index, a.cols)) return 0.0;
        return static_cast<double>(class_weight<T>(a.weight, a.dtype, target));
      },
      [&](int64_t g, double sum) { partials_of(a.workspace)[g].weight = sum; });
}
__global__ void group_losses_kernel(CrossEntropyConsumeArgs a, const double* losses) {
  over_loss_groups(
      a.rows, [&](int64_t r) { return losses[r]; },
      [&](int64_t g, double sum) { partials_of(a.workspace)[g].loss = sum; });
}
__global__ void sum_group_weights_kernel(CrossEntropyConsumeArgs a) {
  __shared__ double shared[kThreads];
  const Partial* partials = partials_of(a.workspace);
  const double sum = join_pieces(
      0.0, ceil_div(a.rows, kLossGroup), static_cast<int>(blockDim.x), shared,
      [&](int64_t g) { return partials[g].weight; }, Plus());
  if (threadIdx.x == 0) *a.total_weight = sum;
}

template <class S, int kGroup>
__global__ void __launch_bounds__(kBlockOf<kGroup>, (kBlocksAtOnce<S, kGroup>))
    rows_kernel(CrossEntropyRowsArgs a, const double* weight_sum, bool packed) {
  using T = ComputeOf<S>;
  __shared__ T shared[kWarpsOf<kGroup>];
  const double sharp = 1 - a.smoothing, smooth = a.smoothing / static_cast<double>(a.cols);
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    const Row<S> x = row_of<S>(a.x, row, a.cols, packed);
    const TypedWeights<T> weight{a.weight, a.weight_dtype, a.cols};
    const int64_t target = row < 0 ? a.ignore_index : a.target[row];
    const bool counts = counts_for(target, a.ignore_index, a.cols);
    // Read before the barriers of the block or warp. After them another thread overwrites it.
    const T at_target = counts && place == 0 ? Cast<T, S>::load(x.p[target]) : T(0);
    T top, log_sum;
    statistics_of<S, kGroup>(x, place, top, log_sum, shared);
    T spread = T(0);  // sum_c w[c] (x[c] - max)
    if (smooth != 0 && a.losses) {
      T v[kPack], w[kPack];
      over_row_packs<kGroup>(x.n, place, [&](int64_t c) {
        x.get(c, v, top), weight.get(c, w, T(1));
        RAMET_UNROLL
        for (int j = 0; j < kPack; ++j) spread = fma(v[j] - top, w[j], spread);
      });
      spread = over_group<kGroup>(spread, Plus(), shared);
    }
    if constexpr (kGroup == kWarp) __syncwarp();  // shuffles do not order memory
    if (row < 0) return;
    if (!counts) {
      if (place == 0 && a.losses) a.losses[row] = 0;
      if (a.gradient) write_zeros(x, place, kGroup);
      return;
    }
    const double one =
                     sharp * static_cast<double>(class_weight<T>(a.weight, a.weight_dtype, target)),
                 all = one + (smooth != 0 ? smooth * *weight_sum : 0);
    if (place == 0 && a.losses) {
      const double l = static_cast<double>(log_sum);
      double loss = one * (l - (static_cast<double>(at_target) - static_cast<double>(top)));
      if (smooth != 0) loss += smooth * (l * *weight_sum - static_cast<double>(spread));
      a.losses[row] = loss;
    }
    if (!a.gradient) return;
    double g = 1;
    if (a.grad)
      g = static_cast<double>(
          load_element<T>(a.grad, a.grad_dtype, a.reduction == LossReduction::kNone ? row : 0));
    if (a.reduction == LossReduction::kMean) g /= *a.total_weight;
    write_slopes<S, kGroup>(x, x, weight, place,
                            {top, log_sum, static_cast<T>(g * all), static_cast<T>(-g * smooth),
                             g * one, target, false});
  });
}

template <class T> __global__ void scale_kernel(ScaleByArgs a, bool packed) {
  const T k = load_element<T>(a.factor, a.factor_dtype, 0);
  if (k == T(1)) return;
  const int64_t packs = packed ? a.n / kPack : 0;
  for (int64_t i = first_item(); i < packs; i += item_step()) {
    T v[kPack];
    load_pack(a.x, a.dtype, i * kPack, v);
    for (int j = 0; j < kPack; ++j) v[j] *= k;
    store_pack(a.x, a.dtype, i * kPack, v);
  }
  for (int64_t i = packs * kPack + first_item(); i < a.n; i += item_step())
    store_element(a.x, a.dtype, i, load_element<T>(a.x, a.dtype, i) * k);
}

// t: of the weights.
template <class Args>
void sum_weights(const char* name, const Args& a, ScalarType t, Stream where) {
  if (a.smoothing == 0) return;
  by_row_type(t, [&](auto s) {
    start(name, where, dim3(1), kThreads, 0, weight_sum_kernel<decltype(s)>, a.weight, a.cols,
          weight_sum_of(a.workspace, a.rows), rows_packed(t, a.cols, a.weight));
  });
}

template <class T> void forward(const CrossEntropyArgs& a, Stream where) {
  const char* name = "cross_entropy";
  sum_weights(name, a, a.dtype, where);
  if (a.rows > 0) {
    if (!a.log_probs)  // in the groups of consume(), so that both find the same
      by_row_type(a.dtype, [&](auto s) {
        using S = decltype(s);
        start_long_rows(name, where, a.rows, a.cols, statistics_kernel<S, kWarp>,
                        statistics_kernel<S, kThreads>, statistics_kernel<S, kLargeThreads>, a,
                        rows_packed(a.dtype, a.cols, a.x));
      });
    start(name, where, grid_of(ceil_div(a.rows, kLossGroup)), kThreads, 0, losses_kernel<T>, a,
          weight_sum_of(a.workspace, a.rows));
  }
  start(name, where, dim3(1), join_block(ceil_div(a.rows, kLossGroup)), 0,
        total_kernel<T, CrossEntropyArgs>, a);
}
template <class T> void backward(const CrossEntropyBackwardArgs& a, Stream where) {
  const char* name = "cross_entropy_backward";
  sum_weights(name, a, a.dtype, where);
  const bool packed = rows_packed(a.dtype, a.cols, a.x, a.weight, a.dx);
  by_row_type(a.dtype, [&](auto s) {
    using S = decltype(s);
    start_rows(name, where, a.rows, a.cols, backward_kernel<S, kWarp>, backward_kernel<S, kThreads>,
               a, weight_sum_of(a.workspace, a.rows), packed);
  });
}
// After sum_weights().
void run_rows(const char* name, const CrossEntropyRowsArgs& a, Stream where) {
  if (a.rows == 0) return;
  const bool packed = rows_packed(a.dtype, a.cols, a.x);
  by_row_type(a.dtype, [&](auto s) {
    using S = decltype(s);
    start_long_rows(name, where, a.rows, a.cols, rows_kernel<S, kWarp>, rows_kernel<S, kThreads>,
                    rows_kernel<S, kLargeThreads>, a, weight_sum_of(a.workspace, a.rows), packed);
  });
}
template <class T> void consume(const CrossEntropyConsumeArgs& a, Stream where) {
  const char* name = "cross_entropy_consume";
  sum_weights(name, a, a.dtype, where);
  const int64_t groups = ceil_div(a.rows, kLossGroup);
  // The rows' losses come after the memory that the other kernels need.
  auto* losses = reinterpret_cast<double*>(static_cast<char*>(a.workspace) +
                                           cross_entropy_workspace(a.dtype, a.rows, a.cols, 0));
  const int joining = join_block(groups);
  start_for(name, where, groups * kWarp, group_weights_kernel<T>, a);
  start(name, where, dim3(1), joining, 0, sum_group_weights_kernel, a);
  run_rows(name,
           {a.x, a.target, a.weight, losses, nullptr, a.total_weight, a.workspace, a.rows, a.cols,
            a.ignore_index, a.smoothing, a.dtype, a.dtype, a.dtype, a.reduction, true},
           where);
  start_for(name, where, groups * kWarp, group_losses_kernel, a, losses);
  start(name, where, dim3(1), joining, 0, total_kernel<T, CrossEntropyConsumeArgs>, a);
}

}  // namespace

void cross_entropy_forward(const CrossEntropyArgs& a, Stream where) {
  by_floating_type(a.dtype, [&](auto t) { forward<decltype(t)>(a, where); });
}
void cross_entropy_backward(const CrossEntropyBackwardArgs& a, Stream where) {
  if (a.rows == 0) return;
  by_floating_type(a.dtype, [&](auto t) { backward<decltype(t)>(a, where); });
}

void cross_entropy_consume(const CrossEntropyConsumeArgs& a, Stream where) {
  by_floating_type(a.dtype, [&](auto t) { consume<decltype(t)>(a, where); });
}
void cross_entropy_rows(const CrossEntropyRowsArgs& a, Stream where) {
  sum_weights("cross_entropy_rows", a, a.weight_dtype, where);
  run_rows("cross_entropy_rows", a, where);
}
void scale_by(const ScaleByArgs& a, Stream where) {
  const bool packed = packs_fit(a.x, a.dtype);
  const int64_t items = packed ? ceil_div(a.n, kPack) : a.n;
  by_floating_type(a.dtype, [&](auto t) {
    start_for("scale_by", where, items, scale_kernel<decltype(t)>, a, packed);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
