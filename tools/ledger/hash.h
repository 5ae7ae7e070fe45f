// Hashes of what a ledger records: the same on every machine that computed the same values.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace ledger {

/// XXH3 (64 bits) of a text.
uint64_t hash_of(const std::string& text);

/// A hash of each tensor's dtype, shape and values; 0 of an undefined one. All NaNs count as one,
/// because processors differ in their sign. -0 and 0 differ. Strides and devices do not matter. A
/// GPU's tensors are copied to the host, and waited for.
std::vector<uint64_t> hashes_of(const std::vector<Tensor>& tensors);

/// 16 hexadecimal digits.
std::string hex(uint64_t hash);
/// Those of the hash of each tensor, one after the other.
std::string hex_of(const std::vector<Tensor>& tensors);

}  // namespace ledger
}  // namespace ramet
