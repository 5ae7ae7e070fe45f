// Matrix products: LibTorch's functions of the same names. Operands share one dtype (any but bool)
// and device; float16 and bfloat16 compute in float and round once. The same bits for any number of
// threads; a row of a result does not depend on the number of rows.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

/// [m, k] x [k, n].
RAMET_API Tensor mm(const Tensor& self, const Tensor& mat2);
RAMET_API Tensor& mm_out(Tensor& out, const Tensor& self, const Tensor& mat2);
/// [b, m, k] x [b, k, n].
RAMET_API Tensor bmm(const Tensor& self, const Tensor& mat2);
RAMET_API Tensor& bmm_out(Tensor& out, const Tensor& self, const Tensor& mat2);
/// [m, k] x [k].
RAMET_API Tensor mv(const Tensor& self, const Tensor& vec);
RAMET_API Tensor& mv_out(Tensor& out, const Tensor& self, const Tensor& vec);
/// Sum of products of two vectors.
RAMET_API Tensor dot(const Tensor& self, const Tensor& tensor);
RAMET_API Tensor& dot_out(Tensor& out, const Tensor& self, const Tensor& tensor);
/// [m] x [n] -> [m, n].
RAMET_API Tensor outer(const Tensor& self, const Tensor& vec2);
RAMET_API Tensor& outer_out(Tensor& out, const Tensor& self, const Tensor& vec2);
/// beta * self + alpha * mat1 mat2; self broadcasts to the product and is not read when beta is 0.
RAMET_API Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                       const Scalar& beta = 1, const Scalar& alpha = 1);
RAMET_API Tensor& addmm_out(Tensor& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                            const Scalar& beta = 1, const Scalar& alpha = 1);
RAMET_API Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                         const Scalar& beta = 1, const Scalar& alpha = 1);
RAMET_API Tensor& baddbmm_out(Tensor& out, const Tensor& self, const Tensor& batch1,
                              const Tensor& batch2, const Scalar& beta = 1,
                              const Scalar& alpha = 1);
/// By rank: vectors give their dot product, a matrix and a vector mv, matrices mm; a vector on the
/// left counts as a row, on the right as a column, which disappear again; leading dimensions
/// broadcast.
RAMET_API Tensor matmul(const Tensor& self, const Tensor& other);
RAMET_API Tensor& matmul_out(Tensor& out, const Tensor& self, const Tensor& other);
/// x W^T + bias over the last dimension of input; weight [out, in] (or [in]), bias [out] (or
/// undefined).
RAMET_API Tensor linear(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias = {});
RAMET_API Tensor& linear_out(Tensor& out, const Tensor& input, const Tensor& weight,
                             const std::optional<Tensor>& bias = {});

}  // namespace ramet
