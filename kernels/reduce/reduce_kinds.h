// Every kind of reduction: sums, products, norms, any and all, variance; the extrema stand in their
// own file.
#pragma once
#include "kernels/reduce/reduce_extrema.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// ---- sums and products --------------------------------------------------------------------------
// T: element; L: lanes (unsigned for integers, which wrap); S: state.
template <class T> struct LaneOf {
  using type = T;
  using state = double;
};
template <> struct LaneOf<int64_t> {
  using type = uint64_t;
  using state = uint64_t;
};

struct JoinMultiply {
  template <class V> RAMET_INLINE V operator()(const V& a, const V& b) const { return a * b; }
};
struct Add {
  using Join = Add;
  using Fold = JoinAdd;
  static constexpr int kNeutral = 0;
  template <class L> static RAMET_INLINE Lanes<L> step(const Lanes<L>& acc, const Lanes<L>& x) {
    return acc + x;
  }
  template <class S> static RAMET_INLINE S join(S a, S b) { return a + b; }
  template <class L> static RAMET_INLINE Lanes<L> join(const Lanes<L>& a, const Lanes<L>& b) {
    return a + b;
  }
};
struct AddSquare : Add {
  template <class L> static RAMET_INLINE Lanes<L> step(const Lanes<L>& acc, const Lanes<L>& x) {
    return lfma(x, x, acc);
  }
};
struct AddAbs : Add {
  template <class L> static RAMET_INLINE Lanes<L> step(const Lanes<L>& acc, const Lanes<L>& x) {
    return acc + labs(x);
  }
};
struct AddNonzero : Add {
  template <class L> static RAMET_INLINE Lanes<L> step(const Lanes<L>& acc, const Lanes<L>& x) {
    return acc + lnonzero(x);
  }
};
struct Multiply {
  using Join = Multiply;
  using Fold = JoinMultiply;
  static constexpr int kNeutral = 1;
  template <class L> static RAMET_INLINE Lanes<L> step(const Lanes<L>& acc, const Lanes<L>& x) {
    return acc * x;
  }
  template <class S> static RAMET_INLINE S join(S a, S b) { return a * b; }
  template <class L> static RAMET_INLINE Lanes<L> join(const Lanes<L>& a, const Lanes<L>& b) {
    return a * b;
  }
};

template <class S, class Op> struct FoldStates {
  static void init(void* states, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<S*>(states)[i] = Op::kNeutral;
  }
  static void merge(void* into, const void* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      static_cast<S*>(into)[i] = Op::join(static_cast<S*>(into)[i], static_cast<const S*>(from)[i]);
  }
};
template <class T, class Op>
struct Fold : FoldStates<typename LaneOf<T>::state, typename Op::Join> {
  using L = typename LaneOf<T>::type;
  using S = typename LaneOf<T>::state;

  static void block(void* state, const void* data, int64_t n, int64_t, double) {
    const L* q = static_cast<const L*>(data);
    Accumulators<L> s;
    lfill<L>(s, Op::kNeutral);
    sweep<L>(
        n, [&](int64_t i, int u) { s[u] = Op::step(s[u], lload(q + i)); },
        [&](int64_t i, int64_t left) {
          constexpr int u = kAccumulators<L> - 1;
          s[u] = Op::step(s[u], lload_n<L>(q + i, left, L(Op::kNeutral)));
        });
    const L sum = lfold_all<L>(s, typename Op::Fold());
    S& out = *static_cast<S*>(state);
    out = Op::join(out, static_cast<S>(sum));
  }
  static constexpr int64_t kColumns = kWide;
  template <int kRows> static RAMET_INLINE void add_rows(L* sums, const L* const* rows, int64_t w) {
    int64_t c = 0;
    for (; c + 16 <= w; c += 16) {
      Lanes<L> s = lload(sums + c);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) s = Op::step(s, lload(rows[r] + c));
      lstore(sums + c, s);
    }
    if (c == w) return;
    Lanes<L> s = lload(sums + c);
#pragma GCC unroll 1
    for (int r = 0; r < kRows; ++r)
      s = Op::step(s, lload_n<L>(rows[r] + c, w - c, L(Op::kNeutral)));
    lstore(sums + c, s);
  }
  static void columns(void* states, const void* const* data, int64_t count, int64_t w, int64_t,
                      double) {
    L sums[kWide];
    const L* rows[kReduceRows];
    for (int64_t r = 0; r < count; ++r) rows[r] = static_cast<const L*>(data[r]);
    for (int64_t c = 0; c < w; c += 16) lstore(sums + c, lset<L>(Op::kNeutral));
    int64_t r = 0;
    for (; r + 8 <= count; r += 8) add_rows<8>(sums, rows + r, w);
    for (; r < count; ++r) add_rows<1>(sums, rows + r, w);
    S* out = static_cast<S*>(states);
    for (int64_t c = 0; c < w; ++c) out[c] = Op::join(out[c], static_cast<S>(sums[c]));
  }
};

