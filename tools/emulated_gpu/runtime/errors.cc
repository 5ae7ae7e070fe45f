// Error codes: the results of calls, the last error of each thread, and the names.
#include <array>

#include "tools/emulated_gpu/executor/report.h"
#include "tools/emulated_gpu/runtime/engine.h"

namespace ramet::emulated {
namespace {

struct ErrorText {
  cudaError_t code;
  const char *name, *text;
};

#define RAMET_EMULATED_ERROR(code, text) \
  ErrorText { code, #code, text }
constexpr std::array kErrors = {
    RAMET_EMULATED_ERROR(cudaSuccess, "no error"),
    RAMET_EMULATED_ERROR(cudaErrorInvalidValue, "invalid argument"),
    RAMET_EMULATED_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    RAMET_EMULATED_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    RAMET_EMULATED_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    RAMET_EMULATED_ERROR(cudaErrorInsufficientDriver,
                         "CUDA driver version is insufficient for CUDA runtime version"),
    RAMET_EMULATED_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    RAMET_EMULATED_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    RAMET_EMULATED_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    RAMET_EMULATED_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    RAMET_EMULATED_ERROR(cudaErrorNotReady, "device not ready"),
    RAMET_EMULATED_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    RAMET_EMULATED_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    RAMET_EMULATED_ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    RAMET_EMULATED_ERROR(cudaErrorAssert, "device-side assert triggered"),
    RAMET_EMULATED_ERROR(cudaErrorHostMemoryAlreadyRegistered,
                         "part or all of the requested memory range is already mapped"),
    RAMET_EMULATED_ERROR(cudaErrorHostMemoryNotRegistered,
                         "pointer does not correspond to a registered memory region"),
    RAMET_EMULATED_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    RAMET_EMULATED_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    RAMET_EMULATED_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    RAMET_EMULATED_ERROR(cudaErrorNotSupported, "operation not supported"),
    RAMET_EMULATED_ERROR(cudaErrorStreamCaptureUnsupported,
                         "operation not permitted when stream is capturing"),
    RAMET_EMULATED_ERROR(cudaErrorStreamCaptureInvalidated,
                         "operation failed due to a previous error during capture"),
    RAMET_EMULATED_ERROR(cudaErrorStreamCaptureMerge,
                         "operation would result in a merge of separate capture sequences"),
    RAMET_EMULATED_ERROR(cudaErrorStreamCaptureUnmatched,
                         "capture was not ended in the same stream as it began"),
    RAMET_EMULATED_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    RAMET_EMULATED_ERROR(cudaErrorStreamCaptureIsolation,
                         "dependency created on uncaptured work in another stream"),
    RAMET_EMULATED_ERROR(
        cudaErrorStreamCaptureImplicit,
        "operation would make the legacy stream depend on a capturing blocking stream"),
    RAMET_EMULATED_ERROR(cudaErrorCapturedEvent,
                         "operation not permitted on an event last recorded in a capturing stream"),
    RAMET_EMULATED_ERROR(cudaErrorUnknown, "unknown error"),
};
#undef RAMET_EMULATED_ERROR

const ErrorText& describe(cudaError_t code) {
  for (const ErrorText& error : kErrors)
    if (error.code == code) return error;
  return kErrors.back();
}

/// The sticky error of the thread's device, or else the thread's last error.
cudaError_t last_error() {
  Engine& all = engine();
  if (!all.devices.empty()) {
    const cudaError_t sticky = all.devices[static_cast<size_t>(this_thread.device)]->sticky.load();
    if (sticky != cudaSuccess) return sticky;
  }
  return this_thread.error;
}

}  // namespace

// Also keeps "not ready". CUDA's documentation does not say that it is not kept, and a program must
// work where it is.
cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) this_thread.error = error;
  return error;
}

void enter_context() {
  engine().devices[static_cast<size_t>(this_thread.device)]->context = true;
  this_thread.bound = true;
}

cudaError_t no_device() {
  return settings().driver_version < kRuntimeVersion ? cudaErrorInsufficientDriver
                                                     : cudaErrorNoDevice;
}

Call::Call() : engine(ramet::emulated::engine()), refused(cudaSuccess) {
  if (!engine.devices.empty()) enter_context();
  if (engine.devices.empty()) refused = no_device();
  else if (const cudaError_t sticky = device().sticky.load(); sticky != cudaSuccess)
    refused = sticky;
  else if (this_thread.in_host_function) refused = cudaErrorNotPermitted;
  else lock = Engine::Lock(engine.mutex);
}

std::string last_report() {
  Engine& all = engine();
  Engine::Lock lock(all.mutex);
  return all.report;
}

void note_report(const std::string& report) {
  Engine& all = engine();
  {
    Engine::Lock lock(all.mutex);
    all.report = report;
  }
  publish(report);
}

void fail_all_devices(cudaError_t error, const std::string& report) {
  for (const auto& device : engine().devices) device->sticky = error;
  note_report(report);
}

}  // namespace ramet::emulated

using namespace ramet::emulated;

extern "C" {

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = last_error();
  this_thread.error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) { return last_error(); }

const char* cudaGetErrorName(cudaError_t error) { return describe(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return describe(error).text; }

}  // extern "C"
