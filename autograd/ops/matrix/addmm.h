// Matrix products added to a tensor: LibTorch's functions of the same names. They behave as all
// products (autograd/ops/matrix/matmul.h).
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/matrix/addmm.inc"

RAMET_API Tensor& addmm_out(Tensor& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                            const Scalar& beta = 1, const Scalar& alpha = 1);
RAMET_API Tensor& baddbmm_out(Tensor& out, const Tensor& self, const Tensor& batch1,
                              const Tensor& batch2, const Scalar& beta = 1,
                              const Scalar& alpha = 1);

}  // namespace ramet
