// Sums over rows on a GPU: gradients of biases, and sums of partial results. For .cu files only.
//
// Few columns are as usual as many (a classifier's ten, an image's three). So only the rows give
// enough work for a whole device (gpu_cuts.h): they are cut into parts, each with separate blocks.
// The sums of the parts are rows again, which the same kernel adds. The elements of each thread
// follow from the extents, and from whether columns are neighbours in memory. They do not depend on
// addresses or the device.
#pragma once
#include "kernels/rows/rows_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/gpu/gpu_cuts.h"
// clang-format on
#include "runtime/cuda/scratch.h"

namespace ramet::kernels::RAMET_VARIANT {

/// out[c] = sum over r < rows of data[row.at(r) + c * column], c < columns. Sums of floats are
/// divided by `divisor`.
struct RowSums {
  const void* data;
  void* out;
  ScalarType out_dtype;
  int64_t rows, columns, column;
  Offsets<1> row;
  // The cut: tiles of columns, and parts of the rows, of `per` rows each. `width` threads of a
  // block are adjacent, each with a column or a pack of them. `at_once` rows are read at once.
  int64_t tiles, parts, per;
  int width, at_once;
  bool packed;  // 16 bytes at a time
  double divisor = 1;
};
struct Extent {
  int64_t size, stride;
};
/// Rows in the order of these dimensions, the last one fastest.
template <size_t kDims>
RowSums row_sums(const void* data, const Extent (&dims)[kDims], int64_t columns, int64_t column,
                 void* out, ScalarType out_dtype) {
  static_assert(kDims <= kMaxKernelRank);
  RowSums a{};
  a.data = data, a.out = out, a.out_dtype = out_dtype;
  a.rows = 1, a.columns = columns, a.column = column;
  int64_t sizes[kDims], *strides = a.row.strides[0];
  int rank = 0;
  for (const Extent& e : dims) {
    a.rows *= e.size;
    if (e.size == 1) continue;
    if (rank > 0 && strides[rank - 1] == e.size * e.stride)
      sizes[rank - 1] *= e.size, strides[rank - 1] = e.stride;
    else sizes[rank] = e.size, strides[rank++] = e.stride;
  }
  a.row.set(rank, sizes, a.rows);
  a.packed = reinterpret_cast<uintptr_t>(data) % 16 == 0;
  for (int d = 0; d < rank; ++d) a.packed = a.packed && strides[d] % kPack == 0;
  return a;
}

/// The type in which elements of compute type T are added.
template <class T>
using RowSum = typename std::conditional<std::is_integral<T>::value, uint64_t, double>::type;

template <class S, int kWide>
__device__ __forceinline__ void read(const RowSums& a, int64_t row, int64_t column, S (&v)[kWide]) {
  int64_t offset[1];
  a.row.at(row, offset);
  const S* p = static_cast<const S*>(a.data) + offset[0] + column * a.column;
  if constexpr (kWide > 1) {
    if (a.packed) {
      RAMET_GLOBAL(p);
      return load_bytes<sizeof v>(p, v);
    }
  }
  RAMET_UNROLL
  for (int j = 0; j < kWide; ++j) v[j] = p[j];
}

// S: storage type of an element. T: type of the result. kWide: columns of a thread. `partials`, if
// there are several parts: [part][column].
template <class S, class T, int kWide>
__global__ void row_sums_kernel(RowSums a, RowSum<T>* partials) {
  using Sum = RowSum<T>;
  constexpr int kReads = kWide > 1 ? 4 : 8;  // at once, for only one wait for memory
  __shared__ Sum shared[kWide][kThreads];
  const int thread = static_cast<int>(threadIdx.x), slot = thread / a.width;
  for (int64_t task = blockIdx.x; task < a.tiles * a.parts; task += gridDim.x) {
    const int64_t part = task / a.tiles,
                  column = (task % a.tiles * a.width + thread % a.width) * kWide;
    const bool there = slot < a.at_once && column < a.columns;
    const int64_t step = a.at_once, end = there ? imin(a.rows, (part + 1) * a.per) : 0;
    Sum sum[kWide] = {};
    const auto add = [&](const S(&v)[kWide]) {
      RAMET_UNROLL
      for (int j = 0; j < kWide; ++j) sum[j] += Cast<Sum, S>::load(v[j]);
    };
    int64_t i = part * a.per + slot;
    for (; i + (kReads - 1) * step < end; i += kReads * step) {
      S v[kReads][kWide];
      RAMET_UNROLL
      for (int k = 0; k < kReads; ++k) read(a, i + k * step, column, v[k]);
      RAMET_UNROLL
      for (int k = 0; k < kReads; ++k) add(v[k]);
    }
    for (; i < end; i += step) {
      S v[kWide];
      read(a, i, column, v);
      add(v);
    }
    RAMET_UNROLL
    for (int j = 0; j < kWide; ++j) shared[j][thread] = sum[j];
    __syncthreads();
    for (int count = a.at_once; count > 1;) {  // the upper half of the slots onto the lower one
      const int half = (count + 1) / 2;
      if (slot < count / 2) {
        RAMET_UNROLL
        for (int j = 0; j < kWide; ++j) shared[j][thread] += shared[j][thread + half * a.width];
      }
      __syncthreads();
      count = half;
    }
    if (there && slot == 0) {
      RAMET_UNROLL
      for (int j = 0; j < kWide; ++j) {
        Sum all = shared[j][thread];
        if (a.parts > 1) {
          partials[part * a.columns + column + j] = all;
          continue;
        }
        if constexpr (std::is_floating_point<Sum>::value) all /= a.divisor;
        store_element(a.out, a.out_dtype, column + j, static_cast<T>(all));
      }
    }
    __syncthreads();
  }
}

constexpr int64_t kSumReads = 16;  // the least per thread, for several parts

template <class S, class T>
void start_row_sums(const char* name, Stream where, RowSums a, bool in_parts) {
  const bool wide = a.column == 1 && a.columns % kPack == 0;
  const int64_t across = wide ? a.columns / kPack : a.columns;
  a.tiles = a.column == 1 ? ceil_div(across, kWarp) : across;
  a.width = static_cast<int>(ceil_div(across, a.tiles));
  a.at_once = kThreads / a.width;
  a.parts = !in_parts
                ? 1
                : imin(ceil_div(a.rows, a.at_once * kSumReads), ceil_div(kNominalBlocks, a.tiles));
  a.per = imax(1, ceil_div(a.rows, imax(1, a.parts)));
  a.parts = imax(1, ceil_div(a.rows, a.per));
  const ::ramet::cuda::Scratch memory(
      where.device.index(),
      a.parts > 1 ? static_cast<size_t>(a.parts * a.columns) * sizeof(RowSum<T>) : 0);
  auto* partials = static_cast<RowSum<T>*>(memory.get());
  const dim3 grid = grid_of(a.tiles * a.parts);
  if (wide) start(name, where, grid, kThreads, 0, row_sums_kernel<S, T, kPack>, a, partials);
  else start(name, where, grid, kThreads, 0, row_sums_kernel<S, T, 1>, a, partials);
  if (a.parts == 1) return;
  RowSums all = row_sums(partials, {{a.parts, a.columns}}, a.columns, 1, a.out, a.out_dtype);
  all.divisor = a.divisor;
  start_row_sums<RowSum<T>, T>(name, where, all, false);
}

/// Queues the sums of elements that are stored as S and computed as T.
template <class S, class T> void sum_rows_of(const char* name, Stream where, const RowSums& a) {
  if (a.columns > 0) start_row_sums<S, T>(name, where, a, true);
}

}  // namespace ramet::kernels::RAMET_VARIANT
