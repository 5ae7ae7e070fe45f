// The bytes of a pickle of protocol 2, as writers of files of PyTorch put them together.
#pragma once
#include <cstdint>
#include <string>

#include "autograd/tensor.h"

namespace ramet {
namespace formats {
namespace detail {

/// Appends values as opcodes to a text. A writer derives from it. Errors name `op`.
class PickleText {
 protected:
  /// LibTorch reads the pickles of TorchScript, where each dtype has storages of its own.
  explicit PickleText(const char* op, bool for_torchscript = false)
      : op_(op), for_torchscript_(for_torchscript) {}

  /// A number, of `bytes` bytes, least significant first.
  void little(uint64_t n, int bytes);
  void integer(int64_t n);
  void real(double x);
  void boolean(bool b) { text_ += b ? '\x88' : '\x89'; }
  /// An Error unless it is UTF-8 of less than 4 GiB.
  void string(const std::string& s);
  void global(const std::string& module, const std::string& name);
  /// A tuple.
  void integers(IntArrayRef list);
  /// A tensor with the sizes, dtype and gradient flag of t. It is over the storage of that number,
  /// whose memory is `memory`. An undefined t has to be written in another way.
  void rebuilt(const Tensor& t, size_t number, const Tensor& memory, int64_t offset,
               IntArrayRef strides);

  const char* op_;
  const bool for_torchscript_;
  std::string text_ = "\x80\x02";
};

}  // namespace detail
}  // namespace formats
}  // namespace ramet
