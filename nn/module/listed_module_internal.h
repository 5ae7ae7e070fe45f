// What the source of a module with a list of its options needs.
#pragma once
#include <ostream>
#include <typeinfo>

#include "nn/module/field_internal.h"
#include "nn/module/listed_module.h"

namespace ramet::nn::detail {

/// The list of module class `Impl`; RAMET_FIELDS defines it.
template <class Impl, class Options> std::vector<Field> fields_of(Options& o);

template <class Derived, class Options>
std::vector<Field> ListedModule<Derived, Options>::fields(Options& options) {
  return fields_of<Derived>(options);
}
template <class Derived, class Options>
void ListedModule<Derived, Options>::pretty_print(std::ostream& stream) const {
  Options now = options, fresh = fresh_options<Options>();
  const std::vector<Field> list = fields(now);
  if (any_says(list, kModuleName)) Module::pretty_print(stream);
  else print_module(stream, typeid(Derived), list, fields(fresh));
}
template <class Derived>
void ListedModule<Derived, void>::pretty_print(std::ostream& stream) const {
  print_module(stream, typeid(Derived), {}, {});
}

}  // namespace ramet::nn::detail

/// In a module's source: the list of its options `o`, in the order in which they are printed, and
/// the rest of its bases. Options that are neither printed nor read by the C interface need no
/// entry.
#define RAMET_FIELDS(Name, ...)                                                                  \
  template <>                                                                                    \
  std::vector<detail::Field> detail::fields_of<Name##Impl>([[maybe_unused]] Name##Options & o) { \
    return {__VA_ARGS__};                                                                        \
  }                                                                                              \
  RAMET_LISTED(Name, Name##Options)
/// The same of a module without options.
#define RAMET_NO_FIELDS(Name) RAMET_LISTED(Name, void)
#define RAMET_LISTED(Name, Options)                         \
  template class detail::ListedModule<Name##Impl, Options>; \
  template class Cloneable<Name##Impl>;
