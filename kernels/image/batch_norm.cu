// Sums over a channel are made in parts that follow from the shape, each by one block. If channels
// are innermost, a block takes 32 channels at once. A group of threads joins the parts of a
// channel.
#include "kernels/reduce/joins_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/image/batch_norm.h"
#include "kernels/image/reach.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

/// The values of channels, cut into parts.
struct Channels {
  int64_t n, c, l, per, parts;
  bool inside;
  Channels(int64_t samples, int64_t channels, int64_t length, const ChannelView& v)
      : n(samples), c(channels), l(length), inside(v.c == 1 && (channels > 1 || length == 1)) {
    per = batch_norm_gpu_part(n, c, l, inside);
    parts = ceil_div(n * l, per);
  }
  int64_t blocks() const { return (inside ? ceil_div(c, kWarp) : c) * parts; }
};
/// The position of a value. n: its sample or, if channels are innermost, its number among the
/// values of a channel. l: its place in a plane.
template <class I> struct Place { I n, c, l; };
/// Values in memory, by positions of type I.
template <class T, class I> struct Values {
  T* data;
  I n, c, l;
  Values(const ChannelView& v, const Channels& s)
      : data(static_cast<T*>(v.data)),
        n(static_cast<I>(s.inside && s.l > 1 ? v.l : v.n)),
        c(static_cast<I>(v.c)),
        l(static_cast<I>(s.inside ? 0 : v.l)) {}
  RAMET_INLINE T& operator[](const Place<I>& p) const { return data[p.n * n + p.c * c + p.l * l]; }
};
template <class I> struct Places {
  Divisor<I> by_c, by_l;
  I items;
  bool inside;
  explicit Places(const Channels& s)
      : by_c(s.c), by_l(s.l), items(static_cast<I>(s.n * s.c * s.l)), inside(s.inside) {}
  /// The p-th value of a channel.
  template <bool kInside> RAMET_INLINE Place<I> of_channel(int64_t c, I p) const {
    if constexpr (kInside) return {p, static_cast<I>(c), 0};
    const I l = by_l.take(p);
    return {p, static_cast<I>(c), l};
  }
  /// The item-th value of all, in the order of memory.
  RAMET_INLINE Place<I> at(I item) const {
    if (inside) {
      const I c = by_c.take(item);
      return {item, c, 0};
    }
    const I l = by_l.take(item), c = by_c.take(item);
    return {item, c, l};
  }
};
// f(I{}) with the type of positions.
template <class F>
void by_places(const Channels& s, std::initializer_list<ChannelView> views, const F& f) {
  by_index(batch_norm_reach(s.n, s.c, s.l, views), f);
}

// The sum over a block's threads, or over those of its eight warps that have the same channel.
template <bool kInside> __device__ double over_channel(double value, double* shared) {
  if constexpr (!kInside) return over_group<kThreads>(value, Plus(), shared);
  __syncthreads();
  shared[threadIdx.x] = value;
  __syncthreads();
  double sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += shared[w * kWarp + threadIdx.x % kWarp];
  return sum;
}

// Calls f(channel, part, first position of this thread, end, step). The channel is -1 for threads
// without a channel, which only take part in the joins. `first_of_channel` is true for one thread
// of each channel.
template <bool kInside, class F> __device__ void over_parts(const Channels& s, const F& f) {
  const int64_t tiles = kInside ? ceil_div(s.c, kWarp) : s.c;
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int64_t task = blockIdx.x; task < tiles * s.parts; task += gridDim.x) {
    const int64_t part = task % s.parts, tile = task / s.parts,
                  channel = kInside ? tile * kWarp + lane : tile, begin = part * s.per,
                  end = imin(s.n * s.l, begin + s.per);
    const bool there = channel < s.c;
    f(there ? channel : -1, part, begin + (kInside ? warp : static_cast<int>(threadIdx.x)),
      there ? end : int64_t{0}, kInside ? kWarps : kThreads,
      there && (kInside ? warp == 0 : threadIdx.x == 0), static_cast<double>(end - begin));
  }
}

// partials[2 * (part * c + channel)]: mean of the part, and squares about it.
template <class T, class I, bool kInside>
__global__ void moments_kernel(Values<const T, I> x, Places<I> at, Channels s, double* partials) {
  __shared__ double shared[kThreads];
  over_parts<kInside>(s, [&](int64_t c, int64_t part, int64_t first, int64_t end, int step,
                             bool writes, double count) {
    double sum = 0, rest = 0, squares = 0;
    const auto value = [&](I p) {
      return static_cast<double>(x[at.template of_channel<kInside>(c, p)]);
    };
    for (I p = static_cast<I>(first); p < end; p += step) sum += value(p);
    const double mean = over_channel<kInside>(sum, shared) / count;
    for (I p = static_cast<I>(first); p < end; p += step) {
      const double d = value(p) - mean;
      rest += d, squares += d * d;
    }
    rest = over_channel<kInside>(rest, shared);
    squares = over_channel<kInside>(squares, shared);
    if (!writes) return;
    // Deviations from an infinite mean are NaN, so they do not correct it.
    partials[2 * (part * s.c + c)] = ::fabs(mean) == INFINITY ? mean : mean + rest / count;
    partials[2 * (part * s.c + c) + 1] = squares - rest * rest / count;
  });
}

