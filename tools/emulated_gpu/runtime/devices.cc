// Devices: number, properties, peers, synchronisation, reset.
#include <unistd.h>

#include <cstdio>

#include "tools/emulated_gpu/runtime/capture.h"

using namespace ramet::emulated;

// A pool's memory does not follow cudaDeviceEnablePeerAccess(), only cudaMemPoolSetAccess()
// (Programming Guide, "Stream-Ordered Memory Allocator": "Device Accessibility for Multi-GPU
// Support").
bool ramet::emulated::peer_access_enabled(int from, const void* address) {
  Engine& all = engine();
  Engine::Lock lock(all.mutex);
  for (const auto& device : all.devices) {
    Allocation allocation;
    if (!device->memory.find(address, &allocation)) continue;
    if (allocation.in_order) return device->pool_peers.count(from) != 0;
    return all.devices[static_cast<size_t>(from)]->enabled_peers.count(device->id) != 0;
  }
  return true;  // no device owns it: other calls report what is wrong with the address
}

bool ramet::emulated::has_context(int device) {
  return engine().devices[static_cast<size_t>(device)]->context;
}

namespace {

int device_count() { return static_cast<int>(engine().devices.size()); }
bool exists(int device) { return device >= 0 && device < device_count(); }

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  return *count ? cudaSuccess : result(no_device());
}

cudaError_t cudaGetDevice(int* device) {
  if (!device_count()) return result(no_device());
  *device = this_thread.device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!device_count()) return result(no_device());
  if (!exists(device)) return result(cudaErrorInvalidDevice);
  this_thread.device = device;
  enter_context();  // at once, since CUDA 12
  return cudaSuccess;
}

// An emulated GPU belongs to its process.
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  if (!exists(device)) return result(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<size_t>(length), "%08x:%02x:00.0", static_cast<unsigned>(getpid()),
                static_cast<unsigned>(device));
  return cudaSuccess;
}

// Compute capability 9.0 with the limits of an H100. Only the number of multiprocessors comes from
// the settings: it is small, so that grids of small tests already run several waves.
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device) {
  if (!exists(device)) return result(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "Emulated GPU %d", device);
  properties->totalGlobalMem = engine().devices[static_cast<size_t>(device)]->memory.capacity();
  properties->sharedMemPerBlock = kDefaultShared;
  properties->sharedMemPerBlockOptin = kMaxShared;
  properties->sharedMemPerMultiprocessor = kMaxShared + 1024;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = kMaxThreads;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = kMaxThreads;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->major = 9;
  properties->minor = 0;
  properties->multiProcessorCount = settings().multiprocessors;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->l2CacheSize = 50 << 20;
  properties->asyncEngineCount = 3;
  properties->concurrentKernels = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device)) return error;
  switch (static_cast<int>(attribute)) {
    case cudaDevAttrMaxThreadsPerBlock: *value = properties.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = int(properties.sharedMemPerBlock); break;
    case cudaDevAttrWarpSize: *value = properties.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = properties.multiProcessorCount; break;
    case cudaDevAttrComputeCapabilityMajor: *value = properties.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = properties.minor; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = int(properties.sharedMemPerBlockOptin);
      break;
    case cudaDevAttrMemoryPoolsSupported: *value = settings().memory_pools; break;
    default: return result(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kRuntimeVersion;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = settings().driver_version;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  RAMET_EMULATED_ENTER;
  if (const cudaError_t refused = refuse_while_capturing(call.engine)) return result(refused);
  return result(call.engine.wait_for_device(call.device(), call.lock));
}

cudaError_t cudaDeviceReset(void) {
  if (!device_count()) return result(no_device());
  Engine& all = engine();
  Engine::Lock lock(all.mutex);
  Device& device = *all.devices[static_cast<size_t>(this_thread.device)];
  all.reset_device(device, lock);
  device.context = false;
  this_thread.error = cudaSuccess;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!exists(device) || !exists(peer)) return result(cudaErrorInvalidDevice);
  *can = settings().can_access_peer(device, peer);
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  RAMET_EMULATED_ENTER;
  if (flags) return result(cudaErrorInvalidValue);
  if (!exists(peer) || !settings().can_access_peer(this_thread.device, peer))
    return result(cudaErrorInvalidDevice);
  const bool added = call.device().enabled_peers.insert(peer).second;
  return result(added ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  RAMET_EMULATED_ENTER;
  const bool removed = call.device().enabled_peers.erase(peer) != 0;
  return result(removed ? cudaSuccess : cudaErrorPeerAccessNotEnabled);
}

}  // extern "C"
