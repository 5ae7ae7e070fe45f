// Shared by the tests of parallel/: devices d(0) .. d(3) are cpu:1 .. cpu:4, the host is cpu:0.
// Where on_gpus.cc is linked they are cuda:0 .. cuda:3, emulated ones unless the build is for real
// ones: the same tests are linked twice (BUILD).
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/ops/make/copy.h"
#include "autograd/tensor.h"
#include "runtime/base/half.h"
#include "runtime/devices/gpu.h"
#include "tests/error_text.h"
#include "tests/values.h"

namespace ramet {
namespace testing {

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;

inline const Device kHost(kCPU, 0);
/// Defined by on_gpus.cc alone.
[[gnu::weak]] void tests_use_gpus();
inline const bool kGpus = tests_use_gpus != nullptr;
inline Device d(int k) {
  if (!kGpus) return Device(kCPU, static_cast<DeviceIndex>(k + 1));
  // Without any GPU, every use of cuda:0 gives the reason. Variables of a test file need not handle
  // that.
  return Device(kCUDA, static_cast<DeviceIndex>(k % std::max<int>(cuda::device_count(), 1)));
}
inline std::vector<Device> many(int n) {
  std::vector<Device> out;
  for (int k = 0; k < n; ++k) out.push_back(d(k));
  return out;
}

/// A tensor of these values, written element by element.
inline Tensor make(IntArrayRef sizes, const std::vector<double>& v, ScalarType dtype = kFloat,
                   Device device = kHost) {
  if (!device.is_cpu()) {
    const Tensor host = make(sizes, v, dtype), t(TensorBase::empty(sizes, dtype, device));
    autograd::copy_values(t, host);
    return t;
  }
  Tensor t(TensorBase::empty(sizes, dtype, device));
  RAMET_CHECK(t.numel() == static_cast<int64_t>(v.size()), "make", "values: got ", v.size(),
              ", expected ", t.numel());
  for (size_t i = 0; i < v.size(); ++i) {
    void* p = t.ptr();
    switch (dtype) {
      case kDouble: static_cast<double*>(p)[i] = v[i]; break;
      case kFloat: static_cast<float*>(p)[i] = static_cast<float>(v[i]); break;
      case kHalf: static_cast<Half*>(p)[i] = Half(static_cast<float>(v[i])); break;
      case kBFloat16: static_cast<BFloat16*>(p)[i] = BFloat16(static_cast<float>(v[i])); break;
      case kLong: static_cast<int64_t*>(p)[i] = static_cast<int64_t>(v[i]); break;
      case kInt: static_cast<int32_t*>(p)[i] = static_cast<int32_t>(v[i]); break;
      case kByte: static_cast<uint8_t*>(p)[i] = static_cast<uint8_t>(v[i]); break;
      case kBool: static_cast<bool*>(p)[i] = v[i] != 0; break;
      default: fail("make", "dtype: got ", short_name_of(dtype));
    }
  }
  return t;
}
inline Tensor make(const std::vector<double>& v, ScalarType dtype = kFloat, Device device = kHost) {
  return make({static_cast<int64_t>(v.size())}, v, dtype, device);
}
/// 0, 1, 2, ...
inline Tensor counting(IntArrayRef sizes, ScalarType dtype = kFloat, Device device = kHost) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(static_cast<double>(i));
  return make(sizes, v, dtype, device);
}
inline Tensor filled(IntArrayRef sizes, double value, ScalarType dtype = kFloat,
                     Device device = kHost) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return make(sizes, std::vector<double>(static_cast<size_t>(n), value), dtype, device);
}

inline std::vector<int64_t> shape(const Tensor& t) { return t.sizes().vec(); }

/// Opens once; wait() blocks until then.
class Latch {
 public:
  void open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

}  // namespace testing
}  // namespace ramet
