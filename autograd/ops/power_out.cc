// Out forms of powers, remainders and lerp, and in-place forms that have no kernel of their own.
#include "autograd/ops/front/out_front.h"
#include "autograd/ops/power.h"

namespace ramet {

using namespace autograd;

#define RAMET_OUT(name, Left, Right)                                                  \
  Tensor& name##_out(Tensor& out, const Left& a, const Right& b) {                    \
    check_operands(#name "_out", a, b);                                               \
    return computed_out(#name "_out", out, operands_record(a, b), OutType::kCastable, \
                        [&] { return name(a, b); });                                  \
  }
RAMET_OUT(pow, Tensor, Scalar)
RAMET_OUT(pow, Scalar, Tensor)
RAMET_OUT(remainder, Tensor, Tensor)
RAMET_OUT(remainder, Tensor, Scalar)
RAMET_OUT(remainder, Scalar, Tensor)
RAMET_OUT(fmod, Tensor, Tensor)
RAMET_OUT(fmod, Tensor, Scalar)
#undef RAMET_OUT

#define RAMET_IN_PLACE(name, Other)                                               \
  Tensor& Tensor::name##_(const Other& o) const {                                 \
    return computed_in_place(#name "_", *this,                                    \
                             [&](const Tensor& x) { return ramet::name(x, o); }); \
  }
RAMET_IN_PLACE(remainder, Tensor)
RAMET_IN_PLACE(remainder, Scalar)
RAMET_IN_PLACE(fmod, Tensor)
RAMET_IN_PLACE(fmod, Scalar)
#undef RAMET_IN_PLACE

Tensor& lerp_out(Tensor& out, const Tensor& a, const Tensor& b, const Scalar& w) {
  common_device("lerp_out", a, b);
  return computed_out("lerp_out", out, recording(a, b), OutType::kCastable,
                      [&] { return lerp(a, b, w); });
}
Tensor& lerp_out(Tensor& out, const Tensor& a, const Tensor& b, const Tensor& w) {
  common_device("lerp_out", a, b);
  common_device("lerp_out", a, w);
  return computed_out("lerp_out", out, recording(a, b, w), OutType::kCastable,
                      [&] { return lerp(a, b, w); });
}
Tensor Tensor::lerp(const Tensor& end, const Tensor& weight) const {
  return ramet::lerp(*this, end, weight);
}
Tensor& Tensor::lerp_(const Tensor& end, const Tensor& weight) const {
  return computed_in_place("lerp_", *this,
                           [&](const Tensor& x) { return ramet::lerp(x, end, weight); });
}

}  // namespace ramet
