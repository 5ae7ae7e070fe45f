// The enumerations of options, as LibTorch has them: each value is a type of its own with one
// constant, `kMean` of type enumtype::kMean, and an option is a std::variant of those it allows, so
// that a wrong one does not compile.
#pragma once
#include <string>
#include <type_traits>
#include <variant>

#include "runtime/error.h"

namespace ramet {

// clang-format off: it would not come to rest
#define RAMET_ENUM_LIST(X)                                                                         \
  X(Linear)                                                                                        \
  X(Conv1D) X(Conv2D) X(Conv3D) X(ConvTranspose1D) X(ConvTranspose2D) X(ConvTranspose3D)           \
      X(Sigmoid) X(Tanh) X(ReLU) X(GELU) X(SiLU) X(Mish) X(LeakyReLU) X(FanIn) X(FanOut)           \
          X(Constant) X(Reflect) X(Replicate) X(Circular) X(Nearest) X(Bilinear) X(Bicubic)        \
              X(Trilinear) X(Area) X(NearestExact) X(Sum) X(Mean) X(Max) X(None) X(BatchMean)      \
                  X(Zeros) X(Border) X(Reflection) X(RNN_TANH) X(RNN_RELU) X(LSTM) X(GRU) X(Valid) \
                      X(Same)
// clang-format on

namespace enumtype {
#define RAMET_ENUM_TYPE(Name)                                 \
  struct k##Name {                                            \
    constexpr k##Name() {}                                    \
    static constexpr const char* text() { return "k" #Name; } \
  };
RAMET_ENUM_LIST(RAMET_ENUM_TYPE)
#undef RAMET_ENUM_TYPE

/// "kMean"
template <class V> std::string get_enum_name(const V& variant_enum) {
  return std::visit(
      [](const auto& value) { return std::string(std::decay_t<decltype(value)>::text()); },
      variant_enum);
}

/// The number of a reduction in the functions that take one: Reduction::None, Mean or Sum.
template <class V> int64_t reduction_get_enum(const V& variant_enum) {
  const std::string name = get_enum_name(variant_enum);
  if (name == kNone::text()) return 0;
  if (name == kMean::text()) return 1;
  if (name == kSum::text()) return 2;
  fail("reduction", name, " is not a valid value for reduction");
}
}  // namespace enumtype

#define RAMET_ENUM_CONSTANT(Name) inline constexpr enumtype::k##Name k##Name{};
RAMET_ENUM_LIST(RAMET_ENUM_CONSTANT)
#undef RAMET_ENUM_CONSTANT
#undef RAMET_ENUM_LIST

}  // namespace ramet
