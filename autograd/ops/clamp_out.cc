// In-place and out forms of clamp with tensors, clamp_min and clamp_max.
#include "autograd/ops/front/out_front.h"
#include "autograd/ops/where.h"

namespace ramet {

using namespace autograd;

Tensor& clamp_out(Tensor& out, const Tensor& x, const std::optional<Tensor>& low,
                  const std::optional<Tensor>& high) {
  check_defined("clamp_out", x);
  return computed_out("clamp_out", out, operands_record(x, low, high), OutType::kCastable,
                      [&] { return clamp(x, low, high); });
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

Tensor Tensor::clamp(const std::optional<Tensor>& low, const std::optional<Tensor>& high) const {
  return ramet::clamp(*this, low, high);
}

// Another name of the same.
#define RAMET_CLIP(Bound)                                                                          \
  Tensor clip(const Tensor& x, const std::optional<Bound>& low,                                    \
              const std::optional<Bound>& high) {                                                  \
    return clamp(x, low, high);                                                                    \
  }                                                                                                \
  Tensor& clip_(Tensor& x, const std::optional<Bound>& low, const std::optional<Bound>& high) {    \
    return x.clamp_(low, high);                                                                    \
  }                                                                                                \
  Tensor& clip_out(Tensor& out, const Tensor& x, const std::optional<Bound>& low,                  \
                   const std::optional<Bound>& high) {                                             \
    return clamp_out(out, x, low, high);                                                           \
  }                                                                                                \
  Tensor Tensor::clip(const std::optional<Bound>& low, const std::optional<Bound>& high) const {   \
    return clamp(low, high);                                                                       \
  }                                                                                                \
  Tensor& Tensor::clip_(const std::optional<Bound>& low, const std::optional<Bound>& high) const { \
    return clamp_(low, high);                                                                      \
  }
RAMET_CLIP(Scalar)
RAMET_CLIP(Tensor)
#undef RAMET_CLIP

#define RAMET_CLAMP_FORMS(name)                                                        \
  Tensor& name##_(Tensor& x, const Scalar& bound) { return x.name##_(bound); }         \
  Tensor& name##_(Tensor& x, const Tensor& bound) { return x.name##_(bound); }         \
  Tensor& name##_out(Tensor& out, const Tensor& x, const Scalar& bound) {              \
    check_defined(#name "_out", x);                                                    \
    return computed_out(#name "_out", out, recording(x), OutType::kCastable,           \
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
