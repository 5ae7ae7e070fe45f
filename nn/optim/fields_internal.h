// The functions that use the list of an optimizer's options.
#pragma once
#include <limits>
#include <tuple>

#include "nn/module/field_internal.h"
#include "nn/optim/fields.h"

namespace ramet::optim::detail {

using nn::detail::Field;

/// The settings of an optimizer. Error texts begin with `optimizer`.
struct Fields {
  const char* optimizer;
  std::vector<Field> list;

  void read(serialize::InputArchive& archive) const;
  void write(serialize::OutputArchive& archive) const;
  bool equals(const Fields& other) const;
  /// Takes from `defaults` each setting that still has its value in `fresh`.
  void inherit(const Fields& fresh, const Fields& defaults) const;
  void check() const;
  /// OptimizerOptions::momentum_place().
  double* momentum() const;
};

/// The two numbers of the option betas.
inline Field beta1(std::tuple<double, double>& betas) {
  return {"beta1", &std::get<0>(betas), "beta parameter at index 0", /*fraction=*/true, "betas"};
}
inline Field beta2(std::tuple<double, double>& betas) {
  return {"beta2", &std::get<1>(betas), "beta parameter at index 1", /*fraction=*/true, "betas"};
}

template <class Derived> Fields ListedOptions<Derived>::list_of(ListedOptions& options) {
  return options.fields();
}
template <class Derived> std::unique_ptr<OptimizerOptions> ListedOptions<Derived>::clone() const {
  return std::make_unique<Derived>(self());
}
template <class Derived> void ListedOptions<Derived>::serialize(serialize::InputArchive& archive) {
  fields().read(archive);
}
template <class Derived>
void ListedOptions<Derived>::serialize(serialize::OutputArchive& archive) const {
  Derived copy(self());
  list_of(copy).write(archive);
}
template <class Derived> double ListedOptions<Derived>::get_lr() const { return self().lr(); }
template <class Derived> void ListedOptions<Derived>::set_lr(const double lr) {
  static_cast<Derived&>(*this).lr(lr);
}
template <class Derived> double* ListedOptions<Derived>::momentum_place() {
  return fields().momentum();
}
template <class Derived> void ListedOptions<Derived>::inherit(const OptimizerOptions& defaults) {
  const auto* given = dynamic_cast<const Derived*>(&defaults);
  if (!given) return;
  // A rate without a default was given: NaN equals nothing.
  Derived usual = fresh(), copy(*given);
  fields().inherit(list_of(usual), list_of(copy));
}
template <class Derived> Derived ListedOptions<Derived>::fresh() {
  if constexpr (std::is_default_constructible_v<Derived>) return {};
  else return {std::numeric_limits<double>::quiet_NaN()};
}
template <class Derived> void ListedOptions<Derived>::check() const {
  Derived copy(self());
  list_of(copy).check();
}
template <class Derived> bool ListedOptions<Derived>::equal(Derived lhs, Derived rhs) {
  return list_of(lhs).equals(list_of(rhs));
}

}  // namespace ramet::optim::detail

/// The rest of an optimizer `Name`, in its .cc: the functions that its NameOptions get from their
/// list, and the constructor from one group's parameters.
#define RAMET_OPTIMIZER(Name, State)                                           \
  template class detail::ListedOptions<Name##Options>;                         \
  Name::Name(std::vector<Tensor> params, Name##Options defaults)               \
      : Name({OptimizerParamGroup(std::move(params))}, std::move(defaults)) {} \
  std::unique_ptr<OptimizerParamState> Name::new_state() const { return std::make_unique<State>(); }
