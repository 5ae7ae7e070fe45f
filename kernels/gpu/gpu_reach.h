// The largest positions of an operation. .cu files compute positions in 32 bits if all positions of
// an operation fit them (gpu_index.h).
//
// Doubles: the product of extents and strides is needed before it is known to fit 64 bits.
#pragma once
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace ramet {
namespace kernels {

/// Positions have 32 bits if none is larger. It is below 2^31 by more than a step of any grid
/// (kMostBlocks blocks of 256 threads) and of a tile. So a position that is only compared with a
/// bound does not wrap, either.
inline constexpr double kNarrowMost = 0x1p31 - 0x1p25;

inline double largest_of(std::initializer_list<double> numbers) {
  double most = 0;
  for (const double x : numbers) most = x > most ? x : most;
  return most;
}
inline double product_of(std::initializer_list<int64_t> extents) {
  double all = 1;
  for (const int64_t x : extents) all *= static_cast<double>(x);
  return all;
}
/// The largest distance of an element from the start of memory, for positions {most, stride}.
inline double farthest(std::initializer_list<std::pair<int64_t, int64_t>> positions) {
  double sum = 0;
  for (const auto& [most, stride] : positions)
    sum += std::fabs(static_cast<double>(most) * static_cast<double>(stride));
  return sum;
}

}  // namespace kernels
}  // namespace ramet
