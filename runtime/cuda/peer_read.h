// What a kernel reads of another card's memory: the trial of peer access (copies.cc) lets one try,
// because kernels read there, too (parallel/move/peers.h), and a link may carry copies alone.
#pragma once
#include <cstddef>

#include "runtime/cuda/gpu.h"

namespace ramet {
namespace cuda {

/// to = from, by a kernel on `stream`. A multiple of 16 bytes, aligned to as many.
cudaError_t read_peer(void* to, const void* from, size_t bytes, cudaStream_t stream);

}  // namespace cuda
}  // namespace ramet
