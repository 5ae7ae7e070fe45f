#include "runtime/base/device.h"

#include <cstdlib>
#include <ostream>

#include "runtime/base/context.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/gpu.h"
#include "runtime/observe/observer.h"

using ramet::detail::tls;

namespace ramet {
namespace {

struct Kind {
  DeviceType type;
  const char *name, *lower;
};
constexpr Kind kKinds[] = {{kCPU, "CPU", "cpu"},
                           {kCUDA, "CUDA", "cuda"},
                           {kHIP, "HIP", "hip"},
                           {kXPU, "XPU", "xpu"},
                           {kMPS, "MPS", "mps"}};
const Kind& kind_of(DeviceType type) {
  for (const Kind& kind : kKinds)
    if (kind.type == type) return kind;
  fail("DeviceType", "got number ", static_cast<int>(type), ", which no kind of device has");
}

}  // namespace

Device::Device(const std::string& text) : type_(DeviceType::CPU), index_(-1) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  bool good = false;
  for (const Kind& known : kKinds)
    if (kind == known.lower) good = true, type_ = known.type;
  if (good && colon != std::string::npos) {
    const std::string digits = text.substr(colon + 1);
    good = digits.size() == 1 && digits[0] >= '0' && digits[0] < '0' + kMaxDevicesPerType;
    if (good) index_ = static_cast<DeviceIndex>(digits[0] - '0');
  }
  RAMET_CHECK(good, "Device", "Invalid device string: got '", text,
              "', expected cpu, cpu:k, cuda or cuda:k with k from 0 to ", kMaxDevicesPerType - 1);
}

std::string Device::str() const {
  std::string s = kind_of(type_).lower;
  if (index_ > 0 || (index_ == 0 && !is_cpu())) s += ":" + std::to_string(static_cast<int>(index_));
  return s;
}

void Device::set_index(DeviceIndex index) {
  RAMET_CHECK(index >= -1 && index < kMaxDevicesPerType, "set_index", "index: got ",
              static_cast<int>(index), ", expected -1 to ", kMaxDevicesPerType - 1);
  index_ = index;
}

std::string DeviceTypeName(DeviceType type, bool lower_case) {
  return lower_case ? kind_of(type).lower : kind_of(type).name;
}

std::ostream& operator<<(std::ostream& out, Device device) { return out << device.str(); }
std::ostream& operator<<(std::ostream& out, DeviceType type) { return out << kind_of(type).lower; }

int cpu_device_count() {
  static const int count = [] {
    const char* text = std::getenv("RAMET_CPU_DEVICES");
    if (!text || !*text) return kMaxDevicesPerType;
    char* end = nullptr;
    const long n = std::strtol(text, &end, 10);
    RAMET_CHECK(*end == 0 && n >= 1 && n <= kMaxDevicesPerType, "RAMET_CPU_DEVICES", "got \"", text,
                "\", expected a number from 1 to ", kMaxDevicesPerType);
    return static_cast<int>(n);
  }();
  return count;
}

DeviceIndex cuda::device_count() {
  gpu::Library* gpus = gpu::library();
  return static_cast<DeviceIndex>(gpus ? gpus->device_count() : 0);
}

namespace {
[[gnu::cold]] Device resolve_gpu(Device device) {
  RAMET_CHECK(device.is_cuda(), "device", "device ", device.str(),
              " does not exist: there are no devices of this kind, expected cpu or cuda");
  gpu::Library* gpus = gpu::library();
  if (!gpus)
    fail("device", "device ", device.str(),
         " does not exist: this program is linked without CUDA support");
  const int count = gpus->device_count();
  if (count == 0) fail("device", "device ", device.str(), " does not exist: ", gpus->why_none());
  if (!device.has_index()) device = Device(kCUDA, static_cast<DeviceIndex>(tls.cuda_device));
  RAMET_CHECK(device.index() < count, "device", "device does not exist: got ", device.str(),
              ", expected cuda:0 to cuda:", count - 1);
  return device;
}
}  // namespace

static int gpu_of(const char* op, int64_t index) {
  RAMET_CHECK(index >= -1 && index < kMaxDevicesPerType, op, "device: got cuda:", index);
  return resolve(Device(kCUDA, static_cast<DeviceIndex>(index))).index();
}

void cuda::synchronize(int64_t index) {
  const int device = gpu_of("synchronize", index);
  const RecordWait wait("synchronize", Device(kCUDA, static_cast<DeviceIndex>(device)));
  gpu::library()->synchronize(device);
}

int cuda::card(int64_t index) {
  const int device = gpu_of("card", index);
  return gpu::library()->card(device);
}

CUstream_st* cuda::current_stream(int64_t index) {
  constexpr const char* kOp = "current_stream";
  const int device = gpu_of(kOp, index);
  capture::refuse(kOp, "a replay would not launch what the program launches itself");
  return gpu::library()->current_stream(device);
}

Device resolve(Device device) {
  if (RAMET_UNLIKELY(!device.is_cpu())) return resolve_gpu(device);
  if (!device.has_index()) device = Device(kCPU, static_cast<DeviceIndex>(tls.cpu_device));
  RAMET_CHECK(device.index() < cpu_device_count(), "device", "device does not exist: got ",
              device.str(), ", expected cpu:0 to cpu:", cpu_device_count() - 1);
  return device;
}

}  // namespace ramet
