// A parameter of a module that each call computes from other parameters, as weight_norm and
// spectral_norm do.
//
// Note [Computed parameters]
// The module no longer has the parameter itself, only those it is computed from. Optimizers, files
// and replicas see those. The module's member, which forward() reads, holds the computed tensor
// during a call and is undefined between calls. A direct forward(x) runs no hooks (Note [Module
// hooks]), so it is an Error and not a silent use of old values. Replicas see no change of the
// member. The member's position is searched once: the bytes of the object (Module::own_bytes) that
// hold the parameter's handle. In clone(), reset() registers the plain parameter, and clone()
// removes it again.
#pragma once
#include <string>
#include <vector>

#include "nn/module/module_hooks.h"

namespace ramet {
namespace nn {

/// A parameter that is computed from others for each call; see above.
class RAMET_API ComputedParameter {
 public:
  /// `op` names it in error texts; `name` is the parameter's name.
  ComputedParameter(std::string op, std::string name);
  virtual ~ComputedParameter();
  /// The function that made it, and the parameter's name:
  const std::string& op() const noexcept { return op_; }
  const std::string& name() const noexcept { return name_; }

  /// Replaces the module's parameter `computed->name()` by the computed one. An Error, before
  /// anything is changed, unless the module is Cloneable and has that parameter in a member.
  static void add(Module& module, const std::shared_ptr<ComputedParameter>& computed);
  /// Registers the plain parameter again, with the value that it would have in a call. An Error
  /// where `op` has not made it a computed parameter.
  static void remove(Module& module, const std::string& op, const std::string& name);

  /// The member holds the computed tensor while the result lives.
  std::shared_ptr<void> enter(Module& module) const;
  /// After `module`'s reset() registered the plain parameter: registers its parts in its place.
  void renew(Module& module) const;

 protected:
  /// An Error where it cannot compute `parameter`.
  virtual void check(const Module& module, const Tensor& parameter) const = 0;
  /// The names of the parts that it is computed from, and their registration.
  virtual std::vector<std::string> parts() const = 0;
  virtual void register_parts(Module& module, const Tensor& parameter) const = 0;
  /// Computes the parameter. `in_call`: for a call, which may change buffers.
  virtual Tensor compute(Module& module, bool in_call) const = 0;

 private:
  std::vector<Tensor*> members(Module& module) const;

  const std::string op_, name_;
  std::vector<size_t> places_;  // of the members, in Module::own_bytes
};

}  // namespace nn
}  // namespace ramet
