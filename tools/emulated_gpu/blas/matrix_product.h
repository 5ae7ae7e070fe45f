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

/// What else a product does with each element.
enum class Activation {
  kNone,
  kRelu,
  kGelu,         // its form with tanh. What it is taken of goes to `aux`, unless that is null.
  kGeluBackward  // times the derivative of GELU at what lies in `aux`
};
/// Sums that a product writes in addition to D. Computed in float, from what is not yet rounded.
enum class Sums {
  kNone,
  kOfD,  // of each row of D
  kOfA,  // of each row of op(A)
  kOfB   // of each column of op(B)
};

struct MatrixProduct {
  Layout a, b, c, d;
  bool transpose_a = false, transpose_b = false;
  Activation activation = Activation::kNone;
  const void* bias = nullptr;  // of D's type, one for each row of D
  bool has_aux = false;
  void* aux = nullptr;  // of D's type, in D's order
  int64_t aux_stride = 0, aux_batch_stride = 0;
  Sums sums = Sums::kNone;
  void* sums_to = nullptr;  // of D's type
  double alpha = 1, beta = 0;
  // Computes the sum in two halves, and rounds the first to D's type before it adds them. cuBLASLt
  // may do this unless the caller forbids it.
  bool halves = false;
};

/// The number of sums that a product writes, 0 without them.
int64_t sums_count(const MatrixProduct& product);
/// The auxiliary matrix. REQUIRES: there is one.
Layout aux_layout(const MatrixProduct& product);

/// Do the shapes fit, and do the types, the batches, and the orders of C and D agree? C and D may
/// be float32 where A and B have 16 bits. An auxiliary matrix of GELU has a stride that is a
/// multiple of 8 and no less than D's rows.
bool fits(const MatrixProduct& product);

/// D = activation(alpha op(A) op(B) + beta C + bias), and the sums. Computed in float, for double
/// in double. C is not read where beta is 0; C and D may be one.
void run_product(const MatrixProduct& product, const void* a, const void* b, const void* c,
                 void* d);

}  // namespace ramet::emulated
