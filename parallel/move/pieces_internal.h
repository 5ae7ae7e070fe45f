// What the movements share with their gradient nodes. Private to parallel/.
#pragma once
#include <optional>
#include <vector>

#include "parallel/move/comm.h"

namespace ramet {
namespace parallel {
namespace detail {

/// The result for a piece that is already on the right device: the input's memory with a
/// copy-on-write storage, the input's memory, or a copy.
enum class Own : uint8_t { kShared, kView, kCopy };

/// Checks the arguments, wraps the dimension, applies the split rule.
std::vector<int64_t> scatter_sizes(const Tensor& t, size_t devices, const ScatterOptions& options,
                                   int64_t& dim);
/// `length` entries of dimension `dim` from `start`, on `device`.
Tensor scatter_piece(const Tensor& x, Device device, int64_t dim, int64_t start, int64_t length,
                     Own own);
std::vector<Tensor> scatter_pieces(const Tensor& x, ArrayRef<Device> devices,
                                   ArrayRef<int64_t> sizes, int64_t dim, Own own);

struct Concatenation {
  std::vector<int64_t> sizes;    // Of the result.
  std::vector<int64_t> extents;  // Of each input along dim.
  int64_t dim = 0;
  ScalarType dtype = ScalarType::Undefined;
  bool scalars = false;        // All inputs are 0-dim.
  bool channels_last = false;  // The memory format of the result.
  // Is that layout internal? Note [Internal layout] in autograd/graph/layout.h.
  bool internal = true;
};
/// All checks of gather.
Concatenation plan_gather(ArrayRef<Tensor> tensors, int64_t dim, bool promote);
Tensor gather_result(const Concatenation& plan, Device device);
void gather_into(const Tensor& out, ArrayRef<Tensor> tensors, const Concatenation& plan);

/// out = the sum of `in`, by position: left to right, or as a balanced tree over in.size() leaves.
/// Undefined inputs are skipped, but one at least must be defined. Equal sizes and dtype; out is
/// dense. A movement on out's device, counted.
void sum_into(const Tensor& out, const std::vector<Tensor>& in, ReduceOrder order);

/// `asked`, or the current device of the first tensor's type.
Device destination_of(const Tensor& first, std::optional<Device> asked);
/// Checks that an output of an _out form may be written now.
void check_out(const char* op, const Tensor& out, size_t index);

}  // namespace detail
}  // namespace parallel
}  // namespace ramet
