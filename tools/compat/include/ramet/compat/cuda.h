// What programs use of c10::cuda and at::cuda in addition to torch::cuda: guards, counts, the
// stream for kernels of their own, emptyCache. Further streams and handles of CUDA's libraries have
// no counterpart here.
#pragma once
#include <mutex>
#include <optional>

#include "ramet/compat/macros.h"

/// Throws where a CUDA call did not succeed. cudaError_t is of CUDA's own header, which the program
/// includes.
#define C10_CUDA_CHECK(EXPR)                                                 \
  do {                                                                       \
    const cudaError_t c10_cuda_error = (EXPR);                               \
    if (c10_cuda_error != cudaSuccess) {                                     \
      (void)cudaGetLastError(); /* it is told now */                         \
      ::ramet::fail("CUDA", #EXPR ": ", cudaGetErrorString(c10_cuda_error)); \
    }                                                                        \
  } while (0)
/// After a launch: throws where it was refused. The kernel's own errors are seen later.
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)

struct cudaDeviceProp;  // CUDA's

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

/// A device's stream of operations, for kernels of the program's own:
/// `kernel<<<grid, block, 0, getCurrentCUDAStream()>>>(...)`.
class CUDAStream {
 public:
  /// Of ramet::cuda::current_stream(), which says what holds.
  explicit CUDAStream(::ramet::DeviceIndex index)
      : stream_(::ramet::cuda::current_stream(index)),
        device_(::ramet::resolve(::ramet::Device(::ramet::kCUDA, index))) {}
  CUstream_st* stream() const noexcept { return stream_; }  // a cudaStream_t
  operator CUstream_st*() const noexcept { return stream_; }
  ::ramet::Device device() const noexcept { return device_; }
  ::ramet::DeviceIndex device_index() const noexcept {
    return static_cast<::ramet::DeviceIndex>(device_.index());
  }
  /// Waits for everything queued on the device, then throws what Ramet's kernels reported.
  void synchronize() const { ::ramet::cuda::synchronize(device_.index()); }
  /// Is everything that was queued so far done?
  bool query() const {
    ::ramet::Event end;
    end.record(device_);
    return end.query();
  }
  friend bool operator==(const CUDAStream& a, const CUDAStream& b) noexcept {
    return a.stream_ == b.stream_;
  }
  friend bool operator!=(const CUDAStream& a, const CUDAStream& b) noexcept { return !(a == b); }

 private:
  CUstream_st* stream_;
  ::ramet::Device device_;
};
/// The stream of the device (-1: the current one).
inline CUDAStream getCurrentCUDAStream(::ramet::DeviceIndex index = -1) {
  return CUDAStream(index);
}
/// The same one: a device has no other for operations.
inline CUDAStream getDefaultCUDAStream(::ramet::DeviceIndex index = -1) {
  return CUDAStream(index);
}

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
/// What CUDA says of a device, asked once. For programs that have included CUDA's own
/// header, cuda_runtime_api.h, ahead of this one. An Error of an emulated GPU.
template <class Properties = ::cudaDeviceProp>
Properties* getDeviceProperties(::ramet::DeviceIndex index) {
  constexpr const char* kOp = "getDeviceProperties";
  static Properties all[::ramet::kMaxDevicesPerType];
  static bool known[::ramet::kMaxDevicesPerType];
  static std::mutex mutex;
  const ::ramet::Device device = ::ramet::resolve(::ramet::Device(::ramet::kCUDA, index));
  const auto i = static_cast<size_t>(device.index());
  const std::lock_guard<std::mutex> lock(mutex);
  if (!known[i]) {
    const int card = ::ramet::cuda::card(device.index());
    RAMET_CHECK(card >= 0, kOp, "got ", device, ", an emulated GPU, expected a real one");
    const auto error = static_cast<int>(cudaGetDeviceProperties(&all[i], card));
    RAMET_CHECK(error == 0, kOp, "got CUDA's error ", error, " of ", device);
    known[i] = true;
  }
  return &all[i];
}
/// Those of the current device.
template <class Properties = ::cudaDeviceProp> Properties* getCurrentDeviceProperties() {
  return getDeviceProperties<Properties>(-1);
}
}  // namespace cuda
}  // namespace at
