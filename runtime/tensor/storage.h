// A tensor's memory as a whole: LibTorch's class of this name.
#pragma once
#include <cstddef>

#include "runtime/tensor/tensor_base.h"

namespace ramet {

/// A pointer to memory that it does not own, and the device it is on.
class DataPtr {
 public:
  DataPtr() = default;
  DataPtr(void* data, Device device) : data_(data), device_(device) {}
  /// The pointer.
  void* get() const { return data_; }
  /// The device of the memory.
  Device device() const { return device_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  void* data_ = nullptr;
  Device device_ = Device(kCPU, 0);
};

/// The memory that a tensor and its views share. It lives as long as this object. It has neither
/// sizes nor a dtype.
class RAMET_API Storage {
 public:
  /// No memory: converts to false.
  Storage() = default;
  explicit Storage(const TensorBase& of)
      : bytes_(TensorBase::over(of.storage_impl(), 0,
                                static_cast<int64_t>(of.storage_impl()->bytes), 1, kByte)) {}

  explicit operator bool() const { return bytes_.defined(); }
  /// Its size in bytes; 0 without memory.
  size_t nbytes() const { return *this ? bytes_.nbytes() : 0; }
  /// The device of the memory; an Error without memory.
  Device device() const { return bytes_.device(); }
  /// The kind of that device.
  DeviceType device_type() const { return device().type(); }
  /// Its first byte; waits for pending writes. A write through this pointer counts as no version.
  void* mutable_data() const { return bytes_.ptr(); }
  /// mutable_data() for reading.
  const void* data() const { return mutable_data(); }
  /// mutable_data() and the device.
  DataPtr data_ptr() const { return {mutable_data(), device()}; }
  /// Do both share some memory?
  bool is_alias_of(const Storage& other) const {
    return *this && other && bytes_.may_overlap(other.bytes_);
  }
  /// Number of tensors that share it, without this object and its copies (LibTorch counts them).
  size_t use_count() const { return *this ? unsafeGetStorageImpl()->refs.load() - 1 : 0; }
  /// Does only one tensor share it?
  bool unique() const { return use_count() == 1; }
  /// The same for all tensors that share the same memory in the same way.
  StorageImpl* unsafeGetStorageImpl() const { return *this ? bytes_.storage_impl() : nullptr; }

 private:
  TensorBase bytes_;  // all its bytes
};

}  // namespace ramet
