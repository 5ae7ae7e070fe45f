// The enumerations of options, as LibTorch has them. Each value has its own type with one constant:
// `kMean` of type enumtype::kMean. An option's type lists the values that it allows, so a wrong
// value does not compile.
#pragma once
#include <string>
#include <type_traits>
#include <variant>

#include "runtime/base/error.h"

namespace ramet {

// clang-format off: it would not come to rest
#define RAMET_ENUM_LIST(X)                                                                        \
  X(Linear)                                                                                       \
  X(Conv1D)                                                                                       \
  X(Conv2D) X(Conv3D) X(ConvTranspose1D) X(ConvTranspose2D) X(ConvTranspose3D) X(Sigmoid) X(Tanh) \
      X(ReLU) X(GELU) X(SiLU) X(Mish) X(LeakyReLU) X(FanIn) X(FanOut) X(Constant) X(Reflect)      \
          X(Replicate) X(Circular) X(Nearest) X(Bilinear) X(Bicubic) X(Trilinear) X(Area)         \
              X(NearestExact) X(Sum) X(Mean) X(Max) X(None) X(BatchMean) X(Zeros) X(Border)       \
                  X(Reflection) X(RNN_TANH) X(RNN_RELU) X(LSTM) X(GRU) X(Valid) X(Same)
// clang-format on

/// One of several such values, as std::variant<E...> holds it, which it converts to. (Seventeen of
/// std::variant would be a tenth of the compilation of a program that includes all options.)
template <class... E> class OneOf {
 public:
  /// What LibTorch has, to which this converts.
  using variant_t = std::variant<E...>;
  constexpr OneOf() = default;
  template <class T, std::enable_if_t<(std::is_same<T, E>::value || ...), int> = 0>
  constexpr OneOf(T) : index_(index_of<T>()) {}
  operator variant_t() const {
    variant_t value;
    ((index_ == index_of<E>() ? void(value = E()) : void()), ...);
    return value;
  }
  /// Which of E... it is.
  constexpr size_t index() const { return index_; }
  /// The number of T among E...; of another type this does not compile.
  template <class T> static constexpr size_t index_of() {
    static_assert((std::is_same<T, E>::value || ...), "the option is never that");
    constexpr bool same[] = {std::is_same<T, E>::value...};
    size_t i = 0;
    while (!same[i]) ++i;
    return i;
  }
  /// "kMean"
  const char* text() const {
    constexpr const char* texts[] = {E::text()...};
    return texts[index_];
  }
  friend constexpr bool operator==(OneOf a, OneOf b) { return a.index_ == b.index_; }
  friend constexpr bool operator!=(OneOf a, OneOf b) { return a.index_ != b.index_; }

 private:
  size_t index_ = 0;
};
}  // namespace ramet

// LibTorch's options are std::variant: its programs call `std::get_if<...>(&options.mode())`. (The
// standard allows no added overloads there; these take only a class of this library.)
namespace std {
template <class T, class... E>
constexpr bool holds_alternative(const ramet::OneOf<E...>& value) noexcept {
  return value.index() == ramet::OneOf<E...>::template index_of<T>();
}
/// Null where it is another one.
template <class T, class... E> const T* get_if(const ramet::OneOf<E...>* value) noexcept {
  static constexpr T kValue;
  return value && std::holds_alternative<T>(*value) ? &kValue : nullptr;
}
}  // namespace std

namespace ramet {
using std::get_if;
using std::holds_alternative;

namespace enumtype {
#define RAMET_ENUM_TYPE(Name)                                 \
  struct k##Name {                                            \
    constexpr k##Name() {}                                    \
    static constexpr const char* text() { return "k" #Name; } \
  };
/// The type of an enumeration's value; text() is its name, "kMean".
RAMET_ENUM_LIST(RAMET_ENUM_TYPE)
#undef RAMET_ENUM_TYPE

/// "kMean"
template <class... E> std::string get_enum_name(const OneOf<E...>& value) { return value.text(); }
template <class... E> std::string get_enum_name(const std::variant<E...>& value) {
  return std::visit(
      [](const auto& held) { return std::string(std::decay_t<decltype(held)>::text()); }, value);
}

/// The number of a reduction in the functions that take one: Reduction::None, Mean or Sum.
inline int64_t reduction_get_enum(const std::string& name) {
  if (name == kNone::text()) return 0;
  if (name == kMean::text()) return 1;
  if (name == kSum::text()) return 2;
  fail("reduction", name, " is not a valid value for reduction");
}
template <class V> int64_t reduction_get_enum(const V& value) {
  return reduction_get_enum(get_enum_name(value));
}
}  // namespace enumtype

#define RAMET_ENUM_CONSTANT(Name) inline constexpr enumtype::k##Name k##Name{};
/// A value of an option; which option takes it says what it means there.
RAMET_ENUM_LIST(RAMET_ENUM_CONSTANT)
#undef RAMET_ENUM_CONSTANT
#undef RAMET_ENUM_LIST

}  // namespace ramet
