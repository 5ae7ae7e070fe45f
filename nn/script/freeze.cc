// freeze(), and modules as text.
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "autograd/grad_mode.h"
#include "nn/script/changes_internal.h"
#include "nn/script/module_internal.h"

namespace ramet::jit {

using ramet::script::Changes;
using ramet::script::ClassInfo;
using ramet::script::FrozenNames;
using ramet::script::LoadedModule;
using ramet::script::module_in;
using ramet::script::Object;
using ramet::script::object_in;
using ramet::script::ScriptFunction;

namespace {

constexpr const char* kFreeze = "torch::jit::freeze";

// The object that has the attribute of that name: the module, or, with dots, one below it. Null
// where there is none.
std::shared_ptr<Object> owner_of(const Module& module, const std::string& path) {
  const size_t dot = path.find('.');
  if (dot == std::string::npos)
    return module.hasattr(path) ? ModuleAccess::loaded(module).object : nullptr;
  for (const auto& child : module.named_children())
    if (child.name == path.substr(0, dot)) return owner_of(child.value, path.substr(dot + 1));
  return nullptr;
}

// All modules below an object by all their names: a shared one has several.
class AllNames {
 public:
  using Visit = std::function<void(const std::string&, const Object&)>;
  explicit AllNames(Visit visit) : visit_(std::move(visit)) {}
  void walk(const Object& object, const std::string& name) {
    if (!inside_.insert(&object).second) return;  // a module inside itself
    RAMET_CHECK(--left_ > 0, kFreeze, "got modules with more than ", kMost,
                " names, expected fewer: shared modules have a name for each place");
    visit_(name, object);
    for (size_t i = 0; i < object.slots.size(); ++i)
      if (const auto child = module_in(object.slots[i]))
        walk(*child, full_name(name, object.info()->attributes[i].name));
    inside_.erase(&object);
  }

 private:
  static constexpr int64_t kMost = 1'000'000;
  Visit visit_;
  std::set<const Object*> inside_;
  int64_t left_ = kMost;
};

// The names that are preserved.
FrozenNames preserved(const Module& module, const std::vector<std::string>& wanted) {
  FrozenNames names;
  names.methods.insert("forward");
  for (const std::string& name : wanted) {
    if (module.find_method(name)) {
      names.methods.insert(name);
      continue;
    }
    const std::shared_ptr<Object> owner = owner_of(module, name);
    RAMET_CHECK(owner, kFreeze, "preserved_attrs: got '", name,
                "', expected an attribute or a method of ", module.type_name());
    names.attributes.insert(name);
    // A module is preserved as a whole.
    const auto slot = owner->info()->slot(name.substr(name.rfind('.') + 1));
    const auto whole = slot < 0 ? nullptr : module_in(owner->slots[static_cast<size_t>(slot)]);
    if (!whole) continue;
    AllNames([&](const std::string& each, const Object& object) {
      for (const auto& attribute : object.info()->attributes)
        names.attributes.insert(full_name(each, attribute.name));
    }).walk(*whole, name);
  }
  return names;
}

// What the methods and the hooks of the module change.
Changes changes_of(const Module& module, const FrozenNames& names) {
  const LoadedModule loaded = ModuleAccess::loaded(module);
  std::set<const ClassInfo*> in_training;
  AllNames([&](const std::string&, const Object& object) {
    const int64_t slot = object.info()->slot("training");
    if (slot < 0) return;
    const IValue& on = object.slots[static_cast<size_t>(slot)];
    if (!on.isBool() || on.toBool()) in_training.insert(object.info());
  }).walk(*loaded.object, "");
  Changes changes(*loaded.object->unit(), std::move(in_training));
  const ClassInfo& info = *loaded.object->info();
  for (const std::string& name : names.methods)
    if (module.find_method(name)) changes.add(*info.method(name));
  for (const auto* hooks : {&info.pre_hooks, &info.hooks})
    for (const std::string& hook : *hooks) {
      ramet::script::compile(loaded, *info.method(hook));
      changes.add_hook(*info.method(hook));
    }
  changes.find();
  return changes;
}

}  // namespace

Module freeze(const Module& module, const std::optional<std::vector<std::string>>& preserved_attrs,
              bool) {
  RAMET_CHECK(!module.hasattr("training") || !module.is_training(), kFreeze,
              "Freezing is currently only implemented for modules in eval mode. Please call "
              ".eval() before freezing");
  FrozenNames names = preserved(module, preserved_attrs.value_or(std::vector<std::string>()));
  const Changes changes = changes_of(module, names);
  const Module made = module.deepcopy();
  std::map<const Object*, std::set<size_t>> kept;
  AllNames([&](const std::string& name, const Object& object) {
    for (size_t i = 0; i < object.slots.size(); ++i) {
      const std::string full = full_name(name, object.info()->attributes[i].name);
      const bool holds_changed =
          changes.has_of_objects() && object_in(object.slots[i]) && !module_in(object.slots[i]);
      if (changes.has(object.info(), i) || holds_changed) names.attributes.insert(full);
      if (names.attributes.count(full) != 0) kept[&object].insert(i);
    }
  }).walk(*ModuleAccess::loaded(made).object, "");
  for (const Module& each : made.modules()) {
    const Object& object = *ModuleAccess::loaded(each).object;
    for (size_t i = 0; i < object.slots.size(); ++i) {
      const IValue& value = object.slots[i];
      if (kept[&object].count(i) == 0 && value.isTensor() && value.toTensor().defined() &&
          value.toTensor().is_leaf())
        value.toTensor().set_requires_grad(false);
    }
  }
  Module frozen = made;
  ModuleAccess::freeze(frozen, std::move(names));
  return frozen;
}

Module optimize_for_inference(const Module& module, const std::vector<std::string>& other_methods) {
  Module made = ModuleAccess::frozen(module) ? module : freeze(module);
  for (const std::string& name : other_methods) (void)made.get_method(name);
  return made;
}

// ---- text ---------------------------------------------------------------------------------------

namespace {

// The lines of a function: its first, and those that lie further to the right.
std::vector<std::string> code_of(const ScriptFunction& function) {
  const std::string& text = function.source->text;
  size_t at = text.rfind('\n', function.syntax->offset);
  at = at == std::string::npos ? 0 : at + 1;
  std::vector<std::string> lines;
  size_t indent = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const size_t own = line.find_first_not_of(' ');
    if (lines.empty()) indent = own == std::string::npos ? 0 : own;
    else if (own != std::string::npos && own <= indent) break;
    if (own != std::string::npos) lines.push_back(line.substr(std::min(own, indent)));
    at = end + 1;
  }
  return lines;
}

struct Dump {
  std::ostringstream& out;
  bool bodies, attributes, parameters;

