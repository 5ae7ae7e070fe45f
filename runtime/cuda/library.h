// The library of GPUs for runtime/devices/gpu.h, and how tests end it.
#pragma once
#include "runtime/devices/gpu.h"

namespace ramet {
namespace cuda {

/// Waits for all devices and gives everything back: memory, streams, buffers. No tensor may live on
/// a GPU. The next use starts again and reads RAMET_CUDA_DEVICES again.
RAMET_API void shutdown();

}  // namespace cuda
}  // namespace ramet
