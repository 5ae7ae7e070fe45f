#include "kernels/reduce.h"

#include "kernels/chunk.h"
#include "kernels/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int64_t kTile = 64;       // columns taken in together
constexpr int64_t kWide = 512;      // of a sum: long rows, eight at a time, suit the hardware's prefetching
constexpr int64_t kBatch = 512;     // outputs finished together
static_assert(kBatch >= kReduceColumns && kWide == kReduceColumns && kReduceColumns % kTile == 0 && kReduceRows % 8 == 0);

// What one kind of reduction is made of. Elements and states are untyped here: the walks below are compiled once, not once
// for each compute type and operation. A state takes at most kReducePartial bytes.
struct Kind {
  int64_t bytes, element;  // of a state; of the compute type
  int64_t tile;            // most columns at once
  void (*init)(void* states, int64_t n);
  // Takes in x[0, n), the elements from position `first` on.
  void (*block)(void* state, const void* x, int64_t n, int64_t first, double p);
  // The same for w <= `tile` columns at once: rows[r][c] is element first + r of column c.
  void (*columns)(void* states, const void* const* rows, int64_t count, int64_t w, int64_t first, double p);
  void (*merge)(void* into, const void* from, int64_t n);
  // The elements as the compute type, where they lie or in `buffer`.
  const void* (*read)(const void* p, ScalarType t, int64_t stride, int64_t n, void* buffer);
  // Copies them there.
  void (*copy)(const void* p, ScalarType t, int64_t stride, int64_t n, void* buffer);
  // States to results, n <= kBatch, from output `first` on.
  void (*finish)(const ReduceArgs& a, const void* states, int64_t n, int64_t first);
};
template <class T> const void* read_as(const void* p, ScalarType t, int64_t stride, int64_t n, void* buffer) {
  return chunk_in(p, t, stride, n, static_cast<T*>(buffer));
}
template <class T> void copy_as(const void* p, ScalarType t, int64_t stride, int64_t n, void* buffer) {
  load_chunk(p, t, stride, n, static_cast<T*>(buffer));
}
template <class T> void finish(const ReduceArgs& a, const void* states, int64_t n, int64_t first);
template <class T, class State, class What>
constexpr Kind kKindOf{sizeof(State), sizeof(T),  What::kColumns, What::init, What::block, What::columns, What::merge,
                       read_as<T>,    copy_as<T>, finish<T>};

template <class T> RAMET_INLINE bool is_nan(T x) {
  if constexpr (T(0.5) != T(0)) return !(x == x);
  else return false;
}
template <class T> constexpr T kLowest = T(-__builtin_inf());
template <> constexpr int64_t kLowest<int64_t> = INT64_MIN;
template <class T> constexpr T kHighest = T(__builtin_inf());
template <> constexpr int64_t kHighest<int64_t> = INT64_MAX;

// ---- sums and products -------------------------------------------------------------------------------------------------
// T: element; L: lanes (unsigned for integers, which wrap); S: state.
template <class T> struct LaneOf { using type = T; using state = double; };
template <> struct LaneOf<int64_t> { using type = uint64_t; using state = uint64_t; };

struct JoinMultiply {
  template <class V> RAMET_INLINE V operator()(const V& a, const V& b) const { return a * b; }
};
struct Add {
  using Join = Add;
  using Fold = JoinAdd;
  static constexpr int kNeutral = 0;
  template <class L> static RAMET_INLINE Lanes<L> step(const Lanes<L>& acc, const Lanes<L>& x) { return acc + x; }
  template <class S> static RAMET_INLINE S join(S a, S b) { return a + b; }
  template <class L> static RAMET_INLINE Lanes<L> join(const Lanes<L>& a, const Lanes<L>& b) { return a + b; }
};
struct AddSquare : Add {
  template <class L> static RAMET_INLINE Lanes<L> step(const Lanes<L>& acc, const Lanes<L>& x) { return lfma(x, x, acc); }
};
struct AddAbs : Add {
  template <class L> static RAMET_INLINE Lanes<L> step(const Lanes<L>& acc, const Lanes<L>& x) { return acc + labs(x); }
};
struct AddNonzero : Add {
  template <class L> static RAMET_INLINE Lanes<L> step(const Lanes<L>& acc, const Lanes<L>& x) { return acc + lnonzero(x); }
};
struct Multiply {
  using Join = Multiply;
  using Fold = JoinMultiply;
  static constexpr int kNeutral = 1;
  template <class L> static RAMET_INLINE Lanes<L> step(const Lanes<L>& acc, const Lanes<L>& x) { return acc * x; }
  template <class S> static RAMET_INLINE S join(S a, S b) { return a * b; }
  template <class L> static RAMET_INLINE Lanes<L> join(const Lanes<L>& a, const Lanes<L>& b) { return a * b; }
};

