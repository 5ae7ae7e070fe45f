// jit::Module: a handle of an object of a TorchScript file.
#include <set>

#include "autograd/grad_mode.h"
#include "nn/script/module_internal.h"

namespace ramet::jit {

using ramet::script::ClassInfo;
using ramet::script::DeepCopy;
using ramet::script::LoadedModule;
using ramet::script::module_in;
using ramet::script::Object;
using ramet::script::ScriptFunction;

ReadAdapter::~ReadAdapter() = default;

namespace {

std::vector<std::pair<std::string, IValue>> pairs(const Kwargs& by_name) {
  return {by_name.begin(), by_name.end()};
}

}  // namespace

IValue Method::operator()(std::vector<IValue> arguments, const Kwargs& by_name) const {
  arguments.insert(arguments.begin(), IValue(IValue::ObjectPtr(object_)));
  return call(*function_, std::move(arguments), pairs(by_name));
}

Module::Module(std::shared_ptr<Object> object, std::shared_ptr<ramet::script::ArchiveTexts> texts)
    : object_(std::move(object)), texts_(std::move(texts)) {}

Object& Module::object() const {
  RAMET_CHECK(object_, "torch::jit::Module",
              "got a module that holds nothing, expected one that "
              "load() gave");
  return *object_;
}

IValue Module::forward(std::vector<IValue> inputs, const Kwargs& by_name) const {
  return get_method("forward")(std::move(inputs), by_name);
}
IValue Module::operator()(std::vector<IValue> inputs, const Kwargs& by_name) const {
  const ClassInfo& info = *object().info();
  (void)get_method("forward");
  for (const auto* hooks : {&info.pre_hooks, &info.hooks})
    for (const std::string& hook : *hooks)  // a frozen module has them, too
      ramet::script::compile(LoadedModule{object_, texts_}, *info.method(hook));
  return call_module(object_, std::move(inputs), pairs(by_name));
}

// A module that is there has attributes that are.
bool Module::sees(const std::string& attribute) const {
  if (!frozen_ || frozen_->attributes.count(attribute) != 0) return true;
  const std::string below = attribute + ".";
  const auto next = frozen_->attributes.lower_bound(below);
  return next != frozen_->attributes.end() && next->compare(0, below.size(), below) == 0;
}
bool Module::sees_method(const std::string& method) const {
  return !frozen_ || frozen_->methods.count(method) != 0;
}

std::optional<Method> Module::find_method(const std::string& name) const {
  ScriptFunction* function = object().info()->method(name);
  if (!function || !sees_method(name)) return std::nullopt;
  ramet::script::compile(LoadedModule{object_, texts_}, *function);
  return Method(object_, function, name);
}
Method Module::get_method(const std::string& name) const {
  std::optional<Method> method = find_method(name);
  RAMET_CHECK(method, "torch::jit::Module", "Method '", name, "' is not defined in ", type_name());
  return *method;
}
std::vector<Method> Module::get_methods() const {
  std::vector<Method> list;
  for (const auto& method : object().info()->methods) {
    std::string name = method->name.substr(method->name.rfind('.') + 1);
    if (sees_method(name)) list.push_back(get_method(name));
  }
  return list;
}

// ---- attributes ---------------------------------------------------------------------------------

bool Module::hasattr(const std::string& name) const {
  const ClassInfo& info = *object().info();
  return (info.slot(name) >= 0 && sees(name)) || info.constants.count(name) != 0;
}
size_t Module::num_slots() const {
  size_t count = 0;
  for (const auto& attribute : object().info()->attributes) count += sees(attribute.name) ? 1 : 0;
  return count;
}
IValue Module::attr(const std::string& name) const {
  const ClassInfo& info = *object().info();
  if (const int64_t slot = info.slot(name); slot >= 0 && sees(name))
    return object_->slots[static_cast<size_t>(slot)];
  const auto constant = info.constants.find(name);
  RAMET_CHECK(constant != info.constants.end(), "torch::jit::Module", type_name(),
              " does not have a field with name '", name, "'");
  return constant->second;
}
IValue Module::attr(const std::string& name, IValue or_else) const {
  return hasattr(name) ? attr(name) : std::move(or_else);
}
void Module::setattr(const std::string& name, IValue value) const {
  const ClassInfo& info = *object().info();
  RAMET_CHECK(!info.constants.count(name), "torch::jit::Module", "Can't set constant '", name,
              "' which has value: ", info.constants.at(name));
  const int64_t slot = sees(name) ? info.slot(name) : -1;
  RAMET_CHECK(slot >= 0, "torch::jit::Module", type_name(), " does not have a field with name '",
              name, "'");
  object_->set_slot("torch::jit::Module", slot, std::move(value));
}

namespace {

// The attribute that register_...() sets. One of the class, since all its objects have the same.
void check_registered(const Module& module, const std::string& name, const char* op) {
  RAMET_CHECK(ModuleAccess::loaded(module).object->info()->slot(name) >= 0, op, "got the name '",
              name, "', expected an attribute of ", module.type_name(),
              ": a class of a file gets no others");
}

}  // namespace

void Module::register_buffer(const std::string& name, Tensor value) const {
  (void)object();
  check_registered(*this, name, "register_buffer");
  setattr(name, std::move(value));
}
void Module::register_parameter(const std::string& name, Tensor value, bool) const {
  (void)object();
  check_registered(*this, name, "register_parameter");
  setattr(name, std::move(value));
}
void Module::register_module(const std::string& name, const Module& module) const {
  (void)object();
  check_registered(*this, name, "register_module");
  setattr(name, module);
}

std::string full_name(const std::string& module, const std::string& own) {
  return module.empty() ? own : module + "." + own;
}

namespace {

template <class T> std::vector<T> values(const std::vector<Named<T>>& named) {
  std::vector<T> list;
  for (const auto& item : named) list.push_back(item.value);
  return list;
}

// This module first and, with `recurse`, all below it.
std::vector<Named<Module>> chosen(const Module& module, bool recurse) {
  if (recurse) return module.named_modules();
  (void)module.type_name();  // an Error where it holds nothing
  return {{"", module}};
}

std::vector<NameTensor> tensors(const Module& module, bool recurse,
                                bool ClassInfo::Attribute::*wanted) {
  std::vector<NameTensor> list;
  for (const auto& [name, each] : chosen(module, recurse)) {
    const Object& object = *ModuleAccess::loaded(each).object;
    const auto& attributes = object.info()->attributes;
    for (size_t i = 0; i < attributes.size(); ++i) {
      const IValue& value = object.slots[i];
      if (!(attributes[i].*wanted) || !ModuleAccess::sees(each, attributes[i].name) ||
          !value.isTensor() || !value.toTensor().defined())
        continue;
      list.push_back({full_name(name, attributes[i].name), value.toTensor()});
    }
  }
  return list;
}

}  // namespace

std::vector<NameTensor> Module::named_parameters(bool recurse) const {
  return tensors(*this, recurse, &ClassInfo::Attribute::parameter);
}
std::vector<NameTensor> Module::named_buffers(bool recurse) const {
  return tensors(*this, recurse, &ClassInfo::Attribute::buffer);
}
std::vector<Tensor> Module::parameters(bool recurse) const {
  return values(named_parameters(recurse));
}
std::vector<Tensor> Module::buffers(bool recurse) const { return values(named_buffers(recurse)); }

std::vector<Named<Module>> Module::named_children() const {
  std::vector<Named<Module>> list;
  const auto& attributes = object().info()->attributes;
  for (size_t i = 0; i < attributes.size(); ++i) {
    const std::string& name = attributes[i].name;
    auto child = module_in(object_->slots[i]);
    if (!child || !sees(name)) continue;
    list.push_back({name, Module(std::move(child), texts_)});
    if (!frozen_) continue;
    ramet::script::FrozenNames below;
    for (const std::string& kept : frozen_->attributes)
      if (kept.compare(0, name.size() + 1, name + ".") == 0)
        below.attributes.insert(kept.substr(name.size() + 1));
    ModuleAccess::freeze(list.back().value, std::move(below));
  }
  return list;
}
void Module::apply(const std::function<void(Module&)>& f) const {
  for (const Module& child : children()) child.apply(f);
  Module self = *this;
  f(self);
}
std::vector<Named<Module>> Module::named_modules() const {
  std::vector<Named<Module>> list;
  std::set<const Object*> seen;
  const std::function<void(const std::string&, const Module&)> add = [&](const std::string& name,
                                                                         const Module& module) {
    if (!seen.insert(module.object_.get()).second) return;
    list.push_back({name, module});
    for (const auto& child : module.named_children()) add(full_name(name, child.name), child.value);
  };
  add("", *this);
  return list;
}
std::vector<Module> Module::children() const { return values(named_children()); }
std::vector<Module> Module::modules() const { return values(named_modules()); }

std::vector<Named<IValue>> Module::named_attributes(bool recurse) const {
  std::vector<Named<IValue>> list;
  for (const auto& [name, each] : chosen(*this, recurse)) {
    const Object& module = each.object();
    for (size_t i = 0; i < module.slots.size(); ++i) {
      const std::string& own = module.info()->attributes[i].name;
      if (each.sees(own)) list.push_back({full_name(name, own), module.slots[i]});
    }
  }
  return list;
}
std::vector<IValue> Module::attributes(bool recurse) const {
  return values(named_attributes(recurse));
}

// ---- state --------------------------------------------------------------------------------------

namespace {

void convert(const Module& module, std::optional<Device> device, std::optional<ScalarType> dtype,
             bool non_blocking) {
  const NoGradGuard off;
  const auto one = [&](const Tensor& t, bool buffer) {
    TensorOptions to;
    if (device) to = to.device(*device);
    if (dtype && (t.is_floating_point() || !buffer || !is_floating(*dtype))) to = to.dtype(*dtype);
    const Tensor made = t.to(to, non_blocking);
    if (!made.is_same(t)) t.set_data(made);
  };
  for (const Tensor& t : module.parameters()) one(t, false);
  for (const Tensor& t : module.buffers()) one(t, true);
}

}  // namespace

void Module::to(Device device, ScalarType dtype, bool non_blocking) const {
  convert(*this, device, dtype, non_blocking);
}
void Module::to(ScalarType dtype, bool non_blocking) const {
  convert(*this, std::nullopt, dtype, non_blocking);
}
void Module::to(Device device, bool non_blocking) const {
  convert(*this, device, std::nullopt, non_blocking);
}

void Module::train(bool on) const {
  for (const Module& module : modules())
    if (module.object_->info()->slot("training") >= 0 && module.sees("training"))
      module.setattr("training", on);
}
bool Module::is_training() const { return attr("training", true).toBool(); }

Module Module::deepcopy(std::optional<Device> device) const {
  (void)object();
  Module made(DeepCopy(device ? std::optional(resolve(*device)) : std::nullopt).of(object_),
              texts_);
  made.frozen_ = frozen_;
  return made;
}
Module Module::copy() const {
  Module made(std::make_shared<Object>(object()), texts_);
  made.frozen_ = frozen_;
  return made;
}

const std::string& Module::type_name() const { return object().class_name(); }
void Module::define(const std::string&) const { jit::compile(""); }
IValue::ObjectPtr Module::_ivalue() const {
  (void)object();
  return object_;
}

void compile(const std::string&) {
  fail("torch::jit::compile",
       "got TorchScript's text, which this library compiles only as part of "
       "a file: expected torch::jit::load() of one that torch.jit.save() wrote");
}

}  // namespace ramet::jit

namespace ramet {

jit::Module IValue::toModule() const {
  const std::shared_ptr<script::Object> object = script::module_in(toObject());
  RAMET_CHECK(object, "IValue::toModule", "got an object of ", toObject()->class_name(),
              ", expected a module");
  return jit::ModuleAccess::make({object, object->unit()->texts});
}

}  // namespace ramet
