#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/copy/fill.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// With `aligned` each thread writes 16 bytes. The remaining elements are written one at a time.
template <class T> __global__ void fill_kernel(T* out, int64_t n, T value, bool aligned) {
  constexpr int kEach = 16 / sizeof(T);
  const int64_t packs = aligned ? n / kEach : 0;
  T v[kEach];
  for (int k = 0; k < kEach; ++k) v[k] = value;
  for (int64_t i = first_item(); i < packs; i += item_step()) store_bytes<16>(out + i * kEach, v);
  for (int64_t i = packs * kEach + first_item(); i < n; i += item_step()) out[i] = value;
}

template <class T>
__global__ void fill_strided_kernel(T* out, int64_t n, T value, Offsets<1> offsets) {
  for (int64_t i = first_item(); i < n; i += item_step()) {
    int64_t offset[1];
    offsets.at(i, offset);
    out[offset[0]] = value;
  }
}

__global__ void arange_kernel(ArangeArgs a, bool integers) {
  for (int64_t i = first_item(); i < a.n; i += item_step()) {
    if (integers) store_element(a.out, a.dtype, i, vadd(a.istart, vmul(i, a.istep)));
    else store_element(a.out, a.dtype, i, a.start + static_cast<double>(i) * a.step);
  }
}

__global__ void linspace_kernel(LinspaceArgs a, double step) {
  for (int64_t i = first_item(); i < a.n; i += item_step())
    store_element(a.out, a.dtype, i,
                  i < a.n / 2 || a.n == 1 ? a.start + step * static_cast<double>(i)
                                          : a.end - step * static_cast<double>(a.n - i - 1));
}

}  // namespace

void fill_dense(const FillDenseArgs& a, Stream where) {
  by_word(a.item_size, [&](auto item) {
    using T = decltype(item);
    const bool aligned = reinterpret_cast<uintptr_t>(a.out) % 16 == 0;
    constexpr int64_t kEach = 16 / static_cast<int64_t>(sizeof(T));
    start_for("fill", where, aligned ? ceil_div(a.n, kEach) : a.n, fill_kernel<T>,
              static_cast<T*>(a.out), a.n, static_cast<T>(a.bits), aligned);
  });
}

void fill_strided(const FillStridedArgs& a, Stream where) {
  const int64_t n = product(a.sizes, a.rank);
  Offsets<1> offsets;
  offsets.set(a.rank, a.sizes, n);
  for (int d = 0; d < a.rank; ++d) offsets.strides[0][d] = a.strides[d];
  by_word(a.item_size, [&](auto item) {
    using T = decltype(item);
    start_for("fill", where, n, fill_strided_kernel<T>, static_cast<T*>(a.out), n,
              static_cast<T>(a.bits), offsets);
  });
}

void arange(const ArangeArgs& a, Stream where) {
  start_for("arange", where, a.n, arange_kernel, a, compute_type_of(a.dtype) == ScalarType::Long);
}

void linspace(const LinspaceArgs& a, Stream where) {
  start_for("linspace", where, a.n, linspace_kernel, a,
            a.n > 1 ? (a.end - a.start) / static_cast<double>(a.n - 1) : 0);
}

}  // namespace ramet::kernels::RAMET_VARIANT
