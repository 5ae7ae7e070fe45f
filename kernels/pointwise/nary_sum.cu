#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/pointwise/nary_sum.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Leaves that are read in packs, as many as registers can hold. With more leaves a thread takes one
// element of each. Few leaves have a separate kernel, with fewer registers.
constexpr int kFew = 4;
template <class T> constexpr int kPacked = sizeof(T) > 4 ? kFew : 2 * kFew;

// The sum of the leaves with a bit set in `there`, in the order that NarySumArgs describes.
template <class T, int kLeaves>
__device__ __forceinline__ T sum_of(T (&v)[kLeaves], uint32_t there, bool tree) {
  if (!tree) {
    T sum = T(0);
    bool any = false;
    for (int j = 0; j < kLeaves; ++j) {
      if (!(there >> j & 1)) continue;
      sum = any ? vadd(sum, v[j]) : v[j];
      any = true;
    }
    return sum;
  }
  for (int half = 1; half < kLeaves; half *= 2)
    for (int j = 0; j + half < kLeaves; j += 2 * half) {
      const bool left = there >> j & 1, right = there >> (j + half) & 1;
      if (left && right) v[j] = vadd(v[j], v[j + half]);
      else if (right) v[j] = v[j + half];
      there |= static_cast<uint32_t>(right) << j;
    }
  return v[0];
}

template <class T, int kLeaves>
__global__ void sum_kernel(NarySumArgs a, uint32_t there, bool packed) {
  const int64_t packs = packed ? a.n / kPack : 0;
  if constexpr (kLeaves <= kPacked<T>) {
    for (int64_t i = first_item(); i < packs; i += item_step()) {
      T x[kLeaves][kPack], y[kPack];
      for (int j = 0; j < kLeaves; ++j)
        if (there >> j & 1) load_pack(a.in[j], a.dtype, i * kPack, x[j]);
      for (int k = 0; k < kPack; ++k) {
        T v[kLeaves];
        for (int j = 0; j < kLeaves; ++j) v[j] = there >> j & 1 ? x[j][k] : T(0);
        y[k] = sum_of(v, there, a.tree);
      }
      store_pack(a.out, a.dtype, i * kPack, y);
    }
  }
  for (int64_t i = packs * kPack + first_item(); i < a.n; i += item_step()) {
    T v[kLeaves];
    for (int j = 0; j < kLeaves; ++j)
      v[j] = there >> j & 1 ? load_element<T>(a.in[j], a.dtype, i) : T(0);
    store_element(a.out, a.dtype, i, sum_of(v, there, a.tree));
  }
}

template <class T> void run(const NarySumArgs& a, Stream where) {
  uint32_t there = 0;
  bool packed = a.leaves <= kPacked<T> && packs_fit(a.out, a.dtype);
  for (int j = 0; j < a.leaves; ++j) {
    if (!a.in[j]) continue;
    there |= 1u << j;
    packed = packed && packs_fit(a.in[j], a.dtype);
  }
  const int64_t items = packed ? ceil_div(a.n, kPack) : a.n;
  const auto go = [&](auto kernel) {
    start_for("nary_sum", where, items, kernel, a, there, packed);
  };
  if (a.leaves <= kFew) go(sum_kernel<T, kFew>);
  else if (a.leaves <= kPacked<T>) go(sum_kernel<T, kPacked<T>>);
  else go(sum_kernel<T, kMaxSummands>);
}

}  // namespace

void nary_sum(const NarySumArgs& a, Stream where) {
  by_compute_type(a.dtype, [&](auto t) { run<decltype(t)>(a, where); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
