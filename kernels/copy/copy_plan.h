// The analysis before strided copies, for CPUs and GPUs.
#pragma once
#include "kernels/copy/copy.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

// Is this a stack of transposed matrices: output dense along the last dimension, input dense along
// another? If so, moves that dimension to the place before the last and returns true.
RAMET_INLINE bool as_transpose(CopyStridedArgs& a) {
  const int last = a.rank - 1;
  if (a.in_type != a.out_type || a.rank < 2 || a.out_strides[last] != 1 ||
      a.in_strides[last] <= 1 || a.sizes[last] < 8)
    return false;
  for (int d = last - 1; d >= 0; --d) {
    if (a.in_strides[d] != 1 || a.sizes[d] < 8) continue;
    for (int e = d; e + 1 < last; ++e) {
      const int64_t size = a.sizes[e], in = a.in_strides[e], out = a.out_strides[e];
      a.sizes[e] = a.sizes[e + 1], a.in_strides[e] = a.in_strides[e + 1],
      a.out_strides[e] = a.out_strides[e + 1];
      a.sizes[e + 1] = size, a.in_strides[e + 1] = in, a.out_strides[e + 1] = out;
    }
    return true;
  }
  return false;
}

}  // namespace ramet::kernels::RAMET_VARIANT
