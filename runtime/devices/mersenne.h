// The random numbers of LibTorch's CPU generator: its engine, its state, and the draws of an
// operation.
//
// Note [LibTorch's numbers]
// A generator of kind kMersenne gives the numbers that LibTorch 2.15 gives for the same seed. Its
// engine is mt19937 (Matsumoto and Nishimura 1998). A draw of 64 bits takes two of 32, the high
// ones first. A uniform float has the lowest 24 bits of a draw, a uniform double the lowest 53.
// Numbers of the engine come in the order of the calls, so one thread at a time draws, on the host.
// The functions of autograd/ops/random/mersenne*.cc make distributions of them.
//
// This holds for tensors on cpu:0, in program order. A generator has Philox numbers as well
// (Note [Random numbers]), from the same seed. They serve whatever may run at the same time:
// tensors on other devices, replicas, and the threads that load data. So no value depends on
// timing. A capture cannot repeat draws of the host. There they are an Error.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/devices/generator.h"

namespace ramet {

/// The engine mt19937 with what LibTorch's CPU generator keeps with it. Not thread safe.
class RAMET_API Mersenne {
 public:
  /// The state after a seed; the engine takes its low 32 bits.
  explicit Mersenne(uint64_t seed);

  /// A draw of 32 bits.
  uint32_t random() {
    if (--left_ == 0) refill();
    uint32_t y = state_[static_cast<size_t>(next_++)];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  /// A draw of 64 bits.
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }
  /// A number of [0, 1): a multiple of 2^-24.
  float uniform_float() { return static_cast<float>(random() & 0xffffffu) * 0x1p-24f; }
  /// A number of [0, 1): a multiple of 2^-53.
  double uniform() { return static_cast<double>(random64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53; }
  /// A standard normal number (Box and Muller). Each pair of uniform numbers gives two; the second
  /// is kept for the next call.
  double normal();

  /// What it was made from.
  uint64_t seed() const { return seed_; }

  /// How many bytes a state has in LibTorch.
  static constexpr size_t kBytes = 5056;
  /// Its state as LibTorch's Generator::get_state gives it: kBytes bytes.
  std::vector<uint8_t> bytes() const;
  /// From such bytes. An Error where they are no such state.
  static Mersenne from_bytes(const uint8_t* bytes, size_t size);

 private:
  static constexpr size_t kWords = 624;
  void refill();

  uint64_t seed_;
  int32_t left_ = 1, next_ = 0;  // draws until the next refill; the next word
  std::array<uint32_t, kWords> state_;
  double kept_ = 0;  // the second normal number of a pair
  bool has_kept_ = false;
  float kept_float_ = 0;  // LibTorch's states have such a number; no operation uses it
  bool has_kept_float_ = false;
};

/// Does an operation on `device` that is given `generator` draw from a Mersenne? Where it is not,
/// it reserves Philox numbers.
inline bool draws_from_mersenne(Device device, const Generator& generator) {
  return RAMET_UNLIKELY(detail::mersennes.load(std::memory_order_relaxed)) &&
         detail::draws_from_mersenne(device, generator);
}

/// The engine of a generator for one operation, which must be draws_from_mersenne(). It holds the
/// generator, so no other operation draws at the same time. A part of a step that is computed again
/// draws from the state that it had the first time.
class RAMET_API MersenneDraw {
 public:
  /// `op` is for the Error in a capture.
  MersenneDraw(const char* op, const Generator& generator);
  ~MersenneDraw();
  MersenneDraw(const MersenneDraw&) = delete;
  MersenneDraw& operator=(const MersenneDraw&) = delete;

  /// The engine.
  Mersenne& operator*() const { return *engine_; }
  Mersenne* operator->() const { return engine_; }

 private:
  std::unique_lock<std::mutex> lock_;
  std::unique_ptr<Mersenne> again_;
  Mersenne* engine_;
};

}  // namespace ramet