template <class S, class Op> struct FoldStates {
  static void init(void* states, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<S*>(states)[i] = Op::kNeutral;
  }
  static void merge(void* into, const void* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<S*>(into)[i] = Op::join(static_cast<S*>(into)[i], static_cast<const S*>(from)[i]);
  }
};
template <class T, class Op> struct Fold : FoldStates<typename LaneOf<T>::state, typename Op::Join> {
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
    for (int r = 0; r < kRows; ++r) s = Op::step(s, lload_n<L>(rows[r] + c, w - c, L(Op::kNeutral)));
    lstore(sums + c, s);
  }
  static void columns(void* states, const void* const* data, int64_t count, int64_t w, int64_t, double) {
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
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(__builtin_pow(static_cast<double>(x[i] < 0 ? -x[i] : x[i]), p));
  }
  static void block(void* state, const void* data, int64_t n, int64_t first, double p) {
    T t[kReduceBlock];
    of(static_cast<const T*>(data), n, p, t);
    Fold<T, Add>::block(state, t, n, first, p);
  }
  static void columns(void* states, const void* const* data, int64_t count, int64_t w, int64_t first, double p) {
    T t[kReduceRows * kTile];
    const void* rows[kReduceRows];
    for (int64_t r = 0; r < count; ++r) {
      of(static_cast<const T*>(data[r]), w, p, t + r * kTile);
      rows[r] = t + r * kTile;
    }
    Fold<T, Add>::columns(states, rows, count, w, first, p);
  }
};

// ---- extrema -----------------------------------------------------------------------------------------------------------
template <class T, bool kMin> struct ExtremeStates {
  static constexpr T kNone = kMin ? kHighest<T> : kLowest<T>;

  static RAMET_INLINE T join(T a, T b) {
    if (is_nan(a)) return a;
    if (is_nan(b)) return b;
    return (kMin ? a < b : a > b) ? a : b;
  }
  static void init(void* states, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(states)[i] = kNone;
  }
  static void merge(void* into, const void* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(into)[i] = join(static_cast<T*>(into)[i], static_cast<const T*>(from)[i]);
  }
};
template <bool kMin> struct JoinExtreme {  // the first where it is a NaN, the second where that is
  template <class V> RAMET_INLINE V operator()(const V& a, const V& b) const {
    const V best = kMin ? (a < b ? a : b) : (a > b ? a : b);
    return a == a ? best : a;
  }
  template <class T> RAMET_INLINE Lanes<T> operator()(const Lanes<T>& a, const Lanes<T>& b) const {
    return lnan_or(a, kMin ? lmin(a, b) : lmax(a, b));
  }
};
template <class T, bool kMin, bool kAbs> struct Extreme : ExtremeStates<T, kMin> {
  static constexpr int64_t kColumns = kTile;
  using States = ExtremeStates<T, kMin>;

  static RAMET_INLINE Lanes<T> step(const Lanes<T>& acc, Lanes<T> x) {
    if constexpr (kAbs) x = labs(x);
    return lnan_or(x, kMin ? lmin(x, acc) : lmax(x, acc));
  }
  static RAMET_INLINE T of(const T* x, int64_t n) {
    Accumulators<T> s;
    lfill<T>(s, States::kNone);
    sweep<T>(
        n, [&](int64_t i, int u) { s[u] = step(s[u], lload(x + i)); },
        [&](int64_t i, int64_t left) {
          constexpr int u = kAccumulators<T> - 1;
          s[u] = step(s[u], lload_n<T>(x + i, left, x[i]));  // repeating an element changes no extremum
        });
    return lfold_all<T>(s, JoinExtreme<kMin>());
  }
  static void block(void* state, const void* data, int64_t n, int64_t, double) {
    T& out = *static_cast<T*>(state);
    out = States::join(out, of(static_cast<const T*>(data), n));
  }
  static void columns(void* states, const void* const* data, int64_t count, int64_t w, int64_t, double) {
    T* out = static_cast<T*>(states);
    const auto row = [&](int64_t r) { return static_cast<const T*>(data[r]); };
    int64_t c = 0;
    for (; c + 16 <= w; c += 16) {
      Lanes<T> s = lload(out + c);
      for (int64_t r = 0; r < count; ++r) s = step(s, lload(row(r) + c));
      lstore(out + c, s);
    }
    if (c < w) {
      Lanes<T> s = lload_n<T>(out + c, w - c, T(0));
      for (int64_t r = 0; r < count; ++r) s = step(s, lload_n<T>(row(r) + c, w - c, T(0)));
      lstore_n(out + c, s, w - c);
    }
  }
};

