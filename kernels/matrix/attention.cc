#include "kernels/matrix/attention.h"

#include "kernels/copy/chunk.h"
#include "kernels/matrix/gemm.h"
#include "kernels/matrix/gemm_wide.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int64_t kRows = kAttentionRows;

// One thread's buffers. Blocks of rows have a stride of `width` values, scores one of kRows.
template <class T> struct Buffers {
  int64_t width;
  T *mine1, *mine2, *other1, *other2, *sum1, *sum2, *scores, *slopes, *values, *pack_b, *pack_a;
  Buffers(void* workspace, int64_t columns, int slot) : width(ceil_div(columns, 16) * 16) {
    T* p = static_cast<T*>(workspace) + slot * attention_slot_values(columns);
    const auto take = [&](int64_t n) { return (p += n) - n; };
    mine1 = take(kRows * width), mine2 = take(kRows * width);
    other1 = take(kRows * width), other2 = take(kRows * width);
    sum1 = take(kRows * width), sum2 = take(kRows * width);
    scores = take(kRows * kRows), slopes = take(kRows * kRows);
    values = take(4 * kRows);
    pack_b = take(19 * 1024), pack_a = p;
  }
};

// C = alpha A B' (`of_rows`: B holds the columns of the product as rows) or C += A B or C += A' B.
enum class Kind { kOfRows, kAdd, kAddTransposed };
template <class T>
void product(Kind kind, int64_t m, int64_t n, int64_t k, double alpha, const T* a, int64_t lda,
             const T* b, int64_t ldb, T* c, int64_t ldc, const Buffers<T>& buffers) {
  const bool ta = kind == Kind::kAddTransposed, tb = kind == Kind::kOfRows;
  if constexpr (sizeof(T) == 4) {
    gemm({m, n, k, a, lda, ta, b, ldb, tb, c, ldc, static_cast<float>(alpha), tb ? 0.0f : 1.0f,
          nullptr, false, buffers.pack_b, buffers.pack_a, false});
  } else {
    wide_gemm(WideGemm<double>{m, n, k, a, ta ? 1 : lda, ta ? lda : 1, b, tb ? 1 : ldb,
                               tb ? ldb : 1, c, ldc, nullptr, alpha, tb ? 0.0 : 1.0,
                               ScalarType::Double, buffers.pack_b, buffers.pack_a, false});
  }
}

// n rows from `first` on as T, in `to`.
template <class T>
void get_rows(const AttentionMatrix& m, ScalarType t, int64_t batch, int64_t head, int64_t first,
              int64_t n, int64_t columns, T* to, int64_t width) {
  for (int64_t i = 0; i < n; ++i)
    load_chunk(at(static_cast<const void*>(m.data), t,
                  batch * m.batch + head * m.head + (first + i) * m.row),
               t, 1, columns, to + i * width);
}
template <class T>
void put_rows(const AttentionMatrix& m, ScalarType t, int64_t batch, int64_t head, int64_t first,
              int64_t n, int64_t columns, const T* from, int64_t width) {
  for (int64_t i = 0; i < n; ++i)
    store_chunk(at(m.data, t, batch * m.batch + head * m.head + (first + i) * m.row), t, 1, columns,
                from + i * width);
}

constexpr double kNone = -__builtin_inf();

