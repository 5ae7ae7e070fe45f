#include "runtime/cuda/events.h"

#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/host_copies.h"

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
    copies_ = marks_of_copies(kOp, device_);
  }
  bool query() override {
    const CardGuard card(kOp, device_);
    bool done = true;
    for_each([&](cudaEvent_t event) {
      const cudaError_t code = done ? cudaEventQuery(event) : cudaSuccess;
      if (code == cudaErrorNotReady) done = false;
      else RAMET_CUDA(kOp, device_, code);
    });
    return done;
  }
  void synchronize() override {
    {
      const CardGuard card(kOp, device_);
      for_each([&](cudaEvent_t event) { RAMET_CUDA(kOp, device_, cudaEventSynchronize(event)); });
    }
    raise_faults(looks_);
  }
  void wait(Stream later) override {
    DeviceState& state = device_state(later.device.index(), kOp);
    const CardGuard card(kOp, state);
    const cudaStream_t stream = state.stream(static_cast<Queue>(later.id), kOp);
    for_each([&](cudaEvent_t event) {
      RAMET_CUDA(kOp, state.device, cudaStreamWaitEvent(stream, event, 0));
    });
    state.came_behind(looks_);
  }

 private:
  template <class F> void for_each(const F& f) const {
    f(event_.get());
    for (const EventHandle& copy : copies_) f(copy.get());
  }

  const int device_;
  const EventHandle event_;
  std::vector<EventHandle> copies_;  // that nobody waited for, and that run beside the kernels
  Looks looks_;
};

}  // namespace

std::unique_ptr<gpu::Event> make_event(int device) { return std::make_unique<CardEvent>(device); }

}  // namespace cuda
}  // namespace ramet
