#include "kernels/rows/layer_norm.h"

#include "kernels/rows/rows.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

RAMET_INLINE float root(float x) { return __builtin_sqrtf(x); }
RAMET_INLINE double root(double x) { return __builtin_sqrt(x); }

// Weight and bias as T: in place, or converted once at the start of the workspace.
template <class T> const T* vector_in(const void* p, ScalarType t, int64_t cols, char*& workspace) {
  if (!p || t == ComputeTag<T>::value) return static_cast<const T*>(p);
  T* buffer = reinterpret_cast<T*>(workspace);
  workspace += row_stride(cols) * static_cast<int64_t>(sizeof(T));
  load_chunk(p, t, 1, cols, buffer);
  return buffer;
}

template <class T> void add_rows(const T* x, const T* r, T* sum, int64_t n) {
  sweep<T>(
      n, [&](int64_t i, int) { lstore(sum + i, lload(x + i) + lload(r + i)); },
      [&](int64_t i, int64_t left) {
        lstore_n(sum + i, lload_n<T>(x + i, left, T(0)) + lload_n<T>(r + i, left, T(0)), left);
      });
}

template <class T>
void forward_row(const T* x, const T* w, const T* b, T* y, T& mean, T& rstd, int64_t n, T eps,
                 bool past) {
  constexpr int last = kAccumulators<T> - 1;
  Accumulators<T> s, q;
  lfill<T>(s, 0), lfill<T>(q, 0);
  sweep<T>(
      n, [&](int64_t i, int u) { s[u] = s[u] + lload(x + i); },
      [&](int64_t i, int64_t left) { s[last] = s[last] + lload_n<T>(x + i, left, T(0)); });
  const T m = lfold_add<T>(s) / static_cast<T>(n);
  const Lanes<T> M = lset(m);
  sweep<T>(
      n,
      [&](int64_t i, int u) {
        const Lanes<T> d = lload(x + i) - M;
        q[u] = lfma(d, d, q[u]);
      },
      [&](int64_t i, int64_t left) {
        const Lanes<T> d = lload_n<T>(x + i, left, m) - M;
        q[last] = lfma(d, d, q[last]);
      });
  const T k = T(1) / root(lfold_add<T>(q) / static_cast<T>(n) + eps);
  const Lanes<T> K = lset(k);
  mean = m, rstd = k;
  const auto put = [&](int64_t i, const Lanes<T>& v) {
    if (past) lstream(y + i, v);
    else lstore(y + i, v);
  };
  const auto part = [&](const T* p, int64_t i, int64_t left) {
    return lload_n<T>(p + i, left, T(0));
  };
  if (w && b) {
    sweep<T>(
        n,
        [&](int64_t i, int) { put(i, lfma((lload(x + i) - M) * K, lload(w + i), lload(b + i))); },
        [&](int64_t i, int64_t left) {
          lstore_n(y + i, lfma((part(x, i, left) - M) * K, part(w, i, left), part(b, i, left)),
                   left);
        });
  } else {
    const Lanes<T> one = lset<T>(1), none = lset<T>(0);
    sweep<T>(
        n,
        [&](int64_t i, int) {
          put(i, lfma((lload(x + i) - M) * K, w ? lload(w + i) : one, b ? lload(b + i) : none));
        },
        [&](int64_t i, int64_t left) {
          lstore_n(y + i,
                   lfma((part(x, i, left) - M) * K, w ? part(w, i, left) : one,
                        b ? part(b, i, left) : none),
                   left);
        });
  }
}

// One row's part of dweight and dbias, then its dx.
template <class T>
void backward_row(const T* x, const T* w, const T* g, const T* ds, T mean, T rstd, T* dx, T* dw,
                  T* db, int64_t n, bool past) {
  constexpr int last = kAccumulators<T> - 1;
  const Lanes<T> M = lset(mean), K = lset(rstd), one = lset<T>(1);
  Accumulators<T> s, z;
  lfill<T>(s, 0), lfill<T>(z, 0);
  sweep<T>(
      n,
      [&](int64_t i, int u) {
        const Lanes<T> gv = lload(g + i), h = (lload(x + i) - M) * K,
                       gw = w ? gv * lload(w + i) : gv;
        s[u] = s[u] + gw, z[u] = lfma(gw, h, z[u]);
        lstore(dw + i, lfma(gv, h, lload(dw + i)));
        lstore(db + i, lload(db + i) + gv);
      },
      [&](int64_t i, int64_t left) {
        const auto part = [&](const T* p) { return lload_n<T>(p + i, left, T(0)); };
        const Lanes<T> gv = part(g), h = (part(x) - M) * K, gw = w ? gv * part(w) : gv;
        s[last] = s[last] + gw, z[last] = lfma(gw, h, z[last]);
        lstore_n(dw + i, lfma(gv, h, part(dw)), left);
        lstore_n(db + i, part(db) + gv, left);
      });
  if (!dx) return;
  const Lanes<T> A = lset(-lfold_add<T>(s) / static_cast<T>(n)),
                 B = lset(-lfold_add<T>(z) / static_cast<T>(n));
  sweep<T>(
      n,
      [&](int64_t i, int) {
        Lanes<T> v =
            K * lfma((lload(x + i) - M) * K, B, lfma(lload(g + i), w ? lload(w + i) : one, A));
        if (ds) v = v + lload(ds + i);
        if (past) lstream(dx + i, v);
        else lstore(dx + i, v);
      },
      [&](int64_t i, int64_t left) {
        const auto part = [&](const T* p) { return lload_n<T>(p + i, left, T(0)); };
        Lanes<T> v = K * lfma((part(x) - M) * K, B, lfma(part(g), w ? part(w) : one, A));
        if (ds) v = v + part(ds);
        lstore_n(dx + i, v, left);
      });
}