  void value(const std::string& pad, const std::string& name, const IValue& v, bool shown) {
    out << pad << name << " = ";
    if (!shown) {
      out << "...\n";
      return;
    }
    auto text = ramet::detail::classic<std::ostringstream>();
    text << v;
    std::string lines = text.str();
    for (size_t at = lines.find('\n'); at != std::string::npos; at = lines.find('\n', at + 1))
      lines.insert(at + 1, pad);
    out << lines << '\n';
  }

  void module(const Module& m, const std::string& pad) {
    const std::string in = pad + "  ", deep = pad + "    ";
    out << pad << "module " << m.type_name() << " {\n" << in << "parameters {\n";
    for (const auto& p : m.named_parameters(false)) value(deep, p.name, p.value, parameters);
    out << in << "}\n" << in << "attributes {\n";
    for (const auto& a : m.named_attributes(false)) value(deep, a.name, a.value, attributes);
    out << in << "}\n" << in << "methods {\n";
    for (const Method& method : m.get_methods()) {
      out << deep << "method " << method.name() << " {\n";
      const ScriptFunction& function =
          *ModuleAccess::loaded(m).object->info()->method(method.name());
      if (bodies)
        for (const std::string& line : code_of(function)) out << deep << "  " << line << '\n';
      out << deep << "}\n";
    }
    out << in << "}\n" << in << "submodules {\n";
    for (const Module& child : m.children()) module(child, deep);
    out << in << "}\n" << pad << "}\n";
  }
};

}  // namespace

std::string Module::dump_to_str(bool print_method_bodies, bool print_attr_values,
                                bool print_param_values) const {
  (void)object();
  auto out = ramet::detail::classic<std::ostringstream>();
  Dump{out, print_method_bodies, print_attr_values, print_param_values}.module(*this, "");
  return out.str();
}
void Module::dump(bool print_method_bodies, bool print_attr_values, bool print_param_values) const {
  std::cout << dump_to_str(print_method_bodies, print_attr_values, print_param_values) << std::endl;
}

}  // namespace ramet::jit
