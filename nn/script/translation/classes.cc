// What a translation needs to know of the whole code, plain classes, and hooks.
#include <algorithm>

#include "nn/script/translation/translation_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;
using Code = Instruction::Code;

}  // namespace

const Listing& ModuleWriter::listing(ScriptFunction& function) {
  const auto known = listings_.find(&function);
  if (known != listings_.end()) return known->second;
  return listings_.emplace(&function, list_program(unit, function)).first->second;
}

// The methods that a program calls on the root.
std::vector<ScriptFunction*> ModuleWriter::outermost() const {
  const ClassInfo& info = *root_->info();
  std::vector<ScriptFunction*> methods;
  const auto is_hook = [&](const std::string& name) {
    return std::count(info.hooks.begin(), info.hooks.end(), name) +
               std::count(info.pre_hooks.begin(), info.pre_hooks.end(), name) >
           0;
  };
  for (const auto& method : info.methods) {
    const std::string name = last_part(method->name);
    const bool called = info.method("forward") ? name == "forward" : name.rfind("__", 0) != 0;
    if (called || is_hook(name)) methods.push_back(method.get());
  }
  return methods;
}

// Plain classes and enumerations get structs; those that no text names are not written.
void ModuleWriter::find_classes() {
  for (const auto& info : unit.classes()) {
    if (info->kind != ClassInfo::Kind::kClass && info->kind != ClassInfo::Kind::kEnum) continue;
    classes_.push_back(std::make_unique<StructMembers>());
    StructMembers& members = *classes_.back();
    plain_[info.get()] = &members;
    members.info = info.get();
    members.name = cpp_name(last_part(info->name), taken_);
    members.taken.insert({"copy", "with", "made", "shared_from_this", "python", members.name});
    for (const ClassInfo::Attribute& attribute : info->attributes)
      (void)member_name(members, attribute.name);
    for (const auto& method : info->methods)
      members.method_names[method.get()] = cpp_name(last_part(method->name), members.taken);
    words.structs[info.get()] = space() + "::" + members.name;
  }
}

// Which lists, dictionaries and attributes the code changes. A list that is changed has its static
// type under all of its names, so its type is what counts.
void ModuleWriter::find_changes() {
  std::vector<ScriptFunction*> waiting = outermost();
  std::set<ScriptFunction*> seen(waiting.begin(), waiting.end());
  while (!waiting.empty()) {
    ScriptFunction* const function = waiting.back();
    waiting.pop_back();
    std::vector<ScriptFunction*> called;
    find_changes(*function, called);
    for (ScriptFunction* one : called)
      if (seen.insert(one).second) waiting.push_back(one);
  }
}

void ModuleWriter::find_changes(ScriptFunction& function, std::vector<ScriptFunction*>& called) {
  const Listing& listing = this->listing(function);
  const Program& p = *listing.program;
  for (const ScriptFunction* one : p.functions) called.push_back(const_cast<ScriptFunction*>(one));
  for (const std::string& name : p.names)
    for (const auto& info : unit.classes())
      if (ScriptFunction* const method = info->method(name); method && method->program)
        called.push_back(method);
  for (const Instruction& at : p.instructions) {
    if (at.code == Code::kSet) {
      const Program::Field& field = p.fields[at.extra];
      assigned_.emplace(field.owner, field.owner->attributes[field.slot].name);
    }
    if (at.code != Code::kCall) continue;
    const Operator& op = *p.operators[at.extra];
    for (size_t k = 0; k < at.count && k < op.parameters.size(); ++k) {
      const Operand o = p.operands[at.first + k];
      if (!op.parameters[k].written || o.is_constant()) continue;
      TypePtr type = listing.types[o.index()];
      if (type && type->kind() == Kind::kOptional) type = type->element();
      if (type && (type->kind() == Kind::kList || type->kind() == Kind::kDict))
        words.changed.insert(type->text());
    }
  }
}

// Plain classes in a type: clones copy their objects.
void ModuleWriter::note_copies(const TypePtr& type) {
  if (const ClassInfo* const info = type->info(); info && copied_.insert(info).second)
    for (const ClassInfo::Attribute& attribute : info->attributes) note_copies(attribute.type);
  for (const TypePtr& element : type->elements()) note_copies(element);
}

