#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first decides what the other means
#include "kernels/index/sort.h"
#include "kernels/util.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int kBits = 4;
constexpr int kDigits = static_cast<int>(kSortDigits);
constexpr int kRun = static_cast<int>(kSortTile) / kThreads;  // pairs of one thread
constexpr int kThreadBits = 8;
static_assert(1 << kThreadBits == kThreads);
static_assert(1 << kBits == kDigits && sort_gpu_passes(4 * kBits) == 4, "a count for each digit");

/// One pass over the rows: tiles of kSortTile pairs, one block each. counts[row][digit][tile].
struct Pass {
  const uint64_t* keys;
  const int64_t* values;  // null: positions
  uint64_t* to_keys;
  int64_t* to_values;
  int64_t* counts;
  int64_t rows, n, tiles;
  int32_t shift;

  RAMET_INLINE int digit(uint64_t key) const {
    return static_cast<int>((key >> shift) % static_cast<uint64_t>(kDigits));
  }
};

__global__ void count_kernel(Pass p) {
  __shared__ int32_t counts[kDigits][kThreads];
  for (int64_t block = blockIdx.x; block < p.rows * p.tiles; block += gridDim.x) {
    const int64_t row = block / p.tiles, tile = block % p.tiles, first = tile * kSortTile;
    for (int d = 0; d < kDigits; ++d) counts[d][threadIdx.x] = 0;
    const int64_t end = imin(p.n, first + kSortTile);
    for (int64_t i = first + threadIdx.x; i < end; i += kThreads)
      ++counts[p.digit(p.keys[row * p.n + i])][threadIdx.x];
    for (int bits = kThreadBits - 1; bits >= 0; --bits) {
      const int half = 1 << bits;
      __syncthreads();
      for (int i = threadIdx.x; i < half * kDigits; i += kThreads) {
        int32_t* const of_digit = counts[i >> bits] + (i & (half - 1));
        of_digit[0] += of_digit[half];
      }
    }
    __syncthreads();
    if (threadIdx.x < kDigits)
      p.counts[(row * kDigits + threadIdx.x) * p.tiles + tile] = counts[threadIdx.x][0];
    __syncthreads();
  }
}

// A block turns a row's counts into the start of each digit of each tile.
__global__ void starts_kernel(Pass p) {
  __shared__ int64_t sums[kThreads];
  const int64_t all = kDigits * p.tiles, run = ceil_div(all, kThreads);
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    int64_t* counts = p.counts + row * all;
    const int64_t begin = imin(all, threadIdx.x * run), end = imin(all, begin + run);
    int64_t sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += counts[i];
    sums[threadIdx.x] = sum;
    for (int step = 1; step < kThreads; step *= 2) {
      __syncthreads();
      const int64_t before =
          static_cast<int>(threadIdx.x) >= step ? sums[threadIdx.x - step] : int64_t{0};
      __syncthreads();
      sums[threadIdx.x] += before;
    }
    __syncthreads();
    int64_t next = sums[threadIdx.x] - sum;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t count = counts[i];
      counts[i] = next;
      next += count;
    }
    __syncthreads();
  }
}

// A thread has a run of its tile. Tiles, threads and runs in order keep the order of equal digits.
__global__ void move_kernel(Pass p) {
  __shared__ int32_t places[kDigits][kThreads];
  for (int64_t block = blockIdx.x; block < p.rows * p.tiles; block += gridDim.x) {
    const int64_t row = block / p.tiles, tile = block % p.tiles;
    const int64_t begin = imin(p.n, tile * kSortTile + threadIdx.x * kRun),
                  end = imin(p.n, begin + kRun);
    const uint64_t* keys = p.keys + row * p.n;
    for (int d = 0; d < kDigits; ++d) places[d][threadIdx.x] = 0;
    for (int64_t i = begin; i < end; ++i) ++places[p.digit(keys[i])][threadIdx.x];
    __syncthreads();
    if (threadIdx.x < kDigits) {
      int32_t sum = 0;
      for (int t = 0; t < kThreads; ++t) {
        const int32_t count = places[threadIdx.x][t];
        places[threadIdx.x][t] = sum;
        sum += count;
      }
    }
    __syncthreads();
    for (int64_t i = begin; i < end; ++i) {
      const int d = p.digit(keys[i]);
      const int64_t to =
          row * p.n + p.counts[(row * kDigits + d) * p.tiles + tile] + places[d][threadIdx.x]++;
      p.to_keys[to] = keys[i];
      p.to_values[to] = p.values ? p.values[row * p.n + i] : i;
    }
    __syncthreads();
  }
}

}  // namespace

void sort_pairs(const SortArgs& a, Stream where) {
  if (a.rows * a.n == 0) return;
  auto* other_keys = static_cast<uint64_t*>(a.workspace);
  auto* other_values = reinterpret_cast<int64_t*>(other_keys + a.rows * a.n);
  const int64_t tiles = ceil_div(a.n, kSortTile);
  Pass p{a.keys, nullptr, other_keys, other_values, other_values + a.rows * a.n, a.rows,
         a.n,    tiles,   0};
  const int32_t passes = sort_gpu_passes(a.bits);
  for (int32_t i = 0; i < passes; ++i, p.shift += kBits) {
    start("sort_pairs", where, grid_of(a.rows * tiles), kThreads, 0, count_kernel, p);
    start("sort_pairs", where, grid_of(a.rows), kThreads, 0, starts_kernel, p);
    start("sort_pairs", where, grid_of(a.rows * tiles), kThreads, 0, move_kernel, p);
    const bool back = p.to_keys == a.keys;
    p.keys = p.to_keys, p.values = p.to_values;
    p.to_keys = back ? other_keys : a.keys, p.to_values = back ? other_values : a.values;
  }
}

}  // namespace ramet::kernels::RAMET_VARIANT
