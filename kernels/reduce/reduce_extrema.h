// max, min, argmax, argmin: their states and how they add elements.
#pragma once
#include "kernels/reduce/reduce_kind.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

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
    for (int64_t i = 0; i < n; ++i)
      static_cast<T*>(into)[i] = join(static_cast<T*>(into)[i], static_cast<const T*>(from)[i]);
  }
};
template <bool kMin> struct JoinExtreme {  // a NaN in `a`, or in `b`, wins
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
          s[u] = step(s[u],
                      lload_n<T>(x + i, left, x[i]));  // repeating an element changes no extremum
        });
    return lfold_all<T>(s, JoinExtreme<kMin>());
  }
  static void block(void* state, const void* data, int64_t n, int64_t, double) {
    T& out = *static_cast<T*>(state);
    out = States::join(out, of(static_cast<const T*>(data), n));
  }
  static void columns(void* states, const void* const* data, int64_t count, int64_t w, int64_t,
                      double) {
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
  static RAMET_INLINE bool beats(T x, T best) {
    return (kMin ? x < best : x > best) || (is_nan(x) && !is_nan(best));
  }

  static void init(void* states, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Place<T>*>(states)[i] = {T(0), -1};
  }
  // Most blocks hold no new extremum. So it is found in lanes, and then its place only if needed.
  static void block(void* state, const void* data, int64_t n, int64_t first, double) {
    const T* x = static_cast<const T*>(data);
    Place<T>& out = *static_cast<Place<T>*>(state);
    const T best = Extreme<T, kMin, false>::of(x, n);
    if (out.index >= 0 && !beats(best, out.value)) return;
    int64_t i = 0;
    while (x[i] != best && !is_nan(x[i])) ++i;
    out = {x[i], first + i};
  }
  static void columns(void* states, const void* const* data, int64_t count, int64_t w,
                      int64_t first, double p) {
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

}  // namespace
}  // namespace ramet::kernels::RAMET_VARIANT
