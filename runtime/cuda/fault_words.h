// What kernels that look at data leave behind (data_faults.h), and the two kernels by which the host
// asks for it and forgets it. Both may run beside each other, the first beside kernels that report,
// too: all that they share is `check`, which is written and read whole, by atomics and volatile
// accesses. Copies and fills promise no such thing.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/cuda/gpu.h"

namespace ramet {
namespace cuda {

/// In device memory, zero while nothing is wrong. Kernels of one stream follow each other, so the
/// first one of its thread with a fault keeps the word.
struct FaultWord {
  unsigned long long most;  ///< ~position of the first fault of the kernel that runs, by atomicMax
  unsigned long long arrived;  ///< its blocks that are done
  int64_t position, value;
  unsigned long long check;  ///< 0: nothing is wrong
};

inline constexpr size_t kFaultWords = 64;

/// to[i].check = words[i].check, for all kFaultWords words. `to` is pinned memory.
cudaError_t read_fault_checks(FaultWord* to, const FaultWord* words, cudaStream_t stream);

/// words[i].check = 0. The rest of a word is zero between kernels, or means nothing.
cudaError_t clear_faults(FaultWord* words, cudaStream_t stream);

}  // namespace cuda
}  // namespace ramet
