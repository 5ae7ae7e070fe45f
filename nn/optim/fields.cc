#include <string_view>

#include "nn/optim/fields_internal.h"
#include "nn/serialize/archive.h"

namespace ramet::optim::detail {
namespace {

using nn::detail::same;

template <class T> void take(const IValue& value, T& setting) { setting = value.to<T>(); }
template <class T> void take(const IValue& value, std::optional<T>& setting) {
  setting = value.toOptional<T>();
}
template <class T> IValue as_value(const T& setting) { return setting; }
template <class T> IValue as_value(const std::optional<T>& setting) {
  return setting ? IValue(*setting) : IValue();
}

// The kinds of settings that optimizers have.
template <class F> void visit(const Field& field, const F& use) {
  const auto try_one = [&](auto* kind) {
    if (auto* const at = std::get_if<decltype(kind)>(&field.at)) use(*at);
  };
  try_one(static_cast<double*>(nullptr));
  try_one(static_cast<bool*>(nullptr));
  try_one(static_cast<int64_t*>(nullptr));
  try_one(static_cast<std::optional<int64_t>*>(nullptr));
  try_one(static_cast<std::optional<std::string>*>(nullptr));
}

}  // namespace

void Fields::read(serialize::InputArchive& archive) const {
  for (const Field& f : list) {
    IValue value;
    archive.read(f.name, value);
    visit(f, [&](auto* at) { take(value, *at); });
  }
}
void Fields::write(serialize::OutputArchive& archive) const {
  for (const Field& f : list) visit(f, [&](auto* at) { archive.write(f.name, as_value(*at)); });
}
bool Fields::equals(const Fields& other) const {
  return std::equal(list.begin(), list.end(), other.list.begin(), same);
}
void Fields::inherit(const Fields& fresh, const Fields& defaults) const {
  for (size_t i = 0; i < list.size(); ++i)
    if (same(list[i], fresh.list[i]))
      visit(list[i],
            [&](auto* value) { *value = *std::get<decltype(value)>(defaults.list[i].at); });
}
double* Fields::momentum() const {
  for (const std::string_view name : {"beta1", "momentum"})
    for (const Field& f : list)
      if (f.name == name) return std::get<double*>(f.at);
  return nullptr;
}
void Fields::check() const {
  for (const Field& f : list) {
    if (!f.called) continue;
    const double value = *std::get<double*>(f.at);
    RAMET_CHECK(value >= 0 && (!f.fraction || value < 1), optimizer, "Invalid ", f.called, ": ",
                value);
  }
}

}  // namespace ramet::optim::detail
