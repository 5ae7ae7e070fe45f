// Reads Protocol Buffers' wire format, for tests of what writes it.
#pragma once
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ramet::testing {

struct ProtoField {
  uint32_t number;
  uint32_t kind;
  uint64_t integer = 0;   // kinds 0, 1 and 5: the bits
  std::string_view text;  // kind 2
};

inline std::vector<ProtoField> read_proto(std::string_view bytes) {
  size_t at = 0;
  const auto take = [&](size_t n) {
    if (n > bytes.size() - at) throw std::runtime_error("a field is cut off");
    at += n;
    return bytes.substr(at - n, n);
  };
  const auto varint = [&] {
    uint64_t v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto b = static_cast<unsigned char>(take(1)[0]);
      v |= static_cast<uint64_t>(b & 127) << (shift < 64 ? shift : 0);
      if (b < 128) return v;
    }
    throw std::runtime_error("a number without an end");
  };
  std::vector<ProtoField> fields;
  while (at < bytes.size()) {
    const uint64_t tag = varint();
    ProtoField f{static_cast<uint32_t>(tag >> 3), static_cast<uint32_t>(tag & 7), 0, {}};
    if (f.kind == 0) f.integer = varint();
    else if (f.kind == 2) f.text = take(varint());
    else if (f.kind == 1 || f.kind == 5)
      std::memcpy(&f.integer, take(f.kind == 1 ? 8 : 4).data(), f.kind == 1 ? 8 : 4);
    else throw std::runtime_error("an unknown kind of field");
    fields.push_back(f);
  }
  return fields;
}

/// All fields of a number, in order.
inline std::vector<ProtoField> fields_of(std::string_view bytes, uint32_t number) {
  std::vector<ProtoField> found;
  for (const ProtoField& f : read_proto(bytes))
    if (f.number == number) found.push_back(f);
  return found;
}
/// The last field of a number; a part of `bytes`, which must outlive it.
inline std::string_view text_of(std::string_view bytes, uint32_t number) {
  const auto found = fields_of(bytes, number);
  return found.empty() ? std::string_view() : found.back().text;
}
inline int64_t integer_of(std::string_view bytes, uint32_t number) {
  const auto found = fields_of(bytes, number);
  return found.empty() ? 0 : static_cast<int64_t>(found.back().integer);
}
inline double real64(const ProtoField& f) {
  double v;
  std::memcpy(&v, &f.integer, 8);
  return v;
}
inline float real32(const ProtoField& f) {
  float v;
  std::memcpy(&v, &f.integer, 4);
  return v;
}

}  // namespace ramet::testing
