// A kernel that does nothing, for the cost of a launch.
#pragma once
#include "runtime/cuda/gpu.h"

namespace ramet::gpu_bench {

cudaError_t launch_nothing(cudaStream_t stream);

}  // namespace ramet::gpu_bench
