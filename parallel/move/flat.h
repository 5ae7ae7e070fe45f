// Several tensors in one allocation, each with a storage and a version counter of its own. Private
// to parallel/.
#pragma once
#include <vector>

#include "autograd/tensor.h"
#include "runtime/capture.h"

namespace ramet {
namespace parallel {
namespace detail {

/// Members start at multiples of this many bytes, so that neighbours in one flat buffer are
/// neighbours in every other.
inline constexpr int64_t kFlatAlign = 64;
inline int64_t padded(int64_t bytes) { return (bytes + kFlatAlign - 1) / kFlatAlign * kFlatAlign; }

/// Uninitialised.
inline Tensor flat_memory(int64_t bytes, Device device) {
  return Tensor(TensorBase::empty({bytes}, kByte, device));
}

/// Adjacent pieces of several parallel operands as one, gaps included: grows while every operand
/// continues where it stopped, in one allocation.
class FlatRun {
 public:
  /// `next`: the operands' pieces of `bytes` bytes each; undefined ones are absent. False if they
  /// do not continue the run.
  bool extend(const std::vector<const TensorBase*>& next, int64_t bytes) {
    if (RAMET_UNLIKELY(capture::active()))  // else ptr() would say so
      for (const TensorBase* t : next)
        if (t) capture::used(t->impl());
    if (at.empty()) {
      for (const TensorBase* t : next) {
        at.push_back(t ? static_cast<char*>((*t)->data) : nullptr);
        home.push_back(t ? t->device() : Device(kCPU, 0));
        roots_.push_back(t ? t->storage_impl()->root() : nullptr);
      }
    } else {
      for (size_t i = 0; i < at.size(); ++i) {
        if ((at[i] == nullptr) != (next[i] == nullptr)) return false;
        if (next[i] &&
            (at[i] + room_ != (*next[i])->data || roots_[i] != next[i]->storage_impl()->root()))
          return false;
      }
    }
    this->bytes = room_ + bytes;
    room_ += padded(bytes);
    return true;
  }

  std::vector<char*> at;     // first byte of each operand; null: absent
  std::vector<Device> home;  // of each
  int64_t bytes = 0;         // from the first piece's start to the last one's end

 private:
  std::vector<const Storage*> roots_;
  int64_t room_ = 0;  // from the first piece's start to where a further piece must start
};

}  // namespace detail
}  // namespace parallel
}  // namespace ramet
