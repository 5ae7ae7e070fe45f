// Allocations on devices and pinned memory of the host.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "tools/emulated_gpu/runtime/capture.h"

namespace ramet::emulated {

bool find_allocation(const void* address, Allocation* allocation) {
  Engine& all = engine();
  Engine::Lock lock(all.mutex);
  return all.find(address, allocation);
}

}  // namespace ramet::emulated

using namespace ramet::emulated;

namespace {

Device* pool_of(const Engine& all, cudaMemPool_t pool) {
  for (const auto& device : all.devices)
    if (reinterpret_cast<cudaMemPool_t>(device.get()) == pool) return device.get();
  return nullptr;
}

cudaError_t refuse_second_free(Call& call, const char* who) {
  call.lock.unlock();
  note_report(std::string("[emulated CUDA] ") + who +
              ": memory that cudaFreeAsync() has been given before");
  return result(cudaErrorInvalidValue);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  RAMET_EMULATED_ENTER;
  if (const cudaError_t refused = refuse_while_capturing(call.engine)) return result(refused);
  *memory = nullptr;
  if (const cudaError_t error =
          call.engine.wait_as_drivers_may(call.device(), call.lock, "cudaMalloc"))
    return result(error);
  *memory = bytes ? call.device().memory.allocate(bytes) : nullptr;
  return result(bytes && !*memory ? cudaErrorMemoryAllocation : cudaSuccess);
}

// Waits for all work of the memory's device, as CUDA does: code that relies on it works here, too.
// It does not wait for memory of cudaMallocAsync(); CUDA assumes that all its uses are over
// (Programming Guide, "Stream-Ordered Memory Allocator", "Basics": cudaFree).
cudaError_t cudaFree(void* memory) {
  RAMET_EMULATED_ENTER;
  if (!memory) return cudaSuccess;
  if (const cudaError_t refused = refuse_to_free_while_capturing(call.engine))
    return result(refused);
  Allocation allocation;
  if (!call.engine.find(memory, &allocation) || allocation.base != memory)
    return result(cudaErrorInvalidValue);
  Device& device = *call.engine.devices[static_cast<size_t>(allocation.device)];
  if (device.freed_in_order.count(memory)) return refuse_second_free(call, "cudaFree");
  if (!allocation.in_order)
    if (const cudaError_t error = call.engine.wait_for_device(device, call.lock, "cudaFree"))
      return result(error);
  return result(device.memory.release(memory) ? cudaSuccess : cudaErrorInvalidValue);
}

// Of each device there is one, the default one.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  RAMET_EMULATED_ENTER;
  if (device < 0 || static_cast<size_t>(device) >= call.engine.devices.size())
    return result(cudaErrorInvalidDevice);
  if (!settings().memory_pools) return result(cudaErrorNotSupported);
  *pool = reinterpret_cast<cudaMemPool_t>(call.engine.devices[static_cast<size_t>(device)].get());
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access,
                                 size_t count) {
  RAMET_EMULATED_ENTER;
  Device* const owner = pool_of(call.engine, pool);
  for (size_t i = 0; i < count; ++i) {
    const int peer = access[i].location.id;
    if (!owner || access[i].location.type != cudaMemLocationTypeDevice || peer == owner->id ||
        !settings().can_access_peer(peer, owner->id))
      return result(cudaErrorInvalidValue);
    if (access[i].flags == cudaMemAccessFlagsProtReadWrite) owner->pool_peers.insert(peer);
    else owner->pool_peers.erase(peer);
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location) {
  RAMET_EMULATED_ENTER;
  Device* const owner = pool_of(call.engine, pool);
  if (!owner || location->type != cudaMemLocationTypeDevice) return result(cudaErrorInvalidValue);
  const bool open = location->id == owner->id || owner->pool_peers.count(location->id);
  *flags = open ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
  return cudaSuccess;
}

// The memory is available at once and can be written at once. The stream's order only matters for
// memory that cudaFreeAsync() frees; it counts as used until that operation has run.
cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t handle) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  if (!settings().memory_pools) return result(cudaErrorNotSupported);
  if (stream->capture) {
    stream->capture->invalid = true;
    return result(cudaErrorStreamCaptureUnsupported);
  }
  Device& device = *call.engine.devices[static_cast<size_t>(stream->device)];
  *memory = bytes ? device.memory.allocate(bytes, /*in_order=*/true) : nullptr;
  return result(bytes && !*memory ? cudaErrorMemoryAllocation : cudaSuccess);
}

