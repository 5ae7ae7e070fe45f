#include "tests/runtime/cuda/driver_calls.h"

#include <atomic>

#include "runtime/cuda/gpu.h"

namespace {

// One for each function, in a list.
struct Counter {
  explicit Counter(const char* of) : name(of), next(first) { first = this; }
  const char* const name;
  std::atomic<uint64_t> calls{0};
  Counter* const next;
  static inline Counter* first = nullptr;
};

}  // namespace

// The functions are named in BUILD, too: the linker reports a function that is in only one of the
// two. tools/check_layers.py finds functions that the layers call and no counter counts.
#define RAMET_COUNTED(function, parameters, arguments)  \
  static Counter function##_counter(#function);         \
  extern "C" cudaError_t __real_##function parameters;  \
  extern "C" cudaError_t __wrap_##function parameters { \
    ++function##_counter.calls;                         \
    return __real_##function arguments;                 \
  }

RAMET_COUNTED(cudaDeviceCanAccessPeer, (int* can, int device, int peer), (can, device, peer))
RAMET_COUNTED(cudaDeviceEnablePeerAccess, (int peer, unsigned flags), (peer, flags))
RAMET_COUNTED(cudaDeviceGetAttribute, (int* value, cudaDeviceAttr what, int device),
              (value, what, device))
RAMET_COUNTED(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device), (pool, device))
RAMET_COUNTED(cudaDeviceGetPCIBusId, (char* id, int length, int device), (id, length, device))
RAMET_COUNTED(cudaDeviceSynchronize, (), ())
RAMET_COUNTED(cudaDriverGetVersion, (int* version), (version))
RAMET_COUNTED(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags))
RAMET_COUNTED(cudaEventDestroy, (cudaEvent_t event), (event))
RAMET_COUNTED(cudaEventElapsedTime, (float* ms, cudaEvent_t from, cudaEvent_t to), (ms, from, to))
RAMET_COUNTED(cudaEventQuery, (cudaEvent_t event), (event))
RAMET_COUNTED(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
RAMET_COUNTED(cudaEventSynchronize, (cudaEvent_t event), (event))
RAMET_COUNTED(cudaFree, (void* memory), (memory))
RAMET_COUNTED(cudaFreeAsync, (void* memory, cudaStream_t stream), (memory, stream))
RAMET_COUNTED(cudaFreeHost, (void* memory), (memory))
RAMET_COUNTED(cudaFuncSetAttribute, (const void* function, cudaFuncAttribute what, int value),
              (function, what, value))
RAMET_COUNTED(cudaGetDeviceCount, (int* count), (count))
RAMET_COUNTED(cudaGetDeviceProperties, (cudaDeviceProp * properties, int device),
              (properties, device))
RAMET_COUNTED(cudaGraphDestroy, (cudaGraph_t graph), (graph))
RAMET_COUNTED(cudaGraphExecDestroy, (cudaGraphExec_t executable), (executable))
RAMET_COUNTED(cudaGraphInstantiate,
              (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags),
              (executable, graph, flags))
RAMET_COUNTED(cudaHostAlloc, (void** memory, size_t bytes, unsigned flags), (memory, bytes, flags))
RAMET_COUNTED(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void* data),
              (stream, function, data))
RAMET_COUNTED(cudaMalloc, (void** memory, size_t bytes), (memory, bytes))
RAMET_COUNTED(cudaMallocAsync, (void** memory, size_t bytes, cudaStream_t stream),
              (memory, bytes, stream))
RAMET_COUNTED(cudaMemGetInfo, (size_t * available, size_t* total), (available, total))
RAMET_COUNTED(cudaMemPoolSetAccess, (cudaMemPool_t pool, const cudaMemAccessDesc* access, size_t n),
              (pool, access, n))
RAMET_COUNTED(cudaMemcpyPeerAsync,
              (void* to, int to_device, const void* from, int from_device, size_t bytes,
               cudaStream_t stream),
              (to, to_device, from, from_device, bytes, stream))
RAMET_COUNTED(cudaMemsetAsync, (void* memory, int value, size_t bytes, cudaStream_t stream),
              (memory, value, bytes, stream))
RAMET_COUNTED(cudaSetDevice, (int device), (device))
RAMET_COUNTED(cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode),
              (stream, mode))
RAMET_COUNTED(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags))
RAMET_COUNTED(cudaStreamDestroy, (cudaStream_t stream), (stream))
RAMET_COUNTED(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t* graph), (stream, graph))
RAMET_COUNTED(cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus* status),
              (stream, status))
RAMET_COUNTED(cudaStreamQuery, (cudaStream_t stream), (stream))
RAMET_COUNTED(cudaStreamSynchronize, (cudaStream_t stream), (stream))
RAMET_COUNTED(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
              (stream, event, flags))

static Counter copies("cudaMemcpyAsync"), to_host("cudaMemcpyAsync to the host");
extern "C" cudaError_t __real_cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                                              cudaMemcpyKind kind, cudaStream_t stream);
extern "C" cudaError_t __wrap_cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                                              cudaMemcpyKind kind, cudaStream_t stream) {
  ++(kind == cudaMemcpyDeviceToHost ? to_host : copies).calls;
  return __real_cudaMemcpyAsync(to, from, bytes, kind, stream);
}

namespace ramet {

std::map<std::string, uint64_t> driver_calls() {
  std::map<std::string, uint64_t> out;
  for (const Counter* c = Counter::first; c; c = c->next)
    if (const uint64_t n = c->calls) out[c->name] = n;
  return out;
}

std::map<std::string, uint64_t> driver_calls_since(const std::map<std::string, uint64_t>& before) {
  std::map<std::string, uint64_t> out = driver_calls();
  for (const auto& [name, calls] : before)
    if (const auto found = out.find(name); found->second == calls) out.erase(found);
    else found->second -= calls;
  return out;
}

uint64_t host_waits() {
  return cudaDeviceSynchronize_counter.calls + cudaStreamSynchronize_counter.calls + to_host.calls;
}

}  // namespace ramet
