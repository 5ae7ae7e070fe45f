#include <numeric>

#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/copy/copy.h"
#include "kernels/copy/copy_plan.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Each thread copies 16 bytes; then come the remaining bytes. REQUIRES: both addresses are
// multiples of 16.
__global__ void copy_bytes_kernel(const unsigned char* in, unsigned char* out, int64_t bytes) {
  const int64_t packs = bytes / 16;
  for (int64_t i = first_item(); i < packs; i += item_step()) {
    unsigned char v[16];
    load_bytes<16>(in + i * 16, v);
    store_bytes<16>(out + i * 16, v);
  }
  for (int64_t i = packs * 16 + first_item(); i < bytes; i += item_step()) out[i] = in[i];
}

template <class T> __global__ void copy_words_kernel(const T* in, T* out, int64_t n) {
  for (int64_t i = first_item(); i < n; i += item_step()) out[i] = in[i];
}

template <class C> __global__ void convert_kernel(CopyDenseArgs a, bool packed) {
  const int64_t packs = packed ? a.n / kPack : 0;
  for (int64_t i = first_item(); i < packs; i += item_step()) {
    C x[kPack];
    load_pack(a.in, a.in_type, i * kPack, x);
    store_pack(a.out, a.out_type, i * kPack, x);
  }
  for (int64_t i = packs * kPack + first_item(); i < a.n; i += item_step())
    store_element(a.out, a.out_type, i, load_element<C>(a.in, a.in_type, i));
}

template <class T> __global__ void move_kernel(const T* in, T* out, int64_t n, Offsets<2> offsets) {
  for (int64_t i = first_item(); i < n; i += item_step()) {
    int64_t offset[2];
    offsets.at(i, offset);
    out[offset[1]] = in[offset[0]];
  }
}

template <class C>
__global__ void convert_strided_kernel(const void* in, ScalarType in_type, void* out,
                                       ScalarType out_type, int64_t n, Offsets<2> offsets) {
  for (int64_t i = first_item(); i < n; i += item_step()) {
    int64_t offset[2];
    offsets.at(i, offset);
    store_element(out, out_type, offset[1], load_element<C>(in, in_type, offset[0]));
  }
}

constexpr int kTile = 32, kThreadRows = 8;

// out[j * out_row + i] = in[i * in_row + j], i < m, j < n, for each of `matrices`. Uses tiles of 32
// x 32 in shared memory, so that reads and writes both follow memory order.
template <class T>
__global__ void transpose_kernel(const T* in, T* out, int64_t m, int64_t n, int64_t in_row,
                                 int64_t out_row, int64_t matrices, Offsets<2> offsets) {
  __shared__ T tile[kTile][kTile + 1];  // the padding keeps a column's words in different banks
  const int64_t down = ceil_div(m, kTile), across = ceil_div(n, kTile);
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  for (int64_t t = blockIdx.x; t < matrices * down * across; t += gridDim.x) {
    int64_t offset[2];
    offsets.at(t / (down * across), offset);
    const int64_t i0 = t / across % down * kTile, j0 = t % across * kTile;
    for (int r = y; r < kTile; r += kThreadRows)
      if (i0 + r < m && j0 + x < n) tile[r][x] = in[offset[0] + (i0 + r) * in_row + j0 + x];
    __syncthreads();
    for (int r = y; r < kTile; r += kThreadRows)
      if (j0 + r < n && i0 + x < m) out[offset[1] + (j0 + r) * out_row + i0 + x] = tile[x][r];
    __syncthreads();
  }
}

void transpose(const CopyStridedArgs& a, Stream where) {
  const int last = a.rank - 1, row = a.rank - 2;
  const int64_t m = a.sizes[last], n = a.sizes[row], matrices = product(a.sizes, row);
  Offsets<2> offsets;
  offsets.set(row, a.sizes, matrices);
  for (int d = 0; d < row; ++d)
    offsets.strides[0][d] = a.in_strides[d], offsets.strides[1][d] = a.out_strides[d];
  const int64_t tiles = matrices * ceil_div(m, kTile) * ceil_div(n, kTile);
  const dim3 grid = grid_of(tiles);
  by_word(bytes_of(a.in_type), [&](auto word) {
    using T = decltype(word);
    start("copy", where, grid, kTile * kThreadRows, 0, transpose_kernel<T>,
          static_cast<const T*>(a.in), static_cast<T*>(a.out), m, n, a.in_strides[last],
          a.out_strides[row], matrices, offsets);
  });
}

}  // namespace

void copy_dense(const CopyDenseArgs& a, Stream where) {
  if (a.in_type == a.out_type) {
    const auto places = reinterpret_cast<uintptr_t>(a.in) | reinterpret_cast<uintptr_t>(a.out);
    const int64_t bytes = a.n * bytes_of(a.in_type);
    if (places % 16 == 0)
      return start_for("copy", where, ceil_div(bytes, 16), copy_bytes_kernel,
                       static_cast<const unsigned char*>(a.in), static_cast<unsigned char*>(a.out),
                       bytes);
    // Not aligned to 16 bytes, for example a slice. Neighbouring threads still read and write
    // neighbours, so words of an element's size are fast enough. A user's memory may have a smaller
    // alignment.
    const auto word_bytes = std::gcd(static_cast<int64_t>(places | 16), bytes_of(a.in_type));
    return by_word(word_bytes, [&](auto word) {
      using T = decltype(word);
      start_for("copy", where, bytes / word_bytes, copy_words_kernel<T>,
                static_cast<const T*>(a.in), static_cast<T*>(a.out), bytes / word_bytes);
    });
  }
  const bool packed = packs_fit(a.in, a.in_type) && packs_fit(a.out, a.out_type);
  by_compute_type(a.in_type, [&](auto c) {
    start_for("copy", where, packed ? ceil_div(a.n, kPack) : a.n, convert_kernel<decltype(c)>, a,
              packed);
  });
}

void copy_strided(const CopyStridedArgs& args, Stream where) {
  CopyStridedArgs a = args;
  const int64_t n = product(a.sizes, a.rank);
  if (n == 0) return;
  if (as_transpose(a)) return transpose(a, where);
  Offsets<2> offsets;
  offsets.set(a.rank, a.sizes, n);
  for (int d = 0; d < a.rank; ++d)
    offsets.strides[0][d] = a.in_strides[d], offsets.strides[1][d] = a.out_strides[d];
  if (a.in_type == a.out_type)
    return by_word(bytes_of(a.in_type), [&](auto word) {
      using T = decltype(word);
      start_for("copy", where, n, move_kernel<T>, static_cast<const T*>(a.in),
                static_cast<T*>(a.out), n, offsets);
    });
  by_compute_type(a.in_type, [&](auto c) {
    start_for("copy", where, n, convert_strided_kernel<decltype(c)>, a.in, a.in_type, a.out,
              a.out_type, n, offsets);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
