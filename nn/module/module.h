// Module: named parameters, buffers and children, and operations on all of them.
//
// A program written for LibTorch's nn::Module works unchanged. Members are plain tensors and
// holders, assigned from register_parameter, register_buffer and register_module. A member and its
// registry entry share one implementation.
//
// Note [Module hooks]
// Hooks run where the library calls a module, always through nn::call(). Callers are the holder's
// operator(), Sequential, AnyModule and the data-parallel calls. A direct `module->forward(x)`
// bypasses the hooks. The list of hooks is an immutable snapshot: adding or removing a hook makes a
// new one. So a running call finishes with the list it began with.
#pragma once
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/tensor.h"
#include "nn/module/buffer_policy.h"
#include "nn/module/ordered_dict.h"

namespace ramet {
namespace serialize {
class OutputArchive;
class InputArchive;
}  // namespace serialize

namespace nn {

class Module;
class AnyValue;
struct ModuleHooks;
template <class Contained> class ModuleHolder;

namespace detail {
struct ModuleHolderIndicator {};
template <class T> using is_module_holder = std::is_base_of<ModuleHolderIndicator, std::decay_t<T>>;
}  // namespace detail

/// Before forward. `inputs` are the tensors among the arguments, those of tuples (an LSTM's states)
/// too, in order; one that the hook replaces is replaced for forward.
using ForwardPreHook = std::function<void(Module& module, std::vector<Tensor>& inputs)>;
/// After forward. `outputs` are the tensors of a Tensor, std::tuple (tuples in it, too) or
/// std::vector<Tensor> result; replaceable too.
using ForwardHook = std::function<void(Module& module, const std::vector<Tensor>& inputs,
                                       std::vector<Tensor>& outputs)>;
/// Runs around a call: entered before the pre-hooks. Its result is destroyed when the call is over:
/// after the last hook, or when an exception leaves the call.
using ForwardScope = std::function<std::shared_ptr<void>(Module& module)>;

class RAMET_API Module : public std::enable_shared_from_this<Module> {
 public:
  /// What apply() calls:
  using ModuleApplyFunction = std::function<void(Module&)>;
  using ConstModuleApplyFunction = std::function<void(const Module&)>;
  using NamedModuleApplyFunction = std::function<void(const std::string&, Module&)>;
  using ConstNamedModuleApplyFunction = std::function<void(const std::string&, const Module&)>;
  using ModulePointerApplyFunction = std::function<void(const std::shared_ptr<Module>&)>;
  using NamedModulePointerApplyFunction =
      std::function<void(const std::string&, const std::shared_ptr<Module>&)>;

  Module();
  explicit Module(std::string name);
  Module(const Module&);
  Module& operator=(const Module&);
  Module(Module&&) noexcept;
  Module& operator=(Module&&) noexcept;
  virtual ~Module();

  /// The name given at construction, else the C++ type's.
  const std::string& name() const noexcept;

  /// A deep copy: parameters and buffers in fresh memory, on `device` if given. Only Cloneable<T>
  /// and overriders have it.
  virtual std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const;

  // ---- visiting: this module, then its children, depth first, in order of registration ----------
  /// Calls the function with every module. A function that also takes a name gets name_prefix
  /// followed by the module's name.
  void apply(const ModuleApplyFunction& function);
  void apply(const ConstModuleApplyFunction& function) const;
  void apply(const NamedModuleApplyFunction& function,
             const std::string& name_prefix = std::string());
  void apply(const ConstNamedModuleApplyFunction& function,
             const std::string& name_prefix = std::string()) const;
  void apply(const ModulePointerApplyFunction& function) const;
  void apply(const NamedModulePointerApplyFunction& function,
             const std::string& name_prefix = std::string()) const;

  /// Each parameter once, also where it is registered under several names. Undefined ones are left
  /// out.
  std::vector<Tensor> parameters(bool recurse = true) const;
  /// All names; a tied parameter appears under each of its own. "child.weight" for a child's.
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
  /// Each buffer once, as parameters().
  std::vector<Tensor> buffers(bool recurse = true) const;
  /// All names, as named_parameters().
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;
  /// With `include_self` this module must be owned by a shared_ptr.
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
  /// The same with names: name_prefix, followed by "child.grandchild".
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(
      const std::string& name_prefix = std::string(), bool include_self = true) const;
  /// Its own modules alone.
  std::vector<std::shared_ptr<Module>> children() const;
  /// The same with names.
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const;

  /// Training mode, or evaluation: its own and that of all below it.
  virtual void train(bool on = true);
  /// train(false).
  void eval();
  /// Is it in training mode, as it is at first?
  virtual bool is_training() const noexcept {
    if (RAMET_UNLIKELY(ramet::detail::tls.capturing != 0)) captured();
    return is_training_;
  }

