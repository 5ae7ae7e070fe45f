#include "kernels/matrix/attention.h"

#include "kernels/copy/chunk.h"
#include "kernels/matrix/bfloat_pack.h"
#include "kernels/matrix/gemm.h"
#include "kernels/matrix/gemm_bfloat.h"
#include "kernels/matrix/gemm_wide.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int64_t kRows = kAttentionRows;

// What a dtype's products read. T is the type in which everything else is computed. Operands in
// bfloat16 stay where they are; others are copied into a thread's buffers as T.
template <class T> struct Plain {
  using Compute = T;
  using Operand = T;
  static RAMET_INLINE Lanes<T> exp(const Lanes<T>& x) { return lexp(x); }
  static RAMET_INLINE T log(T x) { return log_of(x); }
  static RAMET_INLINE Lanes<T> fma(const Lanes<T>& a, const Lanes<T>& b, const Lanes<T>& c) {
    return lfma(a, b, c);
  }
};
// The same bits in every variant.
struct Bfloat {
  using Compute = float;
  using Operand = uint16_t;
  static RAMET_INLINE Lanes<float> exp(Lanes<float> x) {
    for (vf& v : x.v) v = vexp_by(FusedOnce{}, v);
    return x;
  }
  static RAMET_INLINE float log(float x) {
    float t[VL];
    store(t, vlog_by(FusedOnce{}, set1(x)));
    return t[0];
  }
  static RAMET_INLINE Lanes<float> fma(Lanes<float> a, const Lanes<float>& b,
                                       const Lanes<float>& c) {
    for (int e = 0; e < Lanes<float>::kParts; ++e) a.v[e] = FusedOnce{}(a.v[e], b.v[e], c.v[e]);
    return a;
  }
};

// Rows of a matrix of operands, `width` elements apart.
template <class O> struct Rows {
  const O* data;
  int64_t width;
};