// The value that the file has for an attribute. Tensors in it are the module's, or buffers.
std::string ModuleWriter::value_of_attribute(StructMembers& members, size_t i, bool& has_tensor) {
  const ClassInfo::Attribute& attribute = members.info->attributes[i];
  const std::string path = members.path + (members.path.empty() ? "" : ".") + attribute.name;
  const std::string trouble = trouble_of(members.object->slots[i], attribute.type, path, 0);
  if (!trouble.empty()) {
    problems_.emplace_back("attribute '" + path + "': " + trouble, members.info->name);
    return "";
  }
  words.tensor_name = [&](const Tensor& t) {
    has_tensor = true;
    // One of the module's own: an LSTM has a list of its weights.
    for (size_t k = 0; k < members.object->slots.size(); ++k)
      if (const IValue& own = members.object->slots[k]; own.isTensor() && own.toTensor().is_same(t))
        return member_name(members, members.info->attributes[k].name);
    return t.defined() ? members.constant_name(t) : std::string("ramet::Tensor()");
  };
  Written constant;
  constant.constant = &members.object->slots[i];
  const auto literal = words.value(constant, attribute.type);
  words.tensor_name = nullptr;
  if (!literal)
    problems_.emplace_back(
        "attribute '" + attribute.name + "': " + attribute.type->text() + " has no C++ here",
        members.info->name);
  return literal.value_or("");
}

// Definitions, or declarations for the struct.
std::string ModuleWriter::methods_of(StructMembers& members, bool declared) const {
  std::string text;
  for (auto method = members.methods.rbegin(); method != members.methods.rend(); ++method) {
    if (!declared) {
      text += method->second + "\n";
      continue;
    }
    std::string heading = method->second.substr(0, method->second.find(" {\n"));
    const std::string scope = " " + members.name + "::", start = "inline ";
    if (const size_t at = heading.find(scope); at != std::string::npos)
      heading.replace(at, scope.size(), " ");
    if (heading.rfind(start, 0) == 0) heading.erase(0, start.size());
    text += "  " + heading + ";\n";
  }
  return text;
}

// The structs of plain classes that the text names.
std::string ModuleWriter::plain_structs() {
  std::map<const ClassInfo*, std::string> texts;
  std::string all = structs_text_;
  for (const std::string& function : function_texts_) all += function;
  for (bool more = true; more;) {
    more = false;
    for (const auto& members : classes_) {
      if (named_.count(members->info) != 0 || !has_word(all, words.structs.at(members->info)))
        continue;
      more = true;
      named_.insert(members->info);
      const std::string bodies = methods_of(*members, false);
      std::string fields, copies, parameters, values;
      for (const ClassInfo::Attribute& attribute : members->info->attributes) {
        const std::string type = words.type(attribute.type);
        const std::string name = member_name(*members, attribute.name);
        // One that no method reads may have any type.
        if (type.empty() && !has_word(bodies + all, name)) continue;
        if (type.empty())
          problems_.emplace_back("attribute '" + attribute.name + "': " + attribute.type->text() +
                                     " is no type of C++ here",
                                 members->info->name);
        fields += "  " + type + " " + name + "{};\n";
        parameters += (parameters.empty() ? "" : ", ") + type + " its_" + name;
        values += "    made->" + name + " = std::move(its_" + name + ");\n";
        if (is_mutable(attribute.type))
          copies += "    made->" + name + " = python::own(" + name + ");\n";
      }
      const bool shares = bodies.find("shared_from_this()") != std::string::npos;
      std::string text = "/// " + in_comment(members->info->name) + ".\nstruct " + members->name +
                         (shares ? " : std::enable_shared_from_this<" + members->name + ">" : "") +
                         " {\n" + methods_of(*members, true) + fields;
      const std::string make = "    auto made = std::make_shared<" + members->name + ">(";
      const std::string shared = "std::shared_ptr<" + members->name + ">";
      if (all.find(words.structs.at(members->info) + "::with(") != std::string::npos)
        text += "\n  /// As in the file.\n  static " + shared + " with(" + parameters + ") {\n" +
                make + ");\n" + values + "    return made;\n  }\n";
      if (copied_.count(members->info) != 0)
        text += "  /// For a clone of the module that holds it.\n  " + shared +
                " copy() const {\n" + make + "*this);\n" + copies + "    return made;\n  }\n";
      text += "};\n\n";
      all += text + bodies;
      texts[members->info] = text;
    }
  }
  std::string names, structs;
  for (const auto& members : classes_) {
    if (named_.count(members->info) == 0) continue;
    names += "struct " + members->name + ";\n";
    structs += texts.at(members->info);
  }
  return names.empty() ? "" : names + "\n" + structs;
}

