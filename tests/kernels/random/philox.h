// Philox 4x32 with 10 rounds, written plainly, and the 32-bit words that elements of a stream get.
#pragma once
#include <array>
#include <cstdint>

#include "kernels/random/random.h"

namespace ramet::kernels {

using Block = std::array<uint32_t, 4>;

inline Block philox(Block c, uint32_t k0, uint32_t k1) {
  for (int r = 0; r < 10; ++r) {
    const uint64_t p = uint64_t{0xD2511F53} * c[0], q = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(q >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(q),
         static_cast<uint32_t>(p >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p)};
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return c;
}
inline Block block_of(uint64_t j, const RandomKey& key) {
  return philox({static_cast<uint32_t>(j), static_cast<uint32_t>(j >> 32),
                 static_cast<uint32_t>(key.stream), static_cast<uint32_t>(key.stream >> 32)},
                static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32));
}
/// The words of element i, by the mapping of the header.
inline uint32_t word(uint64_t i, const RandomKey& key) {
  return block_of(i / 64 * 16 + i % 16, key)[i / 16 % 4];
}
inline uint64_t two_words(uint64_t i, const RandomKey& key) {
  const Block b = block_of(i / 32 * 16 + i % 16, key);
  const uint64_t q = i / 16 % 2;
  return (static_cast<uint64_t>(b[2 * q]) << 32) | b[2 * q + 1];
}

}  // namespace ramet::kernels