template <class T> void forward(const LayerNormArgs& a) {
  char* workspace = static_cast<char*>(a.workspace);
  const T* w = vector_in<T>(a.weight, a.dtype, a.cols, workspace);
  const T* b = vector_in<T>(a.bias, a.dtype, a.cols, workspace);
  const bool past = streams_past_caches(a.y, a.dtype, a.rows, a.cols);
  by_rows(a.rows, a.cols, a.dtype, [&](int64_t first, int64_t end, int slot) {
    char* buffers = slot_buffers(workspace, a.cols, 4, slot);
    for (int64_t r = first; r < end; ++r) {
      const T* x = row_in<T>(a.x, a.dtype, r, a.cols, buffers, 0);
      if (a.residual) {
        T* sum = row_out<T>(a.sum, a.dtype, r, a.cols, buffers, 2);
        add_rows(x, row_in<T>(a.residual, a.dtype, r, a.cols, buffers, 3), sum, a.cols);
        row_done(a.sum, a.dtype, r, a.cols, sum);
        x = row_in<T>(a.sum, a.dtype, r, a.cols, buffers, 2);  // the rounded sum
      }
      T* y = row_out<T>(a.y, a.dtype, r, a.cols, buffers, 1);
      forward_row<T>(x, w, b, y, static_cast<T*>(a.mean)[r], static_cast<T*>(a.rstd)[r], a.cols,
                     static_cast<T>(a.eps), past);
      row_done(a.y, a.dtype, r, a.cols, y);
    }
    if (past) stream_fence();
  });
}

template <class T> void backward(const LayerNormBackwardArgs& a) {
  char* workspace = static_cast<char*>(a.workspace);
  const T* w = vector_in<T>(a.weight, a.dtype, a.cols, workspace);
  T* partials = reinterpret_cast<T*>(workspace);
  const int64_t groups = ceil_div(a.rows, kLayerNormGroup), stride = row_stride(a.cols);
  workspace += groups * 2 * stride * static_cast<int64_t>(sizeof(T));
  const bool past = a.dx && streams_past_caches(a.dx, a.dtype, a.rows, a.cols);
  const int64_t bytes = a.rows * a.cols * bytes_of(a.dtype);
  run_tasks(groups, 2 * bytes, [&](int64_t group, int slot) {
    char* buffers = slot_buffers(workspace, a.cols, 4, slot);
    T *dw = partials + group * 2 * stride, *db = dw + stride;
    __builtin_memset(dw, 0, static_cast<size_t>(2 * stride) * sizeof(T));
    for (int64_t r = group * kLayerNormGroup; r < imin(a.rows, (group + 1) * kLayerNormGroup);
         ++r) {
      const T* x = row_in<T>(a.x, a.dtype, r, a.cols, buffers, 0);
      const T* g = row_in<T>(a.dy, a.dtype, r, a.cols, buffers, 1);
      T* dx = a.dx ? row_out<T>(a.dx, a.dtype, r, a.cols, buffers, 2) : nullptr;
      const T* ds = a.dsum && dx ? row_in<T>(a.dsum, a.dtype, r, a.cols, buffers, 3) : nullptr;
      backward_row<T>(x, w, g, ds, static_cast<const T*>(a.mean)[r],
                      static_cast<const T*>(a.rstd)[r], dx, dw, db, a.cols, past);
      if (dx) row_done(a.dx, a.dtype, r, a.cols, dx);
    }
    if (past) stream_fence();
  });
  constexpr int64_t kColumns = 256;
  run_tasks(ceil_div(a.cols, kColumns), groups * 2 * stride * static_cast<int64_t>(sizeof(T)),
            [&](int64_t task, int) {
              const int64_t c0 = task * kColumns, n = imin(kColumns, a.cols - c0);
              for (int k = 0; k < 2; ++k) {
                void* out = k == 0 ? a.dweight : a.dbias;
                if (!out) continue;
                double sum[kColumns] = {};
                T value[kColumns];
                for (int64_t group = 0; group < groups; ++group) {
                  const T* p = partials + (group * 2 + k) * stride + c0;
                  for (int64_t c = 0; c < n; ++c) sum[c] += static_cast<double>(p[c]);
                }
                for (int64_t c = 0; c < n; ++c) value[c] = static_cast<T>(sum[c]);
                store_chunk(at(out, a.dtype, c0), a.dtype, 1, n, value);
              }
            });
}

}  // namespace

void layer_norm_forward(const LayerNormArgs& a) {
  if (a.rows == 0 || a.cols == 0) return;
  by_floating_type(a.dtype, [&](auto t) { forward<decltype(t)>(a); });
}

void layer_norm_backward(const LayerNormBackwardArgs& a) {
  if (a.cols == 0) return;
  by_floating_type(a.dtype, [&](auto t) { backward<decltype(t)>(a); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
