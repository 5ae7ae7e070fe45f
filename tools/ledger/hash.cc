#include "tools/ledger/hash.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "autograd/grad_mode.h"
#include "runtime/base/thread_pool.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace ramet {
namespace ledger {

namespace {

// A tensor is hashed in pieces, which threads share. Pieces do not depend on their number.
constexpr size_t kPiece = size_t{1} << 16;

// Of a NaN the bits without the sign are above those of infinity.
template <class Bits> struct Format { Bits infinity, nan; };
template <class Bits> constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;

// A fixed number at a time, so that the compiler uses vectors.
constexpr size_t kBlock = 64;

template <class Bits> bool has_nan_in_block(const char* data, Format<Bits> format) {
  Bits bits[kBlock], found = 0;
  std::memcpy(bits, data, sizeof(bits));
  for (const Bits b : bits) found |= static_cast<Bits>((b & kMagnitude<Bits>) > format.infinity);
  return found != 0;
}

template <class Bits> bool has_nan(const char* data, size_t count, Format<Bits> format) {
  size_t i = 0;
  for (; i + kBlock <= count; i += kBlock)
    if (has_nan_in_block(data + i * sizeof(Bits), format)) return true;
  if (i == count) return false;
  Bits rest[kBlock] = {};
  std::memcpy(rest, data + i * sizeof(Bits), (count - i) * sizeof(Bits));
  return has_nan_in_block(reinterpret_cast<const char*>(rest), format);
}

template <class Bits> uint64_t hash_of_reals(const char* data, size_t bytes, Format<Bits> format) {
  const size_t count = bytes / sizeof(Bits);
  if (!has_nan(data, count, format)) return XXH3_64bits(data, bytes);
  std::vector<Bits> same(count);
  std::memcpy(same.data(), data, bytes);
  for (Bits& bits : same)
    if ((bits & kMagnitude<Bits>) > format.infinity) bits = format.nan;
  return XXH3_64bits(same.data(), bytes);
}

uint64_t hash_of_piece(const char* data, size_t bytes, ScalarType dtype) {
  switch (dtype) {
    case kDouble:
      return hash_of_reals<uint64_t>(data, bytes, {0x7ff0000000000000, 0x7ff8000000000000});
    case kFloat: return hash_of_reals<uint32_t>(data, bytes, {0x7f800000, 0x7fc00000});
    case kHalf: return hash_of_reals<uint16_t>(data, bytes, {0x7c00, 0x7e00});
    case kBFloat16: return hash_of_reals<uint16_t>(data, bytes, {0x7f80, 0x7fc0});
    default: return XXH3_64bits(data, bytes);
  }
}

struct Piece {
  const char* data;
  size_t bytes;
  ScalarType dtype;
  uint64_t hash;
};

}  // namespace

uint64_t hash_of(const std::string& text) { return XXH3_64bits(text.data(), text.size()); }

std::vector<uint64_t> hashes_of(const std::vector<Tensor>& tensors) {
  const NoGradGuard off;
  std::vector<Tensor> on_host;
  std::vector<Piece> pieces;
  for (const Tensor& t : tensors) {
    // A shallow copy, so that a channels-last tensor keeps its layout, and the next operation its
    // bits (Note [Internal layout]).
    on_host.push_back(t.defined() ? t.shallow().to(Device(kCPU, 0)).contiguous() : t);
    if (!t.defined()) continue;
    const auto* data = static_cast<const char*>(on_host.back().const_data_ptr());
    const auto bytes = static_cast<size_t>(t.numel()) * elementSize(t.scalar_type());
    for (size_t i = 0; i < bytes; i += kPiece)
      pieces.push_back({data + i, std::min(kPiece, bytes - i), t.scalar_type(), 0});
  }
  parallel_tasks(static_cast<int64_t>(pieces.size()), [&](int64_t i, int) {
    Piece& piece = pieces[static_cast<size_t>(i)];
    piece.hash = hash_of_piece(piece.data, piece.bytes, piece.dtype);
  });
  std::vector<uint64_t> hashes;
  size_t next = 0;
  for (const Tensor& t : tensors) {
    if (!t.defined()) {
      hashes.push_back(0);
      continue;
    }
    std::string text = toString(t.scalar_type());
    for (const int64_t size : t.sizes()) text += "," + std::to_string(size);
    const auto bytes = static_cast<size_t>(t.numel()) * elementSize(t.scalar_type());
    for (size_t i = 0; i < bytes; i += kPiece) text += hex(pieces[next++].hash);
    hashes.push_back(hash_of(text));
  }
  return hashes;
}

std::string hex_of(const std::vector<Tensor>& tensors) {
  std::string text;
  for (const uint64_t hash : hashes_of(tensors)) text += hex(hash);
  return text;
}

std::string hex(uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace ledger
}  // namespace ramet
