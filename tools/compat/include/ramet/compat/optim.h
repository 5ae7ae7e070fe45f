// The macros with which LibTorch's optimizers, and those that are written like them, save and load
// their options and states.
#pragma once
#include <deque>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ramet.h"

namespace ramet {
namespace compat {

/// How a setting of an optimizer is stored in an archive. A pair of numbers and a deque are a list,
/// and an empty optional is None. Others stay as they are.
template <class T> struct Setting {
  static IValue to_value(const T& setting) { return setting; }
  static T from_value(const IValue& value) { return value.to<T>(); }
};
template <class T> struct Setting<std::optional<T>> {
  static IValue to_value(const std::optional<T>& setting) {
    return setting ? Setting<T>::to_value(*setting) : IValue();
  }
  static std::optional<T> from_value(const IValue& value) {
    return value.isNone() ? std::nullopt : std::optional<T>(Setting<T>::from_value(value));
  }
};
template <> struct Setting<std::tuple<double, double>> {
  static IValue to_value(const std::tuple<double, double>& setting) {
    return std::vector<double>{std::get<0>(setting), std::get<1>(setting)};
  }
  static std::tuple<double, double> from_value(const IValue& value) {
    const std::vector<double>& list = value.toDoubleVector();
    RAMET_CHECK(list.size() == 2, "optim", "a pair of numbers: got ", list.size(), ", expected 2");
    return {list[0], list[1]};
  }
};
template <class T> struct Setting<std::deque<T>> {
  static IValue to_value(const std::deque<T>& setting) {
    return std::vector<T>(setting.begin(), setting.end());
  }
  static std::deque<T> from_value(const IValue& value) {
    const auto list = value.to<std::vector<T>>();
    return std::deque<T>(list.begin(), list.end());
  }
};

template <class T>
void write_setting(serialize::OutputArchive& archive, const char* key, const T& setting) {
  if constexpr (std::is_same<T, Tensor>::value) {
    if (!setting.defined()) return;  // as a key that is not there
  }
  archive.write(key, Setting<T>::to_value(setting));
}
/// Nothing where it is a tensor that was not written.
template <class T>
std::optional<T> read_setting(serialize::InputArchive& archive, const char* key) {
  IValue value;
  if constexpr (std::is_same<T, Tensor>::value) {
    if (!archive.try_read(key, value)) return std::nullopt;
  } else {
    archive.read(key, value);
  }
  return Setting<T>::from_value(value);
}

}  // namespace compat
}  // namespace ramet

/// In save() and load() of the optimizer Name: with NameParamState and NameOptions.
#define _TORCH_OPTIM_SERIALIZE_WITH_TEMPLATE_ARG(Name) \
  ::ramet::optim::serialize<Name##ParamState, Name##Options>(archive, self)

/// In serialize(archive) of options and states, for an argument that was declared by TORCH_ARG.
#define _TORCH_OPTIM_SERIALIZE_TORCH_ARG(name) \
  ::ramet::compat::write_setting(archive, #name, name())
#define _TORCH_OPTIM_SERIALIZE_TORCH_ARG_DEQUE(name) _TORCH_OPTIM_SERIALIZE_TORCH_ARG(name)
#define _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(T, name)                              \
  if (auto setting_of_##name = ::ramet::compat::read_setting<T>(archive, #name)) \
  name(*setting_of_##name)
#define _TORCH_OPTIM_DESERIALIZE_TORCH_ARG_OPTIONAL(T, name) \
  name(*::ramet::compat::read_setting<std::optional<T>>(archive, #name))
#define _TORCH_OPTIM_DESERIALIZE_TORCH_ARG_DEQUE(T, name) \
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(T, name)
