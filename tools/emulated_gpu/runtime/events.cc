// Events.
#include "tools/emulated_gpu/runtime/capture.h"

using namespace ramet::emulated;

#define RAMET_EMULATED_EVENT(event) \
  if (!call.engine.events.count(event)) return result(cudaErrorInvalidResourceHandle)

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  RAMET_EMULATED_ENTER;
  if (flags & ~unsigned(cudaEventBlockingSync | cudaEventDisableTiming))
    return result(cudaErrorInvalidValue);
  RAMET_EMULATED_DRIVER_ALLOCATES;
  *event = new CUevent_st{this_thread.device, flags, nullptr, nullptr, {}};
  call.engine.events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

// Operations that wait for the event go on waiting for its recorded mark.
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_EVENT(event);
  call.engine.events.erase(event);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_EVENT(event);
  RAMET_EMULATED_STREAM(stream, handle);
  if (event->device != stream->device) return result(cudaErrorInvalidResourceHandle);
  if (stream->capture) {
    event->capture = stream->capture;
    event->captured_nodes = stream->capture->tails[stream];
    event->mark = nullptr;
    return cudaSuccess;
  }
  const cudaError_t error =
      call.engine.enqueue(stream, Operation{"event record", nullptr}, call.lock);
  if (error != cudaSuccess) return result(error);
  event->capture = nullptr;
  event->mark = stream->last;
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_EVENT(event);
  if (event->capture) return result(cudaErrorCapturedEvent);
  return result(call.engine.poll(event->mark, call.lock) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_EVENT(event);
  if (event->capture) return result(cudaErrorCapturedEvent);
  const Device& device = *call.engine.devices[static_cast<size_t>(event->device)];
  if (const cudaError_t error = call.engine.wait(event->mark, call.lock)) return result(error);
  return result(device.sticky.load());
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_EVENT(from);
  RAMET_EMULATED_EVENT(to);
  const bool timed = ((from->flags | to->flags) & cudaEventDisableTiming) == 0;
  if (!from->mark || !to->mark || !timed) return result(cudaErrorInvalidResourceHandle);
  if (!from->mark->done || !to->mark->done) return result(cudaErrorNotReady);
  *milliseconds = static_cast<float>((to->mark->time - from->mark->time) * 1e3);
  return cudaSuccess;
}

}  // extern "C"
