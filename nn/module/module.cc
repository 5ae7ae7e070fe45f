#include "nn/module/module.h"

#include <algorithm>
#include <mutex>
#include <ostream>
#include <typeinfo>
#include <unordered_set>

#include "autograd/grad_mode.h"
#include "autograd/graph/node.h"
#include "nn/module/any_value.h"
#include "runtime/base/logging.h"
#include "runtime/capture/capture.h"

namespace ramet::nn {
namespace {

std::string join_name(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

void check_name(const char* op, const char* kind, const std::string& name) {
  RAMET_CHECK(!name.empty(), op, kind, " name must not be empty");
  RAMET_CHECK(name.find('.') == std::string::npos, op, kind, " name must not contain a dot (got '",
              name, "')");
}

// The tensors of a named list, each once.
std::vector<Tensor> unique_values(const OrderedDict<std::string, Tensor>& named) {
  std::vector<Tensor> out;
  out.reserve(named.size());
  std::unordered_set<const TensorImpl*> seen;
  for (const auto& item : named)
    if (seen.insert(item.value().impl()).second) out.push_back(item.value());
  return out;
}

void insert_defined(OrderedDict<std::string, Tensor>& out, const std::string& prefix,
                    const OrderedDict<std::string, Tensor>& own) {
  for (const auto& item : own)
    if (item.value().defined()) out.insert(join_name(prefix, item.key()), item.value());
}

}  // namespace

Module::Module() : parameters_("Parameter"), buffers_("Buffer"), children_("Submodule") {
  struct Probe : Module {
    char first;
  };
  static_assert(sizeof(Probe) > sizeof(Module),
                "own_bytes() begins at the end of Module: no derived member may lie before it");
}
Module::Module(std::string name) : Module() { name_ = std::move(name); }
Module::Module(const Module&) = default;
Module& Module::operator=(const Module&) = default;
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(Module&&) noexcept = default;
Module::~Module() = default;

const std::string& Module::name() const noexcept {
  // A type is only known once its constructor has begun, so the name is found at first use, which
  // may be on any thread.
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!name_) name_ = detail::type_name(typeid(*this));
  return *name_;
}

// ---- visiting -----------------------------------------------------------------------------------

void Module::visit_children(const NamedModulePointerApplyFunction& function,
                            const std::string& prefix) const {
  for (const auto& child : children_) {
    if (!child.value()) continue;
    const std::string full = join_name(prefix, child.key());
    function(full, child.value());
    child.value()->visit_children(function, full);
  }
}

void Module::apply(const ModuleApplyFunction& function) {
  function(*this);
  visit_children([&](const std::string&, const std::shared_ptr<Module>& m) { function(*m); }, "");
}
void Module::apply(const ConstModuleApplyFunction& function) const {
  function(*this);
  visit_children([&](const std::string&, const std::shared_ptr<Module>& m) { function(*m); }, "");
}
void Module::apply(const NamedModuleApplyFunction& function, const std::string& name_prefix) {
  function(name_prefix, *this);
  visit_children(
      [&](const std::string& name, const std::shared_ptr<Module>& m) { function(name, *m); },
      name_prefix);
}
void Module::apply(const ConstNamedModuleApplyFunction& function,
                   const std::string& name_prefix) const {
  function(name_prefix, *this);
  visit_children(
      [&](const std::string& name, const std::shared_ptr<Module>& m) { function(name, *m); },
      name_prefix);
}
void Module::apply(const ModulePointerApplyFunction& function) const {
  function(shared_from_this_checked());
  visit_children([&](const std::string&, const std::shared_ptr<Module>& m) { function(m); }, "");
}
void Module::apply(const NamedModulePointerApplyFunction& function,
                   const std::string& name_prefix) const {
  function(name_prefix, shared_from_this_checked());
  visit_children(function, name_prefix);
}

OrderedDict<std::string, Tensor> Module::named_parameters(bool recurse) const {
  OrderedDict<std::string, Tensor> out("Parameter");
  insert_defined(out, "", parameters_);
  if (recurse)
    visit_children(
        [&](const std::string& name, const std::shared_ptr<Module>& m) {
          insert_defined(out, name, m->parameters_);
        },
        "");
  return out;
}
OrderedDict<std::string, Tensor> Module::named_buffers(bool recurse) const {
  OrderedDict<std::string, Tensor> out("Buffer");
  insert_defined(out, "", buffers_);
  if (recurse)
    visit_children(
        [&](const std::string& name, const std::shared_ptr<Module>& m) {
          insert_defined(out, name, m->buffers_);
        },
        "");
  return out;
}
std::vector<Tensor> Module::parameters(bool recurse) const {
  return unique_values(named_parameters(recurse));
}
std::vector<Tensor> Module::buffers(bool recurse) const {
  return unique_values(named_buffers(recurse));
}

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_modules(
    const std::string& name_prefix, bool include_self) const {
  OrderedDict<std::string, std::shared_ptr<Module>> out("Submodule");
  if (include_self) out.insert(name_prefix, shared_from_this_checked());
  visit_children(
      [&](const std::string& name, const std::shared_ptr<Module>& m) { out.insert(name, m); },
      name_prefix);
  return out;
}
std::vector<std::shared_ptr<Module>> Module::modules(bool include_self) const {
  return named_modules("", include_self).values();
}
std::vector<std::shared_ptr<Module>> Module::children() const { return children_.values(); }
OrderedDict<std::string, std::shared_ptr<Module>> Module::named_children() const {
  return children_;
}

std::shared_ptr<Module> Module::shared_from_this_checked() const {
  auto self = weak_from_this().lock();
  RAMET_CHECK(self, "Module",
              "It looks like you attempted to retrieve your top-level module as a shared_ptr, but "
              "it is not stored in a "
              "shared_ptr. Use std::make_shared<",
              name(),
              "> instead of creating your module on the stack, or alternatively do not try to "
              "access your top-level module at "
              "all by passing /*include_self=*/false to modules() or named_modules()");
  return std::const_pointer_cast<Module>(self);
}

// ---- state --------------------------------------------------------------------------------------

void Module::captured() const {
  if (is_replica_) return;  // it follows its source
  // A program that captures a module without a shared_ptr must keep it alive itself, as in an eager
  // step.
  const bool owned = !weak_from_this().expired();
  capture::guard(
      this, "training mode or hooks of a module",
      // The list of hooks is kept: another one has another address.
      [m = this, life = weak_from_this(), owned, training = is_training_, hooks = hooks_] {
        return (!owned || !life.expired()) && m->is_training_ == training && m->hooks_ == hooks;
      });
}

void Module::train(bool on) {
  if (is_training_ != on && !is_replica_) capture::refuse("train", "the mode of a module changes");
  for (const auto& child : children_)
    if (child.value()) child.value()->train(on);
  is_training_ = on;
}
void Module::eval() { train(false); }

namespace {

void convert(const Tensor& t, std::optional<Device> device, std::optional<ScalarType> dtype,
             bool non_blocking) {
  if (!t.defined()) return;
  TensorOptions to;
  if (device) to = to.device(*device);
  if (dtype) to = to.dtype(*dtype);
  const NoGradGuard off;
  const Tensor made = t.to(to, non_blocking);
  if (!made.is_same(t)) t.set_data(made);
}

void convert_all(const OrderedDict<std::string, Tensor>& parameters,
                 const OrderedDict<std::string, Tensor>& buffers, std::optional<Device> device,
                 std::optional<ScalarType> dtype, bool non_blocking) {
  for (const auto& item : parameters) convert(item.value(), device, dtype, non_blocking);
  for (const auto& item : buffers) {
    const Tensor& t = item.value();
    const bool kept = dtype && is_floating(*dtype) && t.defined() && !t.is_floating_point();
    if (kept && !device) continue;
    convert(t, device, kept ? std::nullopt : dtype, non_blocking);
  }
}

}  // namespace

void Module::to(Device device, ScalarType dtype, bool non_blocking) {
  for (const auto& child : children_)
    if (child.value()) child.value()->to(device, dtype, non_blocking);
  convert_all(parameters_, buffers_, device, dtype, non_blocking);
}
void Module::to(ScalarType dtype, bool non_blocking) {
  for (const auto& child : children_)
    if (child.value()) child.value()->to(dtype, non_blocking);
  convert_all(parameters_, buffers_, std::nullopt, dtype, non_blocking);
}
void Module::to(Device device, bool non_blocking) {
  for (const auto& child : children_)
    if (child.value()) child.value()->to(device, non_blocking);
  convert_all(parameters_, buffers_, device, std::nullopt, non_blocking);
}

void Module::zero_grad(bool set_to_none) {
  if (is_replica_)
    log(LogLevel::Error,
        "[zero_grad] Calling .zero_grad() from a module created with DataParallel() has no effect. "
        "The parameters "
        "are copied (in a differentiable manner) from the original module: call zero_grad() on "
        "that one.");
  for (const Tensor& parameter : parameters()) autograd::zero_grad(parameter, set_to_none);
}

// ---- registration -------------------------------------------------------------------------------

Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  check_name("register_parameter", "Parameter", name);
  if (tensor.defined()) tensor.set_requires_grad(requires_grad);
  return parameters_.insert(std::move(name), std::move(tensor));
}
Tensor& Module::register_buffer(std::string name, Tensor tensor) {
  check_name("register_buffer", "Buffer", name);
  return buffers_.insert(std::move(name), std::move(tensor));
}
Tensor& Module::register_buffer(std::string name, Tensor tensor, BufferPolicy policy) {
  Tensor& made = register_buffer(name, std::move(tensor));
  set_buffer_policy(name, policy);
  return made;
}
void Module::unregister_tensor(const std::string& name) {
  if (parameters_.contains(name)) return parameters_.erase(name);
  RAMET_CHECK(buffers_.contains(name), "unregister_tensor", "No parameter or buffer with name `",
              name, "` is registered");
  buffers_.erase(name);
  policies_.erase(std::remove_if(policies_.begin(), policies_.end(),
                                 [&](const auto& policy) { return policy.first == name; }),
                  policies_.end());
}
void Module::set_own_parameter(const std::string& name, Tensor tensor) {
  parameters_[name] = std::move(tensor);
}
void Module::set_own_buffer(const std::string& name, Tensor tensor) {
  buffers_[name] = std::move(tensor);
}
void Module::add_child(std::string name, std::shared_ptr<Module> child) {
  check_name("register_module", "Submodule", name);
  children_.insert(std::move(name), std::move(child));
}
void Module::unregister_module(const std::string& name) {
  RAMET_CHECK(children_.contains(name), "unregister_module", "No Module with name `", name,
              "` is registered");
  children_.erase(name);
}