// Frees only memory of cudaMallocAsync(): memory of cudaMalloc() lies in no pool.
cudaError_t cudaFreeAsync(void* memory, cudaStream_t handle) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  if (!memory) return cudaSuccess;
  if (!settings().memory_pools) return result(cudaErrorNotSupported);
  if (stream->capture) {
    stream->capture->invalid = true;
    return result(cudaErrorStreamCaptureUnsupported);
  }
  Allocation allocation;
  if (!call.engine.find(memory, &allocation) || allocation.base != memory)
    return result(cudaErrorInvalidValue);
  if (!allocation.in_order) {
    call.lock.unlock();
    note_report("[emulated CUDA] cudaFreeAsync: memory that cudaMallocAsync() did not give");
    return result(cudaErrorInvalidValue);
  }
  Engine& all = call.engine;
  Device& owner = *all.devices[static_cast<size_t>(allocation.device)];
  if (!owner.freed_in_order.insert(memory).second) return refuse_second_free(call, "cudaFreeAsync");
  Operation operation{"cudaFreeAsync", [&all, &owner, memory, allocation] {
                        if (checks().freed_in_order)
                          checks().freed_in_order(memory, allocation.bytes);
                        Engine::Lock lock(all.mutex);
                        owner.memory.release(memory);
                        owner.freed_in_order.erase(memory);
                      }};
  return result(all.enqueue(stream, std::move(operation), call.lock));
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  RAMET_EMULATED_ENTER;
  *total = call.device().memory.capacity();
  *free = *total - call.device().memory.used();
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  RAMET_EMULATED_ENTER;
  if (const cudaError_t refused = refuse_while_capturing(call.engine)) return result(refused);
  *memory = nullptr;
  if (!bytes) return cudaSuccess;
  RAMET_EMULATED_DRIVER_ALLOCATES;
  if (const cudaError_t error =
          call.engine.wait_as_drivers_may(call.device(), call.lock, "cudaHostAlloc"))
    return result(error);
  if (posix_memalign(memory, 4096, bytes)) return result(cudaErrorMemoryAllocation);
  call.engine.pinned[reinterpret_cast<uintptr_t>(*memory)] = bytes;
  if (checks().pinned) checks().pinned(*memory, bytes, true);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, size_t bytes) { return cudaHostAlloc(memory, bytes, 0); }

// Waits as cudaFree() does: a late copy may still be reading the memory.
cudaError_t cudaFreeHost(void* memory) {
  RAMET_EMULATED_ENTER;
  if (!memory) return cudaSuccess;
  if (const cudaError_t refused = refuse_to_free_while_capturing(call.engine))
    return result(refused);
  const auto found = call.engine.pinned.find(reinterpret_cast<uintptr_t>(memory));
  if (found == call.engine.pinned.end()) return result(cudaErrorInvalidValue);
  for (const auto& device : call.engine.devices)
    if (const cudaError_t error = call.engine.wait_for_device(*device, call.lock, "cudaFreeHost"))
      return result(error);
  if (checks().pinned) checks().pinned(memory, 0, false);
  call.engine.pinned.erase(reinterpret_cast<uintptr_t>(memory));
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  RAMET_EMULATED_ENTER;
  if (!memory || !bytes) return result(cudaErrorInvalidValue);
  const auto* last = static_cast<const char*>(memory) + bytes - 1;
  if (call.engine.is_pinned(memory) || call.engine.is_pinned(last))
    return result(cudaErrorHostMemoryAlreadyRegistered);
  call.engine.pinned[reinterpret_cast<uintptr_t>(memory)] = bytes;
  if (checks().pinned) checks().pinned(memory, bytes, true);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* memory) {
  RAMET_EMULATED_ENTER;
  if (!call.engine.pinned.erase(reinterpret_cast<uintptr_t>(memory)))
    return result(cudaErrorHostMemoryNotRegistered);
  if (checks().pinned) checks().pinned(memory, 0, false);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* memory) {
  RAMET_EMULATED_ENTER;
  *attributes = {};
  auto* const address = const_cast<void*>(memory);
  Allocation allocation;
  if (call.engine.find(memory, &allocation)) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->device = allocation.device;
    attributes->devicePointer = address;
  } else if (call.engine.is_pinned(memory)) {
    attributes->type = cudaMemoryTypeHost;
    attributes->device = this_thread.device;
    attributes->hostPointer = attributes->devicePointer = address;
  } else {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = -2;  // what CUDA says of memory it does not know
    attributes->hostPointer = address;
  }
  return cudaSuccess;
}

}  // extern "C"
