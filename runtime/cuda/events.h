// Points in the work of a device: gpu::Event.
#pragma once
#include <memory>

#include "runtime/gpu.h"

namespace ramet {
namespace cuda {

/// An event of cuda:k, not yet recorded.
RAMET_API std::unique_ptr<gpu::Event> make_event(int device);

}  // namespace cuda
}  // namespace ramet
