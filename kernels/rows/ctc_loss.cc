// One thread computes a sample: its steps are sequential, and the states of a step are lanes.
#include "kernels/rows/ctc_loss.h"

#include "kernels/rows/ctc_loss_sample.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// log(exp a + exp b + exp c): -inf if all three are -inf.
template <class T>
RAMET_INLINE Lanes<T> log_sum(const Lanes<T>& a, const Lanes<T>& b, const Lanes<T>& c) {
  constexpr T lowest = sizeof(T) == 4 ? T(-__FLT_MAX__) : T(-__DBL_MAX__);
  const Lanes<T> top = lmax(lmax(a, lmax(b, c)), lset<T>(lowest));
  return top + llog(lexp(a - top) + lexp(b - top) + lexp(c - top));
}

// skip[s]: 0 where a path may come from state s - 2, else -inf; two of these after the last state.
template <class T> void find_skips(const CtcSample& s, T* skip) {
  for (int64_t i = 0; i < s.row(); ++i)
    skip[i] = i < s.states() && s.skips(i) ? T(0) : ctc_never<T>();
}
template <class T>
void find_emissions(const CtcSamples& a, const CtcSample& s, int64_t t, int64_t b, T* out) {
  const T blank = ctc_emission<T>(a, t, b, s.blank);
  for (int64_t i = 0; i < s.count; ++i) {
    out[2 * i] = blank;
    out[2 * i + 1] = ctc_emission<T>(a, t, b, s.labels[i]);
  }
  out[2 * s.count] = blank;
}

// f(load, store) for each 16 states; load(p, fill) reads at p + i. Returns the largest result of f,
// or -inf if all are NaN.
template <class T, class F> RAMET_INLINE T over_states(int64_t states, const F& f) {
  constexpr int last = kAccumulators<T> - 1;
  Accumulators<T> most;
  lfill<T>(most, ctc_never<T>());
  sweep<T>(
      states,
      [&](int64_t i, int u) {
        most[u] = lmax(f([&](const T* p) { return lload(p + i); },
                         [&](T* p, const Lanes<T>& v) { lstore(p + i, v); }),
                       most[u]);
      },
      [&](int64_t i, int64_t left) {
        const Lanes<T> v = f([&](const T* p) { return lload_n<T>(p + i, left, ctc_never<T>()); },
                             [&](T* p, const Lanes<T>& w) { lstore_n(p + i, w, left); });
        T kept[16];
        lstore(kept, v);
        most[last] = lmax(lload_n<T>(kept, left, ctc_never<T>()), most[last]);
      });
  return lfold_max<T>(most);
}

template <class T> void forward(const CtcLossArgs& a, int64_t b) {
  const CtcSamples& all = a.samples;
  const CtcSample s(all, b);
  const int64_t states = s.states();
  T* const rows = static_cast<T*>(a.alpha) + a.rows * s.begin;
  T* const skip = static_cast<T*>(a.workspace) + 2 * s.begin;
  T* const emission = skip + s.row();
  find_skips(s, skip);
  T* row = nullptr;
  T largest = T(0);
  double shift = 0;
  for (int64_t t = 0; t < s.steps; ++t) {
    const T* const before = row;
    row = rows + t % a.rows * s.row() + 2;
    row[-2] = row[-1] = ctc_never<T>();
    find_emissions(all, s, t, b, emission);
    const T off = ctc_shift(largest);
    if (t == 0) {
      for (int64_t i = 0; i < states; ++i) row[i] = i < 2 ? emission[i] : ctc_never<T>();
      largest = states > 1 && row[1] > row[0] ? row[1] : row[0];
    } else {
      shift += static_cast<double>(off);
      const Lanes<T> less = lset(off);
      largest = over_states<T>(states, [&](auto load, auto store) {
        const Lanes<T> v =
            log_sum<T>(load(before), load(before - 1), load(before - 2) + load(skip)) - less +
            load(emission);
        store(row, v);
        return v;
      });
    }
    if (a.shifts) a.shifts[b * all.time + t] = shift;
  }
  const double negative = ctc_negative(s, row, shift);
  a.negative[b] = negative;
  const bool none = a.zero_infinity && negative == __builtin_inf();
  static_cast<T*>(a.loss)[b] = none ? T(0) : static_cast<T>(negative);
}