// The general norm is rare: a scalar pow into a copy, summed as any other.
template <class T> struct Powers : Fold<T, Add> {
  static constexpr int64_t kColumns = kTile;
  static RAMET_INLINE void of(const T* x, int64_t n, double p, T* out) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = static_cast<T>(__builtin_pow(__builtin_fabs(static_cast<double>(x[i])), p));
  }
  static void block(void* state, const void* data, int64_t n, int64_t first, double p) {
    T t[kReduceBlock];
    of(static_cast<const T*>(data), n, p, t);
    Fold<T, Add>::block(state, t, n, first, p);
  }
  static void columns(void* states, const void* const* data, int64_t count, int64_t w,
                      int64_t first, double p) {
    T t[kReduceRows * kTile];
    const void* rows[kReduceRows];
    for (int64_t r = 0; r < count; ++r) {
      of(static_cast<const T*>(data[r]), w, p, t + r * kTile);
      rows[r] = t + r * kTile;
    }
    Fold<T, Add>::columns(states, rows, count, w, first, p);
  }
};

// ---- any, all -----------------------------------------------------------------------------------
template <class T, bool kAll>
struct Truth {  // the state: 1 where an element decided the result (any: true, all: false)
  static constexpr int64_t kColumns = kTile;
  static void init(void* states, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<int64_t*>(states)[i] = 0;
  }
  static void block(void* state, const void* data, int64_t n, int64_t, double) {
    int64_t& out = *static_cast<int64_t*>(state);
    if (out) return;
    int64_t hits = 0;
    for (int64_t i = 0; i < n; ++i) hits += (static_cast<const T*>(data)[i] != T(0)) != kAll;
    out = hits != 0;
  }
  static void columns(void* states, const void* const* data, int64_t count, int64_t w, int64_t,
                      double) {
    int64_t* out = static_cast<int64_t*>(states);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t c = 0; c < w; ++c) out[c] |= (static_cast<const T*>(data[r])[c] != T(0)) != kAll;
  }
  static void merge(void* into, const void* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      static_cast<int64_t*>(into)[i] |= static_cast<const int64_t*>(from)[i];
  }
};

