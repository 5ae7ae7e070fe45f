// Graphs of what kernels are given to do: captures of a device's compute stream.
#pragma once
#include <functional>
#include <memory>

#include "runtime/devices/gpu.h"

namespace ramet {
namespace cuda {

/// Thrown by what `queue` calls: cannot be done while a graph is made, and is needed for it.
struct BeforeAGraph {
  std::function<void()> what;
};

/// What `queue` gives to the compute stream of cuda:k from this thread. It is launched on that
/// stream. `queue` is called once more where memory ran out, when all that is cached has gone back,
/// and after each BeforeAGraph.
RAMET_API std::unique_ptr<gpu::Graph> make_graph(int device, const std::function<void()>& queue);

}  // namespace cuda
}  // namespace ramet
