// The data of the rows: the same numbers in every arm.
#pragma once
#include <cstdint>

inline void fill_row_data(float* p, int64_t n, double scale, int seed) {
  for (int64_t i = 0; i < n; ++i) {
    uint64_t h = (static_cast<uint64_t>(i) + 1) * 0x9E3779B97F4A7C15u +
                 static_cast<uint64_t>(seed) * 0xBF58476D1CE4E5B9u;
    h ^= h >> 31;
    h *= 0x94D049BB133111EBu;
    p[i] = static_cast<float>((static_cast<double>(h >> 40) * 0x1p-23 - 1) * scale);
  }
}

/// At most `room` values, evenly spaced.
inline int sample_values(const float* p, int64_t numel, double* values, int room) {
  const int64_t step = numel > room ? numel / room : 1;
  int n = 0;
  for (int64_t i = 0; i < numel && n < room; i += step) values[n++] = static_cast<double>(p[i]);
  return n;
}
