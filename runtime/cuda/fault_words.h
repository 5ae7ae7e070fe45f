// The faults that kernels write (data_faults.h), and the two kernels by which the host reads and
// clears them. Both kernels may run concurrently, and the first also concurrently with kernels that
// report. They share only `check`, which is written and read whole, by atomics and volatile
// accesses. Copies and fills promise no such thing.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/cuda/gpu.h"

namespace ramet {
namespace cuda {

/// In device memory, zero while there is no fault. Kernels of one stream run one after the other,
/// so the first kernel of a thread with a fault keeps the word.
struct FaultWord {
  unsigned long long most;  ///< ~position of the first fault of the kernel that runs, by atomicMax
  unsigned long long arrived;  ///< number of its blocks that are done
  int64_t position, value;
  unsigned long long check;  ///< 0: no fault
};

inline constexpr size_t kFaultWords = 64;

/// to[i].check = words[i].check, for all kFaultWords words. `to` is pinned memory.
cudaError_t read_fault_checks(FaultWord* to, const FaultWord* words, cudaStream_t stream);

/// words[i].check = 0. The rest of a word is zero between kernels, or means nothing.
cudaError_t clear_faults(FaultWord* words, cudaStream_t stream);

}  // namespace cuda
}  // namespace ramet
