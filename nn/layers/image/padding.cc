#include "nn/layers/image/padding.h"

#include <ostream>

#include "autograd/ops/shape/pad.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

// Kind, mode and value, and the text that is printed after the padding.
#define RAMET_PAD(Kind, mode, value_, printed)                                                     \
  template <size_t D, class Derived>                                                               \
  void Kind##Impl<D, Derived>::pretty_print(std::ostream& stream) const {                          \
    stream << detail::qualified("nn::" #Kind) << D << "d(padding=" << options.padding() printed    \
           << ")";                                                                                 \
  }                                                                                                \
  template <size_t D, class Derived> Tensor Kind##Impl<D, Derived>::forward(const Tensor& input) { \
    return functional::detail::pad(input, options.padding(), mode, value_);                        \
  }                                                                                                \
  RAMET_PAD_OF(Kind, 1)                                                                            \
  RAMET_PAD_OF(Kind, 2)                                                                            \
  RAMET_PAD_OF(Kind, 3)
#define RAMET_PAD_OF(Kind, D)                   \
  template class Kind##Impl<D, Kind##D##dImpl>; \
  template class Cloneable<Kind##D##dImpl>;

RAMET_PAD(ReflectionPad, kReflect, 0, )
RAMET_PAD(ReplicationPad, kReplicate, 0, )
RAMET_PAD(ZeroPad, kConstant, 0, )
RAMET_PAD(ConstantPad, kConstant, options.value(), << ", value=" << options.value())

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