// ---- variance -----------------------------------------------------------------------------------
// Chan, Golub, LeVeque (1979): parts with counts n, m, means a, b and squared deviations A, B about
// them join to the mean a + d m/(n+m) and A + B + d^2 nm/(n+m), where d = b - a.
struct Moments {
  double n, mean, m2;
};
static_assert(sizeof(Moments) == kReducePartial);
RAMET_INLINE void join(Moments& a, double n, double mean, double m2) {
  if (a.n == 0) {  // no difference of means, whose square may be infinite
    a = {n, mean, m2};
    return;
  }
  const double d = mean - a.mean, share = n / (a.n + n);
  a.m2 += m2 + d * d * (a.n * share);
  a.mean += d * share;
  a.n += n;
}
template <class T> struct Variance {
  static constexpr int64_t kColumns = kTile;
  static void init(void* states, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Moments*>(states)[i] = {0, 0, 0};
  }
  static void block(void* state, const void* data, int64_t n, int64_t, double) {
    constexpr int last = kAccumulators<T> - 1;
    const T* x = static_cast<const T*>(data);
    Accumulators<T> s, q;
    lfill<T>(s, 0);
    sweep<T>(
        n, [&](int64_t i, int u) { s[u] = s[u] + lload(x + i); },
        [&](int64_t i, int64_t left) { s[last] = s[last] + lload_n<T>(x + i, left, T(0)); });
    // The block is in the first-level cache: deviations from its rounded mean, then that mean is
    // corrected by theirs.
    const T m = lfold_add<T>(s) / static_cast<T>(n);
    const Lanes<T> M = lset(m);
    lfill<T>(s, 0), lfill<T>(q, 0);
    sweep<T>(
        n,
        [&](int64_t i, int u) {
          const Lanes<T> d = lload(x + i) - M;
          s[u] = s[u] + d, q[u] = lfma(d, d, q[u]);
        },
        [&](int64_t i, int64_t left) {
          const Lanes<T> d = lload_n<T>(x + i, left, m) - M;
          s[last] = s[last] + d, q[last] = lfma(d, d, q[last]);
        });
    const double d = lfold_add<T>(s), count = static_cast<double>(n);
    join(*static_cast<Moments*>(state), count, m + d / count, lfold_add<T>(q) - d * d / count);
  }
  static void columns(void* states, const void* const* data, int64_t count, int64_t w, int64_t,
                      double) {
    Moments* out = static_cast<Moments*>(states);
    const double n = static_cast<double>(count);
    for (int64_t c = 0; c < w; c += 16) {
      const int64_t left = imin(16, w - c);
      const auto row = [&](int64_t r) {
        const T* x = static_cast<const T*>(data[r]) + c;
        return left == 16 ? lload(x) : lload_n<T>(x, left, T(0));
      };
      Lanes<T> s = lset<T>(0), q = lset<T>(0);
      for (int64_t r = 0; r < count; ++r) s = s + row(r);
      const Lanes<T> M = s * lset<T>(T(1) / static_cast<T>(count));
      s = lset<T>(0);
      for (int64_t r = 0; r < count; ++r) {
        const Lanes<T> d = row(r) - M;
        s = s + d, q = lfma(d, d, q);
      }
      T m[16], d[16], m2[16];
      lstore(m, M), lstore(d, s), lstore(m2, q);
      for (int64_t i = 0; i < left; ++i) {
        const double e = d[i];
        join(out[c + i], n, m[i] + e / n, m2[i] - e * e / n);
      }
    }
  }
  static void merge(void* into, const void* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const Moments& b = static_cast<const Moments*>(from)[i];
      join(static_cast<Moments*>(into)[i], b.n, b.mean, b.m2);
    }
  }
};

template <class T> const Kind& kind_of(ReduceOp op) {
  using S = typename LaneOf<T>::state;
  switch (op) {
    case ReduceOp::kProd: return kKindOf<T, S, Fold<T, Multiply>>;
    case ReduceOp::kMax: return kKindOf<T, T, Extreme<T, false, false>>;
    case ReduceOp::kMin: return kKindOf<T, T, Extreme<T, true, false>>;
    case ReduceOp::kMaxIndex: return kKindOf<T, Place<T>, ExtremePlace<T, false>>;
    case ReduceOp::kMinIndex: return kKindOf<T, Place<T>, ExtremePlace<T, true>>;
    case ReduceOp::kAny: return kKindOf<T, int64_t, Truth<T, false>>;
    case ReduceOp::kAll: return kKindOf<T, int64_t, Truth<T, true>>;
    default: break;
  }
  if constexpr (ComputeTag<T>::value != ScalarType::Long) {
    switch (op) {
      case ReduceOp::kSumSquares:
      case ReduceOp::kNorm2: return kKindOf<T, S, Fold<T, AddSquare>>;
      case ReduceOp::kNorm0: return kKindOf<T, S, Fold<T, AddNonzero>>;
      case ReduceOp::kNorm1: return kKindOf<T, S, Fold<T, AddAbs>>;
      case ReduceOp::kNormP: return kKindOf<T, S, Powers<T>>;
      case ReduceOp::kNormInf: return kKindOf<T, T, Extreme<T, false, true>>;
      case ReduceOp::kNormNegInf: return kKindOf<T, T, Extreme<T, true, true>>;
      case ReduceOp::kVar:
      case ReduceOp::kStd: return kKindOf<T, Moments, Variance<T>>;
      default: break;
    }
  }
  return kKindOf<T, S, Fold<T, Add>>;
}

