#include "nn/layers/image/padding.h"

#include "autograd/ops/shape/pad.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

// Kind, mode and value, and what is in the list after the padding.
#define RAMET_PAD(Kind, mode, value_, ...)                                                         \
  template <size_t D, class Derived> Tensor Kind##Impl<D, Derived>::forward(const Tensor& input) { \
    return functional::detail::pad(input, this->options.padding(), mode, value_);                  \
  }                                                                                                \
  RAMET_PAD_OF(Kind, 1, __VA_ARGS__)                                                               \
  RAMET_PAD_OF(Kind, 2, __VA_ARGS__)                                                               \
  RAMET_PAD_OF(Kind, 3, __VA_ARGS__)
#define RAMET_PAD_OF(Kind, D, ...)                                                            \
  template class Kind##Impl<D, Kind##D##dImpl>;                                               \
  RAMET_FIELDS(Kind##D##d, {"padding", &o.padding(), kNeeded, "a number, or a list of them"}, \
               __VA_ARGS__)

RAMET_PAD(ReflectionPad, kReflect, 0, )
RAMET_PAD(ReplicationPad, kReplicate, 0, )
RAMET_PAD(ZeroPad, kConstant, 0, )
RAMET_PAD(ConstantPad, kConstant, this->options.value(), {"value", &o.value(), kNeeded})

namespace functional {

Tensor detail::pad(const Tensor& input, IntArrayRef pad, PadFuncOptions::mode_t mode,
                   double value) {
  const char* names[] = {"constant", "reflect", "replicate", "circular"};
  return ramet::pad(input, pad, names[mode.index()],
                    value == 0 ? std::nullopt : std::optional<double>(value));
}
Tensor pad(const Tensor& input, const PadFuncOptions& options) {
  return detail::pad(input, options.pad(), options.mode(), options.value());
}

}  // namespace functional
}  // namespace ramet::nn
