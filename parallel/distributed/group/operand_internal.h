// The tensors of an operation.
#pragma once
#include <memory>

#include "parallel/distributed/wire/channel_internal.h"

namespace ramet::distributed::detail {

/// A caller's tensor, and how its bytes get to the memory that messages travel from, and back:
/// where a group talks over the host, tensors of a GPU are copied through pinned memory.
class Operand {
 public:
  Operand() = default;
  /// An Error unless t is defined; waits where it is still being written by a worker.
  Operand(const char* op, const char* what, const Tensor& t);
  size_t bytes() const { return dense_.nbytes(); }
  int64_t numel() const { return dense_.numel(); }
  ScalarType dtype() const { return dense_.scalar_type(); }
  const Tensor& tensor() const { return user_; }
  /// Where the elements lie in order, on their device; null where the tensor is not contiguous.
  char* place() const { return direct_ ? static_cast<char*>(dense_->data) : nullptr; }

  // While the operation runs. Not before everything is known to agree: these may wait for a GPU.

  /// Contiguous, in the channel's memory.
  const char* data(Channel& channel) const;
  /// place(), where messages can come to it; else null.
  char* landing(const Channel& channel) const;
  /// Into the channel's memory. `bytes` may reach into what lies behind the tensor.
  void read(Channel& channel, void* to) const { read(channel, to, bytes()); }
  void read(Channel& channel, void* to, size_t bytes) const;
  /// From the channel's memory, when all that it was given has come; nothing more where that came
  /// to the landing(). `bytes` as above, where there is a place().
  void write(Channel& channel, const char* op, const void* from) const;
  void write(Channel& channel, const void* from, size_t bytes) const;
  /// After writing otherwise.
  void written(const char* op) const;

 private:
  Tensor user_, dense_;
  bool direct_ = false;
  // On the host, of a tensor of a GPU; made at need, shared by copies.
  std::shared_ptr<std::unique_ptr<Staging>> staged_;
};

/// Where all of an operation's tensors lie: on the host, or on one GPU. Else an Error that names
/// two.
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