template <class T> T largest(const T* x, int64_t n) {
  constexpr int last = kAccumulators<T> - 1;
  Accumulators<T> m;
  lfill<T>(m, T(kNone));
  sweep<T>(
      n, [&](int64_t i, int u) { m[u] = lmax(lload(x + i), m[u]); },
      [&](int64_t i, int64_t left) { m[last] = lmax(lload_n<T>(x + i, left, T(kNone)), m[last]); });
  return lfold_max<T>(m);
}
// x[i] = exp(x[i] - shift) for i < n, 0 for the rest of a block. Returns their sum.
template <class T> T exponentials(T* x, int64_t n, T shift) {
  constexpr int last = kAccumulators<T> - 1;
  const Lanes<T> S = lset(shift);
  Accumulators<T> s;
  lfill<T>(s, 0);
  sweep<T>(
      n,
      [&](int64_t i, int u) {
        const Lanes<T> e = lexp(lload(x + i) - S);
        s[u] = s[u] + e;
        lstore(x + i, e);
      },
      [&](int64_t i, int64_t left) {
        const Lanes<T> e = lfirst(lexp(lload_n<T>(x + i, left, shift) - S), left);
        s[last] = s[last] + e;
        lstore(x + i, e);  // kRows is a multiple of 16
      });
  for (int64_t i = ceil_div(n, 16) * 16; i < kRows; ++i) x[i] = T(0);
  return lfold_add<T>(s);
}
// x[i] = x[i] k, of whole groups of lanes.
template <class T> void scale_row(T* x, int64_t width, T k) {
  const Lanes<T> K = lset(k);
  for (int64_t i = 0; i < width; i += 16) lstore(x + i, lload(x + i) * K);
}
template <class T> T dot_rows(const T* x, const T* y, int64_t n) {
  constexpr int last = kAccumulators<T> - 1;
  Accumulators<T> s;
  lfill<T>(s, 0);
  sweep<T>(
      n, [&](int64_t i, int u) { s[u] = lfma(lload(x + i), lload(y + i), s[u]); },
      [&](int64_t i, int64_t left) {
        s[last] = lfma(lload_n<T>(x + i, left, T(0)), lload_n<T>(y + i, left, T(0)), s[last]);
      });
  return lfold_add<T>(s);
}
// The number to subtract from scores, so that exponentials stay finite.
template <class T> T shift_of(T largest) { return largest == T(kNone) ? T(0) : largest; }

// f(batch, head, first row, rows, slot) for all blocks of `rows` rows.
template <class F>
void by_blocks(int64_t batch, int64_t heads, int64_t rows, int64_t work, const F& f) {
  const int64_t blocks = ceil_div(rows, kRows);
  run_tasks(batch * heads * blocks, work, [&](int64_t task, int slot) {
    const int64_t first = task % blocks * kRows, matrix = task / blocks;
    f(matrix / heads, matrix % heads, first, imin(kRows, rows - first), slot);
  });
}
// The number of bytes that take as long to read as `products` products of all pairs of rows.
template <class Args> int64_t work_of(const Args& a, int64_t products) {
  return a.batch * a.heads * a.q_rows * a.k_rows * a.columns * products / 4;
}

template <class T> void forward(const AttentionArgs& a) {
  by_blocks(a.batch, a.heads, a.q_rows, work_of(a, 2),
            [&](int64_t batch, int64_t head, int64_t q0, int64_t rows, int slot) {
              const Buffers<T> b(a.workspace, a.columns, slot);
              T *most = b.values, *sum = most + kRows;
              get_rows(a.q, a.dtype, batch, head, q0, rows, a.columns, b.mine1, b.width);
              __builtin_memset(b.sum1, 0, static_cast<size_t>(kRows * b.width) * sizeof(T));
              for (int64_t r = 0; r < rows; ++r) most[r] = T(kNone), sum[r] = T(0);
              const int64_t keys = a.causal ? imin(a.k_rows, q0 + rows) : a.k_rows;
              for (int64_t k0 = 0; k0 < keys; k0 += kRows) {
                const int64_t n = imin(kRows, keys - k0);
                get_rows(a.k, a.dtype, batch, head, k0, n, a.columns, b.other1, b.width);
                get_rows(a.v, a.dtype, batch, head, k0, n, a.columns, b.other2, b.width);
                product(Kind::kOfRows, rows, n, a.columns, a.scale, b.mine1, b.width, b.other1,
                        b.width, b.scores, kRows, b);
                for (int64_t r = 0; r < rows; ++r) {
                  T* s = b.scores + r * kRows;
                  const int64_t seen = a.causal ? imax(0, imin(n, q0 + r + 1 - k0)) : n;
                  const T block = largest(s, seen), next = block > most[r] ? block : most[r],
                          shift = shift_of(next), keep = lexp(lset(most[r] - shift)).v[0][0];
                  sum[r] = sum[r] * keep + exponentials(s, seen, shift);
                  if (next != most[r]) scale_row(b.sum1 + r * b.width, b.width, keep);
                  most[r] = next;
                }
                product(Kind::kAdd, rows, a.columns, n, 1, b.scores, kRows, b.other2, b.width,
                        b.sum1, b.width, b);
              }
              T* log_sum = static_cast<T*>(a.log_sum) + (batch * a.heads + head) * a.q_rows + q0;
              for (int64_t r = 0; r < rows; ++r) {
                if (sum[r] != T(0)) scale_row(b.sum1 + r * b.width, b.width, T(1) / sum[r]);
                log_sum[r] = sum[r] == T(0) ? T(kNone) : shift_of(most[r]) + log_of(sum[r]);
              }
              put_rows(a.o, a.dtype, batch, head, q0, rows, a.columns, b.sum1, b.width);
            });
}

