// ReflectionPad, ReplicationPad, ZeroPad, ConstantPad of 1 to 3 dimensions, and pad.
#pragma once
#include <variant>
#include <vector>

#include "nn/module/enum.h"
#include "nn/module/expanding_array.h"
#include "nn/module/listed_module.h"

namespace ramet::nn {

// autograd/ops/shape/pad.h says what the numbers are.
#define RAMET_PAD_OPTIONS(Kind)                                         \
  template <size_t D> struct RAMET_API Kind##Options {                  \
    Kind##Options(ExpandingArray<D * 2> padding) : padding_(padding) {} \
    RAMET_ARG(ExpandingArray<D * 2>, padding);                          \
  };
/// `padding`: {left, right, top, bottom, front, back}, of which negative ones cut off, or one
/// number for all:
RAMET_PAD_OPTIONS(ReflectionPad)
RAMET_PAD_OPTIONS(ReplicationPad)
RAMET_PAD_OPTIONS(ZeroPad)
#undef RAMET_PAD_OPTIONS
/// `padding`: {left, right, top, bottom, front, back}, of which negative ones cut off, or one
/// number for all; `value` is put there.
template <size_t D> struct RAMET_API ConstantPadOptions {
  ConstantPadOptions(ExpandingArray<D * 2> padding, double value)
      : padding_(padding), value_(value) {}
  RAMET_ARG(ExpandingArray<D * 2>, padding);
  RAMET_ARG(double, value);
};

// The base of a kind's modules, which has its constructor from plain numbers.
#define RAMET_PAD(Kind, numbers, names)                                                 \
  template <size_t D, class Derived>                                                    \
  class RAMET_API Kind##Impl : public detail::ListedModule<Derived, Kind##Options<D>> { \
   public:                                                                              \
    using detail::ListedModule<Derived, Kind##Options<D>>::ListedModule;                \
    Kind##Impl numbers : Kind##Impl::ListedModule(Kind##Options<D> names) {}            \
    Tensor forward(const Tensor& input);                                                \
  };                                                                                    \
  RAMET_PAD_OF(Kind, 1)                                                                 \
  RAMET_PAD_OF(Kind, 2)                                                                 \
  RAMET_PAD_OF(Kind, 3)
#define RAMET_PAD_OF(Kind, D)                 \
  using Kind##D##dOptions = Kind##Options<D>; \
  RAMET_LAYER_FROM(Kind##D##d, Kind##D##dOptions, Kind##Impl, D)
/// Mirrored at the border elements.
RAMET_PAD(ReflectionPad, (ExpandingArray<D * 2> padding), (padding))
/// The border elements, repeated.
RAMET_PAD(ReplicationPad, (ExpandingArray<D * 2> padding), (padding))
/// Zeros.
RAMET_PAD(ZeroPad, (ExpandingArray<D * 2> padding), (padding))
/// A constant.
RAMET_PAD(ConstantPad, (ExpandingArray<D * 2> padding, double value), (padding, value))
#undef RAMET_PAD
#undef RAMET_PAD_OF

namespace functional {

struct RAMET_API PadFuncOptions {
  using mode_t =
      OneOf<enumtype::kConstant, enumtype::kReflect, enumtype::kReplicate, enumtype::kCircular>;
  PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}
  RAMET_ARG(std::vector<int64_t>, pad);
  RAMET_ARG(mode_t, mode) = kConstant;
  /// Of mode kConstant alone.
  RAMET_ARG(double, value) = 0;
};

namespace detail {
RAMET_API Tensor pad(const Tensor& input, IntArrayRef pad, PadFuncOptions::mode_t mode,
                     double value);
}  // namespace detail
RAMET_API Tensor pad(const Tensor& input, const PadFuncOptions& options);

}  // namespace functional
}  // namespace ramet::nn