  /// Moves or casts every parameter and buffer in place, keeping their identity. A floating-point
  /// dtype leaves integer and bool buffers (counters, indices, masks) as they are.
  virtual void to(Device device, ScalarType dtype, bool non_blocking = false);
  virtual void to(ScalarType dtype, bool non_blocking = false);
  virtual void to(Device device, bool non_blocking = false);

  /// Drops the gradients of all parameters, or fills them with zeros.
  virtual void zero_grad(bool set_to_none = true);

  /// This module as a `ModuleType` (a module class or its holder); null if it is none.
  template <class ModuleType,
            std::enable_if_t<detail::is_module_holder<ModuleType>::value, int> = 0>
  typename ModuleType::ContainedType* as() noexcept {
    return dynamic_cast<typename ModuleType::ContainedType*>(this);
  }
  template <class ModuleType,
            std::enable_if_t<detail::is_module_holder<ModuleType>::value, int> = 0>
  const typename ModuleType::ContainedType* as() const noexcept {
    return dynamic_cast<const typename ModuleType::ContainedType*>(this);
  }
  template <class ModuleType,
            std::enable_if_t<!detail::is_module_holder<ModuleType>::value, int> = 0>
  ModuleType* as() noexcept {
    return dynamic_cast<ModuleType*>(this);
  }
  template <class ModuleType,
            std::enable_if_t<!detail::is_module_holder<ModuleType>::value, int> = 0>
  const ModuleType* as() const noexcept {
    return dynamic_cast<const ModuleType*>(this);
  }

  /// Writes parameters, buffers and children that are serializable.
  virtual void save(serialize::OutputArchive& archive) const;
  /// Reads what save() wrote, in place. An Error that names the entry where one is missing or has
  /// other sizes.
  virtual void load(serialize::InputArchive& archive);
  /// Is it written with the module that it is in?
  virtual bool is_serializable() const { return true; }
  /// Writes this module without its children, as "ramet::nn::Linear(in_features=2, out_features=3,
  /// bias=true)".
  virtual void pretty_print(std::ostream& stream) const;

  // ---- registration. Names are not empty, hold no dot, and are used once ------------------------
  /// The tensor as registered; an undefined one keeps its place. Assign it to a member.
  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  /// The same of a tensor that no gradient belongs to; `policy`: what becomes of it in replicas.
  Tensor& register_buffer(std::string name, Tensor tensor);
  Tensor& register_buffer(std::string name, Tensor tensor, BufferPolicy policy);
  /// Takes a parameter or buffer out of the registry; members keep it.
  void unregister_tensor(const std::string& name);
  /// The module, which is a child from now on. Assign it to a member.
  template <class ModuleType>
  std::shared_ptr<ModuleType> register_module(std::string name,
                                              std::shared_ptr<ModuleType> module) {
    add_child(std::move(name), module);
    return module;
  }
  template <class ModuleType>
  std::shared_ptr<ModuleType> register_module(std::string name,
                                              ModuleHolder<ModuleType> module_holder) {
    return register_module(std::move(name), module_holder.ptr());
  }
  /// The child of this name is another one; an Error where there is none.
  template <class ModuleType>
  std::shared_ptr<ModuleType> replace_module(const std::string& name,
                                             std::shared_ptr<ModuleType> module) {
    children_[name] = module;
    return module;
  }
  template <class ModuleType>
  std::shared_ptr<ModuleType> replace_module(const std::string& name,
                                             ModuleHolder<ModuleType> module_holder) {
    return replace_module(name, module_holder.ptr());
  }
  /// Takes a child out of the registry; members keep it. An Error where there is none.
  void unregister_module(const std::string& name);

  // ---- hooks: Note [Module hooks] ---------------------------------------------------------------
  /// Hooks run in order of registration. The handle is for remove_forward_hook.
  unsigned register_forward_pre_hook(ForwardPreHook hook);
  /// After forward, and around the call:
  unsigned register_forward_hook(ForwardHook hook);
  unsigned register_forward_scope(ForwardScope scope);
  /// An Error if there is no such hook.
  void remove_forward_hook(unsigned handle);
  /// Null when there is none.
  const std::shared_ptr<const ModuleHooks>& forward_hooks() const noexcept {
    if (RAMET_UNLIKELY(ramet::detail::tls.capturing != 0)) captured();
    return hooks_;
  }
  /// All hooks at once, of another module.
  void set_forward_hooks(std::shared_ptr<const ModuleHooks> hooks) { hooks_ = std::move(hooks); }