template <class T> struct Backward {
  const AttentionBackwardArgs& a;
  const T* dots;  // d of every row of q
  void* slots;

  // The probabilities (b.scores) and the gradient of the scores (b.slopes) for a block of q by a
  // block of k and v. q is in mine1 (and do in mine2), k and v in other1 and other2; or the other
  // way round. The arguments of the products say which.
  void block(const Buffers<T>& b, const T* q, const T* grad, const T* k, const T* v, int64_t matrix,
             int64_t q0, int64_t rows, int64_t k0, int64_t n) const {
    product(Kind::kOfRows, rows, n, a.columns, a.scale, q, b.width, k, b.width, b.scores, kRows, b);
    product(Kind::kOfRows, rows, n, a.columns, 1, grad, b.width, v, b.width, b.slopes, kRows, b);
    const T *log_sum = static_cast<const T*>(a.log_sum) + matrix * a.q_rows + q0,
            *dot = dots + matrix * a.q_rows + q0;
    const Lanes<T> scale = lset(static_cast<T>(a.scale));
    for (int64_t r = 0; r < rows; ++r) {
      T *p = b.scores + r * kRows, *s = b.slopes + r * kRows;
      const int64_t seen = a.causal ? imax(0, imin(n, q0 + r + 1 - k0)) : n;
      exponentials(p, seen, shift_of(log_sum[r]));
      const Lanes<T> d = lset(dot[r]);
      for (int64_t j = 0; j < kRows; j += 16) {
        const Lanes<T> slope = lload(p + j) * (lload(s + j) - d) * scale;
        // s may contain anything where a query does not see a key.
        if (j + 16 <= seen) lstore(s + j, slope);
        else lstore(s + j, lfirst(slope, imax(0, seen - j)));
      }
    }
  }
  void get(const AttentionMatrix& m, int64_t matrix, int64_t first, int64_t n, T* to,
           int64_t width) const {
    get_rows(m, a.dtype, matrix / a.heads, matrix % a.heads, first, n, a.columns, to, width);
  }
  void clear(T* sum, int64_t width) const {
    __builtin_memset(sum, 0, static_cast<size_t>(kRows * width) * sizeof(T));
  }

  void of_queries(int64_t batch, int64_t head, int64_t q0, int64_t rows, int slot) const {
    const Buffers<T> b(slots, a.columns, slot);
    const int64_t matrix = batch * a.heads + head,
                  keys = a.causal ? imin(a.k_rows, q0 + rows) : a.k_rows;
    get(a.q, matrix, q0, rows, b.mine1, b.width), get(a.grad, matrix, q0, rows, b.mine2, b.width);
    clear(b.sum1, b.width);
    for (int64_t k0 = 0; k0 < keys; k0 += kRows) {
      const int64_t n = imin(kRows, keys - k0);
      get(a.k, matrix, k0, n, b.other1, b.width), get(a.v, matrix, k0, n, b.other2, b.width);
      block(b, b.mine1, b.mine2, b.other1, b.other2, matrix, q0, rows, k0, n);
      product(Kind::kAdd, rows, a.columns, n, 1, b.slopes, kRows, b.other1, b.width, b.sum1,
              b.width, b);
    }
    put_rows(a.dq, a.dtype, batch, head, q0, rows, a.columns, b.sum1, b.width);
  }
  void of_keys(int64_t batch, int64_t head, int64_t k0, int64_t n, int slot) const {
    const Buffers<T> b(slots, a.columns, slot);
    const int64_t matrix = batch * a.heads + head;
    get(a.k, matrix, k0, n, b.mine1, b.width), get(a.v, matrix, k0, n, b.mine2, b.width);
    clear(b.sum1, b.width), clear(b.sum2, b.width);
    // Rows of a block of queries that see none of these keys add zeros.
    for (int64_t q0 = a.causal ? k0 / kRows * kRows : 0; q0 < a.q_rows; q0 += kRows) {
      const int64_t rows = imin(kRows, a.q_rows - q0);
      get(a.q, matrix, q0, rows, b.other1, b.width),
          get(a.grad, matrix, q0, rows, b.other2, b.width);
      block(b, b.other1, b.other2, b.mine1, b.mine2, matrix, q0, rows, k0, n);
      product(Kind::kAddTransposed, n, a.columns, rows, 1, b.slopes, kRows, b.other1, b.width,
              b.sum1, b.width, b);
      product(Kind::kAddTransposed, n, a.columns, rows, 1, b.scores, kRows, b.other2, b.width,
              b.sum2, b.width, b);
    }
    put_rows(a.dk, a.dtype, batch, head, k0, n, a.columns, b.sum1, b.width);
    put_rows(a.dv, a.dtype, batch, head, k0, n, a.columns, b.sum2, b.width);
  }
};

