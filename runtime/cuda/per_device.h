// One T for each cuda:k, made at its first use. For static objects. The program's end destroys none
// of them: tensors of other static objects may die later, and the driver may be gone earlier.
#pragma once
#include <atomic>
#include <mutex>

#include "runtime/base/device.h"
#include "runtime/base/error.h"

namespace ramet {
namespace cuda {

template <class T> class PerDevice {
 public:
  /// The one of cuda:k. The first call makes it by make(), which returns a new T. REQUIRES: 0 <= k
  /// < kMaxDevicesPerType.
  template <class Make> T& get(int k, const Make& make) {
    T* found = all_[k].load(std::memory_order_acquire);
    if (RAMET_LIKELY(found != nullptr)) return *found;
    const std::lock_guard<std::mutex> lock(mutex_);
    found = all_[k].load(std::memory_order_relaxed);
    if (!found) {
      found = make();
      all_[k].store(found, std::memory_order_release);
    }
    return *found;
  }
  /// The one that exists already, or null.
  T* existing(int k) const { return all_[k].load(std::memory_order_acquire); }
  /// Destroys all. Nothing may be running, and nothing may refer to them.
  void destroy() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& one : all_) delete one.exchange(nullptr);
  }

 private:
  std::mutex mutex_;
  std::atomic<T*> all_[kMaxDevicesPerType] = {};
};

}  // namespace cuda
}  // namespace ramet
