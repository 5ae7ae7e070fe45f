// Powers, remainders and the three-operand forms: LibTorch's functions of the same names, with
// broadcasting and promotion.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

/// self ^ exponent. Integers stay integers: they wrap, and negative numbers as exponents are an
/// Error.
RAMET_API Tensor pow(const Tensor& self, const Tensor& exponent);
RAMET_API Tensor pow(const Tensor& self, const Scalar& exponent);
RAMET_API Tensor pow(const Scalar& self, const Tensor& exponent);
RAMET_API Tensor& pow_out(Tensor& out, const Tensor& self, const Tensor& exponent);
RAMET_API Tensor& pow_out(Tensor& out, const Tensor& self, const Scalar& exponent);
RAMET_API Tensor& pow_out(Tensor& out, const Scalar& self, const Tensor& exponent);
/// Python's %: the sign of the divisor. An integer zero as divisor is an Error, here and in fmod.
RAMET_API Tensor remainder(const Tensor& self, const Tensor& other);
RAMET_API Tensor remainder(const Tensor& self, const Scalar& other);
RAMET_API Tensor remainder(const Scalar& self, const Tensor& other);
RAMET_API Tensor& remainder_out(Tensor& out, const Tensor& self, const Tensor& other);
RAMET_API Tensor& remainder_out(Tensor& out, const Tensor& self, const Scalar& other);
RAMET_API Tensor& remainder_out(Tensor& out, const Scalar& self, const Tensor& other);
/// C's fmod: the sign of self.
RAMET_API Tensor fmod(const Tensor& self, const Tensor& other);
RAMET_API Tensor fmod(const Tensor& self, const Scalar& other);
RAMET_API Tensor& fmod_out(Tensor& out, const Tensor& self, const Tensor& other);
RAMET_API Tensor& fmod_out(Tensor& out, const Tensor& self, const Scalar& other);

/// self + value * tensor1 * tensor2.
RAMET_API Tensor addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                         const Scalar& value = 1);
RAMET_API Tensor& addcmul_out(Tensor& out, const Tensor& self, const Tensor& tensor1,
                              const Tensor& tensor2, const Scalar& value = 1);
/// self + value * tensor1 / tensor2. Floating-point types.
RAMET_API Tensor addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                         const Scalar& value = 1);
RAMET_API Tensor& addcdiv_out(Tensor& out, const Tensor& self, const Tensor& tensor1,
                              const Tensor& tensor2, const Scalar& value = 1);
/// start + weight * (end - start), from the nearer end. Floating-point, one dtype.
RAMET_API Tensor lerp(const Tensor& self, const Tensor& end, const Scalar& weight);
RAMET_API Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight);
RAMET_API Tensor& lerp_out(Tensor& out, const Tensor& self, const Tensor& end,
                           const Scalar& weight);
RAMET_API Tensor& lerp_out(Tensor& out, const Tensor& self, const Tensor& end,
                           const Tensor& weight);

}  // namespace ramet
