#include "kernels/rows_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/cross_entropy.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

struct Partial {
  double loss, weight;
};
// The pieces of the workspace: partial sums, then the weights' sum over the classes.
Partial* partials_of(void* workspace) { return static_cast<Partial*>(workspace); }
double* weight_sum_of(void* workspace, int64_t rows) {
  return reinterpret_cast<double*>(partials_of(workspace) + ceil_div(rows, kLossGroup));
}

template <class T>
__device__ __forceinline__ T class_weight(const void* weight, ScalarType t, int64_t c) {
  return weight ? load_element<T>(weight, t, c) : T(1);
}

// One warp.
template <class T>
__global__ void weight_sum_kernel(const void* weight, ScalarType dtype, int64_t cols, double* out) {
  double sum = 0;
  for (int64_t c = threadIdx.x; c < cols; c += kWarp)
    sum += static_cast<double>(class_weight<T>(weight, dtype, c));
  for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x == 0) *out = sum;
}

// max and log sum exp(x - max) of each row.
template <class T, int kGroup> __global__ void statistics_kernel(CrossEntropyArgs a) {
  __shared__ T shared[kWarps];
  over_rows<kGroup>(a.rows, [&](int64_t row, int place) {
    const int64_t n = row < 0 ? 0 : a.cols, start = row * a.cols;
    const auto x = [&](int64_t c) { return load_element<T>(a.x, a.dtype, start + c); };
    T top = static_cast<T>(-INFINITY), sum = T(0);
    for (int64_t c = place; c < n; c += kGroup) top = Larger()(x(c), top);
    top = over_group<kGroup>(top, Larger(), shared);
    for (int64_t c = place; c < n; c += kGroup) sum += vexp(x(c) - top);
    sum = over_group<kGroup>(sum, Plus(), shared);
    if (row < 0 || place != 0) return;
    static_cast<T*>(a.statistics)[2 * row] = top;
    static_cast<T*>(a.statistics)[2 * row + 1] = vlog(sum);
  });
}

// The rows of a loss group: one after the other for each warp, added in the order of the rows.
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
      const bool counts = target != a.ignore_index;
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
    if (threadIdx.x == 0) {
      Partial sum{0, 0};
      for (int64_t i = 0; i < count; ++i)
        sum.loss += of_row[i].loss, sum.weight += of_row[i].weight;
      static_cast<Partial*>(a.workspace)[group] = sum;
    }
    __syncthreads();
  }
}

template <class T> __global__ void total_kernel(CrossEntropyArgs a) {
  Partial total{0, 0};
  const Partial* partials = static_cast<const Partial*>(a.workspace);
  for (int64_t g = 0; g < ceil_div(a.rows, kLossGroup); ++g)
    total.loss += partials[g].loss, total.weight += partials[g].weight;
  *a.total_weight = total.weight;
  if (a.reduction == LossReduction::kNone) return;
  const double loss = a.reduction == LossReduction::kMean ? total.loss / total.weight : total.loss;
  store_element(a.loss, a.dtype, 0, static_cast<T>(loss));
}

template <class T>
__global__ void backward_kernel(CrossEntropyBackwardArgs a, const double* weight_sum) {
  const double sharp = 1 - a.smoothing, smooth = a.smoothing / static_cast<double>(a.cols);
  for (int64_t i = first_item(); i < a.rows * a.cols; i += item_step()) {
    const int64_t row = i / a.cols, c = i % a.cols, target = a.target[row];
    if (target == a.ignore_index) {
      store_element(a.dx, a.dtype, i, T(0));
      continue;
    }
    double g = static_cast<double>(
        load_element<T>(a.grad, a.dtype, a.reduction == LossReduction::kNone ? row : 0));
    if (a.reduction == LossReduction::kMean) g /= *a.total_weight;
    const double one = sharp * static_cast<double>(class_weight<T>(a.weight, a.dtype, target)),
                 all = one + (smooth != 0 ? smooth * *weight_sum : 0);
    T dx = T(0);
    if (!a.log_probs) {
      const T* st = static_cast<const T*>(a.statistics) + 2 * row;
      dx = vexp(load_element<T>(a.x, a.dtype, i) - st[0] - st[1]) * static_cast<T>(g * all);
    }
    if (smooth != 0)
      dx = fma(class_weight<T>(a.weight, a.dtype, c), static_cast<T>(-g * smooth), dx);
    if (c == target) dx = static_cast<T>(static_cast<double>(dx) - g * one);
    store_element(a.dx, a.dtype, i, dx);
  }
}

template <class T, class Args> void sum_weights(const char* name, const Args& a, Stream where) {
  if (a.smoothing != 0)
    start(name, where, dim3(1), kWarp, 0, weight_sum_kernel<T>, a.weight, a.dtype, a.cols,
          weight_sum_of(a.workspace, a.rows));
}

template <class T> void forward(const CrossEntropyArgs& a, Stream where) {
  const char* name = "cross_entropy";
  sum_weights<T>(name, a, where);
  if (a.rows > 0) {
    if (!a.log_probs)
      start_rows(name, where, a.rows, a.cols, statistics_kernel<T, kWarp>,
                 statistics_kernel<T, kThreads>, a);
    start(name, where, dim3(static_cast<unsigned>(imin(ceil_div(a.rows, kLossGroup), kMostBlocks))),
          kThreads, 0, losses_kernel<T>, a, weight_sum_of(a.workspace, a.rows));
  }
  start(name, where, dim3(1), 1, 0, total_kernel<T>, a);
}
template <class T> void backward(const CrossEntropyBackwardArgs& a, Stream where) {
  sum_weights<T>("cross_entropy_backward", a, where);
  start_for("cross_entropy_backward", where, a.rows * a.cols, backward_kernel<T>, a,
            weight_sum_of(a.workspace, a.rows));
}

}  // namespace

void cross_entropy_forward(const CrossEntropyArgs& a, Stream where) {
  a.dtype == ScalarType::Double ? forward<double>(a, where) : forward<float>(a, where);
}
void cross_entropy_backward(const CrossEntropyBackwardArgs& a, Stream where) {
  if (a.rows == 0) return;
  a.dtype == ScalarType::Double ? backward<double>(a, where) : backward<float>(a, where);
}

}  // namespace ramet::kernels::RAMET_VARIANT