// Joined as in kernels/reduce/reduce_gpu.h, but infinite means of one sign are kept.
struct Moments {
  double n, mean, m2;
};
struct JoinMoments {
  __device__ Moments operator()(const Moments& x, const Moments& y) const {
    if (y.n == 0) return x;
    if (x.n == 0) return y;
    const double d = y.mean - x.mean, share = y.n / (x.n + y.n);
    return {x.n + y.n, ::fabs(x.mean) == INFINITY ? x.mean + y.mean : x.mean + d * share,
            x.m2 + y.m2 + d * d * (x.n * share)};
  }
};

template <class T>
__global__ void statistics_kernel(BatchNormArgs a, Channels s, const double* partials, int group) {
  __shared__ Moments shared[kThreads];
  T *mean = static_cast<T*>(a.mean), *invstd = static_cast<T*>(a.invstd),
    *running_mean = static_cast<T*>(a.running_mean), *running_var = static_cast<T*>(a.running_var);
  over_outputs(a.c, group, [&](int64_t c, bool there) {
    const auto part_of = [&](int64_t part) -> Moments {
      const double* p = partials + 2 * (part * s.c + c);
      return {static_cast<double>(imin(s.per, s.n * s.l - part * s.per)), p[0], p[1]};
    };
    const Moments all = join_pieces(Moments{0, 0, 0}, there && a.training ? s.parts : 0, group,
                                    shared, part_of, JoinMoments());
    if (!there || static_cast<int>(threadIdx.x) % group != 0) return;
    if (!a.training) {
      mean[c] = running_mean[c];
      invstd[c] = static_cast<T>(1 / ::sqrt(static_cast<double>(running_var[c]) + a.eps));
      return;
    }
    mean[c] = static_cast<T>(all.mean);
    invstd[c] = static_cast<T>(1 / ::sqrt(all.m2 / all.n + a.eps));
    const double keep_old = 1 - a.momentum;
    if (running_mean)
      running_mean[c] =
          static_cast<T>(a.momentum * all.mean + keep_old * static_cast<double>(running_mean[c]));
    if (running_var)
      running_var[c] = static_cast<T>(a.momentum * (all.m2 / (all.n - 1)) +
                                      keep_old * static_cast<double>(running_var[c]));
  });
}

template <class T> RAMET_INLINE double weight_of(const void* p, int64_t c) {
  return p ? static_cast<double>(static_cast<const T*>(p)[c]) : 1.0;
}

template <class T, class I>
__global__ void forward_kernel(BatchNormArgs a, Values<const T, I> x, Values<T, I> y,
                               Places<I> places) {
  for (I i = static_cast<I>(first_item()); i < places.items; i += static_cast<I>(item_step())) {
    const Place<I> p = places.at(i);
    const I c = p.c;
    const double k =
        weight_of<T>(a.weight, c) * static_cast<double>(static_cast<const T*>(a.invstd)[c]);
    const double b = a.bias ? static_cast<double>(static_cast<const T*>(a.bias)[c]) : 0.0;
    const T shift = static_cast<T>(b - static_cast<double>(static_cast<const T*>(a.mean)[c]) * k);
    y[p] = fma(x[p], static_cast<T>(k), shift);
  }
}

// partials[2 * (part * c + channel)]: sum of dy, and of dy times the distance from the mean.
template <class T, class I, bool kInside>
__global__ void products_kernel(BatchNormBackwardArgs a, Values<const T, I> x,
                                Values<const T, I> dy, Places<I> at, Channels s, double* partials) {
  __shared__ double shared[kThreads];
  over_parts<kInside>(
      s, [&](int64_t c, int64_t part, int64_t first, int64_t end, int step, bool writes, double) {
        double sum = 0, dot = 0;
        const double mean = c < 0 ? 0 : static_cast<double>(static_cast<const T*>(a.mean)[c]);
        for (I i = static_cast<I>(first); i < end; i += step) {
          const Place<I> p = at.template of_channel<kInside>(c, i);
          const double d = static_cast<double>(dy[p]);
          sum += d;
          dot += d * (static_cast<double>(x[p]) - mean);
        }
        sum = over_channel<kInside>(sum, shared);
        dot = over_channel<kInside>(dot, shared);
        if (!writes) return;
        partials[2 * (part * s.c + c)] = sum;
        partials[2 * (part * s.c + c) + 1] = dot;
      });
}