template <class T> void finish(const ReduceArgs& a, const void* states, int64_t n, int64_t first) {
  T value[kBatch];
  const auto* sums = static_cast<const typename LaneOf<T>::state*>(states);
  const double count = static_cast<double>(a.count);
  switch (a.op) {
    case ReduceOp::kMean:
      for (int64_t i = 0; i < n; ++i)
        value[i] = static_cast<T>(static_cast<double>(sums[i]) / count);
      break;
    case ReduceOp::kNorm2:
      for (int64_t i = 0; i < n; ++i)
        value[i] = static_cast<T>(__builtin_sqrt(static_cast<double>(sums[i])));
      break;
    case ReduceOp::kNormP:
      for (int64_t i = 0; i < n; ++i)
        value[i] = static_cast<T>(__builtin_pow(static_cast<double>(sums[i]), 1 / a.parameter));
      break;
    case ReduceOp::kMax:
    case ReduceOp::kMin:
    case ReduceOp::kNormInf:
    case ReduceOp::kNormNegInf:
      for (int64_t i = 0; i < n; ++i) value[i] = static_cast<const T*>(states)[i];
      break;
    case ReduceOp::kMaxIndex:
    case ReduceOp::kMinIndex:
      for (int64_t i = 0; i < n; ++i) {
        const Place<T>& p = static_cast<const Place<T>*>(states)[i];
        value[i] = p.value;
        static_cast<int64_t*>(a.extra)[first + i] = p.index;
      }
      break;
    case ReduceOp::kAny:
    case ReduceOp::kAll:
      for (int64_t i = 0; i < n; ++i)
        value[i] =
            static_cast<T>(static_cast<const int64_t*>(states)[i] != (a.op == ReduceOp::kAll));
      break;
    case ReduceOp::kVar:
    case ReduceOp::kStd: {
      const auto* m = static_cast<const Moments*>(states);
      if (a.extra) {
        for (int64_t i = 0; i < n; ++i)
          value[i] = static_cast<T>(m[i].n > 0 ? m[i].mean : __builtin_nan(""));
        store_chunk(at(a.extra, a.out_dtype, first), a.out_dtype, 1, n, value);
      }
      // Nothing has no variance, whatever the correction.
      const double divisor = count > 0 && count > a.parameter ? count - a.parameter : 0;
      for (int64_t i = 0; i < n; ++i) {
        // Rounding may leave a trace of minus zero variance; NaN stays.
        const double var = (m[i].m2 < 0 ? 0 : m[i].m2) / divisor;
        value[i] = static_cast<T>(a.op == ReduceOp::kStd ? __builtin_sqrt(var) : var);
      }
      break;
    }
    default:
      for (int64_t i = 0; i < n; ++i) value[i] = static_cast<T>(sums[i]);
  }
  if (a.out) store_chunk(at(a.out, a.out_dtype, first), a.out_dtype, 1, n, value);
}

inline const Kind& kind_of(const ReduceArgs& a) {
  return *by_compute_type(a.in_dtype, [&](auto t) { return &kind_of<decltype(t)>(a.op); });
}

}  // namespace
}  // namespace ramet::kernels::RAMET_VARIANT
