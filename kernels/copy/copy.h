// Copies between tensors of any two element types. Conversion rules: kernels/copy/chunk.h.
#pragma once
#include <cstdint>

#include "kernels/copy/view.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// out[i] = in[i], i < n, both dense. REQUIRES: the ranges are equal or do not overlap.
struct CopyDenseArgs {
  const void* in;
  void* out;
  int64_t n;
  ScalarType in_type, out_type;
};
RAMET_KERNEL(copy_dense, CopyDenseArgs);

/// out[index] = in[index] over `rank` dimensions. Strides are in elements; the input's may be 0
/// (broadcast) or negative (reversed). REQUIRES: the output's elements are distinct, and none is an
/// input element with another index. Fastest after coalesce(). Dense runs, transposed matrices
/// (tiles) and broadcast runs have separate paths.
struct CopyStridedArgs {
  const void* in;
  void* out;
  ScalarType in_type, out_type;
  int32_t rank;
  int64_t sizes[kMaxKernelRank], in_strides[kMaxKernelRank], out_strides[kMaxKernelRank];
};
RAMET_KERNEL(copy_strided, CopyStridedArgs);

}  // namespace kernels
}  // namespace ramet
