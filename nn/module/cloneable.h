// Cloneable<Derived>: a module with clone().
#pragma once
#include "nn/module/module.h"

namespace ramet {
namespace nn {

/// clone() copies the object and clears the copy's registries. Then reset() registers fresh tensors
/// and children, and clone() copies the values into them. So reset() must register everything, and
/// the constructor calls reset().
///
/// The library compiles the templates of its own modules once. The header has `extern template
/// class Cloneable<ReLUImpl>;`, its .cc `template class Cloneable<ReLUImpl>;`. To instantiate some
/// forty of them was a quarter of a small program's compilation.
template <class Derived> class RAMET_API Cloneable : public Module {
 public:
  using Module::Module;

  /// Registers the parameters, buffers and children, and sets their initial values.
  virtual void reset() = 0;

  // Defined outside the class: what is inline is instantiated even where an `extern template` says
  // that another file has it.
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  std::pair<const void*, size_t> own_bytes() const override;
  std::unique_ptr<Module> plain_copy() const override;

 private:
  void clone_(Module& other, const std::optional<Device>& device) final;
};

template <class Derived>
std::shared_ptr<Module> Cloneable<Derived>::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
  Cloneable& made = *copy;
  made.forget_registries();
  made.reset();
  made.copy_tensors_from(*this, device);
  made.clone_children_from(*this, device);
  return copy;
}

template <class Derived> std::pair<const void*, size_t> Cloneable<Derived>::own_bytes() const {
  const char* end =
      reinterpret_cast<const char*>(static_cast<const Derived*>(this)) + sizeof(Derived);
  const char* begin = reinterpret_cast<const char*>(this) + sizeof(Cloneable);
  return {begin, static_cast<size_t>(end - begin)};
}

template <class Derived> std::unique_ptr<Module> Cloneable<Derived>::plain_copy() const {
  return std::make_unique<Derived>(static_cast<const Derived&>(*this));
}

template <class Derived>
void Cloneable<Derived>::clone_(Module& other, const std::optional<Device>& device) {
  auto clone = std::dynamic_pointer_cast<Derived>(other.clone(device));
  RAMET_CHECK(clone != nullptr, "clone",
              "Attempted to clone submodule, but it is of a different type than the submodule it "
              "was to be cloned into: got ",
              other.name(), ", expected ", name());
  static_cast<Derived&>(*this) = *clone;
}

}  // namespace nn
}  // namespace ramet