// One thread's buffers. Blocks of rows have a stride of `width` values, scores one of kRows.
template <class E> struct Buffers {
  using T = typename E::Compute;
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
// Sums in bfloat16 are one chain over all blocks that are added to C.
enum class Kind { kOfRows, kAdd, kAddTransposed };
template <class E, class O, class T>
void product(Kind kind, int64_t m, int64_t n, int64_t k, double alpha, Rows<O> a, Rows<O> b, T* c,
             int64_t ldc, const Buffers<E>& buffers) {
  const bool ta = kind == Kind::kAddTransposed, tb = kind == Kind::kOfRows;
  if constexpr (sizeof(O) == 2) {
    gemm_bfloat({m,       n,   k, a.data, a.width, ta,    b.data,         b.width,        tb,
                 nullptr, ldc, 1, 0,      nullptr, false, buffers.pack_b, buffers.pack_a, c,
                 false,   !tb});
    if (alpha == 1) return;
    const vf scale = set1(static_cast<float>(alpha));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; j += VL) store(c + i * ldc + j, load(c + i * ldc + j) * scale);
  } else if constexpr (sizeof(O) == 4) {
    gemm({m, n, k, a.data, a.width, ta, b.data, b.width, tb, c, ldc, static_cast<float>(alpha),
          tb ? 0.0f : 1.0f, nullptr, false, buffers.pack_b, buffers.pack_a, false});
  } else {
    wide_gemm(WideGemm<double>{m, n, k, a.data, ta ? 1 : a.width, ta ? a.width : 1, b.data,
                               tb ? 1 : b.width, tb ? b.width : 1, c, ldc, nullptr, alpha,
                               tb ? 0.0 : 1.0, ScalarType::Double, buffers.pack_b, buffers.pack_a,
                               false});
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
// The same rows as an operand, in `buffer` if they are copied.
template <class E>
Rows<typename E::Operand> operand(const AttentionMatrix& m, ScalarType t, int64_t batch,
                                  int64_t head, int64_t first, int64_t n, int64_t columns,
                                  typename E::Compute* buffer, int64_t width) {
  if constexpr (sizeof(typename E::Operand) == 2) {
    return {static_cast<const uint16_t*>(m.data) + batch * m.batch + head * m.head + first * m.row,
            m.row};
  } else {
    get_rows(m, t, batch, head, first, n, columns, buffer, width);
    return {buffer, width};
  }
}
// A block of scores as an operand. In bfloat16 they are rounded, in place.
template <class E> Rows<typename E::Operand> rounded(typename E::Compute* scores, int64_t rows) {
  if constexpr (sizeof(typename E::Operand) == 2) {
    // A vector is written where one was that has been read.
    auto* halves = reinterpret_cast<uint16_t*>(scores);
    for (int64_t i = 0; i < rows * kRows; i += VL) store_halves(halves + i, load(scores + i), VL);
    return {halves, kRows};
  } else {
    return {scores, kRows};
  }
}
template <class T>
void put_rows(const AttentionMatrix& m, ScalarType t, int64_t batch, int64_t head, int64_t first,
              int64_t n, int64_t columns, const T* from, int64_t width) {
  for (int64_t i = 0; i < n; ++i) {
    void* to = at(m.data, t, batch * m.batch + head * m.head + (first + i) * m.row);
    if (t != ScalarType::BFloat16) {
      store_chunk(to, t, 1, columns, from + i * width);
      continue;
    }
    if constexpr (sizeof(T) == 4)
      for (int64_t c = 0; c < columns; c += VL)
        store_halves(static_cast<uint16_t*>(to) + c, load(from + i * width + c),
                     imin(columns - c, VL));
  }
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
template <class E, class T> T exponentials(T* x, int64_t n, T shift) {
  constexpr int last = kAccumulators<T> - 1;
  const Lanes<T> S = lset(shift);
  Accumulators<T> s;
  lfill<T>(s, 0);
  sweep<T>(
      n,
      [&](int64_t i, int u) {
        const Lanes<T> e = E::exp(lload(x + i) - S);
        s[u] = s[u] + e;
        lstore(x + i, e);
      },
      [&](int64_t i, int64_t left) {
        const Lanes<T> e = lfirst(E::exp(lload_n<T>(x + i, left, shift) - S), left);
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
template <class E, class T> T dot_rows(const T* x, const T* y, int64_t n) {
  constexpr int last = kAccumulators<T> - 1;
  Accumulators<T> s;
  lfill<T>(s, 0);
  sweep<T>(
      n, [&](int64_t i, int u) { s[u] = E::fma(lload(x + i), lload(y + i), s[u]); },
      [&](int64_t i, int64_t left) {
        s[last] = E::fma(lload_n<T>(x + i, left, T(0)), lload_n<T>(y + i, left, T(0)), s[last]);
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

template <class E> void forward(const AttentionArgs& a) {
  using T = typename E::Compute;
  by_blocks(
      a.batch, a.heads, a.q_rows, work_of(a, 2),
      [&](int64_t batch, int64_t head, int64_t q0, int64_t rows, int slot) {
        const Buffers<E> b(a.workspace, a.columns, slot);
        T *most = b.values, *sum = most + kRows;
        const auto q = operand<E>(a.q, a.dtype, batch, head, q0, rows, a.columns, b.mine1, b.width);
        __builtin_memset(b.sum1, 0, static_cast<size_t>(kRows * b.width) * sizeof(T));
        for (int64_t r = 0; r < rows; ++r) most[r] = T(kNone), sum[r] = T(0);
        const int64_t keys = a.causal ? imin(a.k_rows, q0 + rows) : a.k_rows;
        for (int64_t k0 = 0; k0 < keys; k0 += kRows) {
          const int64_t n = imin(kRows, keys - k0);
          const auto k = operand<E>(a.k, a.dtype, batch, head, k0, n, a.columns, b.other1, b.width),
                     v = operand<E>(a.v, a.dtype, batch, head, k0, n, a.columns, b.other2, b.width);
          product(Kind::kOfRows, rows, n, a.columns, a.scale, q, k, b.scores, kRows, b);
          for (int64_t r = 0; r < rows; ++r) {
            T* s = b.scores + r * kRows;
            const int64_t seen = a.causal ? imax(0, imin(n, q0 + r + 1 - k0)) : n;
            const T block = largest(s, seen), next = block > most[r] ? block : most[r],
                    shift = shift_of(next), keep = E::exp(lset(most[r] - shift)).v[0][0];
            sum[r] = sum[r] * keep + exponentials<E>(s, seen, shift);
            if (next != most[r]) scale_row(b.sum1 + r * b.width, b.width, keep);
            most[r] = next;
          }
          product(Kind::kAdd, rows, a.columns, n, 1, rounded<E>(b.scores, rows), v, b.sum1, b.width,
                  b);
        }
        T* log_sum = static_cast<T*>(a.log_sum) + (batch * a.heads + head) * a.q_rows + q0;
        for (int64_t r = 0; r < rows; ++r) {
          if (sum[r] != T(0)) scale_row(b.sum1 + r * b.width, b.width, T(1) / sum[r]);
          log_sum[r] = sum[r] == T(0) ? T(kNone) : shift_of(most[r]) + E::log(sum[r]);
          // The sign of a NaN depends on the instruction.
          if (sizeof(typename E::Operand) == 2 && log_sum[r] != log_sum[r])
            log_sum[r] = __builtin_nanf("");
        }
        put_rows(a.o, a.dtype, batch, head, q0, rows, a.columns, b.sum1, b.width);
      });
}

template <class E> struct Backward {
  using T = typename E::Compute;
  using Matrix = Rows<typename E::Operand>;
  const AttentionBackwardArgs& a;
  const T* dots;  // d of every row of q
  void* slots;

  // The probabilities (b.scores) and the gradient of the scores (b.slopes) for a block of q by a
  // block of k and v.
  void block(const Buffers<E>& b, Matrix q, Matrix grad, Matrix k, Matrix v, int64_t matrix,
             int64_t q0, int64_t rows, int64_t k0, int64_t n) const {
    product(Kind::kOfRows, rows, n, a.columns, a.scale, q, k, b.scores, kRows, b);
    product(Kind::kOfRows, rows, n, a.columns, 1, grad, v, b.slopes, kRows, b);
    const T *log_sum = static_cast<const T*>(a.log_sum) + matrix * a.q_rows + q0,
            *dot = dots + matrix * a.q_rows + q0;
    const Lanes<T> scale = lset(static_cast<T>(a.scale));
    for (int64_t r = 0; r < rows; ++r) {
      T *p = b.scores + r * kRows, *s = b.slopes + r * kRows;
      const int64_t seen = a.causal ? imax(0, imin(n, q0 + r + 1 - k0)) : n;
      exponentials<E>(p, seen, shift_of(log_sum[r]));
      const Lanes<T> d = lset(dot[r]);
      for (int64_t j = 0; j < kRows; j += 16) {
        const Lanes<T> slope = lload(p + j) * (lload(s + j) - d) * scale;
        // s may contain anything where a query does not see a key.
        if (j + 16 <= seen) lstore(s + j, slope);
        else lstore(s + j, lfirst(slope, imax(0, seen - j)));
      }
    }
  }
  Matrix get(const AttentionMatrix& m, int64_t matrix, int64_t first, int64_t n, T* buffer,
             int64_t width) const {
    return operand<E>(m, a.dtype, matrix / a.heads, matrix % a.heads, first, n, a.columns, buffer,
                      width);
  }
  void clear(T* sum, int64_t width) const {
    __builtin_memset(sum, 0, static_cast<size_t>(kRows * width) * sizeof(T));
  }

  void of_queries(int64_t batch, int64_t head, int64_t q0, int64_t rows, int slot) const {
    const Buffers<E> b(slots, a.columns, slot);
    const int64_t matrix = batch * a.heads + head,
                  keys = a.causal ? imin(a.k_rows, q0 + rows) : a.k_rows;
    const Matrix q = get(a.q, matrix, q0, rows, b.mine1, b.width),
                 grad = get(a.grad, matrix, q0, rows, b.mine2, b.width);
    clear(b.sum1, b.width);
    for (int64_t k0 = 0; k0 < keys; k0 += kRows) {
      const int64_t n = imin(kRows, keys - k0);
      const Matrix k = get(a.k, matrix, k0, n, b.other1, b.width),
                   v = get(a.v, matrix, k0, n, b.other2, b.width);
      block(b, q, grad, k, v, matrix, q0, rows, k0, n);
      product(Kind::kAdd, rows, a.columns, n, 1, rounded<E>(b.slopes, rows), k, b.sum1, b.width, b);
    }
    put_rows(a.dq, a.dtype, batch, head, q0, rows, a.columns, b.sum1, b.width);
  }
  void of_keys(int64_t batch, int64_t head, int64_t k0, int64_t n, int slot) const {
    const Buffers<E> b(slots, a.columns, slot);
    const int64_t matrix = batch * a.heads + head;
    const Matrix k = get(a.k, matrix, k0, n, b.mine1, b.width),
                 v = get(a.v, matrix, k0, n, b.mine2, b.width);
    clear(b.sum1, b.width), clear(b.sum2, b.width);
    // Rows of a block of queries that see none of these keys add zeros.
    for (int64_t q0 = a.causal ? k0 / kRows * kRows : 0; q0 < a.q_rows; q0 += kRows) {
      const int64_t rows = imin(kRows, a.q_rows - q0);
      const Matrix q = get(a.q, matrix, q0, rows, b.other1, b.width),
                   grad = get(a.grad, matrix, q0, rows, b.other2, b.width);
      block(b, q, grad, k, v, matrix, q0, rows, k0, n);
      product(Kind::kAddTransposed, n, a.columns, rows, 1, rounded<E>(b.slopes, rows), q, b.sum1,
              b.width, b);
      product(Kind::kAddTransposed, n, a.columns, rows, 1, rounded<E>(b.scores, rows), grad, b.sum2,
              b.width, b);
    }
    put_rows(a.dk, a.dtype, batch, head, k0, n, a.columns, b.sum1, b.width);
    put_rows(a.dv, a.dtype, batch, head, k0, n, a.columns, b.sum2, b.width);
  }
};

template <class E> void backward(const AttentionBackwardArgs& a) {
  using T = typename E::Compute;
  T* dots = static_cast<T*>(a.workspace);
  T* slots = dots + ceil_div(a.batch * a.heads * a.q_rows, 16) * 16;
  by_blocks(a.batch, a.heads, a.q_rows,
            2 * a.batch * a.heads * a.q_rows * a.columns * bytes_of(a.dtype),
            [&](int64_t batch, int64_t head, int64_t q0, int64_t rows, int slot) {
              const Buffers<E> b(slots, a.columns, slot);
              get_rows(a.o, a.dtype, batch, head, q0, rows, a.columns, b.mine1, b.width);
              get_rows(a.grad, a.dtype, batch, head, q0, rows, a.columns, b.mine2, b.width);
              for (int64_t r = 0; r < rows; ++r)
                dots[(batch * a.heads + head) * a.q_rows + q0 + r] =
                    dot_rows<E>(b.mine1 + r * b.width, b.mine2 + r * b.width, a.columns);
            });
  const Backward<E> pass{a, dots, slots};
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
  if (a.dtype == ScalarType::BFloat16) return forward<Bfloat>(a);
  by_floating_type(a.dtype, [&](auto t) { forward<Plain<decltype(t)>>(a); });
}
void attention_backward(const AttentionBackwardArgs& a) {
  if (a.dtype == ScalarType::BFloat16) return backward<Bfloat>(a);
  by_floating_type(a.dtype, [&](auto t) { backward<Plain<decltype(t)>>(a); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
