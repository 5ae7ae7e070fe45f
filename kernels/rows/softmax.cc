#include "kernels/rows/softmax.h"

#include "kernels/rows/rows.h"
#include "kernels/rows/softmax_pixels.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T> constexpr T kLowest = T(-__builtin_inf());

// `past`: y is written past the caches. Not for softmax, which keeps its exponentials in y.
template <class T, bool kLog> void forward_row(const T* x, T* y, int64_t n, bool past) {
  constexpr int last = kAccumulators<T> - 1;
  Accumulators<T> m, s;
  lfill<T>(m, kLowest<T>), lfill<T>(s, 0);
  sweep<T>(
      n, [&](int64_t i, int u) { m[u] = lmax(m[u], lload(x + i)); },
      [&](int64_t i, int64_t left) {
        m[last] = lmax(m[last], lload_n<T>(x + i, left, kLowest<T>));
      });
  const T top = lfold_max<T>(m);
  const Lanes<T> M = lset(top);
  Lanes<T> rest = M;  // The tail's exponentials stay in a register: a load after a masked store
                      // waits for the cache.
  // The maximum may miss a NaN; the sum never does.
  sweep<T>(
      n,
      [&](int64_t i, int u) {
        const Lanes<T> e = lexp(lload(x + i) - M);
        s[u] = s[u] + e;
        if (!kLog) lstore(y + i, e);
      },
      [&](int64_t i, int64_t left) {
        rest = lfirst(lexp(lload_n<T>(x + i, left, top) - M), left);
        s[last] = s[last] + rest;
      });
  const T sum = lfold_add<T>(s);
  if (kLog) {
    const Lanes<T> L = lset(log_of(sum));
    sweep<T>(
        n,
        [&](int64_t i, int) {
          const Lanes<T> v = lload(x + i) - M - L;
          if (past) lstream(y + i, v);
          else lstore(y + i, v);
        },
        [&](int64_t i, int64_t left) {
          lstore_n(y + i, lload_n<T>(x + i, left, T(0)) - M - L, left);
        });
  } else {
    const Lanes<T> k = lset(T(1) / sum);
    sweep<T>(
        n, [&](int64_t i, int) { lstore(y + i, lload(y + i) * k); },
        [&](int64_t i, int64_t left) { lstore_n(y + i, rest * k, left); });
  }
}

template <class T, bool kLog>
void backward_row(const T* y, const T* dy, T* dx, int64_t n, bool past) {
  constexpr int last = kAccumulators<T> - 1;
  Accumulators<T> s;
  lfill<T>(s, 0);
  sweep<T>(
      n,
      [&](int64_t i, int u) {
        s[u] = kLog ? s[u] + lload(dy + i) : lfma(lload(y + i), lload(dy + i), s[u]);
      },
      [&](int64_t i, int64_t left) {
        const Lanes<T> g = lload_n<T>(dy + i, left, T(0));
        s[last] = kLog ? s[last] + g : lfma(lload_n<T>(y + i, left, T(0)), g, s[last]);
      });
  const Lanes<T> k = lset(lfold_add<T>(s));
  const auto value = [&](const Lanes<T>& v, const Lanes<T>& g) {
    return kLog ? g - lexp(v) * k : v * (g - k);
  };
  sweep<T>(
      n,
      [&](int64_t i, int) {
        const Lanes<T> v = value(lload(y + i), lload(dy + i));
        if (past) lstream(dx + i, v);
        else lstore(dx + i, v);
      },
      [&](int64_t i, int64_t left) {
        lstore_n(dx + i, value(lload_n<T>(y + i, left, T(0)), lload_n<T>(dy + i, left, T(0))),
                 left);
      });
}

template <class T, bool kLog> void forward(const SoftmaxArgs& a) {
  const bool past = kLog && streams_past_caches(a.y, a.dtype, a.rows, a.cols);
  by_rows(a.rows, a.cols, a.dtype, [&](int64_t first, int64_t end, int slot) {
    char* buffers = slot_buffers(a.workspace, a.cols, 3, slot);
    for (int64_t r = first; r < end; ++r) {
      const T* x = row_in<T>(a.x, a.dtype, r, a.cols, buffers, 0);
      T* y = row_out<T>(a.y, a.dtype, r, a.cols, buffers, 1);
      forward_row<T, kLog>(x, y, a.cols, past);
      row_done(a.y, a.dtype, r, a.cols, y);
    }
    if (past) stream_fence();
  });
}

template <class T, bool kLog> void backward(const SoftmaxBackwardArgs& a) {
  const bool past = streams_past_caches(a.dx, a.dtype, a.rows, a.cols);
  by_rows(a.rows, a.cols, a.dtype, [&](int64_t first, int64_t end, int slot) {
    char* buffers = slot_buffers(a.workspace, a.cols, 3, slot);
    for (int64_t r = first; r < end; ++r) {
      const T* y = row_in<T>(a.y, a.dtype, r, a.cols, buffers, 0);
      const T* dy = row_in<T>(a.dy, a.dtype, r, a.cols, buffers, 1);
      T* dx = row_out<T>(a.dx, a.dtype, r, a.cols, buffers, 2);
      backward_row<T, kLog>(y, dy, dx, a.cols, past);
      row_done(a.dx, a.dtype, r, a.cols, dx);
    }
    if (past) stream_fence();
  });
}

}  // namespace

void softmax_forward(const SoftmaxArgs& a) {
  if (a.rows == 0 || a.cols == 0) return;
  by_floating_type(a.dtype, [&](auto t) {
    using T = decltype(t);
    if (a.inner > 0) a.log ? forward_strips<T, true>(a) : forward_strips<T, false>(a);
    else a.log ? forward<T, true>(a) : forward<T, false>(a);
  });
}

void softmax_backward(const SoftmaxBackwardArgs& a) {
  if (a.rows == 0 || a.cols == 0) return;
  by_floating_type(a.dtype, [&](auto t) {
    using T = decltype(t);
    if (a.inner > 0) a.log ? backward_strips<T, true>(a) : backward_strips<T, false>(a);
    else a.log ? backward<T, true>(a) : backward<T, false>(a);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
