// A block has a sample: its threads are states, and a step is a barrier. Work that does not depend
// on the previous step is done for all steps at once: which class a state's probability is for.
#include "kernels/rows/rows_gpu.h"
// clang-format off: the first decides what the other means
#include "kernels/rows/ctc_loss_sample.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// log(exp a + exp b + exp c): -inf if all three are -inf.
template <class T> __device__ __forceinline__ T log_sum(T a, T b, T c) {
  const T top = Larger()(a, Larger()(b, c));
  if (top == ctc_never<T>()) return a + b + c;  // NaN where one is
  return top + vlog(vexp(a - top) + vexp(b - top) + vexp(c - top));
}

// The largest element of the row that a block has just written. Warps write their results into two
// places in turn, so that the barrier after a row is enough.
template <class T> struct Largest {
  T (*shared)[kWarps];
  __device__ void put(int64_t step, T own) const {
    for (int lanes = kWarp / 2; lanes > 0; lanes /= 2)
      own = Larger()(__shfl_xor_sync(0xffffffffu, own, lanes), own);
    if (threadIdx.x % kWarp == 0) shared[step % 2][threadIdx.x / kWarp] = own;
  }
  __device__ T get(int64_t step) const {
    T all = shared[step % 2][0];
    for (unsigned w = 1; w < blockDim.x / kWarp; ++w) all = Larger()(shared[step % 2][w], all);
    return ctc_shift(all);
  }
};

template <class T> __global__ void alpha_kernel(CtcLossArgs a) {
  __shared__ T shared[2][kWarps];
  const Largest<T> largest{shared};
  const CtcSamples& all = a.samples;
  for (int64_t b = blockIdx.x; b < all.batch; b += gridDim.x) {
    const CtcSample s(all, b);
    const int64_t states = s.states();
    T* const rows = static_cast<T*>(a.alpha) + a.rows * s.begin;
    T* row = nullptr;
    double shift = 0;
    for (int64_t t = 0, at = 0; t < s.steps; ++t, at = at + 1 < a.rows ? at + 1 : 0) {
      const T* const before = row;
      row = rows + at * s.row() + 2;
      const T off = t > 0 ? largest.get(t - 1) : T(0);
      shift += static_cast<double>(off);
      T most = ctc_never<T>();
      for (int64_t i = threadIdx.x; i < states; i += blockDim.x) {
        const T emission = ctc_emission<T>(all, t, b, s.label(i));
        T v = i < 2 ? emission : ctc_never<T>();
        if (t > 0)
          v = log_sum(before[i], i > 0 ? before[i - 1] : ctc_never<T>(),
                      s.skips(i) ? before[i - 2] : ctc_never<T>()) -
              off + emission;
        row[i] = v;
        most = Larger()(v, most);
      }
      largest.put(t, most);
      if (a.shifts && threadIdx.x == 0) a.shifts[b * all.time + t] = shift;
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      const double negative = ctc_negative(s, row, shift);
      a.negative[b] = negative;
      const bool none = a.zero_infinity && negative == static_cast<double>(INFINITY);
      static_cast<T*>(a.loss)[b] = none ? T(0) : static_cast<T>(negative);
    }
    __syncthreads();  // the next sample overwrites what this one reads
  }
}

// The workspace of a backward pass. For each label: where it occurs next in its sample (-1:
// nowhere), and whether this is its first occurrence. Also the probability of each state, and two
// rows of sums.
template <class T> struct Room {
  int64_t *next, *first;
  T *chances, *ahead;
  RAMET_INLINE explicit Room(const CtcLossBackwardArgs& a) {
    const CtcSamples& all = a.samples;
    next = static_cast<int64_t*>(a.workspace), first = next + all.labels;
    chances = reinterpret_cast<T*>(first + all.labels);
    ahead = chances + all.time * ctc_states(all.labels, all.batch);
  }
};