template <class T> struct Place {
  T value;
  int64_t index;  // -1: none yet
};
template <class T, bool kMin> struct ExtremePlace {
  static constexpr int64_t kColumns = kTile;
  static RAMET_INLINE bool beats(T x, T best) { return (kMin ? x < best : x > best) || (is_nan(x) && !is_nan(best)); }

  static void init(void* states, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Place<T>*>(states)[i] = {T(0), -1};
  }
  // Most blocks hold no new extremum: it is found in lanes, its place only then looked for.
  static void block(void* state, const void* data, int64_t n, int64_t first, double) {
    const T* x = static_cast<const T*>(data);
    Place<T>& out = *static_cast<Place<T>*>(state);
    const T best = Extreme<T, kMin, false>::of(x, n);
    if (out.index >= 0 && !beats(best, out.value)) return;
    int64_t i = 0;
    while (x[i] != best && !is_nan(x[i])) ++i;
    out = {x[i], first + i};
  }
  static void columns(void* states, const void* const* data, int64_t count, int64_t w, int64_t first, double p) {
    Place<T>* out = static_cast<Place<T>*>(states);
    T best[kTile];
    Extreme<T, kMin, false>::init(best, w);
    Extreme<T, kMin, false>::columns(best, data, count, w, first, p);
    for (int64_t c = 0; c < w; ++c) {
      if (out[c].index >= 0 && !beats(best[c], out[c].value)) continue;
      const auto x = [&](int64_t r) { return static_cast<const T*>(data[r])[c]; };
      int64_t r = 0;
      while (x(r) != best[c] && !is_nan(x(r))) ++r;
      out[c] = {x(r), first + r};
    }
  }
  static void merge(void* into, const void* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      Place<T>& a = static_cast<Place<T>*>(into)[i];
      const Place<T>& b = static_cast<const Place<T>*>(from)[i];
      if (a.index < 0 || (b.index >= 0 && beats(b.value, a.value))) a = b;
    }
  }
};

// ---- any, all ----------------------------------------------------------------------------------------------------------
template <class T, bool kAll> struct Truth {  // the state: 1 where an element decided the result (any: true, all: false)
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
  static void columns(void* states, const void* const* data, int64_t count, int64_t w, int64_t, double) {
    int64_t* out = static_cast<int64_t*>(states);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t c = 0; c < w; ++c) out[c] |= (static_cast<const T*>(data[r])[c] != T(0)) != kAll;
  }
  static void merge(void* into, const void* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<int64_t*>(into)[i] |= static_cast<const int64_t*>(from)[i];
  }
};