template <class T> void backward(const CtcLossBackwardArgs& a, int64_t b) {
  const CtcSamples& all = a.samples;
  const CtcSample s(all, b);
  const int64_t states = s.states();
  const auto dx_at = [&](int64_t t) {
    return static_cast<T*>(a.dx) + (t * all.batch + b) * all.classes;
  };
  double filled = 0;
  const bool fills = ctc_is_filled(a.negative[b], a.zero_infinity, filled);
  for (int64_t t = 0; t < all.time; ++t) {
    const T with = fills && t < s.steps ? static_cast<T>(filled) : T(0);
    T* const dx = dx_at(t);
    for (int64_t c = 0; c < all.classes; ++c) dx[c] = with;
  }
  if (fills) return;
  const T* const alphas = static_cast<const T*>(a.alpha) + all.time * s.begin;
  T* const skip = static_cast<T*>(a.workspace) + 5 * s.begin;
  T *const emission = skip + s.row(), *const beta = emission + s.row(),
           *const ahead = beta + s.row(), *const chance = ahead + s.row();
  find_skips(s, skip);
  // beta[s] is the log of the sum over the paths' steps after t, from state s on, minus `shift`.
  // ahead[s] is the same with step t included, and -inf after the last state.
  ahead[states] = ahead[states + 1] = ctc_never<T>();
  const T g = static_cast<const T*>(a.grad)[b];
  T largest = T(0);
  double shift = 0;
  for (int64_t t = s.steps - 1; t >= 0; --t) {
    if (t == s.steps - 1) {
      for (int64_t i = 0; i < states; ++i) beta[i] = i >= states - 2 ? T(0) : ctc_never<T>();
    } else {
      const T off = ctc_shift(largest);
      shift += static_cast<double>(off);
      const Lanes<T> less = lset(off);
      over_states<T>(states, [&](auto load, auto store) {
        const Lanes<T> v =
            log_sum<T>(load(ahead), load(ahead + 1), load(ahead + 2) + load(skip + 2)) - less;
        store(beta, v);
        return v;
      });
    }
    find_emissions(all, s, t, b, emission);
    const T* const alpha = alphas + t * s.row() + 2;
    const Lanes<T> scale = lset(static_cast<T>(a.shifts[b * all.time + t] + shift + a.negative[b]));
    largest = over_states<T>(states, [&](auto load, auto store) {
      const Lanes<T> onward = load(beta), v = onward + load(emission);
      store(chance, lexp(load(alpha) + onward + scale));
      store(ahead, v);
      return v;
    });
    T* const dx = dx_at(t);
    T blanks = chance[2 * s.count];
    for (int64_t i = 0; i < s.count; ++i) {
      blanks += chance[2 * i];
      const int64_t label = s.labels[i];
      if (label >= 0 && label < all.classes) dx[label] -= g * chance[2 * i + 1];
    }
    dx[s.blank] -= g * blanks;
  }
}

// The work in bytes: exponentials and logarithms count as bytes, too.
int64_t work(const CtcSamples& a) {
  return a.time * (ctc_states(a.labels, a.batch) * 32 + a.batch * a.classes * 4);
}

}  // namespace

void ctc_loss_forward(const CtcLossArgs& a) {
  by_floating_type(a.samples.dtype, [&](auto t) {
    run_tasks(a.samples.batch, work(a.samples),
              [&](int64_t b, int) { forward<decltype(t)>(a, b); });
  });
}

void ctc_loss_backward(const CtcLossBackwardArgs& a) {
  by_floating_type(a.samples.dtype, [&](auto t) {
    run_tasks(a.samples.batch, work(a.samples),
              [&](int64_t b, int) { backward<decltype(t)>(a, b); });
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
