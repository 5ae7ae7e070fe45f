// Out forms with a number or a rounding mode, and in-place division with one.
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/front/out_front.h"

namespace ramet {

using namespace autograd;

Tensor& add_out(Tensor& out, const Tensor& a, const Scalar& b, const Scalar& alpha) {
  check_defined("add_out", a);
  return computed_out("add_out", out, recording(a), OutType::kCastable,
                      [&] { return add(a, b, alpha); });
}
Tensor& sub_out(Tensor& out, const Tensor& a, const Scalar& b, const Scalar& alpha) {
  check_defined("sub_out", a);
  return computed_out("sub_out", out, recording(a), OutType::kCastable,
                      [&] { return sub(a, b, alpha); });
}
Tensor& mul_out(Tensor& out, const Tensor& a, const Scalar& b) {
  check_defined("mul_out", a);
  return computed_out("mul_out", out, recording(a), OutType::kCastable, [&] { return mul(a, b); });
}
Tensor& div_out(Tensor& out, const Tensor& a, const Scalar& b) {
  check_defined("div_out", a);
  return computed_out("div_out", out, recording(a), OutType::kCastable, [&] { return div(a, b); });
}
Tensor& div_out(Tensor& out, const Tensor& a, const Tensor& b, std::optional<std::string> mode) {
  common_device("div_out", a, b);
  return computed_out("div_out", out, recording(a, b), OutType::kCastable,
                      [&] { return div(a, b, mode); });
}
Tensor& div_out(Tensor& out, const Tensor& a, const Scalar& b, std::optional<std::string> mode) {
  check_defined("div_out", a);
  return computed_out("div_out", out, recording(a), OutType::kCastable,
                      [&] { return div(a, b, mode); });
}
Tensor& floor_divide_out(Tensor& out, const Tensor& a, const Tensor& b) {
  common_device("floor_divide_out", a, b);
  return computed_out("floor_divide_out", out, recording(a, b), OutType::kCastable,
                      [&] { return floor_divide(a, b); });
}
Tensor& floor_divide_out(Tensor& out, const Tensor& a, const Scalar& b) {
  check_defined("floor_divide_out", a);
  return computed_out("floor_divide_out", out, recording(a), OutType::kCastable,
                      [&] { return floor_divide(a, b); });
}

Tensor& Tensor::div_(const Tensor& o, std::optional<std::string> mode) const {
  if (!mode) return div_(o);
  return computed_in_place("div_", *this, [&](const Tensor& x) { return ramet::div(x, o, mode); });
}
Tensor& Tensor::div_(const Scalar& o, std::optional<std::string> mode) const {
  if (!mode) return div_(o);
  return computed_in_place("div_", *this, [&](const Tensor& x) { return ramet::div(x, o, mode); });
}
Tensor& Tensor::floor_divide_(const Tensor& o) const {
  return computed_in_place("floor_divide_", *this,
                           [&](const Tensor& x) { return ramet::floor_divide(x, o); });
}
Tensor& Tensor::floor_divide_(const Scalar& o) const {
  return computed_in_place("floor_divide_", *this,
                           [&](const Tensor& x) { return ramet::floor_divide(x, o); });
}

}  // namespace ramet
