// The parts of each kind of reduction on a GPU, for the loops in reduce.cu. Each thread has a
// state, which takes elements eight at a time. States are joined in an order that follows from the
// shape alone.
//
// Floats are summed in double. Compared with the memory access that costs nothing here, and no
// blocks are needed to keep the error small.
#pragma once
#include "kernels/gpu/gpu_elements.h"
// clang-format off: the first decides what the other means
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/squares.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {

template <class T> struct Limits {
  static RAMET_INLINE T lowest() { return static_cast<T>(-INFINITY); }
  static RAMET_INLINE T highest() { return static_cast<T>(INFINITY); }
};
template <> struct Limits<int64_t> {
  static RAMET_INLINE int64_t lowest() { return INT64_MIN; }
  static RAMET_INLINE int64_t highest() { return INT64_MAX; }
};
template <class T> RAMET_INLINE bool is_nan(T x) { return x != x; }

/// Sums and products, of the elements or of a function of them. Integers wrap.
template <class T> struct Fold {
  using State = typename std::conditional<std::is_integral<T>::value, uint64_t, double>::type;
  static RAMET_INLINE State start(const ReduceArgs& a) {
    return a.op == ReduceOp::kProd ? State(1) : State(0);
  }
  static RAMET_INLINE State of(const ReduceArgs& a, T element) {
    const State x = static_cast<State>(element);
    switch (a.op) {
      case ReduceOp::kSumSquares:
      case ReduceOp::kNorm2: return x * x;
      case ReduceOp::kNorm1: return element < T(0) ? State(0) - x : x;
      case ReduceOp::kNorm0: return static_cast<State>(element != T(0));
      case ReduceOp::kNormP:
        return static_cast<State>(::pow(::fabs(static_cast<double>(element)), a.parameter));
      default: return x;
    }
  }
  static RAMET_INLINE State join(const ReduceArgs& a, State x, State y) {
    return a.op == ReduceOp::kProd ? x * y : x + y;
  }
  static RAMET_INLINE void take(const ReduceArgs& a, State& s, const T (&x)[kPack], int n,
                                int64_t) {
    for (int j = 0; j < kPack; ++j)
      if (j < n) s = join(a, s, of(a, x[j]));
  }
  static RAMET_INLINE T result(const ReduceArgs& a, State s, int64_t) {
    const double v = static_cast<double>(s);
    switch (a.op) {
      case ReduceOp::kMean: return static_cast<T>(v / static_cast<double>(a.count));
      case ReduceOp::kNorm2: return static_cast<T>(::sqrt(v));
      case ReduceOp::kNormP: return static_cast<T>(::pow(v, 1 / a.parameter));
      default: return static_cast<T>(s);
    }
  }
};

/// Norms of doubles: their squares may overflow or underflow. A double can hold those of every
/// float.
struct Norm2 {
  using State = Squares;
  static RAMET_INLINE Squares start(const ReduceArgs&) { return {0, 1}; }
  static RAMET_INLINE Squares join(const ReduceArgs&, const Squares& x, const Squares& y) {
    return RAMET_VARIANT::join(x, y);
  }
  static RAMET_INLINE double sum(const double (&x)[kPack], int n, double unit) {
    double s = 0;
    for (int j = 0; j < kPack; ++j)
      if (j < n) s += (x[j] * unit) * (x[j] * unit);
    return s;
  }
  static RAMET_INLINE void take(const ReduceArgs&, Squares& s, const double (&x)[kPack], int n,
                                int64_t) {
    const double plain = sum(x, n, 1), unit = unit_of<double>(plain);
    s = RAMET_VARIANT::join(s, {unit == 1 ? plain : sum(x, n, unit), unit});
  }
  static RAMET_INLINE double result(const ReduceArgs&, const Squares& s, int64_t) {
    return ::sqrt(s.sum) / s.unit;
  }
};

RAMET_INLINE bool looks_for_least(ReduceOp op) {
  return op == ReduceOp::kMin || op == ReduceOp::kMinIndex || op == ReduceOp::kNormNegInf;
}

/// max, min, and those of absolute values. A NaN wins.
template <class T> struct Extreme {
  using State = T;
  static RAMET_INLINE T start(const ReduceArgs& a) {
    return looks_for_least(a.op) ? Limits<T>::highest() : Limits<T>::lowest();
  }
  static RAMET_INLINE T join(const ReduceArgs& a, T x, T y) {
    // A comparison with a NaN is false, so a NaN that is y wins, too. No branches.
    return (looks_for_least(a.op) ? x < y : x > y) || is_nan(x) ? x : y;
  }
  static RAMET_INLINE void take(const ReduceArgs& a, T& s, const T (&x)[kPack], int n, int64_t) {
    const bool absolute = a.op == ReduceOp::kNormInf || a.op == ReduceOp::kNormNegInf;
    for (int j = 0; j < kPack; ++j)
      if (j < n) s = join(a, s, absolute ? vabs(x[j]) : x[j]);
  }
  static RAMET_INLINE T result(const ReduceArgs&, T s, int64_t) { return s; }
};

/// The extremum and its first position; a NaN counts as the extremum.
template <class T> struct Place {
  struct State {
    T value;
    int64_t index;  // -1: none yet
  };
  static RAMET_INLINE State start(const ReduceArgs&) { return {T(0), -1}; }
  static RAMET_INLINE State join(const ReduceArgs& a, const State& x, const State& y) {
    if (x.index < 0 || y.index < 0) return x.index < 0 ? y : x;
    const bool equal = x.value == y.value || (is_nan(x.value) && is_nan(y.value));
    if (equal) return x.index < y.index ? x : y;
    if (is_nan(x.value) || is_nan(y.value)) return is_nan(x.value) ? x : y;
    return (looks_for_least(a.op) ? x.value < y.value : x.value > y.value) ? x : y;
  }
  static RAMET_INLINE void take(const ReduceArgs& a, State& s, const T (&x)[kPack], int n,
                                int64_t first) {
    for (int j = 0; j < kPack; ++j)
      if (j < n) s = join(a, s, {x[j], first + j});
  }
  static RAMET_INLINE T result(const ReduceArgs& a, const State& s, int64_t output) {
    static_cast<int64_t*>(a.extra)[output] = s.index;
    return s.value;
  }
};

/// The state is 1 if an element decided the result: for any, one that is not 0; for all, one that
/// is 0.
template <class T> struct Truth {
  using State = int64_t;
  static RAMET_INLINE int64_t start(const ReduceArgs&) { return 0; }
  static RAMET_INLINE int64_t join(const ReduceArgs&, int64_t x, int64_t y) { return x | y; }
  static RAMET_INLINE void take(const ReduceArgs& a, int64_t& s, const T (&x)[kPack], int n,
                                int64_t) {
    for (int j = 0; j < kPack; ++j)
      if (j < n) s |= (x[j] != T(0)) != (a.op == ReduceOp::kAll);
  }
  static RAMET_INLINE T result(const ReduceArgs& a, int64_t s, int64_t) {
    return static_cast<T>(s != (a.op == ReduceOp::kAll));
  }
};

/// Count, mean and squared deviations from it, joined as in Chan, Golub, LeVeque (1979).
template <class T> struct Variance {
  struct State {
    double n, mean, m2;
  };
  static RAMET_INLINE State start(const ReduceArgs&) { return {0, 0, 0}; }
  static RAMET_INLINE State join(const ReduceArgs&, const State& x, const State& y) {
    if (y.n == 0) return x;
    if (x.n == 0) return y;  // without the difference of means: its square may be infinite
    const double d = y.mean - x.mean, share = y.n / (x.n + y.n);
    return {x.n + y.n, x.mean + d * share, x.m2 + y.m2 + d * d * (x.n * share)};
  }
  static RAMET_INLINE void take(const ReduceArgs& a, State& s, const T (&x)[kPack], int n,
                                int64_t) {
    double sum = 0, m2 = 0;
    for (int j = 0; j < kPack; ++j)
      if (j < n) sum += static_cast<double>(x[j]);
    const double mean = sum / n;
    for (int j = 0; j < kPack; ++j)
      if (j < n) m2 += (static_cast<double>(x[j]) - mean) * (static_cast<double>(x[j]) - mean);
    s = join(a, s, {static_cast<double>(n), mean, m2});
  }
  static RAMET_INLINE T result(const ReduceArgs& a, const State& s, int64_t output) {
    // If the mean is infinite, the deviations are NaN. Then LibTorch and the CPU return NaN as the
    // mean, because their joins have the same effect.
    if (a.extra)
      store_element(a.extra, a.out_dtype, output,
                    static_cast<T>(
                        s.n > 0 && ::fabs(s.mean) != INFINITY ? s.mean : static_cast<double>(NAN)));
    // An empty sequence has no variance, whatever the correction.
    const double count = static_cast<double>(a.count),
                 divisor = count > 0 && count > a.parameter ? count - a.parameter : 0;
    const double var = s.m2 / divisor;
    return static_cast<T>(a.op == ReduceOp::kStd ? ::sqrt(var) : var);
  }
};

}  // namespace ramet::kernels::RAMET_VARIANT
