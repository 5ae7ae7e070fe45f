// Every kind of reduction: sums, products, norms, any and all. Extrema and variance have separate
// files.
#pragma once
#include "kernels/reduce/reduce_extrema.h"
#include "kernels/reduce/reduce_variance.h"

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

// If a block's squares overflow or underflow, it is summed again, times a power of 2.
template <class T> struct Norm2 {
  using Plain = Fold<T, AddSquare>;
  static constexpr int64_t kColumns = kWide;
  static void init(void* states, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Squares*>(states)[i] = {0, 1};
  }
  static void merge(void* into, const void* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) add(into, i, static_cast<const Squares*>(from)[i]);
  }
  static void block(void* state, const void* data, int64_t n, int64_t first, double p) {
    double sum = 0;
    Plain::block(&sum, data, n, first, p);
    const double unit = unit_of<T>(sum);
    if (unit != 1) {
      T t[kReduceBlock];
      scale(static_cast<const T*>(data), n, unit, t);
      sum = 0;
      Plain::block(&sum, t, n, first, p);
    }
    add(state, 0, squares<T>(sum, unit));
  }
  static void columns(void* states, const void* const* data, int64_t count, int64_t w,
                      int64_t first, double p) {
    double sums[kWide] = {};
    Plain::columns(sums, data, count, w, first, p);
    for (int64_t c = 0; c < w; c += kTile) {
      const int64_t n = imin(kTile, w - c);
      double units[kTile];
      bool up = false, down = false;
      for (int64_t i = 0; i < n; ++i) {
        units[i] = unit_of<T>(sums[c + i]);
        up = up || units[i] > 1, down = down || units[i] < 1;
      }
      if (up) again(data, count, c, n, SquaresOf<T>::kUp, units, sums);
      if (down) again(data, count, c, n, SquaresOf<T>::kDown, units, sums);
      for (int64_t i = 0; i < n; ++i) add(states, c + i, squares<T>(sums[c + i], units[i]));
    }
  }

 private:
  static RAMET_INLINE void add(void* states, int64_t i, const Squares& part) {
    Squares& out = static_cast<Squares*>(states)[i];
    out = join(out, part);
  }
  static RAMET_INLINE void scale(const T* x, int64_t n, double unit, T* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] * static_cast<T>(unit);
  }
  // Columns c to c + n, only those that need this unit.
  static void again(const void* const* data, int64_t count, int64_t c, int64_t n, double unit,
                    const double* units, double* sums) {
    T t[kReduceRows * kTile];
    const void* rows[kReduceRows];
    double found[kTile] = {};
    for (int64_t r = 0; r < count; ++r) {
      scale(static_cast<const T*>(data[r]) + c, n, unit, t + r * kTile);
      rows[r] = t + r * kTile;
    }
    Plain::columns(found, rows, count, n, 0, 0);
    for (int64_t i = 0; i < n; ++i)
      if (units[i] == unit) sums[c + i] = found[i];
  }
};

// The general norm is rare: it writes scalar powers into a copy, and sums that in double.
template <class T> struct Powers : Fold<double, Add> {
  static constexpr int64_t kColumns = kTile;
  static RAMET_INLINE void of(const T* x, int64_t n, double p, double* out) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = __builtin_pow(__builtin_fabs(static_cast<double>(x[i])), p);
  }
  static void block(void* state, const void* data, int64_t n, int64_t first, double p) {
    double t[kReduceBlock];
    of(static_cast<const T*>(data), n, p, t);
    Fold<double, Add>::block(state, t, n, first, p);
  }
  static void columns(void* states, const void* const* data, int64_t count, int64_t w,
                      int64_t first, double p) {
    double t[kReduceRows * kTile];
    const void* rows[kReduceRows];
    for (int64_t r = 0; r < count; ++r) {
      of(static_cast<const T*>(data[r]), w, p, t + r * kTile);
      rows[r] = t + r * kTile;
    }
    Fold<double, Add>::columns(states, rows, count, w, first, p);
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
      case ReduceOp::kSumSquares: return kKindOf<T, S, Fold<T, AddSquare>>;
      case ReduceOp::kNorm2: return kKindOf<T, Squares, Norm2<T>>;
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
      for (int64_t i = 0; i < n; ++i) {
        const Squares& s = static_cast<const Squares*>(states)[i];
        value[i] = static_cast<T>(__builtin_sqrt(s.sum) / s.unit);
      }
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
      // An empty sequence has no variance, whatever the correction.
      const double divisor = count > 0 && count > a.parameter ? count - a.parameter : 0;
      for (int64_t i = 0; i < n; ++i) {
        // Rounding may give a tiny negative variance, which becomes 0; NaN stays.
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
