// The tensors of an operation.
#pragma once
#include <memory>

#include "parallel/distributed/wire/channel_internal.h"

namespace ramet::distributed::detail {

/// A caller's tensor, with the ways to copy its bytes to and from the memory that messages use.
/// Where a group communicates over the host, tensors of a GPU are copied through pinned memory.
class Operand {
 public:
  Operand() = default;
  /// An Error unless t is defined. Waits while a worker still writes the tensor.
  Operand(const char* op, const char* what, const Tensor& t);
  size_t bytes() const { return dense_.nbytes(); }
  int64_t numel() const { return dense_.numel(); }
  ScalarType dtype() const { return dense_.scalar_type(); }
  const Tensor& tensor() const { return user_; }
  /// The address of the elements, in order, on their device; null if the tensor is not contiguous.
  char* place() const { return direct_ ? static_cast<char*>(dense_->data) : nullptr; }

  // For use while the operation runs. Call these only after all ranks agree: they may wait for a
  // GPU.

  /// The elements, contiguous, in the channel's memory.
  const char* data(Channel& channel) const;
  /// place(), if messages can be received there; else null.
  char* landing(const Channel& channel) const;
  /// Copies the elements into the channel's memory. `bytes` may extend past the end of the tensor.
  void read(Channel& channel, void* to) const { read(channel, to, bytes()); }
  void read(Channel& channel, void* to, size_t bytes) const;
  /// Copies from the channel's memory, after all messages given to the channel have arrived. Copies
  /// nothing if they were received at the landing(). `bytes` as above, if there is a place().
  void write(Channel& channel, const char* op, const void* from) const;
  void write(Channel& channel, const void* from, size_t bytes) const;
  /// To call after the tensor was written in another way.
  void written(const char* op) const;

 private:
  Tensor user_, dense_;
  bool direct_ = false;
  // The host copy of a GPU's tensor; made at need, shared by copies of the operand.
  std::shared_ptr<std::unique_ptr<Staging>> staged_;
};

/// Where all tensors of an operation are: on the host, or on one GPU. Otherwise an Error that names
/// two of them.
class CommonDevice {
 public:
  explicit CommonDevice(const char* op) : op_(op) {}
  CommonDevice& add(const Operand& x);
  CommonDevice& add(const std::vector<Operand>& list);
  Device device() const { return first_.defined() ? first_.device() : Device(kCPU, 0); }

 private:
  const char* op_;
  Tensor first_;
};

}  // namespace ramet::distributed::detail
