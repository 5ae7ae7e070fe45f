// How far the positions of an operation go. .cu files compute positions in 32 bits where all of an
// operation's fit them (gpu_index.h).
//
// Doubles: a product of extents and strides is asked about before it is known to fit 64 bits.
#pragma once
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace ramet {
namespace kernels {

/// Positions have 32 bits where none is larger. Below 2^31 by more than a step of any grid
/// (kMostBlocks blocks of 256 threads) and of a tile, so that nothing wraps that is looked at only
/// to see that it is too far.
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
/// How far into memory an element lies at most, of positions {most, stride}.
inline double farthest(std::initializer_list<std::pair<int64_t, int64_t>> positions) {
  double sum = 0;
  for (const auto& [most, stride] : positions)
    sum += std::fabs(static_cast<double>(most) * static_cast<double>(stride));
  return sum;
}

}  // namespace kernels
}  // namespace ramet
