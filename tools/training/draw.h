// Random numbers that data are made of: the same on every machine.
#pragma once
#include <cstdint>

namespace ramet::training {

/// SplitMix64 (Steele, Lea, Flood 2014), started from a seed and the index of the item that it
/// makes. So the first rows of a set do not depend on how many there are.
class Draw {
 public:
  Draw(uint64_t seed, uint64_t set, uint64_t place) : state_(seed) {
    state_ = next() ^ set;
    state_ = next() ^ place;
  }
  /// From 0 to below n.
  int64_t below(int64_t n) {
    return static_cast<int64_t>(next() >> 11) % n;  // n is small: no value is favoured noticeably
  }
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53;
  }

 private:
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

}  // namespace ramet::training