// ---- variance ----------------------------------------------------------------------------------------------------------
// Chan, Golub, LeVeque (1979): parts with counts n, m, means a, b and squared deviations A, B about them join to the mean
// a + d m/(n+m) and A + B + d^2 nm/(n+m), where d = b - a.
struct Moments {
  double n, mean, m2;
};
static_assert(sizeof(Moments) == kReducePartial);
RAMET_INLINE void join(Moments& a, double n, double mean, double m2) {
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
    // The block is in the first-level cache: deviations from its rounded mean, then that mean is corrected by theirs.
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
  static void columns(void* states, const void* const* data, int64_t count, int64_t w, int64_t, double) {
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
      case ReduceOp::kSumSquares: case ReduceOp::kNorm2: return kKindOf<T, S, Fold<T, AddSquare>>;
      case ReduceOp::kNorm0: return kKindOf<T, S, Fold<T, AddNonzero>>;
      case ReduceOp::kNorm1: return kKindOf<T, S, Fold<T, AddAbs>>;
      case ReduceOp::kNormP: return kKindOf<T, S, Powers<T>>;
      case ReduceOp::kNormInf: return kKindOf<T, T, Extreme<T, false, true>>;
      case ReduceOp::kNormNegInf: return kKindOf<T, T, Extreme<T, true, true>>;
      case ReduceOp::kVar: case ReduceOp::kStd: return kKindOf<T, Moments, Variance<T>>;
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
      for (int64_t i = 0; i < n; ++i) value[i] = static_cast<T>(static_cast<double>(sums[i]) / count);
      break;
    case ReduceOp::kNorm2:
      for (int64_t i = 0; i < n; ++i) value[i] = static_cast<T>(__builtin_sqrt(static_cast<double>(sums[i])));
      break;
    case ReduceOp::kNormP:
      for (int64_t i = 0; i < n; ++i) value[i] = static_cast<T>(__builtin_pow(static_cast<double>(sums[i]), 1 / a.parameter));
      break;
    case ReduceOp::kMax: case ReduceOp::kMin: case ReduceOp::kNormInf: case ReduceOp::kNormNegInf:
      for (int64_t i = 0; i < n; ++i) value[i] = static_cast<const T*>(states)[i];
      break;
    case ReduceOp::kMaxIndex: case ReduceOp::kMinIndex:
      for (int64_t i = 0; i < n; ++i) {
        const Place<T>& p = static_cast<const Place<T>*>(states)[i];
        value[i] = p.value;
        static_cast<int64_t*>(a.extra)[first + i] = p.index;
      }
      break;
    case ReduceOp::kAny: case ReduceOp::kAll:
      for (int64_t i = 0; i < n; ++i) value[i] = static_cast<T>(static_cast<const int64_t*>(states)[i] != (a.op == ReduceOp::kAll));
      break;
    case ReduceOp::kVar: case ReduceOp::kStd: {
      const auto* m = static_cast<const Moments*>(states);
      if (a.extra) {
        for (int64_t i = 0; i < n; ++i) value[i] = static_cast<T>(m[i].n > 0 ? m[i].mean : __builtin_nan(""));
        store_chunk(at(a.extra, a.out_dtype, first), a.out_dtype, 1, n, value);
      }
      const double divisor = count > a.parameter ? count - a.parameter : 0;
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

// ---- the walks ---------------------------------------------------------------------------------------------------------
// Reads the sequence of one output piece by piece.
struct Sequence {
  const ReduceArgs& a;
  const Kind& kind;
  const int64_t inner, stride;
  const void* base = nullptr;
  int64_t done = 0;  // in the present run along the innermost reduced dimension
  Odometer<1> runs;

  RAMET_INLINE Sequence(const ReduceArgs& args, const Kind& k)
      : a(args), kind(k), inner(a.reduced_sizes[a.reduced_rank - 1]), stride(a.reduced_strides[a.reduced_rank - 1]) {
    runs.rank = a.reduced_rank - 1, runs.sizes = a.reduced_sizes, runs.strides[0] = a.reduced_strides;
  }
  RAMET_INLINE void start(const void* output, int64_t position) {
    base = output, done = position == 0 ? 0 : position % inner;  // most start at the beginning, and a division is slow
    runs.seek(position == 0 ? 0 : position / inner);
  }
  // The next n elements: where they lie, or copied into `buffer`.
  RAMET_INLINE const void* next(int64_t n, char* buffer) {
    const void* x = buffer;
    for (int64_t have = 0; have < n;) {
      const int64_t piece = imin(n - have, inner - done);
      const void* p = at(base, a.in_dtype, runs.offset[0] + done * stride);
      if (piece == n) x = kind.read(p, a.in_dtype, stride, n, buffer);
      else kind.copy(p, a.in_dtype, stride, piece, buffer + have * kind.element);
      have += piece, done += piece;
      if (done == inner) done = 0, runs.next();
    }
    return x;
  }
};

void walk_sequences(const ReduceArgs& a, const Kind& kind) {
  const bool cut = a.segments > 1;
  const int64_t each = cut ? 1 : imin(kBatch, imax(1, 16384 / a.count));  // outputs of a task
  const int64_t tasks = cut ? a.outputs * a.segments : ceil_div(a.outputs, each);
  run_tasks(tasks, a.outputs * a.count * bytes_of(a.in_dtype), [&](int64_t task, int) {
    alignas(64) char buffer[kReduceBlock * 8];
    alignas(64) char states[kBatch * kReducePartial];
    const int64_t part = cut ? task % a.segments : 0, first = cut ? task / a.segments : task * each;
    const int64_t n = imin(each, a.outputs - first), begin = part * a.segment, end = imin(a.count, begin + a.segment);
    char* into = cut ? static_cast<char*>(a.workspace) + (part * a.outputs + first) * kind.bytes : states;
    Odometer<1> kept;
    kept.rank = a.kept_rank, kept.sizes = a.kept_sizes, kept.strides[0] = a.kept_strides;
    kept.seek(first);
    kind.init(into, n);
    Sequence sequence(a, kind);
    for (int64_t o = 0; o < n; ++o) {
      sequence.start(at(a.in, a.in_dtype, kept.offset[0]), begin);
      for (int64_t i = begin; i < end; i += kReduceBlock) {
        const int64_t m = imin(kReduceBlock, end - i);
        kind.block(into + o * kind.bytes, sequence.next(m, buffer), m, i, a.parameter);
      }
      kept.next();
    }
    if (!cut) kind.finish(a, states, n, first);
  });
}

void walk_columns(const ReduceArgs& a, const Kind& kind) {
  const bool cut = a.segments > 1;
  const int64_t columns = a.kept_sizes[a.kept_rank - 1], step = a.kept_strides[a.kept_rank - 1];
  const bool in_place = a.in_dtype == compute_type_of(a.in_dtype) && step == 1;  // else tiles are copied
  const int64_t tile = in_place ? kind.tile : kTile;
  const int64_t groups = ceil_div(columns, kReduceColumns), units = a.outputs / columns * groups;
  const int64_t each = cut ? 1 : imax(1, 16384 / (a.count * imin(columns, kReduceColumns)));  // units of a task
  run_tasks(cut ? units * a.segments : ceil_div(units, each), a.outputs * a.count * bytes_of(a.in_dtype), [&](int64_t task, int) {
    alignas(64) char buffer[kReduceRows * kTile * 8];
    alignas(64) char states[kReduceColumns * kReducePartial];
    const int64_t part = cut ? task % a.segments : 0, first = cut ? task / a.segments : task * each;
    const int64_t begin = part * a.segment, end = imin(a.count, begin + a.segment);
    Odometer<1> kept, sequence;
    kept.rank = a.kept_rank - 1, kept.sizes = a.kept_sizes, kept.strides[0] = a.kept_strides;
    sequence.rank = a.reduced_rank, sequence.sizes = a.reduced_sizes, sequence.strides[0] = a.reduced_strides;
    for (int64_t unit = first; unit < imin(first + each, units); ++unit) {
      const int64_t c0 = unit % groups * kReduceColumns, width = imin(kReduceColumns, columns - c0);
      const int64_t output = unit / groups * columns + c0;
      char* into = cut ? static_cast<char*>(a.workspace) + (part * a.outputs + output) * kind.bytes : states;
      kept.seek(unit / groups);
      sequence.seek(begin);
      kind.init(into, width);
      for (int64_t i = begin; i < end; i += kReduceRows) {
        const int64_t n = imin(kReduceRows, end - i);
        const char* starts[kReduceRows];
        for (int64_t r = 0; r < n; ++r) {
          starts[r] = at(a.in, a.in_dtype, kept.offset[0] + sequence.offset[0] + c0 * step);
          sequence.next();
        }
        for (int64_t c = 0; c < width; c += tile) {
          const int64_t w = imin(tile, width - c);
          const void* rows[kReduceRows];
          for (int64_t r = 0; r < n; ++r)
            rows[r] = kind.read(at(starts[r], a.in_dtype, c * step), a.in_dtype, step, w, buffer + r * kTile * kind.element);
          kind.columns(into + c * kind.bytes, rows, n, w, i, a.parameter);
        }
      }
      if (!cut) kind.finish(a, states, width, output);
    }
  });
}

const Kind& kind_of(const ReduceArgs& a) {
  switch (compute_type_of(a.in_dtype)) {
    case ScalarType::Float: return kind_of<float>(a.op);
    case ScalarType::Double: return kind_of<double>(a.op);
    default: return kind_of<int64_t>(a.op);
  }
}

}  // namespace

void reduce(const ReduceArgs& a) {
  const Kind& kind = kind_of(a);
  if (a.outputs == 0) return;
  if (a.count == 0) {
    alignas(64) char states[kBatch * kReducePartial];
    kind.init(states, kBatch);
    for (int64_t o = 0; o < a.outputs; o += kBatch) kind.finish(a, states, imin(kBatch, a.outputs - o), o);
    return;
  }
  if (a.columns) walk_columns(a, kind);
  else walk_sequences(a, kind);
  if (a.segments <= 1) return;
  run_tasks(ceil_div(a.outputs, kBatch), a.workspace_bytes, [&](int64_t task, int) {
    const int64_t first = task * kBatch, n = imin(kBatch, a.outputs - first);
    char* states = static_cast<char*>(a.workspace) + first * kind.bytes;
    for (int64_t s = 1; s < a.segments; ++s) kind.merge(states, states + s * a.outputs * kind.bytes, n);
    kind.finish(a, states, n, first);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
