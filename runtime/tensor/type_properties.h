// The result of Tensor::type(): a backend and an element type. LibTorch's older form of
// `options()`. Programs print its name, compare it, and make further tensors with it.
#pragma once
#include <iosfwd>
#include <string>

#include "runtime/tensor/options.h"

namespace ramet {

/// LibTorch's name here for the kind of a device.
enum class Backend : uint8_t { CPU, CUDA, Undefined };
RAMET_API const char* toString(Backend backend);
RAMET_API std::ostream& operator<<(std::ostream& out, Backend backend);

/// The backend of a kind of devices.
constexpr Backend deviceTypeToBackend(DeviceType type) {
  return type == kCPU ? Backend::CPU : Backend::CUDA;
}
/// An Error of Backend::Undefined.
RAMET_API DeviceType backendToDeviceType(Backend backend);

/// A backend and an element type: LibTorch's older way to say `options()`.
class RAMET_API DeprecatedTypeProperties {
 public:
  constexpr DeprecatedTypeProperties(Backend backend, ScalarType type)
      : backend_(backend), type_(type) {}
  /// The kind of device.
  constexpr Backend backend() const { return backend_; }
  /// kStrided.
  Layout layout() const { return kStrided; }
  /// false: there are no sparse tensors.
  bool is_sparse() const { return false; }
  /// The kind of device; an Error of an undefined tensor's.
  DeviceType device_type() const { return backendToDeviceType(backend_); }
  /// A GPU's?
  constexpr bool is_cuda() const { return backend_ == Backend::CUDA; }
  /// The element type:
  constexpr ScalarType scalarType() const { return type_; }
  constexpr TypeMeta typeMeta() const { return TypeMeta(type_); }
  /// "CPUFloatType"; "UndefinedType" of an undefined tensor's.
  std::string toString() const;
  /// The same with another backend or element type:
  const DeprecatedTypeProperties& toBackend(Backend backend) const { return of(backend, type_); }
  const DeprecatedTypeProperties& toScalarType(ScalarType t) const { return of(backend_, t); }
  const DeprecatedTypeProperties& cpu() const { return of(Backend::CPU, type_); }
  const DeprecatedTypeProperties& cuda() const { return of(Backend::CUDA, type_); }
  /// Without an index: the current device of that type.
  TensorOptions options(int16_t device_index = -1) const {
    const auto index = static_cast<DeviceIndex>(device_index);
    RAMET_CHECK(index == device_index, "options", "device_index: got ", device_index,
                ", expected at most ", kMaxDevicesPerType - 1);
    return TensorOptions(type_).device(device_type(), index);
  }
  TensorOptions options(std::optional<Device> device) const;
  operator TensorOptions() const { return options(); }

  friend constexpr bool operator==(const DeprecatedTypeProperties& a,
                                   const DeprecatedTypeProperties& b) {
    return a.backend_ == b.backend_ && a.type_ == b.type_;
  }
  friend constexpr bool operator!=(const DeprecatedTypeProperties& a,
                                   const DeprecatedTypeProperties& b) {
    return !(a == b);
  }
  /// The one object of a backend and a type.
  static const DeprecatedTypeProperties& of(Backend backend, ScalarType type);

 private:
  Backend backend_;
  ScalarType type_;
};
RAMET_API std::ostream& operator<<(std::ostream& out, const DeprecatedTypeProperties& type);

}  // namespace ramet
