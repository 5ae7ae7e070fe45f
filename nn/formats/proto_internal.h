// Writes messages in the wire format of Protocol Buffers, which ONNX and TensorBoard files use.
//
// Fields may come in any order; fields with the same number keep theirs. A field starts with a
// varint (7 bits a byte, lowest first) of its number and kind. Its value is a varint, 4 or 8 bytes
// (little-endian), or a length and as many bytes: text, a message or packed numbers. The library
// does not link libprotobuf, because two versions of it in one process conflict.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "runtime/base/array_ref.h"

namespace ramet {
namespace formats {

class ProtoMessage {
 public:
  /// int32, int64, uint64, bool, enum; negative numbers take ten bytes.
  ProtoMessage& integer(uint32_t field, int64_t value) {
    tag(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  ProtoMessage& real64(uint32_t field, double value) { return fixed(field, 1, value); }
  ProtoMessage& real32(uint32_t field, float value) { return fixed(field, 5, value); }
  ProtoMessage& text(uint32_t field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    bytes_.append(value);
    return *this;
  }
  ProtoMessage& message(uint32_t field, const ProtoMessage& value) {
    return text(field, value.bytes_);
  }
  /// Each number with its tag: valid for repeated fields, packed or not.
  ProtoMessage& integers(uint32_t field, IntArrayRef values) {
    for (int64_t v : values) integer(field, v);
    return *this;
  }
  ProtoMessage& packed_real64(uint32_t field, ArrayRef<double> values) {
    return text(field, {reinterpret_cast<const char*>(values.data()), 8 * values.size()});
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t v) {
    for (; v >= 128; v >>= 7) bytes_.push_back(static_cast<char>(v | 128));
    bytes_.push_back(static_cast<char>(v));
  }
  void tag(uint32_t field, uint32_t kind) { varint(field << 3 | kind); }
  template <class T> ProtoMessage& fixed(uint32_t field, uint32_t kind, T value) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    tag(field, kind);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof value);
    return *this;
  }

  std::string bytes_;
};

}  // namespace formats
}  // namespace ramet