BufferPolicy Module::buffer_policy(const std::string& buffer) const {
  for (const auto& [name, policy] : policies_)
    if (name == buffer) return policy;
  return BufferPolicy::first;
}
void Module::set_buffer_policy(const std::string& buffer, BufferPolicy policy) {
  RAMET_CHECK(buffers_.contains(buffer), "set_buffer_policy", "Buffer '", buffer,
              "' is not defined in ", name());
  for (auto& [name, set] : policies_)
    if (name == buffer) return void(set = policy);
  policies_.emplace_back(buffer, policy);
}

unsigned int Module::_forward_num_required_args() {
  fail("forward", name(),
       " has default arguments in `forward` and must override `_forward_num_required_args`: use "
       "RAMET_FORWARD_HAS_DEFAULT_ARGS to do so.");
}
std::vector<AnyValue> Module::_forward_populate_default_args(std::vector<AnyValue>&&) {
  fail(
      "forward", name(),
      " has default arguments in `forward` and must override `_forward_populate_default_args`: use "
      "RAMET_FORWARD_HAS_DEFAULT_ARGS to do so.");
}

// ---- printing -----------------------------------------------------------------------------------

void Module::pretty_print(std::ostream& stream) const { stream << name(); }

void Module::print_tree(std::ostream& stream, const std::string& indentation) const {
  pretty_print(stream);
  if (children_.is_empty()) return;
  stream << "(\n";
  const std::string inner = indentation + "  ";
  for (const auto& child : children_) {
    stream << inner << "(" << child.key() << "): ";
    if (child.value()) {
      child.value()->print_tree(stream, inner);
    } else {
      stream << "None";
    }
    stream << '\n';
  }
  stream << indentation << ")";
}

std::ostream& operator<<(std::ostream& stream, const Module& module) {
  const ramet::detail::ClassicScope classic(stream);
  module.print_tree(stream, "");
  return stream;
}

}  // namespace ramet::nn