  // ---- for replication (parallel/) ------------------------------------------------------------
  /// The registries of this module alone, in order, undefined tensors and null children included:
  const OrderedDict<std::string, Tensor>& own_parameters() const noexcept { return parameters_; }
  const OrderedDict<std::string, Tensor>& own_buffers() const noexcept { return buffers_; }
  const OrderedDict<std::string, std::shared_ptr<Module>>& own_children() const noexcept {
    return children_;
  }
  /// `first` for a buffer that declared none.
  BufferPolicy buffer_policy(const std::string& buffer) const;
  /// What becomes of the buffer in replicas.
  void set_buffer_policy(const std::string& buffer, BufferPolicy policy);
  /// The object's bytes outside the Module base: a change of them makes its replicas stale.
  /// {nullptr, 0} where unknown.
  virtual std::pair<const void*, size_t> own_bytes() const { return {nullptr, 0}; }
  /// By the copy constructor: members and registries hold the same tensors. Null where unknown.
  virtual std::unique_ptr<Module> plain_copy() const { return nullptr; }
  /// Is this object a replica that data-parallel calls made of another one?
  bool is_replica() const noexcept { return is_replica_; }
  /// Puts another tensor into the registry, where `name` is a parameter of this module alone;
  /// members keep the one they have. A module that holds shards cannot be cloned.
  void set_own_parameter(const std::string& name, Tensor tensor);
  /// The same of a buffer.
  void set_own_buffer(const std::string& name, Tensor tensor);
  /// Are its parameters pieces of their wholes (fully_shard)? Then it cannot be cloned:
  bool holds_shards() const noexcept { return holds_shards_; }
  void set_holds_shards(bool on) noexcept { holds_shards_ = on; }
  /// For code that makes replicas.
  void set_replica(bool on) noexcept { is_replica_ = on; }
  /// Called on the source, on the caller's thread, after every replica succeeded: takes over what
  /// they deposited during their forwards. `replicas` are this module's counterparts, in replica
  /// order.
  virtual void merge_replicas(ArrayRef<Module*> replicas);
  /// Called on each replica before it runs: deposits of a step that failed are dropped.
  virtual void discard_deposits();
  /// A sealed module holds state that a copy of its tensors does not carry (a captured graph, raw
  /// device memory). It is replicable only if all its descendants are sealed too and each has
  /// rebind().
  virtual bool is_sealed() const { return false; }
  /// Has it rebind()?
  virtual bool can_rebind() const { return false; }
  /// A sealed replica takes over these parameters, in the order of named_parameters().
  virtual void rebind(ArrayRef<Tensor> parameters);

 protected:
  // What RAMET_FORWARD_HAS_DEFAULT_ARGS overrides (nn/module/any_module.h).
  virtual bool _forward_has_default_args() { return false; }
  virtual unsigned int _forward_num_required_args();
  virtual std::vector<AnyValue> _forward_populate_default_args(std::vector<AnyValue>&& arguments);

  /// Training mode, hooks and name: what a clone() that is not Cloneable's has to take along.
  void copy_flags_from(const Module& source);
  /// Training mode of this module, and not of those below it.
  void set_own_training(bool on) { is_training_ = on; }

  OrderedDict<std::string, Tensor> parameters_;

 private:
  template <class Derived> friend class Cloneable;
  friend struct ForwardDefaults;
  friend RAMET_API std::ostream& operator<<(std::ostream& stream, const Module& module);

  /// Becomes a copy of `other`, which was registered under the same name in the module being
  /// cloned.
  virtual void clone_(Module& other, const std::optional<Device>& device);
  void add_child(std::string name, std::shared_ptr<Module> child);
  void print_tree(std::ostream& stream, const std::string& indentation) const;
  void visit_children(const NamedModulePointerApplyFunction& function,
                      const std::string& prefix) const;
  std::shared_ptr<Module> shared_from_this_checked() const;
  // A capture is being made that depends on training mode and hooks.
  void captured() const;
  // The parts of Cloneable::clone that depend on no type.
  void forget_registries();
  void copy_tensors_from(const Module& source, const std::optional<Device>& device);
  void clone_children_from(const Module& source, const std::optional<Device>& device);

  OrderedDict<std::string, Tensor> buffers_;
  OrderedDict<std::string, std::shared_ptr<Module>> children_;
  mutable std::optional<std::string> name_;
  std::vector<std::pair<std::string, BufferPolicy>> policies_;  // other than `first`
  bool is_training_ = true, is_replica_ = false, holds_shards_ = false;
  // Last, so that no padding follows in which a derived class's first members would lie:
  // own_bytes() begins at its end.
  std::shared_ptr<const ModuleHooks> hooks_;
};

/// The whole tree.
RAMET_API std::ostream& operator<<(std::ostream& stream, const Module& module);
RAMET_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                               const std::shared_ptr<Module>& module);
RAMET_API serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                              const std::shared_ptr<Module>& module);

}  // namespace nn
}  // namespace ramet
