// Copies and fills: bounds and directions are checked, and host memory behaves as CUDA's does. A
// pageable source is staged, and a copy to a pageable target is waited for. Pinned memory is read
// and written when the copy runs, which may be late.
#include <cstring>
#include <memory>
#include <vector>

#include "tools/emulated_gpu/runtime/capture.h"

using namespace ramet::emulated;

namespace {

/// One end of a copy.
struct End {
  bool on_device;
  Allocation allocation;

  End(const Engine& all, const void* address) : on_device(all.find(address, &allocation)) {}
  int place() const { return on_device ? allocation.device : kHost; }
  bool holds(const void* address, size_t bytes) const {
    if (!on_device) return true;
    const auto offset = static_cast<size_t>(static_cast<const char*>(address) -
                                            static_cast<const char*>(allocation.base));
    return bytes <= allocation.bytes - offset;
  }
};

cudaError_t check_kind(enum cudaMemcpyKind kind, const End& to, const End& from) {
  if (kind == cudaMemcpyDefault) return cudaSuccess;
  const bool wants_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool wants_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  // An address outside all devices cannot be meant as a device's. A device's address that is meant
  // as the host's is the wrong direction.
  if ((wants_to && !to.on_device) || (wants_from && !from.on_device)) return cudaErrorInvalidValue;
  if (wants_to != to.on_device || wants_from != from.on_device)
    return cudaErrorInvalidMemcpyDirection;
  return cudaSuccess;
}

cudaError_t copy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                 cudaStream_t handle, bool synchronous) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return result(cudaErrorInvalidMemcpyDirection);
  if (!bytes) return cudaSuccess;
  const End target(call.engine, to), source(call.engine, from);
  if (const cudaError_t error = check_kind(kind, target, source)) return result(error);
  if (!target.holds(to, bytes) || !source.holds(from, bytes)) return result(cudaErrorInvalidValue);
  if (synchronous)
    if (const cudaError_t refused = refuse_while_capturing(call.engine)) return result(refused);

  const bool pageable_source = !source.on_device && !call.engine.is_pinned(from);
  const bool pageable_target = !target.on_device && !call.engine.is_pinned(to);
  std::shared_ptr<std::vector<char>> staged;
  if (stream->capture) {
    if (pageable_target) {
      stream->capture->invalid = true;
      return result(cudaErrorStreamCaptureUnsupported);
    }
  } else if (pageable_source) {
    const auto* first = static_cast<const char*>(from);
    staged = std::make_shared<std::vector<char>>(first, first + bytes);
    from = staged->data();
  }
  if (pageable_target) synchronous = true;

  const bool broken = settings().peer_is_broken(source.place(), target.place());
  Operation operation{"copy", [to, from, bytes, staged, broken] {
                        host_reads(from, bytes);
                        if (broken) std::memset(to, 0xff, bytes);
                        else std::memmove(to, from, bytes);
                        host_writes(to, bytes);
                      }};
  operation.transfer = {source.place(), target.place(), bytes};
  if (settings().peer_is_lost(source.place(), target.place()))
    operation.waits_for.push_back(std::make_shared<Mark>());  // a mark that is never done
  if (const cudaError_t error = call.engine.enqueue(stream, std::move(operation), call.lock))
    return result(error);
  if (!synchronous) return cudaSuccess;
  if (const cudaError_t error = call.engine.wait(stream->last, call.lock)) return result(error);
  return result(call.device().sticky.load());
}

cudaError_t copy_between(void* to, int to_device, const void* from, int from_device, size_t bytes,
                         cudaStream_t stream, bool synchronous) {
  Allocation target, source;
  if (bytes && (!find_allocation(to, &target) || !find_allocation(from, &source) ||
                target.device != to_device || source.device != from_device))
    return result(cudaErrorInvalidValue);
  return copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream, synchronous);
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind) {
  return copy(to, from, bytes, kind, nullptr, true);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return copy(to, from, bytes, kind, stream, false);
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           size_t bytes) {
  return copy_between(to, to_device, from, from_device, bytes, nullptr, true);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  return copy_between(to, to_device, from, from_device, bytes, stream, false);
}

// Not synchronous even without a stream: a non-blocking stream does not wait for the memset.
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t handle) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  if (!bytes) return cudaSuccess;
  const End target(call.engine, memory);
  if (!target.on_device || !target.holds(memory, bytes)) return result(cudaErrorInvalidValue);
  Operation operation{"fill", [memory, value, bytes] {
                        std::memset(memory, value, bytes);
                        host_writes(memory, bytes);
                      }};
  return result(call.engine.enqueue(stream, std::move(operation), call.lock));
}

}  // extern "C"
