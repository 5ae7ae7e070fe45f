#include "kernels/pointwise/nary_sum.h"

#include "kernels/copy/chunk.h"
#include "kernels/simd/independent.h"
#include "kernels/simd/smath.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int64_t kTaskElements = 16 * 1024;
constexpr int64_t kStreamElements = int64_t{8} << 20;  // larger than the last-level cache

// ---- all leaves present, float, 2, 4, 8 or 16 of them: in registers ----

template <int N> RAMET_INLINE vf tree_at(const vf* v) {
  if constexpr (N == 1) return v[0];
  else return tree_at<N / 2>(v) + tree_at<N / 2>(v + N / 2);
}
template <int N, bool kTree> RAMET_INLINE vf sum_of(const vf* v) {
  if constexpr (kTree) return tree_at<N>(v);
  vf s = v[0];
#pragma GCC unroll 16
  for (int j = 1; j < N; ++j) s += v[j];
  return s;
}
template <int N, bool kTree>
void sum_registers(const float* const* leaves, float* out, int64_t begin, int64_t end,
                   bool streams) {
  const float* in[N];
  for (int j = 0; j < N; ++j) in[j] = leaves[j];
  int64_t i = begin;
  auto whole = [&](int64_t k) __attribute__((always_inline)) {
    vf v[N];
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) v[j] = load(in[j] + k);
    return sum_of<N, kTree>(v);
  };
  if (streams) {  // ordinary stores would first read every output line
    for (; i + 16 <= end; i += 16) {
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) __builtin_prefetch(in[j] + i + 64);
#pragma GCC unroll 4
      for (int k = 0; k < 16; k += VL) stream(out + i + k, whole(i + k));
    }
    stream_fence();
  }
  for (; i + VL <= end; i += VL) store(out + i, whole(i));
  if (i < end) {
    vf v[N];
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) v[j] = loadn(in[j] + i, end - i);
    storen(out + i, sum_of<N, kTree>(v), end - i);
  }
}
void sum_registers_any(const NarySumArgs& a, int64_t begin, int64_t end, bool streams) {
  const float* in[kMaxSummands] = {};
  for (int j = 0; j < a.leaves; ++j) in[j] = static_cast<const float*>(a.in[j]);
  float* out = static_cast<float*>(a.out);
  switch (a.leaves) {
    case 2: return sum_registers<2, false>(in, out, begin, end, streams);
    case 4:
      return (a.tree ? sum_registers<4, true> : sum_registers<4, false>)(in, out, begin, end,
                                                                         streams);
    case 8:
      return (a.tree ? sum_registers<8, true> : sum_registers<8, false>)(in, out, begin, end,
                                                                         streams);
    default:
      return (a.tree ? sum_registers<16, true> : sum_registers<16, false>)(in, out, begin, end,
                                                                           streams);
  }
}

// ---- any leaves, any type: a part of kPart elements at a time, in the first-level cache ----

constexpr int64_t kPart = 256;

RAMET_INLINE float add_one(float a, float b) { return a + b; }
RAMET_INLINE double add_one(double a, double b) { return a + b; }
RAMET_INLINE int64_t add_one(int64_t a, int64_t b) { return vadd(a, b); }

template <class T> struct Parts {
  const T* leaf[kMaxSummands];       // null where absent
  T converted[kMaxSummands][kPart];  // leaves of another type
  T level[10][kPart];                // two subtotals per level of the tree
};
template <class T> RAMET_INLINE const T* add_parts(const T* a, const T* b, T* to, int64_t n) {
  if (!a || !b) return a ? a : b;
  RAMET_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) to[i] = add_one(a[i], b[i]);
  return to;
}
// The subtree over leaves first..first + count. Its subtotal may use level[slot] and deeper levels.
template <class T> const T* tree_part(Parts<T>& p, int first, int count, int slot, int64_t n) {
  if (count == 1) return p.leaf[first];
  const int depth = slot / 2 + 1;
  const T* left = tree_part(p, first, count / 2, 2 * depth, n);
  const T* right = tree_part(p, first + count / 2, count / 2, 2 * depth + 1, n);
  if (left && right) return add_parts(left, right, p.level[slot], n);
  const T* only = left ? left : right;
  if (!only || count == 2) return only;
  // the sibling will use the deeper levels again
  memcpy(p.level[slot], only, static_cast<size_t>(n) * sizeof(T));
  return p.level[slot];
}
template <class T> void sum_parts(const NarySumArgs& a, int64_t begin, int64_t end) {
  Parts<T> p;
  int positions = 1;
  while (positions < a.leaves) positions *= 2;
  for (int64_t i = begin; i < end; i += kPart) {
    const int64_t n = imin(kPart, end - i);
    for (int j = 0; j < positions; ++j)
      p.leaf[j] = j < a.leaves && a.in[j]
                      ? chunk_in(at(a.in[j], a.dtype, i), a.dtype, 1, n, p.converted[j])
                      : nullptr;
    const T* sum = nullptr;
    if (a.tree) sum = tree_part(p, 0, positions, 0, n);
    else
      for (int j = 0; j < a.leaves; ++j) sum = add_parts(sum, p.leaf[j], p.level[0], n);
    store_chunk(at(a.out, a.dtype, i), a.dtype, 1, n, sum);
  }
}

}  // namespace

void nary_sum(const NarySumArgs& a) {
  bool streams = a.n > kStreamElements && (reinterpret_cast<uintptr_t>(a.out) & 63) == 0;
  int present = 0;
  for (int j = 0; j < a.leaves; ++j)
    streams = streams && a.in[j] != a.out, present += a.in[j] != nullptr;
  const bool registers = a.dtype == ScalarType::Float && present == a.leaves && a.leaves > 1 &&
                         (a.leaves & (a.leaves - 1)) == 0;
  auto run = [&](int64_t begin, int64_t end) {
    if (registers) return sum_registers_any(a, begin, end, streams);
    by_compute_type(a.dtype, [&](auto c) { sum_parts<decltype(c)>(a, begin, end); });
  };
  if (a.n * bytes_of(a.dtype) * (present + 1) < parallel_grain()) return run(0, a.n);
  parallel_tasks(ceil_div(a.n, kTaskElements), [&](int64_t t, int) {
    run(t * kTaskElements, imin(a.n, (t + 1) * kTaskElements));
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
