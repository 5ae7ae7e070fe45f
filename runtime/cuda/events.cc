#include "runtime/cuda/events.h"

#include "runtime/cuda/check.h"
#include "runtime/cuda/host_copies.h"

namespace ramet {
namespace cuda {
namespace {
constexpr const char* kOp = "Event";
}

CardEvent::CardEvent(int device, bool timing) : device_(device), event_(kOp, device, timing) {}

void CardEvent::record() {
  DeviceState& state = device_state(device_, kOp);
  looks_ = state.looks();
  const CardGuard card(kOp, state);
  RAMET_CUDA(kOp, device_, cudaEventRecord(event_.get(), state.stream(Queue::kCompute, kOp)));
  copies_ = marks_of_copies(kOp, device_);
}

template <class F> void CardEvent::for_each(const F& f) const {
  f(event_.get());
  for (const EventHandle& copy : copies_) f(copy.get());
}

bool CardEvent::query() {
  const CardGuard card(kOp, device_);
  bool done = true;
  for_each([&](cudaEvent_t event) {
    const cudaError_t code = done ? cudaEventQuery(event) : cudaSuccess;
    if (is_not_ready(code)) done = false;
    else RAMET_CUDA(kOp, device_, code);
  });
  return done;
}

void CardEvent::synchronize() {
  {
    const CardGuard card(kOp, device_);
    for_each([&](cudaEvent_t event) { RAMET_CUDA(kOp, device_, cudaEventSynchronize(event)); });
  }
  raise_faults(looks_);
}

void CardEvent::wait(Stream later) {
  wait_on(device_state(later.device.index(), kOp), static_cast<Queue>(later.id));
}

double CardEvent::elapsed_time(gpu::Event& end) {
  const CardGuard card(kOp, device_);
  float ms = 0;
  RAMET_CUDA(kOp, device_,
             cudaEventElapsedTime(&ms, event_.get(), static_cast<CardEvent&>(end).event_.get()));
  return ms;
}

void CardEvent::wait_on(DeviceState& state, Queue later) {
  const CardGuard card(kOp, state);
  const cudaStream_t stream = state.stream(later, kOp);
  for_each([&](cudaEvent_t event) {
    RAMET_CUDA(kOp, state.device, cudaStreamWaitEvent(stream, event, 0));
  });
  state.came_behind(looks_);
}

std::unique_ptr<gpu::Event> make_event(int device, bool timing) {
  return std::make_unique<CardEvent>(device, timing);
}

}  // namespace cuda
}  // namespace ramet
