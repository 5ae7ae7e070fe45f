// A kernel's view of a tensor: a pointer, an element type, extents and strides. Plain data, passed
// by value.
#pragma once
#include <cstdint>

#include "runtime/base/dtype.h"

namespace ramet {
namespace kernels {

/// The most dimensions of a strided kernel. Fronts coalesce adjacent dimensions first. If there are
/// still more, the front splits the operation.
inline constexpr int kMaxKernelRank = 8;

/// Strides are in elements. Extents and strides from `rank` on are not initialised.
struct TensorView {
  void* data;
  ScalarType dtype;
  int32_t rank;
  int64_t sizes[kMaxKernelRank];
  int64_t strides[kMaxKernelRank];
};

}  // namespace kernels
}  // namespace ramet
