#include "runtime/tensor/type_properties.h"

#include <ostream>

namespace ramet {

const char* toString(Backend backend) {
  static const char* const names[] = {"CPU", "CUDA", "UNKNOWN_BACKEND"};
  return names[static_cast<int>(backend)];
}
std::ostream& operator<<(std::ostream& out, Backend backend) { return out << toString(backend); }

DeviceType backendToDeviceType(Backend backend) {
  RAMET_CHECK(backend != Backend::Undefined, "backendToDeviceType",
              "backend: got that of an undefined tensor, expected CPU or CUDA");
  return backend == Backend::CPU ? kCPU : kCUDA;
}

const DeprecatedTypeProperties& DeprecatedTypeProperties::of(Backend backend, ScalarType type) {
#define RAMET_OF(b, t) DeprecatedTypeProperties(Backend::b, ScalarType::t)
#define RAMET_ALL_OF(b)                                                                            \
  {                                                                                                \
    RAMET_OF(b, Bool), RAMET_OF(b, Byte), RAMET_OF(b, Char), RAMET_OF(b, Short), RAMET_OF(b, Int), \
        RAMET_OF(b, Long), RAMET_OF(b, UInt16), RAMET_OF(b, UInt32), RAMET_OF(b, Half),            \
        RAMET_OF(b, BFloat16), RAMET_OF(b, Float), RAMET_OF(b, Double), RAMET_OF(b, Undefined)     \
  }
  static constexpr DeprecatedTypeProperties all[3][kScalarTypes + 1] = {
      RAMET_ALL_OF(CPU), RAMET_ALL_OF(CUDA), RAMET_ALL_OF(Undefined)};
#undef RAMET_ALL_OF
#undef RAMET_OF
  return all[static_cast<int>(backend)][static_cast<int>(type)];
}

std::string DeprecatedTypeProperties::toString() const {
  if (backend_ == Backend::Undefined || type_ == ScalarType::Undefined) return "UndefinedType";
  return std::string(ramet::toString(backend_)) + name_of(type_) + "Type";
}
std::ostream& operator<<(std::ostream& out, const DeprecatedTypeProperties& type) {
  return out << type.toString();
}

TensorOptions DeprecatedTypeProperties::options(std::optional<Device> device) const {
  if (!device) return options();
  RAMET_CHECK(device->type() == device_type(), "options", "device: got ", *device,
              ", expected one of type ", device_type());
  return TensorOptions(type_).device(*device);
}

}  // namespace ramet
