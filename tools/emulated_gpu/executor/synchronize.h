// Barriers, fences and warp primitives under CUDA's names. Each remembers the file and line of its
// caller for reports.
#pragma once
#include "tools/emulated_gpu/executor/device_calls.h"

#define RAMET_EMULATED_CALLER \
  const char *caller_file = __builtin_FILE(), int caller_line = __builtin_LINE()
#define RAMET_EMULATED_AT caller_file, caller_line

inline void __syncthreads(RAMET_EMULATED_CALLER) {
  ramet::emulated::block_barrier(ramet::emulated::Vote::None, 0, RAMET_EMULATED_AT);
}
inline int __syncthreads_count(int predicate, RAMET_EMULATED_CALLER) {
  return ramet::emulated::block_barrier(ramet::emulated::Vote::Count, predicate, RAMET_EMULATED_AT);
}
inline int __syncthreads_and(int predicate, RAMET_EMULATED_CALLER) {
  return ramet::emulated::block_barrier(ramet::emulated::Vote::And, predicate, RAMET_EMULATED_AT);
}
inline int __syncthreads_or(int predicate, RAMET_EMULATED_CALLER) {
  return ramet::emulated::block_barrier(ramet::emulated::Vote::Or, predicate, RAMET_EMULATED_AT);
}
inline void __threadfence() { ramet::emulated::fence(); }
inline void __threadfence_block() { ramet::emulated::fence(); }
inline void __threadfence_system() { ramet::emulated::fence(); }

namespace ramet::emulated {

inline int lane() { return static_cast<int>(thread_rank() % 32); }

template <class T> struct ShuffleArgument {
  T value;
  int source;
  bool bad;
};

// First all lanes' values, then the results: a lane may be read after it has been written.
template <class T> void shuffle_lanes(void* const lanes[32], uint32_t mask) {
  T values[32];
  for (int i = 0; i < 32; ++i)
    if (lanes[i]) values[i] = static_cast<ShuffleArgument<T>*>(lanes[i])->value;
  for (int i = 0; i < 32; ++i) {
    if (!lanes[i]) continue;
    auto* argument = static_cast<ShuffleArgument<T>*>(lanes[i]);
    argument->bad = !(mask >> argument->source & 1) || !lanes[argument->source];
    if (!argument->bad) argument->value = values[argument->source];
  }
}

template <class T> T shuffle(uint32_t mask, T value, int source, const char* file, int line) {
  ShuffleArgument<T> argument{value, source, false};
  warp_rendezvous(mask, &argument, &shuffle_lanes<T>, file, line);
  if (argument.bad)
    device_fail(Fault::WarpPrimitive,
                "BAD SHUFFLE: reads a lane that is not in the mask or has left the kernel", file,
                line);
  return argument.value;
}

struct BallotArgument {
  bool predicate;
  uint32_t result;
};

inline void ballot_lanes(void* const lanes[32], uint32_t) {
  uint32_t votes = 0;
  for (int i = 0; i < 32; ++i)
    if (lanes[i] && static_cast<BallotArgument*>(lanes[i])->predicate) votes |= 1u << i;
  for (int i = 0; i < 32; ++i)
    if (lanes[i]) static_cast<BallotArgument*>(lanes[i])->result = votes;
}

inline uint32_t ballot(uint32_t mask, bool predicate, const char* file, int line) {
  BallotArgument argument{predicate, 0};
  warp_rendezvous(mask, &argument, &ballot_lanes, file, line);
  return argument.result;
}

template <class T> struct MatchArgument {
  T value;
  uint32_t result;
};

template <class T> void match_lanes(void* const lanes[32], uint32_t) {
  for (int i = 0; i < 32; ++i) {
    if (!lanes[i]) continue;
    auto* argument = static_cast<MatchArgument<T>*>(lanes[i]);
    argument->result = 0;
    for (int k = 0; k < 32; ++k)
      if (lanes[k] && static_cast<MatchArgument<T>*>(lanes[k])->value == argument->value)
        argument->result |= 1u << k;
  }
}

}  // namespace ramet::emulated

inline void __syncwarp(unsigned mask = 0xffffffffu, RAMET_EMULATED_CALLER) {
  ramet::emulated::warp_rendezvous(mask, nullptr, nullptr, RAMET_EMULATED_AT);
}

// A source outside the lane's segment of `width` lanes gives the lane's own value, as in CUDA.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, RAMET_EMULATED_CALLER) {
  const int first = ramet::emulated::lane() & ~(width - 1);
  return ramet::emulated::shuffle(mask, value, first | (source & (width - 1)), RAMET_EMULATED_AT);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, RAMET_EMULATED_CALLER) {
  const int self = ramet::emulated::lane(), source = self ^ bits;
  const bool beyond = (source & ~(width - 1)) > (self & ~(width - 1));
  return ramet::emulated::shuffle(mask, value, beyond ? self : source, RAMET_EMULATED_AT);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, RAMET_EMULATED_CALLER) {
  const int self = ramet::emulated::lane(), source = self + static_cast<int>(delta);
  const bool beyond = source >= (self & ~(width - 1)) + width;
  return ramet::emulated::shuffle(mask, value, beyond ? self : source, RAMET_EMULATED_AT);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, RAMET_EMULATED_CALLER) {
  const int self = ramet::emulated::lane(), source = self - static_cast<int>(delta);
  const bool beyond = source < (self & ~(width - 1));
  return ramet::emulated::shuffle(mask, value, beyond ? self : source, RAMET_EMULATED_AT);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, RAMET_EMULATED_CALLER) {
  return ramet::emulated::ballot(mask, predicate != 0, RAMET_EMULATED_AT);
}
inline int __any_sync(unsigned mask, int predicate, RAMET_EMULATED_CALLER) {
  return ramet::emulated::ballot(mask, predicate != 0, RAMET_EMULATED_AT) != 0;
}
inline int __all_sync(unsigned mask, int predicate, RAMET_EMULATED_CALLER) {
  return ramet::emulated::ballot(mask, predicate == 0, RAMET_EMULATED_AT) == 0;
}
template <class T> unsigned __match_any_sync(unsigned mask, T value, RAMET_EMULATED_CALLER) {
  ramet::emulated::MatchArgument<T> argument{value, 0};
  ramet::emulated::warp_rendezvous(mask, &argument, &ramet::emulated::match_lanes<T>,
                                   RAMET_EMULATED_AT);
  return argument.result;
}
/// An upper bound of the hardware's answer; kernels should pass masks instead.
inline unsigned __activemask() { return ramet::emulated::live_lanes(); }

[[noreturn]] inline void __trap(RAMET_EMULATED_CALLER) {
  ramet::emulated::device_fail(ramet::emulated::Fault::Trap, "__trap()", RAMET_EMULATED_AT);
}