// factors[c * 3]: the factors of dy, of the distance from the mean and of 1 in dx.
template <class T>
__global__ void factors_kernel(BatchNormBackwardArgs a, Channels s, const double* partials,
                               double* factors, int group) {
  __shared__ TwoSums shared[kThreads];
  over_outputs(a.c, group, [&](int64_t c, bool there) {
    const auto part_of = [&](int64_t part) -> TwoSums {
      const double* p = partials + 2 * (part * s.c + c);
      return {p[0], p[1]};
    };
    const auto [sum, dot] =
        join_pieces(TwoSums{0, 0}, there ? s.parts : 0, group, shared, part_of, PlusTwo());
    if (!there || static_cast<int>(threadIdx.x) % group != 0) return;
    const double inv = static_cast<double>(static_cast<const T*>(a.invstd)[c]),
                 w = weight_of<T>(a.weight, c) * inv, total = static_cast<double>(s.n * s.l);
    if (a.dweight) static_cast<T*>(a.dweight)[c] = static_cast<T>(dot * inv);
    if (a.dbias) static_cast<T*>(a.dbias)[c] = static_cast<T>(sum);
    factors[c * 3] = w;
    factors[c * 3 + 1] = a.training ? -w * inv * inv * dot / total : 0;
    factors[c * 3 + 2] = a.training ? -w * sum / total : 0;
  });
}

template <class T, class I>
__global__ void backward_kernel(BatchNormBackwardArgs a, Values<const T, I> x,
                                Values<const T, I> dy, Values<T, I> to, Places<I> places,
                                const double* factors) {
  for (I i = static_cast<I>(first_item()); i < places.items; i += static_cast<I>(item_step())) {
    const Place<I> p = places.at(i);
    const double* f = factors + static_cast<int64_t>(p.c) * 3;
    double dx = f[0] * static_cast<double>(dy[p]);
    // Otherwise x is not read, because it may be infinite.
    if (a.training)
      dx += f[1] * (static_cast<double>(x[p]) -
                    static_cast<double>(static_cast<const T*>(a.mean)[p.c])) +
            f[2];
    to[p] = static_cast<T>(dx);
  }
}

template <class Kernel, class... Arguments>
void start_parts(const char* name, Stream where, const Channels& s, Kernel inside, Kernel planes,
                 const Arguments&... arguments) {
  start(name, where, grid_of(s.blocks()), kThreads, 0, s.inside ? inside : planes, arguments...);
}

template <class T> void statistics(const BatchNormArgs& a, Stream where) {
  const Channels s(a.n, a.c, a.l, a.x);
  double* partials = static_cast<double*>(a.workspace);
  if (a.training)
    by_places(s, {a.x}, [&](auto i) {
      using I = decltype(i);
      start_parts("batch_norm", where, s, moments_kernel<T, I, true>, moments_kernel<T, I, false>,
                  Values<const T, I>(a.x, s), Places<I>(s), s, partials);
    });
  if (a.c > 0)
    start_join("batch_norm", where, a.c, a.training ? s.parts : 1, 0, statistics_kernel<T>, a, s,
               partials);
}
template <class T> void forward(const BatchNormArgs& a, Stream where) {
  const Channels s(a.n, a.c, a.l, a.x);
  by_places(s, {a.x, a.y}, [&](auto i) {
    using I = decltype(i);
    start_for("batch_norm", where, a.n * a.c * a.l, forward_kernel<T, I>, a,
              Values<const T, I>(a.x, s), Values<T, I>(a.y, s), Places<I>(s));
  });
}
template <class T> void backward(const BatchNormBackwardArgs& a, Stream where) {
  const char* name = "batch_norm_backward";
  const Channels s(a.n, a.c, a.l, a.x);
  double *partials = static_cast<double*>(a.workspace), *factors = partials + 2 * s.parts * a.c;
  by_places(s, {a.x, a.dy}, [&](auto i) {
    using I = decltype(i);
    start_parts(name, where, s, products_kernel<T, I, true>, products_kernel<T, I, false>, a,
                Values<const T, I>(a.x, s), Values<const T, I>(a.dy, s), Places<I>(s), s, partials);
  });
  if (a.c > 0) start_join(name, where, a.c, s.parts, 0, factors_kernel<T>, a, s, partials, factors);
  if (!a.dx.data) return;
  by_places(s, {a.x, a.dy, a.dx}, [&](auto i) {
    using I = decltype(i);
    start_for(name, where, a.n * a.c * a.l, backward_kernel<T, I>, a, Values<const T, I>(a.x, s),
              Values<const T, I>(a.dy, s), Values<T, I>(a.dx, s), Places<I>(s), factors);
  });
}

}  // namespace

void batch_norm_statistics(const BatchNormArgs& a, Stream where) {
  by_dtype<float, double>(a.dtype, [&](auto t) { statistics<decltype(t)>(a, where); });
}
void batch_norm_forward(const BatchNormArgs& a, Stream where) {
  by_dtype<float, double>(a.dtype, [&](auto t) { forward<decltype(t)>(a, where); });
}
void batch_norm_backward(const BatchNormBackwardArgs& a, Stream where) {
  by_dtype<float, double>(a.dtype, [&](auto t) { backward<decltype(t)>(a, where); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
