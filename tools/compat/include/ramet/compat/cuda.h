// What programs use of c10::cuda and at::cuda beside torch::cuda: guards, counts, emptyCache.
// Streams of one's own and handles of CUDA's libraries have no counterpart here.
#pragma once
#include <optional>

#include "ramet/compat/macros.h"

namespace c10 {

/// Where it holds a device, that one is current for its type while it lives.
class OptionalDeviceGuard {
 public:
  OptionalDeviceGuard() = default;
  explicit OptionalDeviceGuard(::ramet::Device device) { reset_device(device); }
  explicit OptionalDeviceGuard(std::optional<::ramet::Device> device) {
    if (device) reset_device(*device);
  }
  OptionalDeviceGuard(const OptionalDeviceGuard&) = delete;
  OptionalDeviceGuard& operator=(const OptionalDeviceGuard&) = delete;

  /// Another one from now on; the end still brings back what was current at the first.
  void reset_device(::ramet::Device device) { guard_.emplace(device); }
  void set_device(::ramet::Device device) { reset_device(device); }
  std::optional<::ramet::Device> current_device() const {
    return guard_ ? std::optional<::ramet::Device>(guard_->current_device()) : std::nullopt;
  }

 private:
  std::optional<::ramet::DeviceGuard> guard_;
};

namespace cuda {

/// As OptionalDeviceGuard, of CUDA devices alone: an Error for another kind.
class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(::ramet::Device device) { set_device(device); }
  explicit OptionalCUDAGuard(::ramet::DeviceIndex index) { set_index(index); }
  explicit OptionalCUDAGuard(std::optional<::ramet::Device> device) {
    if (device) set_device(*device);
  }
  void set_device(::ramet::Device device) {
    RAMET_CHECK(device.is_cuda(), "CUDAGuard", "device: got ", device, ", expected a CUDA device");
    guard_.reset_device(device);
  }
  void set_index(::ramet::DeviceIndex index) { set_device(::ramet::Device(::ramet::kCUDA, index)); }
  std::optional<::ramet::Device> current_device() const { return guard_.current_device(); }

 private:
  OptionalDeviceGuard guard_;
};
class CUDAGuard : private OptionalCUDAGuard {
 public:
  explicit CUDAGuard(::ramet::Device device) : OptionalCUDAGuard(device) {}
  explicit CUDAGuard(::ramet::DeviceIndex index) : OptionalCUDAGuard(index) {}
  using OptionalCUDAGuard::set_device;
  using OptionalCUDAGuard::set_index;
  ::ramet::Device current_device() const { return *OptionalCUDAGuard::current_device(); }
};

inline ::ramet::DeviceIndex device_count() noexcept { return ::ramet::cuda::device_count(); }
/// An Error where there is none.
inline ::ramet::DeviceIndex current_device() {
  return ::ramet::resolve(::ramet::Device(::ramet::kCUDA)).index();
}
/// From now on the calling thread's current CUDA device.
inline void set_device(::ramet::DeviceIndex index) {
  const ::ramet::Device device = ::ramet::resolve(::ramet::Device(::ramet::kCUDA, index));
  ::ramet::detail::tls.cuda_device = static_cast<uint8_t>(device.index());
}
/// Waits for everything queued on the current CUDA device.
inline void device_synchronize() { ::ramet::cuda::synchronize(); }

namespace CUDACachingAllocator {
/// Gives freed memory back, of all devices.
inline void emptyCache() { ::ramet::empty_cache(); }
inline void resetPeakStats(::ramet::DeviceIndex index) {
  ::ramet::reset_peak_memory_stats(::ramet::Device(::ramet::kCUDA, index));
}
}  // namespace CUDACachingAllocator

}  // namespace cuda
}  // namespace c10

namespace at {
namespace cuda {
using namespace c10::cuda;
inline bool is_available() { return ::ramet::cuda::is_available(); }
}  // namespace cuda
}  // namespace at
