// In-place and out forms of clamp with tensors, clamp_min and clamp_max.
#include "autograd/ops/out_front.h"
#include "autograd/ops/where.h"

namespace ramet {

using namespace autograd;

namespace {
bool records(const Tensor& x) { return x.defined() && recording(x); }
bool records(const std::optional<Tensor>& x) { return x && records(*x); }
}  // namespace

Tensor& clamp_out(Tensor& out, const Tensor& x, const std::optional<Tensor>& low,
                  const std::optional<Tensor>& high) {
  check_defined("clamp_out", x);
  return computed_out("clamp_out", out, records(x) || records(low) || records(high),
                      OutType::kCastable, [&] { return clamp(x, low, high); });
}
Tensor& clamp_(Tensor& x, const std::optional<Scalar>& low, const std::optional<Scalar>& high) {
  return x.clamp_(low, high);
}
Tensor& clamp_(Tensor& x, const std::optional<Tensor>& low, const std::optional<Tensor>& high) {
  return x.clamp_(low, high);
}
Tensor& Tensor::clamp_(const std::optional<Tensor>& low, const std::optional<Tensor>& high) const {
  return computed_in_place("clamp_", *this,
                           [&](const Tensor& x) { return ramet::clamp(x, low, high); });
}

#define RAMET_CLAMP_FORMS(name)                                                        \
  Tensor& name##_(Tensor& x, const Scalar& bound) { return x.name##_(bound); }         \
  Tensor& name##_(Tensor& x, const Tensor& bound) { return x.name##_(bound); }         \
  Tensor& name##_out(Tensor& out, const Tensor& x, const Scalar& bound) {              \
    check_defined(#name "_out", x);                                                    \
    return computed_out(#name "_out", out, records(x), OutType::kCastable,             \
                        [&] { return name(x, bound); });                               \
  }                                                                                    \
  Tensor& name##_out(Tensor& out, const Tensor& x, const Tensor& bound) {              \
    common_device(#name "_out", x, bound);                                             \
    return computed_out(#name "_out", out, recording(x, bound), OutType::kCastable,    \
                        [&] { return name(x, bound); });                               \
  }                                                                                    \
  Tensor Tensor::name(const Tensor& bound) const { return ramet::name(*this, bound); } \
  Tensor& Tensor::name##_(const Tensor& bound) const {                                 \
    return computed_in_place(#name "_", *this,                                         \
                             [&](const Tensor& x) { return ramet::name(x, bound); });  \
  }
RAMET_CLAMP_FORMS(clamp_min)
RAMET_CLAMP_FORMS(clamp_max)
#undef RAMET_CLAMP_FORMS

Tensor& max_out(Tensor& out, const Tensor& a, const Tensor& b) { return maximum_out(out, a, b); }
Tensor& min_out(Tensor& out, const Tensor& a, const Tensor& b) { return minimum_out(out, a, b); }

}  // namespace ramet
