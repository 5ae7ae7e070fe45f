// Devices: `cpu` (= cpu:0), `cpu:k`, `cuda:k`. Also names of kinds that Ramet does not support,
// because programs ask for those before they choose another.
#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "runtime/base/error.h"

struct CUstream_st;  // CUDA's: cudaStream_t points to one

namespace ramet {

/// The host, or a GPU. The other three kinds have LibTorch's numbers, and no device. They can be
/// named, compared and printed, and resolve() refuses them.
enum class DeviceType : int8_t { CPU = 0, CUDA = 1, HIP = 6, XPU = 12, MPS = 13 };
/// LibTorch's names of the kinds of devices.
inline constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA,
                            kHIP = DeviceType::HIP, kXPU = DeviceType::XPU, kMPS = DeviceType::MPS;
/// Number of a device of its kind; -1: the current one.
using DeviceIndex = int8_t;

/// Logical devices of one kind that a process can have. `cpu:0..7` exist on every machine
/// (RAMET_CPU_DEVICES lowers the number, 1 to 8); they are made at first use.
inline constexpr int kMaxDevicesPerType = 8;
/// Logical devices of both kinds together.
inline constexpr int kMaxDevices = 2 * kMaxDevicesPerType;

/// A device. An index of -1 means "the current device of that type"; tensors always carry a
/// definite index. `cpu` and `cpu:0` compare equal, so that `x.device() == kCPU` has the same
/// result as in LibTorch.
class RAMET_API Device {
 public:
  /// LibTorch's name of it inside the class.
  using Type = DeviceType;
  constexpr Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  /// "cpu", "cpu:3", "cuda", "cuda:1"; "hip", "xpu" and "mps" likewise. Anything else is an Error
  /// naming the text.
  Device(const std::string& text);
  Device(const char* text) : Device(std::string(text)) {}

  /// Its kind.
  constexpr DeviceType type() const { return type_; }
  /// Its number; -1: the current one of its kind.
  constexpr DeviceIndex index() const { return index_; }
  /// -1 to kMaxDevicesPerType - 1, or an Error.
  void set_index(DeviceIndex index);
  /// Does it have a definite number?
  constexpr bool has_index() const { return index_ >= 0; }
  /// One of the host?
  constexpr bool is_cpu() const { return type_ == DeviceType::CPU; }
  /// A GPU?
  constexpr bool is_cuda() const { return type_ == DeviceType::CUDA; }
  /// Of a kind that Ramet does not support?
  constexpr bool is_hip() const { return type_ == DeviceType::HIP; }
  /// Likewise.
  constexpr bool is_xpu() const { return type_ == DeviceType::XPU; }
  /// Likewise.
  constexpr bool is_mps() const { return type_ == DeviceType::MPS; }
  /// "cpu" for cpu and cpu:0, otherwise "cpu:k", "cuda", "cuda:k".
  std::string str() const;

  /// Dense number in [0, kMaxDevices): the index of tables and lanes. REQUIRES a cpu or cuda device
  /// with a definite index.
  constexpr int ordinal() const {
    return static_cast<int>(type_) * kMaxDevicesPerType + (index_ < 0 ? 0 : index_);
  }
  /// The device of such a number.
  static constexpr Device from_ordinal(int n) {
    return Device(static_cast<DeviceType>(n / kMaxDevicesPerType),
                  static_cast<DeviceIndex>(n % kMaxDevicesPerType));
  }
  friend constexpr bool operator==(Device a, Device b) {
    return a.type_ == b.type_ &&
           (a.index_ == b.index_ || (a.is_cpu() && a.index_ <= 0 && b.index_ <= 0));
  }
  friend constexpr bool operator!=(Device a, Device b) { return !(a == b); }

 private:
  DeviceType type_;
  DeviceIndex index_;
};

RAMET_API std::ostream& operator<<(std::ostream& out, Device device);
RAMET_API std::ostream& operator<<(std::ostream& out, DeviceType type);
/// "CPU", "CUDA", "HIP", "XPU", "MPS"; or in lower case.
RAMET_API std::string DeviceTypeName(DeviceType type, bool lower_case = false);

/// Number of logical CPU devices (8, or RAMET_CPU_DEVICES).
RAMET_API int cpu_device_count();
namespace cuda {  // LibTorch's names
/// CUDA devices that this program can use: 0 where it is linked without CUDA support, or where
/// there is no driver or no GPU.
RAMET_API DeviceIndex device_count();
/// Is there one?
inline bool is_available() { return device_count() > 0; }
/// false: Ramet has its own GPU kernels and does not use cuDNN.
inline bool cudnn_is_available() { return false; }
/// Waits for everything queued on the device (-1: the current one). Then throws faults that its
/// kernels reported.
RAMET_API void synchronize(int64_t device_index = -1);
/// For the program's own kernels: the stream (a cudaStream_t) of this thread's operations on the
/// device (-1: the current one). A kernel launched into it runs after the operations before it and
/// before those after it. Tensors that it uses may be released after the launch, and no wait is
/// needed. The device's GPU becomes the calling thread's current one (cudaSetDevice), as a launch
/// needs. Ramet owns the stream. An Error without such a device, and while a step is captured: a
/// replay would leave out the program's kernel.
RAMET_API CUstream_st* current_stream(int64_t device_index = -1);
/// CUDA's number for the device (-1: the current one); -1 for an emulated GPU.
RAMET_API int card(int64_t device_index = -1);
}  // namespace cuda
namespace mps {  // LibTorch's names
/// false: there are no devices of this kind.
inline bool is_available() { return false; }
}  // namespace mps
namespace xpu {
/// false: there are no devices of this kind.
inline bool is_available() { return false; }
}  // namespace xpu
/// Replaces an index of -1 by the current device of that type; an Error when the device does not
/// exist.
RAMET_API Device resolve(Device device);

}  // namespace ramet

template <> struct std::hash<ramet::Device> {
  size_t operator()(ramet::Device d) const noexcept { return static_cast<size_t>(d.ordinal()); }
};