template <class T> void backward(const AttentionBackwardArgs& a) {
  T* dots = static_cast<T*>(a.workspace);
  T* slots = dots + ceil_div(a.batch * a.heads * a.q_rows, 16) * 16;
  by_blocks(a.batch, a.heads, a.q_rows,
            2 * a.batch * a.heads * a.q_rows * a.columns * bytes_of(a.dtype),
            [&](int64_t batch, int64_t head, int64_t q0, int64_t rows, int slot) {
              const Buffers<T> b(slots, a.columns, slot);
              get_rows(a.o, a.dtype, batch, head, q0, rows, a.columns, b.mine1, b.width);
              get_rows(a.grad, a.dtype, batch, head, q0, rows, a.columns, b.mine2, b.width);
              for (int64_t r = 0; r < rows; ++r)
                dots[(batch * a.heads + head) * a.q_rows + q0 + r] =
                    dot_rows(b.mine1 + r * b.width, b.mine2 + r * b.width, a.columns);
            });
  const Backward<T> pass{a, dots, slots};
  if (a.dq.data)
    by_blocks(a.batch, a.heads, a.q_rows, work_of(a, 3),
              [&](int64_t batch, int64_t head, int64_t first, int64_t rows, int slot) {
                pass.of_queries(batch, head, first, rows, slot);
              });
  if (a.dk.data)
    by_blocks(a.batch, a.heads, a.k_rows, work_of(a, 4),
              [&](int64_t batch, int64_t head, int64_t first, int64_t rows, int slot) {
                pass.of_keys(batch, head, first, rows, slot);
              });
}

}  // namespace

void attention_forward(const AttentionArgs& a) {
  by_floating_type(a.dtype, [&](auto t) { forward<decltype(t)>(a); });
}
void attention_backward(const AttentionBackwardArgs& a) {
  by_floating_type(a.dtype, [&](auto t) { backward<decltype(t)>(a); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
