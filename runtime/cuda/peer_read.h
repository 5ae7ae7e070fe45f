// A kernel that reads another GPU's memory, for the trial of peer access (copies.cc). Kernels read
// there, too (parallel/move/peers_internal.h), and a link may support copies alone.
#pragma once
#include <cstddef>

#include "runtime/cuda/gpu.h"

namespace ramet {
namespace cuda {

/// to = from, by a kernel on `stream`. Size and addresses are multiples of 16 bytes.
cudaError_t read_peer(void* to, const void* from, size_t bytes, cudaStream_t stream);

}  // namespace cuda
}  // namespace ramet
