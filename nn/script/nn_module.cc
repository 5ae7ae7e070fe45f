// ScriptModule: a TorchScript module as an nn::Module.
//
// Note [Script modules]
// A tensor is in two places. The program finds it in a slot of the script's object, optimizers and
// replicas in the module's registry. Before a call the registry's tensor goes
// into the slot, if they are not the same one, and training mode too. After the call a tensor that
// the program has put into a slot goes into the registry. Where nothing was exchanged, which is the
// usual case, both only compare, so several threads may run a module. Submodules that the program
// holds twice are one child under two names. A module with shards keeps whole parameters in its
// slots, as other modules do in their members: fully_shard() gathers their memory.
#include <ostream>

#include "nn/script/module_internal.h"
#include "nn/script/moved_internal.h"

namespace ramet::script {

struct ScriptModule::Made {
  std::unordered_map<const Object*, std::shared_ptr<ScriptModule>> modules;
};

ScriptModule::ScriptModule(const jit::Module& module) : nn::Module(module.type_name()) {
  module_ = module;
  Made made;
  build(made);
}
ScriptModule::ScriptModule(const jit::Module& module, Made& made)
    : nn::Module(module.type_name()), module_(module) {
  build(made);
}

void ScriptModule::build(Made& made) {
  const LoadedModule loaded = jit::ModuleAccess::loaded(module_);
  const auto& attributes = loaded.object->info()->attributes;
  for (size_t i = 0; i < attributes.size(); ++i) {
    const IValue& value = loaded.object->slots[i];
    const ClassInfo::Attribute& attribute = attributes[i];
    const bool tensor = value.isTensor() || value.isNone();
    if ((attribute.parameter || attribute.buffer) && tensor) {
      const Tensor t = value.isNone() ? Tensor() : value.toTensor();
      if (attribute.parameter)
        register_parameter(attribute.name, t, t.defined() && t.requires_grad());
      else register_buffer(attribute.name, t);
      slots_.push_back({i, attribute.buffer,
                        (attribute.buffer ? own_buffers().size() : own_parameters().size()) - 1});
    } else if (const auto child = module_in(value)) {
      std::shared_ptr<ScriptModule>& known = made.modules[child.get()];
      if (!known)
        known = std::shared_ptr<ScriptModule>(
            new ScriptModule(jit::ModuleAccess::make({child, loaded.texts}), made));
      register_module(attribute.name, known);
    } else if (attribute.name == "training" && value.isBool()) {
      training_ = static_cast<int64_t>(i);
    } else if (value.isDevice() && means(value.toDevice(), loaded.object->unit()->home)) {
      devices_.push_back(i);
    }
  }
  // Of this module alone: each has its own.
  if (training_ >= 0) {
    const bool on = loaded.object->slots[static_cast<size_t>(training_)].toBool();
    if (on != is_training()) set_own_training(on);
  }
}

const Tensor& ScriptModule::registered(const Slot& slot) const {
  return slot.buffer ? own_buffers()[slot.place].value() : own_parameters()[slot.place].value();
}

void ScriptModule::to_object() const { to_object(place()); }

void ScriptModule::to_object(const std::optional<Device>& here) const {
  Object& object = *jit::ModuleAccess::loaded(module_).object;
  for (const Slot& slot : slots_) {
    if (!slot.buffer && holds_shards()) continue;
    const Tensor& t = registered(slot);
    IValue& value = object.slots[slot.slot];
    if (value.isTensor() ? value.toTensor().is_same(t) : !t.defined()) continue;
    if (t.defined()) value = t;
    else value = IValue();
  }
  for (const size_t slot : devices_) {
    IValue& value = object.slots[slot];
    if (here && value.isDevice() && value.toDevice() != *here) value = *here;
  }
  if (training_ >= 0) {
    IValue& value = object.slots[static_cast<size_t>(training_)];
    if (value.toBool() != is_training()) value = is_training();
  }
  for (const auto& child : own_children())
    if (auto* below = dynamic_cast<const ScriptModule*>(child.value().get()))
      below->to_object(here);
}

void ScriptModule::from_object() {
  const Object& object = *jit::ModuleAccess::loaded(module_).object;
  for (const Slot& slot : slots_) {
    if (!slot.buffer && holds_shards()) continue;
    const IValue& value = object.slots[slot.slot];
    const Tensor& t = registered(slot);
    if (value.isTensor() ? value.toTensor().is_same(t) : !t.defined()) continue;
    const std::string& name =
        slot.buffer ? own_buffers()[slot.place].key() : own_parameters()[slot.place].key();
    Tensor now = value.isTensor() ? value.toTensor() : Tensor();
    if (slot.buffer) set_own_buffer(name, std::move(now));
    else set_own_parameter(name, std::move(now));
  }
  for (const auto& child : own_children())
    if (auto* below = dynamic_cast<ScriptModule*>(child.value().get())) below->from_object();
}

// The first tensor's device. Null where there is no tensor.
std::optional<Device> ScriptModule::place() const {
  for (const Slot& slot : slots_)
    if (const Tensor& t = registered(slot); t.defined()) return t.device();
  for (const auto& child : own_children())
    if (const auto* below = dynamic_cast<const ScriptModule*>(child.value().get()))
      if (const auto found = below->place()) return found;
  return std::nullopt;
}

// Note [Moved modules]
std::optional<Move> ScriptModule::moved(const std::optional<Device>& here) const {
  const Device home = jit::ModuleAccess::loaded(module_).object->unit()->home;
  return here && *here != home ? std::optional(Move{home, *here}) : std::nullopt;
}

IValue ScriptModule::run(std::vector<IValue> inputs) {
  const std::optional<Device> here = place();
  to_object(here);
  const MoveGuard guard(moved(here));
  IValue result = module_(std::move(inputs));
  from_object();
  return result;
}

namespace {

// The value, where it is boxed as one of these types.
template <class T, class... More> IValue unboxed(nn::AnyValue& value, size_t i) {
  if (T* const held = value.try_get<T>()) return IValue(std::move(*held));
  if constexpr (sizeof...(More) > 0) return unboxed<More...>(value, i);
  fail("ScriptModule", "argument ", i, " of forward(): got ",
       nn::detail::type_name(value.type_info()),
       ", expected a tensor, number, text, list of tensors or IValue");
}

}  // namespace

nn::AnyValue ScriptModule::forward_values(std::vector<nn::AnyValue>&& arguments) {
  std::vector<IValue> inputs;
  for (size_t i = 0; i < arguments.size(); ++i)
    inputs.push_back(
        unboxed<Tensor, IValue, int64_t, int, double, bool, std::string, std::vector<Tensor>>(
            arguments[i], i));
  IValue result = run(std::move(inputs));
  return result.isTensor() ? nn::AnyValue(result.toTensor()) : nn::AnyValue(std::move(result));
}

bool ScriptModule::maps_tensor() const {
  const ScriptFunction* const forward =
      jit::ModuleAccess::loaded(module_).object->info()->method("forward");
  return forward && forward->parameters.size() == 2 && forward->result &&
         forward->parameters[1].type->kind() == Type::Kind::kTensor &&
         forward->result->kind() == Type::Kind::kTensor;
}

IValue ScriptModule::run_method(const std::string& name, std::vector<IValue> inputs) {
  const jit::Method method = module_.get_method(name);
  const std::optional<Device> here = place();
  to_object(here);
  const MoveGuard guard(moved(here));
  IValue result = method(std::move(inputs));
  from_object();
  return result;
}

Tensor ScriptModule::tensor_of(const IValue& value) {
  RAMET_CHECK(value.isTensor(), "ScriptModule", "result of forward(): got ", value.tagKind(),
              ", expected Tensor: call forward() with a vector of values");
  return value.toTensor();
}

const jit::Module& ScriptModule::script() const {
  to_object();
  return module_;
}

void ScriptModule::take_flags(const ScriptModule& source) {
  copy_flags_from(source);
  devices_ = source.devices_;
  for (const auto& buffer : own_buffers())
    set_buffer_policy(buffer.key(), source.buffer_policy(buffer.key()));
  for (size_t i = 0; i < own_children().size(); ++i) {
    auto* mine = dynamic_cast<ScriptModule*>(own_children()[i].value().get());
    const auto* theirs = dynamic_cast<const ScriptModule*>(source.own_children()[i].value().get());
    if (mine && theirs) mine->take_flags(*theirs);
  }
}

std::shared_ptr<nn::Module> ScriptModule::clone(const std::optional<Device>& device) const {
  for (const auto& module : modules(/*include_self=*/false))
    RAMET_CHECK(!module->holds_shards(), "clone", "got ", module->name(),
                ", whose parameters are sharded, expected whole ones");
  RAMET_CHECK(!holds_shards(), "clone", "got ", name(),
              ", whose parameters are sharded, expected whole ones");
  to_object();
  const auto made = std::make_shared<ScriptModule>(module_.deepcopy(device));
  made->take_flags(*this);
  return made;
}

void ScriptModule::pretty_print(std::ostream& stream) const { stream << module_.type_name(); }

std::shared_ptr<ScriptModule> load(const std::string& path, const LoadOptions& options) {
  return std::make_shared<ScriptModule>(jit::load(path, options));
}
std::shared_ptr<ScriptModule> load(std::istream& in, const LoadOptions& options) {
  return std::make_shared<ScriptModule>(jit::load(in, options));
}

}  // namespace ramet::script
