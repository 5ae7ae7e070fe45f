#include "runtime/cuda/events.h"

#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"

namespace ramet {
namespace cuda {
namespace {

constexpr const char* kOp = "Event";

class CardEvent final : public gpu::Event {
 public:
  explicit CardEvent(int device) : device_(device), event_(kOp, device) {}
  void record() override {
    DeviceState& state = device_state(device_, kOp);
    looks_ = state.looks();
    const CardGuard card(kOp, state);
    RAMET_CUDA(kOp, device_, cudaEventRecord(event_.get(), state.stream(Queue::kCompute, kOp)));
  }
  bool query() override {
    const CardGuard card(kOp, device_);
    const cudaError_t code = cudaEventQuery(event_.get());
    if (code == cudaErrorNotReady) return false;
    RAMET_CUDA(kOp, device_, code);
    return true;
  }
  void synchronize() override {
    {
      const CardGuard card(kOp, device_);
      RAMET_CUDA(kOp, device_, cudaEventSynchronize(event_.get()));
    }
    raise_faults(looks_);
  }
  void wait(Stream later) override {
    DeviceState& state = device_state(later.device.index(), kOp);
    const CardGuard card(kOp, state);
    RAMET_CUDA(
        kOp, state.device,
        cudaStreamWaitEvent(state.stream(static_cast<Queue>(later.id), kOp), event_.get(), 0));
    state.came_behind(looks_);
  }

 private:
  const int device_;
  const EventHandle event_;
  Looks looks_;
};

}  // namespace

std::unique_ptr<gpu::Event> make_event(int device) { return std::make_unique<CardEvent>(device); }

}  // namespace cuda
}  // namespace ramet
