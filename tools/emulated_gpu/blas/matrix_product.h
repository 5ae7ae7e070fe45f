// One matrix product of the emulated cuBLASLt: what it computes, without handles and streams.
#pragma once
#include <algorithm>

#include "tools/emulated_gpu/blas/blas_api.h"

namespace ramet::emulated {

/// A batch of matrices in memory, of one of the four types.
struct Layout {
  cudaDataType_t type = CUDA_R_32F;
  bool row_major = false;
  int64_t rows = 0, columns = 0, stride = 0;  // between columns, or rows where they are contiguous
  int64_t batch = 1, batch_stride = 0;        // in elements

  size_t element_bytes() const;
  /// The number of elements from the first to the last; 0 where there are none.
  int64_t extent() const;
  bool legal() const;
};

struct MatrixProduct {
  Layout a, b, c, d;
  bool transpose_a = false, transpose_b = false;
  bool relu = false;
  const void* bias = nullptr;  // of D's type, one for each row of D
  double alpha = 1, beta = 0;
  // Computes the sum in two halves, and rounds the first to D's type before it adds them. cuBLASLt
  // may do this unless the caller forbids it.
  bool halves = false;
};

/// Do the shapes fit, and do the types, the batches, and the orders of C and D agree?
bool fits(const MatrixProduct& product);

/// D = alpha op(A) op(B) + beta C + bias, then relu. Computed in float, for double in double. C is
/// not read where beta is 0; C and D may be one.
void run_product(const MatrixProduct& product, const void* a, const void* b, const void* c,
                 void* d);

}  // namespace ramet::emulated
