// add, sub, mul, div: LibTorch's functions of the same names, with broadcasting and promotion.
#pragma once
#include <optional>
#include <string>

#include "autograd/tensor.h"

namespace ramet {

/// self + alpha * other.
RAMET_API Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
RAMET_API Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
/// Into `out`, which is resized where its shape differs. No history: an Error where one would be
/// needed.
RAMET_API Tensor& add_out(Tensor& out, const Tensor& self, const Tensor& other,
                          const Scalar& alpha = 1);
RAMET_API Tensor& add_out(Tensor& out, const Tensor& self, const Scalar& other,
                          const Scalar& alpha = 1);
/// self - alpha * other. Not for bool.
RAMET_API Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
RAMET_API Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
RAMET_API Tensor& sub_out(Tensor& out, const Tensor& self, const Tensor& other,
                          const Scalar& alpha = 1);
RAMET_API Tensor& sub_out(Tensor& out, const Tensor& self, const Scalar& other,
                          const Scalar& alpha = 1);
/// other - alpha * self.
RAMET_API Tensor rsub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
RAMET_API Tensor rsub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
RAMET_API Tensor mul(const Tensor& self, const Tensor& other);
RAMET_API Tensor mul(const Tensor& self, const Scalar& other);
RAMET_API Tensor& mul_out(Tensor& out, const Tensor& self, const Tensor& other);
RAMET_API Tensor& mul_out(Tensor& out, const Tensor& self, const Scalar& other);
/// True division: integers give the default floating-point type.
RAMET_API Tensor div(const Tensor& self, const Tensor& other);
RAMET_API Tensor div(const Tensor& self, const Scalar& other);
RAMET_API Tensor& div_out(Tensor& out, const Tensor& self, const Tensor& other);
RAMET_API Tensor& div_out(Tensor& out, const Tensor& self, const Scalar& other);
/// rounding_mode: none, "trunc" (towards zero) or "floor"; the latter two keep integers and have
/// zero gradient.
RAMET_API Tensor div(const Tensor& self, const Tensor& other,
                     std::optional<std::string> rounding_mode);
RAMET_API Tensor div(const Tensor& self, const Scalar& other,
                     std::optional<std::string> rounding_mode);
RAMET_API Tensor& div_out(Tensor& out, const Tensor& self, const Tensor& other,
                          std::optional<std::string> rounding_mode);
RAMET_API Tensor& div_out(Tensor& out, const Tensor& self, const Scalar& other,
                          std::optional<std::string> rounding_mode);
RAMET_API Tensor floor_divide(const Tensor& self, const Tensor& other);
RAMET_API Tensor floor_divide(const Tensor& self, const Scalar& other);
RAMET_API Tensor& floor_divide_out(Tensor& out, const Tensor& self, const Tensor& other);
RAMET_API Tensor& floor_divide_out(Tensor& out, const Tensor& self, const Scalar& other);

}  // namespace ramet
