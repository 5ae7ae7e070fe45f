// ModuleHolder: a shared_ptr to a module that is used like a value.
//
// `RAMET_MODULE(Net);` after `struct NetImpl : nn::Module {...}` declares the holder `class Net`.
// `Net net(3);` makes the module. `Net net{nullptr};` is an empty handle to be assigned later.
// `net->forward(x)` or `net(x)` calls it.
#pragma once
#include "nn/module/module_hooks.h"

namespace ramet {
namespace nn {

namespace detail {

/// Shares a module as std::shared_ptr<T> does. A program that includes all modules has some 120
/// holders. As many instances of std::shared_ptr would take a tenth of its compilation. So this
/// class becomes a std::shared_ptr<T> only where the program asks for one.
template <class T> class SharedModule {
 public:
  SharedModule(std::nullptr_t) {}
  SharedModule(std::shared_ptr<T> module) : module_(std::move(module)) {}
  operator std::shared_ptr<T>() const { return std::static_pointer_cast<T>(module_); }
  explicit operator bool() const noexcept { return get() != nullptr; }
  T* get() const noexcept { return static_cast<T*>(module_.get()); }
  T* operator->() const noexcept { return get(); }
  T& operator*() const noexcept { return *get(); }

 private:
  std::shared_ptr<void> module_;
};

}  // namespace detail

template <class Contained> class ModuleHolder : detail::ModuleHolderIndicator {
 protected:
  // Protected as in LibTorch: a holder class may extend it.
  detail::SharedModule<Contained> impl_;

 public:
  /// The class of the module.
  using ContainedType = Contained;

  /// Makes a module by its default constructor. An empty holder is ModuleHolder(nullptr).
  ModuleHolder() : impl_(make_default()) {}
  ModuleHolder(std::nullptr_t) : impl_(nullptr) {}
  /// Makes a module from its constructor's arguments.
  template <class Head, class... Tail,
            std::enable_if_t<!((std::is_base_of<ModuleHolder, std::decay_t<Head>>::value ||
                                std::is_same<std::decay_t<Head>, std::nullptr_t>::value) &&
                               sizeof...(Tail) == 0),
                             int> = 0>
  explicit ModuleHolder(Head&& head, Tail&&... tail)
      : impl_(std::make_shared<Contained>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}
  ModuleHolder(std::shared_ptr<Contained> module) : impl_(std::move(module)) {}

  explicit operator bool() const noexcept { return !is_empty(); }
  /// Does it hold no module?
  bool is_empty() const noexcept { return !impl_; }
  Contained* operator->() { return get(); }
  const Contained* operator->() const { return get(); }
  Contained& operator*() { return *get(); }
  const Contained& operator*() const { return *get(); }
  /// Const, so that `auto& p = net.ptr();` of LibTorch, which returns a reference, stands.
  const std::shared_ptr<Contained> ptr() const { return checked(); }
  /// The module; an Error of an empty holder.
  Contained* get() { return checked().get(); }
  const Contained* get() const { return checked().get(); }

  /// forward() with the module's hooks.
  template <class... Args, class C = Contained>
  auto operator()(Args&&... args) const
      -> decltype(std::declval<C&>().forward(std::forward<Args>(args)...)) {
    return call(*checked(), std::forward<Args>(args)...);
  }
  template <class Arg> decltype(auto) operator[](Arg&& arg) {
    return (*get())[std::forward<Arg>(arg)];
  }

 private:
  const detail::SharedModule<Contained>& checked() const {
    RAMET_CHECK(impl_, "ModuleHolder", "Accessing empty ModuleHolder");
    return impl_;
  }
  static std::shared_ptr<Contained> make_default() {
    static_assert(std::is_default_constructible<Contained>::value,
                  "this module has no default constructor: give the holder arguments, or nullptr "
                  "for an empty one");
    if constexpr (std::is_default_constructible<Contained>::value)
      return std::make_shared<Contained>();
  }
};

template <class T> std::ostream& operator<<(std::ostream& stream, const ModuleHolder<T>& module) {
  return stream << static_cast<const Module&>(*module);
}
template <class T>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const ModuleHolder<T>& module) {
  return archive << std::shared_ptr<Module>(module.ptr());
}
template <class T>
serialize::InputArchive& operator>>(serialize::InputArchive& archive, ModuleHolder<T>& module) {
  return archive >> std::shared_ptr<Module>(module.ptr());
}

}  // namespace nn
}  // namespace ramet

/// Declares the holder class `Name` of the module class `ImplType`.
#define RAMET_MODULE_IMPL(Name, ImplType)                    \
  class Name : public ::ramet::nn::ModuleHolder<ImplType> {  \
   public:                                                   \
    using ::ramet::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl [[maybe_unused]] = ImplType;                  \
  }
/// RAMET_MODULE_IMPL for the usual name, NameImpl.
#define RAMET_MODULE(Name) RAMET_MODULE_IMPL(Name, Name##Impl)
