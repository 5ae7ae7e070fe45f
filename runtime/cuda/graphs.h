// Graphs of queued kernels: captures of a device's compute stream.
#pragma once
#include <functional>
#include <memory>

#include "runtime/devices/gpu.h"

namespace ramet {
namespace cuda {

/// Code called by `queue` throws it. `what` is work that the graph needs and that must be done
/// before the graph is made.
struct BeforeAGraph {
  std::function<void()> what;
};

/// The work that `queue` gives to the compute stream of cuda:k from this thread. It is launched on
/// that stream. `queue` is called once more if memory ran out, after all cached memory was given
/// back. It is also called again after each BeforeAGraph.
RAMET_API std::unique_ptr<gpu::Graph> make_graph(int device, const std::function<void()>& queue);

}  // namespace cuda
}  // namespace ramet
