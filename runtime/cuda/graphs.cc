#include "runtime/cuda/graphs.h"

#include <optional>
#include <utility>

#include "runtime/base/context.h"
#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/scratch.h"

namespace ramet {
namespace cuda {
namespace {

constexpr const char* kOp = "Captured";

class CapturedGraph final : public gpu::Graph {
 public:
  CapturedGraph(int device, cudaGraph_t graph, std::unique_ptr<ScratchStore> scratch, bool looks)
      : device_(device), scratch_(std::move(scratch)), looks_(looks) {
    const cudaError_t code = cudaGraphInstantiate(&executable_, graph, 0);
    ignore(cudaGraphDestroy(graph));
    if (code != cudaSuccess) raise_again(code, kOp, "cudaGraphInstantiate", device_);
  }
  ~CapturedGraph() override {
    if (existing_state(device_) && use_any_card()) ignore(cudaGraphExecDestroy(executable_));
  }
  void launch() override {
    DeviceState& state = device_state(device_, kOp);
    const CardGuard card(kOp, state);
    std::optional<Look> look;
    if (looks_) look.emplace(state);
    const cudaStream_t stream = state.launching("a captured list of kernels", 0, Queue::kCompute);
    RAMET_CUDA_ALLOCATING(kOp, device_, cudaGraphLaunch(executable_, stream));
  }

 private:
  const int device_;
  const std::unique_ptr<ScratchStore> scratch_;
  const bool looks_;  // at operands: Note [Looks]
  cudaGraphExec_t executable_ = nullptr;
};

std::unique_ptr<gpu::Graph> captured(int device, cudaStream_t stream,
                                     const std::function<void()>& queue) {
  // Relaxed: a kernel's first launch may load code and allocate.
  RAMET_CUDA(kOp, device, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  cudaGraph_t graph = nullptr;
  auto scratch = std::make_unique<ScratchStore>(device);
  bool looks = false;
  try {
    const ScratchStore::Use kept(*scratch);
    const ComputeStreamGuard instead(device, stream);
    queue();
    looks = instead.looked();
  } catch (...) {
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) ignore(cudaGraphDestroy(graph));
    (void)cudaGetLastError();
    throw;
  }
  RAMET_CUDA(kOp, device, cudaStreamEndCapture(stream, &graph));
  return std::make_unique<CapturedGraph>(device, graph, std::move(scratch), looks);
}

}  // namespace

std::unique_ptr<gpu::Graph> make_graph(int device, const std::function<void()>& queue) {
  const CardGuard card(kOp, device);
  // A separate stream: other threads may queue work on the device's stream at the same time.
  struct Stream {
    cudaStream_t stream = nullptr;
    ~Stream() {
      if (stream) ignore(cudaStreamDestroy(stream));
    }
  } own;
  RAMET_CUDA_ALLOCATING(kOp, device, cudaStreamCreateWithFlags(&own.stream, cudaStreamNonBlocking));
  for (bool freed = false;;) {  // nothing of a graph runs before it is made
    try {
      return captured(device, own.stream, queue);
    } catch (const OutOfMemoryError&) {
      if (freed) throw;
      freed = true;
      empty_caches_of_card(device);
    } catch (const BeforeAGraph& first) { first.what(); }
  }
}

}  // namespace cuda
}  // namespace ramet
