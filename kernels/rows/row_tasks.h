// Workspace of row kernels: rows of 16-bit floats are converted to float, one buffer per thread.
#pragma once
#include <cstdint>

#include "kernels/compute_bytes.h"

namespace ramet {
namespace kernels {

/// Elements between two row buffers.
constexpr int64_t row_stride(int64_t cols) { return (cols + 15) / 16 * 16; }
/// Bytes for a row kernel that keeps `buffers` rows per thread. `slots` is max_parallel_slots().
constexpr int64_t row_workspace(ScalarType t, int64_t cols, int buffers, int slots) {
  return is_converted(t) ? slots * buffers * row_stride(cols) * 4 : 0;
}
/// Outputs of this many floats (16 MB) are written past the caches.
inline constexpr int64_t kStreamedElements = int64_t{1} << 22;

}  // namespace kernels
}  // namespace ramet
