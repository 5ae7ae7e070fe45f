// freeze(), and modules as text.
#include <iostream>
#include <sstream>

#include "autograd/grad_mode.h"
#include "nn/script/module_internal.h"
#include "nn/script/program_internal.h"

namespace ramet::jit {

using ramet::script::ClassInfo;
using ramet::script::FrozenNames;
using ramet::script::Instruction;
using ramet::script::module_in;
using ramet::script::Object;
using ramet::script::Program;
using ramet::script::ScriptFunction;

namespace {

constexpr const char* kFreeze = "torch::jit::freeze";

// Slots of classes that a program changes: it assigns to them, or an operator writes what it has
// read from them. All modules are in evaluation mode: `if self.training` is not entered.
class Changes {
 public:
  using Field = std::pair<const ClassInfo*, size_t>;
  void add(const ScriptFunction& function);
  bool has(const ClassInfo* owner, size_t slot) const { return fields_.count({owner, slot}) != 0; }

 private:
  static void read(const Program& program, const Instruction& at, std::map<size_t, Field>& held,
                   std::set<Field>& fields);
  static bool is_training(const Program& program, const Instruction& at,
                          const std::map<size_t, Field>& held);
  std::set<const ScriptFunction*> seen_;
  std::set<Field> fields_;
};

// Is the condition of a jump `self.training`?
bool Changes::is_training(const Program& program, const Instruction& at,
                          const std::map<size_t, Field>& held) {
  const auto operand = program.operands[at.first];
  if (operand.is_constant()) return false;
  const auto found = held.find(operand.index());
  if (found == held.end()) return false;
  const auto& [owner, slot] = found->second;
  return owner->kind == ClassInfo::Kind::kModule && owner->attributes[slot].name == "training";
}

void Changes::read(const Program& program, const Instruction& at, std::map<size_t, Field>& held,
                   std::set<Field>& fields) {
  using Code = Instruction::Code;
  const auto slot_of = [&](size_t i) -> int64_t {
    const auto operand = program.operands[at.first + i];
    return operand.is_constant() ? -1 : static_cast<int64_t>(operand.index());
  };
  const auto change = [&](int64_t slot) {
    if (const auto at_slot = held.find(static_cast<size_t>(slot)); at_slot != held.end())
      fields.insert(at_slot->second);
  };
  if (at.code == Code::kSet) {
    const Program::Field& field = program.fields[at.extra];
    fields.insert({field.owner, field.slot});
  } else if (at.code == Code::kCall) {
    const auto& op = *program.operators[at.extra];
    for (size_t i = 0; i < std::min<size_t>(at.count, op.parameters.size()); ++i)
      if (op.parameters[i].written && slot_of(i) >= 0) change(slot_of(i));
  }
  if (at.result == Instruction::kNone) return;
  held.erase(at.result);
  if (at.code == Code::kGet) {
    const Program::Field& field = program.fields[at.extra];
    held[at.result] = {field.owner, field.slot};
  } else if (at.code == Code::kMove && slot_of(0) >= 0) {
    if (const auto from = held.find(static_cast<size_t>(slot_of(0))); from != held.end())
      held[at.result] = from->second;
  }
}

void Changes::add(const ScriptFunction& function) {
  if (!function.program || !seen_.insert(&function).second) return;
  const Program& program = *function.program;
  using Code = Instruction::Code;
  std::map<size_t, Field> held;  // what slots of the frame have read
  std::set<size_t> done;
  std::vector<size_t> waiting{0};
  while (!waiting.empty()) {
    size_t next = waiting.back();
    waiting.pop_back();
    while (next < program.instructions.size() && done.insert(next).second) {
      const Instruction& at = program.instructions[next++];
      const bool off = at.code == Code::kJumpUnless && is_training(program, at, held);
      read(program, at, held, fields_);
      if (at.code == Code::kReturn || at.code == Code::kFail) break;
      if (at.code == Code::kJump || off) next = at.extra;
      else if (at.code == Code::kJumpUnless || at.code == Code::kJumpUnlessMore)
        waiting.push_back(at.extra);
    }
  }
  for (const ScriptFunction* called : program.functions) add(*called);
  if (!function.owner) return;
  for (const std::string& name : program.names)  // of methods of interfaces
    for (const auto& info : function.owner->unit->classes())
      if (const ScriptFunction* method = info->method(name)) add(*method);
}

std::string dotted(const std::string& module, const std::string& own) {
  return module.empty() ? own : module + "." + own;
}

// Is there an attribute of that name in the module, or, with dots, in one below it?
bool has_path(const Module& module, const std::string& path) {
  const size_t dot = path.find('.');
  if (dot == std::string::npos) return module.hasattr(path);
  for (const auto& child : module.named_children())
    if (child.name == path.substr(0, dot)) return has_path(child.value, path.substr(dot + 1));
  return false;
}

// Names of all that is in a module that is preserved as a whole.
void keep_all(const Module& module, const std::string& name, FrozenNames& names) {
  for (const auto& item : module.named_attributes())
    names.attributes.insert(dotted(name, item.name));
}

}  // namespace

Module freeze(const Module& module, const std::optional<std::vector<std::string>>& preserved_attrs,
              bool) {
  RAMET_CHECK(!module.hasattr("training") || !module.is_training(), kFreeze,
              "Freezing is currently only implemented for modules in eval mode. Please call "
              ".eval() before freezing");
  FrozenNames names;
  names.methods.insert("forward");
  for (const std::string& name : preserved_attrs.value_or(std::vector<std::string>())) {
    if (module.find_method(name)) {
      names.methods.insert(name);
      continue;
    }
    RAMET_CHECK(has_path(module, name), kFreeze, "preserved_attrs: got '", name,
                "', expected an attribute or a method of ", module.type_name());
    names.attributes.insert(name);
    for (const auto& child : module.named_modules())
      if (child.name == name) keep_all(child.value, name, names);
  }
  Changes changes;
  for (const std::string& name : names.methods)
    if (module.find_method(name))
      changes.add(*ModuleAccess::loaded(module).object->info()->method(name));
  Module made = module.deepcopy();
  for (const auto& [name, each] : made.named_modules()) {
    const Object& object = *ModuleAccess::loaded(each).object;
    for (size_t i = 0; i < object.slots.size(); ++i) {
      const IValue& value = object.slots[i];
      const std::string full = dotted(name, object.info()->attributes[i].name);
      if (changes.has(object.info(), i)) names.attributes.insert(full);
      const bool kept = names.attributes.count(full) != 0;
      if (!kept && value.isTensor() && value.toTensor().defined() && value.toTensor().is_leaf())
        value.toTensor().set_requires_grad(false);
    }
  }
  ModuleAccess::freeze(made, std::move(names));
  return made;
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
