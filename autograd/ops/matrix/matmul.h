// Matrix products: LibTorch's functions of the same names. Operands share one dtype (any but bool)
// and device; float16 and bfloat16 compute in float and round once. The bits are the same for any
// number of threads. A row of a result does not depend on the number of rows.
#pragma once
#include <optional>

#include "autograd/ops/matrix/addmm.h"
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/matrix/matmul.inc"

// Out forms that compute in the memory of `out` where they can.
RAMET_API Tensor& mm_out(Tensor& out, const Tensor& self, const Tensor& mat2);
RAMET_API Tensor& bmm_out(Tensor& out, const Tensor& self, const Tensor& mat2);
RAMET_API Tensor& matmul_out(Tensor& out, const Tensor& self, const Tensor& other);

}  // namespace ramet
