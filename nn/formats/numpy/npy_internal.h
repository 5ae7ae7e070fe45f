// The .npy format, wherever its bytes are.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "autograd/tensor.h"

namespace ramet {
namespace formats {
namespace detail {

/// Bytes in a row, read once. REQUIRES: no more than there are.
using ReadNext = std::function<void(void* to, uint64_t bytes)>;

/// The array in the next `bytes` bytes, on the host. Errors are `op`'s; `where` is what they call
/// the place: "x.npz", entry "a".
Tensor read_npy(const char* op, const std::string& where, uint64_t bytes, const ReadNext& next);

/// What stands before the data of such a tensor. Errors are `op`'s; `name` is what they call it.
std::string npy_header(const char* op, const std::string& name, const Tensor& tensor);

/// Row-major in main memory, without history.
Tensor as_written(const Tensor& tensor);
/// Turns the bytes of each element around.
void swap_bytes(void* data, uint64_t bytes, size_t item);
/// An Error of `op` unless every byte of a bool tensor is 0 or 1.
void check_bools(const char* op, const std::string& where, const Tensor& tensor);

}  // namespace detail
}  // namespace formats
}  // namespace ramet