// forward() between the root's hooks, which may replace arguments and result: what Python's
// `module(x)` does.
void ModuleWriter::write_hooked_forward(StructMembers& root) {
  const ClassInfo& info = *root.info;
  const ScriptFunction* const forward = info.method("forward");
  if (!forward) return;
  std::string parameters, arguments, body;
  std::vector<std::string> names;
  std::set<std::string> taken = root.taken;
  for (size_t i = 1; i < forward->parameters.size(); ++i) {
    names.push_back(cpp_name(forward->parameters[i].name, taken));
    parameters +=
        (i > 1 ? ", " : "") + words.type(forward->parameters[i].type) + " " + names.back();
    arguments += (i > 1 ? ", " : "") + names.back();
  }
  const auto hook = [&](const std::string& name) -> const ScriptFunction* {
    const ScriptFunction* const found = info.method(name);
    const bool known = found && found->result && found->parameters.size() >= 2;
    if (!known || words.type(found->result).empty() || found->result->kind() == Kind::kOptional ||
        words.type(found->parameters[1].type).empty()) {
      problems_.emplace_back("the hook '" + name + "' has a result of several types", info.name);
      return nullptr;
    }
    return found;
  };
  for (const std::string& name : info.pre_hooks) {
    const ScriptFunction* const found = hook(name);
    if (!found) return;
    const std::string call = root.method_names.at(found) + "(" +
                             words.type(found->parameters[1].type) + "{" + arguments + "})";
    if (found->result->kind() == Kind::kNone) body += "    " + call + ";\n";
    else if (found->result->kind() == Kind::kTuple)
      body += "    std::tie(" + arguments + ") = " + call + ";\n";
    else body += "    " + arguments + " = " + call + ";\n";
  }
  TypePtr type = forward->result;
  std::string output = cpp_name("output", taken);
  const std::string forward_call = root.method_names.at(forward) + "(" + arguments + ");\n";
  if (type->kind() == Kind::kNone) {
    body += "    " + forward_call;
    if (!info.hooks.empty()) body += "    const std::monostate " + output + "{};\n";
  } else {
    body += "    auto " + output + " = " + forward_call;
  }
  for (const std::string& name : info.hooks) {
    const ScriptFunction* const found = hook(name);
    if (!found) return;
    const std::string call = root.method_names.at(found) + "(" +
                             words.type(found->parameters[1].type) + "{" + arguments + "}, " +
                             output + ")";
    if (found->result->kind() == Kind::kNone) {
      body += "    " + call + ";\n";
      continue;
    }
    output = cpp_name("output", taken);
    type = found->result;
    body += "    auto " + output + " = " + call + ";\n";
  }
  const bool none = type->kind() == Kind::kNone;
  if (!none) body += "    return " + output + ";\n";
  root.methods.insert(root.methods.begin(),
                      {nullptr,
                       "  /// The module's call: forward_without_hooks() between its hooks.\n"
                       "  " +
                           (none ? "void" : words.type(type)) + " forward(" + parameters + ") {\n" +
                           body + "  }\n"});
}

// The helpers that the text names, and those that they name.
std::string ModuleWriter::helper_texts(const std::string& text) const {
  const std::vector<Helper>& all = helpers();
  std::vector<bool> used(all.size(), false);
  std::string named = text, made;
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (used[i] || !has_word(named, "python::" + all[i].name)) continue;
      used[i] = more = true;
      named += all[i].text;
    }
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (used[i]) made += all[i].text + "\n";
  return made.empty() ? ""
                      : "/// What Python does, and C++ has no word for.\nnamespace python {\n\n" +
                            made + "}  // namespace python\n\n";
}

}  // namespace ramet::script
