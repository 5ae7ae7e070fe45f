// Graphs of what kernels are given to do: captures of a device's compute stream.
#pragma once
#include <functional>
#include <memory>

#include "runtime/gpu.h"

namespace ramet {
namespace cuda {

/// What `queue` gives to the compute stream of cuda:k from this thread. It is launched on that
/// stream. Where memory runs out, all that is cached goes back and `queue` is called once more.
RAMET_API std::unique_ptr<gpu::Graph> make_graph(int device, const std::function<void()>& queue);

}  // namespace cuda
}  // namespace ramet
