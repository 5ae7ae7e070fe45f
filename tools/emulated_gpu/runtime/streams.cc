// Streams and their waits.
#include "tools/emulated_gpu/runtime/capture.h"

using namespace ramet::emulated;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags, int) {
  RAMET_EMULATED_ENTER;
  if (flags & ~unsigned(cudaStreamNonBlocking)) return result(cudaErrorInvalidValue);
  RAMET_EMULATED_DRIVER_ALLOCATES;
  auto* stream = new CUstream_st;
  stream->device = this_thread.device;
  stream->flags = flags;
  stream->number = call.engine.stream_count++;
  call.engine.streams.insert(stream);
  *handle = stream;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  return cudaStreamCreateWithPriority(handle, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* handle) {
  return cudaStreamCreateWithPriority(handle, cudaStreamDefault, 0);
}

// Returns at once; operations in the queue still run.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  RAMET_EMULATED_ENTER;
  if (!handle) return result(cudaErrorInvalidResourceHandle);
  RAMET_EMULATED_STREAM(stream, handle);
  if (stream->is_default) return result(cudaErrorInvalidResourceHandle);
  if (stream->capture) call.engine.end_capture(stream->capture);
  if (!stream->queue.empty()) {
    stream->destroyed = true;
    return cudaSuccess;
  }
  call.engine.remove_stream(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  if (stream->capture) {
    stream->capture->invalid = true;
    return result(cudaErrorStreamCaptureUnsupported);
  }
  const Device& device = *call.engine.devices[static_cast<size_t>(stream->device)];
  if (const cudaError_t error = call.engine.wait(stream->last, call.lock)) return result(error);
  return result(device.sticky.load());
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  if (stream->capture) {
    stream->capture->invalid = true;
    return result(cudaErrorStreamCaptureUnsupported);
  }
  return result(call.engine.poll(stream->last, call.lock) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  *device = stream->device;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  if (flags) return result(cudaErrorInvalidValue);
  if (!call.engine.events.count(event)) return result(cudaErrorInvalidResourceHandle);
  if (const std::shared_ptr<Capture>& capture = event->capture) {
    if (capture->ended) return result(cudaErrorCapturedEvent);
    if (stream->capture && stream->capture != capture) return result(cudaErrorStreamCaptureMerge);
    // A stream that waits for captured work takes part in the capture from here on.
    stream->capture = capture;
    capture->tails[stream].insert(event->captured_nodes.begin(), event->captured_nodes.end());
    return cudaSuccess;
  }
  if (stream->capture) {
    if (!event->mark) return cudaSuccess;
    stream->capture->invalid = true;
    return result(cudaErrorStreamCaptureIsolation);
  }
  if (!event->mark) return cudaSuccess;  // never recorded: nothing to wait for
  Operation operation{"event wait", nullptr};
  operation.waits_for = {event->mark};
  return result(call.engine.enqueue(stream, std::move(operation), call.lock));
}

}  // extern "C"