template <class T> __global__ void chance_kernel(CtcLossBackwardArgs a) {
  __shared__ T shared[2][kWarps];
  const Largest<T> largest{shared};
  const CtcSamples& all = a.samples;
  const Room<T> room(a);
  for (int64_t b = blockIdx.x; b < all.batch; b += gridDim.x) {
    const CtcSample s(all, b);
    const int64_t states = s.states(), at = s.labels - all.targets;
    for (int64_t i = threadIdx.x; i < s.count; i += blockDim.x) {
      int64_t next = i + 1, before = i - 1;
      while (next < s.count && s.labels[next] != s.labels[i]) ++next;
      while (before >= 0 && s.labels[before] != s.labels[i]) --before;
      room.next[at + i] = next < s.count ? next : -1;
      room.first[at + i] = before < 0;
    }
    double filled;
    if (ctc_is_filled(a.negative[b], a.zero_infinity, filled)) continue;  // for all threads
    const T* const alphas = static_cast<const T*>(a.alpha) + all.time * s.begin;
    T* const chances = room.chances + all.time * s.begin;
    T* const aheads = room.ahead + 2 * s.begin;
    double shift = 0;
    for (int64_t t = s.steps - 1; t >= 0; --t) {
      const bool last = t == s.steps - 1;
      const T* const ahead = aheads + (t + 1) % 2 * s.row();
      T* const own = aheads + t % 2 * s.row();
      const T off = last ? T(0) : largest.get(t + 1);
      shift += static_cast<double>(off);
      const T scale = static_cast<T>(a.shifts[b * all.time + t] + shift + a.negative[b]);
      T most = ctc_never<T>();
      for (int64_t i = threadIdx.x; i < states; i += blockDim.x) {
        T beta = i >= states - 2 ? T(0) : ctc_never<T>();
        if (!last)
          beta = log_sum(ahead[i], i + 1 < states ? ahead[i + 1] : ctc_never<T>(),
                         i + 2 < states && s.skips(i + 2) ? ahead[i + 2] : ctc_never<T>()) -
                 off;
        chances[t * s.row() + i] = vexp(alphas[t * s.row() + 2 + i] + beta + scale);
        const T v = beta + ctc_emission<T>(all, t, b, s.label(i));
        own[i] = v;
        most = Larger()(v, most);
      }
      largest.put(t, most);
      __syncthreads();
    }
    __syncthreads();  // the next sample overwrites what this one reads
  }
}

// A warp has a row of dx. The first occurrence of a label adds up all of them, one after the other.
template <class T> __global__ void classes_kernel(CtcLossBackwardArgs a) {
  const CtcSamples& all = a.samples;
  const Room<T> room(a);
  over_rows<kWarp>(all.time * all.batch, [&](int64_t r, int lane) {
    const int64_t b = r < 0 ? 0 : r % all.batch, t = r < 0 ? 0 : r / all.batch;
    const CtcSample s(all, b);
    double filled = 0;
    const bool fills = ctc_is_filled(a.negative[b], a.zero_infinity, filled),
               there = r >= 0 && t < s.steps;
    T* const dx = static_cast<T*>(a.dx) + r * all.classes;
    if (r >= 0)
      for (int64_t c = lane; c < all.classes; c += kWarp)
        dx[c] = there && fills ? static_cast<T>(filled) : T(0);
    __syncwarp();
    if (!there || fills) return;
    const T* const chance = room.chances + all.time * s.begin + t * s.row();
    const T g = static_cast<const T*>(a.grad)[b];
    const int64_t at = s.labels - all.targets;
    T blanks = T(0);
    for (int64_t i = lane; i <= s.count; i += kWarp) {
      blanks += chance[2 * i];
      if (i == s.count) continue;
      const int64_t label = s.labels[i];
      if (label == s.blank) blanks += chance[2 * i + 1];  // only this lane writes the blank
      else if (room.first[at + i] && label >= 0 && label < all.classes) {
        T sum = T(0);
        for (int64_t k = i; k >= 0; k = room.next[at + k]) sum += chance[2 * k + 1];
        dx[label] = -g * sum;
      }
    }
    blanks = over_group<kWarp>(blanks, Plus(), static_cast<T*>(nullptr));
    if (lane == 0) dx[s.blank] = -g * blanks;
  });
}

// As many threads as a sample may have states.
int threads_for(const CtcSamples& a) {
  const int64_t longest = a.offsets ? a.labels : a.padded;
  if (longest >= kThreads / 2) return kThreads;
  return static_cast<int>(ceil_div(2 * longest + 1, kWarp) * kWarp);
}

}  // namespace

void ctc_loss_forward(const CtcLossArgs& a, Stream where) {
  if (a.samples.batch == 0) return;
  by_floating_type(a.samples.dtype, [&](auto t) {
    start("ctc_loss", where, grid_of(a.samples.batch), threads_for(a.samples), 0,
          alpha_kernel<decltype(t)>, a);
  });
}
void ctc_loss_backward(const CtcLossBackwardArgs& a, Stream where) {
  const CtcSamples& all = a.samples;
  if (all.batch == 0 || all.time == 0) return;
  by_floating_type(all.dtype, [&](auto t) {
    using T = decltype(t);
    start("ctc_loss_backward", where, grid_of(all.batch), threads_for(all), 0, chance_kernel<T>, a);
    start_for("ctc_loss_backward", where, all.time * all.batch * kWarp, classes_kernel<T>, a);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
