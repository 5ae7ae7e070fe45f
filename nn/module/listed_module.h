// A module that has a list of its options: it prints itself by the list, and the C interface reads
// them by it. The module's source has the list (nn/module/listed_module_internal.h).
#pragma once
#include <vector>

#include "nn/module/arg.h"
#include "nn/module/cloneable.h"
#include "nn/module/module_holder.h"

namespace ramet::nn::detail {

struct Field;

/// The base of such a module. What is not inline is compiled in the module's source alone.
template <class Derived, class Options> class RAMET_API ListedModule : public Cloneable<Derived> {
 public:
  /// The class of its options.
  using options_t = Options;
  ListedModule() = default;
  explicit ListedModule(const Options& options_) : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  /// The list.
  static std::vector<Field> fields(Options& options);

  Options options;
};
/// Of a module without options.
template <class Derived> class RAMET_API ListedModule<Derived, void> : public Cloneable<Derived> {
 public:
  /// There are none.
  using options_t = void;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
};

}  // namespace ramet::nn::detail

/// The holder of the class NameImpl, which stands above. Its base is ListedModule<NameImpl,
/// Options>.
#define RAMET_LISTED_MODULE(Name, Options)                         \
  extern template class detail::ListedModule<Name##Impl, Options>; \
  extern template class Cloneable<Name##Impl>;                     \
  RAMET_MODULE(Name);
/// The class NameImpl with that base and its holder. The class is made from its options. It has the
/// listed members, too.
#define RAMET_LAYER(Name, Options, ...)                                           \
  class RAMET_API Name##Impl : public detail::ListedModule<Name##Impl, Options> { \
   public:                                                                        \
    using ListedModule::ListedModule;                                             \
    __VA_ARGS__                                                                   \
  };                                                                              \
  RAMET_LISTED_MODULE(Name, Options)
/// The same with the base Base<args..., NameImpl>, a class template with the base ListedModule.
#define RAMET_LAYER_FROM(Name, Options, Base, ...)                    \
  class RAMET_API Name##Impl : public Base<__VA_ARGS__, Name##Impl> { \
   public:                                                            \
    using Base<__VA_ARGS__, Name##Impl>::Base;                        \
  };                                                                  \
  extern template class Base<__VA_ARGS__, Name##Impl>;                \
  RAMET_LISTED_MODULE(Name, Options)
