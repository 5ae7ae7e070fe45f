// Modules as C++: structs, registrations, the header.
#include "nn/script/translate.h"

#include <algorithm>
#include <sstream>

#include "nn/script/module_internal.h"
#include "nn/script/translate_internal.h"
#include "runtime/base/classic.h"

namespace ramet::script {
namespace {

constexpr const char* kOp = "translate";
constexpr int kDepth = 200;  // of modules inside each other
constexpr size_t kMostPaths = 100'000;

/// Names that members of a struct may not have: those of nn::Module that written code calls, and
/// those that a program calls on it.
constexpr const char* kModuleNames[] = {"forward",
                                        "reset",
                                        "clone",
                                        "name",
                                        "parameters",
                                        "buffers",
                                        "children",
                                        "modules",
                                        "train",
                                        "eval",
                                        "to",
                                        "apply",
                                        "zero_grad",
                                        "is_training",
                                        "save",
                                        "load",
                                        "register_parameter",
                                        "as",
                                        "state_dict",
                                        "push_back",
                                        "parameters_"};

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

/// Names of a file in a comment: they may hold any character, and must not end the line.
std::string in_comment(std::string name) {
  for (char& c : name)
    if (!detail::is_letter_or_digit(c) && c != '.') c = '_';
  return name;
}

/// Has the file it in evaluation mode?
bool is_evaluated(const Object& object) {
  const int64_t slot = object.info()->slot("training");
  if (slot < 0) return false;
  const IValue& training = object.slots[static_cast<size_t>(slot)];
  return training.isBool() && !training.toBool();
}

std::string zeros(const Tensor& t) {
  std::string sizes;
  for (const int64_t size : t.sizes()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  return "ramet::zeros(" + (sizes.empty() ? "ramet::IntArrayRef()" : "{" + sizes + "}") + ", " +
         cpp_dtype(t.scalar_type()) + ")";
}

/// The value of a tensor attribute; null where it is none.
const Tensor* tensor_of(const IValue& value) {
  return value.isTensor() && value.toTensor().defined() ? &value.toTensor() : nullptr;
}

}  // namespace

ModuleWriter::ModuleWriter(CompilationUnit& unit_in, std::shared_ptr<Object> root, std::string name)
    : unit(unit_in), root_(std::move(root)), name_(std::move(name)) {
  taken_.insert({"ramet", "std", name_});
  for (const Helper& helper : helpers()) taken_.insert(helper.name);
  for (const auto& info : unit.classes())
    for (const auto& method : info->methods)
      if (method->program)
        for (const Instruction& at : method->program->instructions)
          if (at.code == Instruction::Code::kSet) {
            const Program::Field& field = method->program->fields[at.extra];
            assigned_.emplace(field.owner, field.owner->attributes[field.slot].name);
          }
  find_modules(root_, "", 0);
}

std::string ModuleWriter::space() const {
  std::string space = name_;
  for (char& c : space) c = detail::lower(c);
  std::set<std::string> none;
  const bool free = cpp_name(space, none) == space && space != name_;
  return free ? space : space + "_net";
}

bool ModuleWriter::is_assigned(const ClassInfo* info, const std::string& attribute) const {
  return assigned_.count({info, attribute}) != 0;
}

void ModuleWriter::find_modules(const std::shared_ptr<Object>& object, const std::string& path,
                                int depth) {
  RAMET_CHECK(depth < kDepth, kOp, path, ": got modules more than ", kDepth, " deep in each other");
  auto [at, is_new] = members_.emplace(object.get(), nullptr);
  if (!is_new) {
    // A struct has a module twice as two objects. Their tensors are the same, other attributes not.
    for (const ClassInfo::Attribute& attribute : object->info()->attributes)
      if (is_assigned(object->info(), attribute.name))
        problems_.emplace_back(
            "a module in two places, and its code assigns to '" + attribute.name + "'",
            object->info()->name);
    return;
  }
  modules_.push_back(std::make_unique<StructMembers>());
  at->second = modules_.back().get();
  StructMembers& members = *modules_.back();
  members.object = object;
  members.path = path;
  members.taken.insert(std::begin(kModuleNames), std::end(kModuleNames));
  for (const Helper& helper : helpers()) members.taken.insert(helper.name);
  const auto& attributes = object->info()->attributes;
  // All names are taken before any function is written, so that no variable hides one.
  for (const ClassInfo::Attribute& attribute : attributes)
    (void)member_name(members, attribute.name);
  for (const auto& method : object->info()->methods) {
    const std::string name = last_part(method->name);
    members.method_names[method.get()] = name == "forward" ? name : cpp_name(name, members.taken);
  }
  for (size_t i = 0; i < attributes.size(); ++i) {
    const IValue& value = object->slots[i];
    if (const auto child = module_in(value))
      find_modules(child, path + (path.empty() ? "" : ".") + attributes[i].name, depth + 1);
  }
}

StructMembers& ModuleWriter::members_of(const std::shared_ptr<Object>& object) {
  return *members_.at(object.get());
}

std::string ModuleWriter::member_name(StructMembers& members, const std::string& attribute) {
  auto [at, is_new] = members.names.emplace(attribute, "");
  if (is_new) at->second = cpp_name(attribute, members.taken);
  return at->second;
}

std::string ModuleWriter::method_name(StructMembers& members, ScriptFunction& function) {
  if (members.called.insert(&function).second) waiting_.push_back({&members, &function});
  return members.method_names.at(&function);
}

std::string ModuleWriter::function_name(ScriptFunction& function) {
  auto [at, is_new] = functions_.emplace(&function, "");
  if (is_new) {
    at->second = cpp_name(last_part(function.name), taken_);
    waiting_.push_back({nullptr, &function});
  }
  return at->second;
}

void ModuleWriter::problem(const ScriptFunction& function, size_t offset, const std::string& what) {
  problems_.emplace_back(what, function.source->place(offset) + ", in " + function.name);
}

void ModuleWriter::write_functions() {
  while (!waiting_.empty()) {
    const Waiting next = waiting_.back();
    waiting_.pop_back();
    if (!next.members) {
      const std::string name = functions_.at(next.function);
      function_texts_.push_back(FunctionWriter(*this, *next.function, nullptr).write(name));
      continue;
    }
    const std::string name = next.members->method_names.at(next.function);
    std::string text = FunctionWriter(*this, *next.function, next.members).write(name);
    next.members->methods.emplace_back(next.function, std::move(text));
  }
}

// Lines of reset(); `declared` gets the members.
std::string ModuleWriter::registrations(StructMembers& members,
                                        std::vector<std::string>& declared) {
  std::string text;
  std::string tensors;
  const auto& attributes = members.object->info()->attributes;
  const auto declare = [&](const std::string& name) {
    tensors += (tensors.empty() ? "" : ", ") + name;
  };
  for (size_t i = 0; i < attributes.size(); ++i) {
    const ClassInfo::Attribute& attribute = attributes[i];
    const IValue& value = members.object->slots[i];
    const std::string quoted = cpp_text(attribute.name);
    if (const Tensor* t = tensor_of(value)) {
      const std::string name = member_name(members, attribute.name);
      declare(name);
      if (attribute.parameter)
        text += "    " + name + " = register_parameter(" + quoted + ", " + zeros(*t) +
                (t->requires_grad() ? "" : ", false") + ");\n";
      else text += "    " + name + " = register_buffer(" + quoted + ", " + zeros(*t) + ");\n";
    } else if (const auto child = module_in(value)) {
      const std::string name = member_name(members, attribute.name);
      const std::string type = space() + "::" + struct_names_.at(child.get());
      text +=
          "    " + name + " = register_module(" + quoted + ", std::make_shared<" + type + ">());\n";
      declared.push_back("std::shared_ptr<" + type + "> " + name + ";");
    } else if (members.used.count(attribute.name) != 0) {
      const std::string name = member_name(members, attribute.name);
      Written constant;
      constant.constant = &value;
      const auto literal = cpp_value(constant, attribute.type);
      if (!literal)
        problems_.emplace_back(
            "attribute '" + attribute.name + "': " + attribute.type->text() + " has no C++ here",
            members.object->info()->name);
      declared.push_back(cpp_type(attribute.type) + " " + name + " = " + literal.value_or("") +
                         ";");
    }
  }
  for (const auto& [name, t] : members.constants) {
    text += "    " + name + " = register_buffer(\"" + name + "\", " + zeros(t) + ");\n";
    declare(name);
  }
  if (!tensors.empty()) declared.push_back("ramet::Tensor " + tensors + ";");
  return text;
}

std::string ModuleWriter::struct_of(StructMembers& members) {
  if (const auto known = struct_names_.find(members.object.get()); known != struct_names_.end())
    return known->second;
  for (const IValue& value : members.object->slots)
    if (const auto child = module_in(value)) struct_of(members_of(child));
  const bool is_root = members.object == root_;
  std::vector<std::string> declared;
  std::string body = "  void reset() override {\n" + registrations(members, declared);
  if (is_root) body += shared_tensors();
  body += "  }\n";
  std::reverse(members.methods.begin(), members.methods.end());
  for (const auto& method : members.methods) body += "\n" + method.second;
  if (!declared.empty()) body += "\n";
  for (const std::string& member : declared) body += "  " + member + "\n";
  const std::string class_name = members.object->info()->name;
  std::string& name = structs_[body + (is_evaluated(*members.object) ? "evaluation" : "")];
  if (name.empty()) {
    name = is_root ? name_ : cpp_name(last_part(class_name), taken_);
    const std::string evaluates = is_evaluated(*members.object) ? " set_own_training(false);" : "";
    structs_text_ += "/// " + in_comment(class_name) +
                     (members.path.empty() ? "" : ", as in " + in_comment(members.path)) +
                     ".\nstruct " + name + " : ramet::nn::Cloneable<" + name + "> {\n  " + name +
                     "() { reset();" + evaluates + " }\n" + body + "};\n\n";
  }
  return struct_names_[members.object.get()] = name;
}

template <class Step, class F> void ModuleWriter::for_each_module(Step&& step, F&& f) const {
  std::vector<std::pair<const Object*, std::string>> waiting{{root_.get(), ""}};
  for (size_t w = 0; w < waiting.size(); ++w) {
    RAMET_CHECK(w < kMostPaths, kOp, "got more than ", kMostPaths, " paths to modules");
    const auto [object, path] = waiting[w];
    f(*object, path);
    for (size_t i = 0; i < object->slots.size(); ++i)
      if (const auto child = module_in(object->slots[i]))
        waiting.emplace_back(child.get(), path + step(*object, i));
  }
}

// Tensors that the file has in several places are one in the struct, too.
std::string ModuleWriter::shared_tensors() const {
  std::string text;
  std::map<const void*, std::string> known;  // the first path to a tensor
  const auto member = [&](const Object& object, size_t i) {
    return members_.at(&object)->names.at(object.info()->attributes[i].name);
  };
  const auto step = [&](const Object& object, size_t i) { return member(object, i) + "->"; };
  for_each_module(step, [&](const Object& object, const std::string& owner) {
    for (size_t i = 0; i < object.slots.size(); ++i) {
      if (!tensor_of(object.slots[i])) continue;
      const std::string path = owner + member(object, i);
      const auto [first, is_new] = known.emplace(identity(object.slots[i]), path);
      if (is_new) continue;
      const ClassInfo::Attribute& attribute = object.info()->attributes[i];
      text += "    " + path + " = " + first->second + ";\n    " + owner +
              (attribute.parameter ? "set_own_parameter(" : "set_own_buffer(") +
              cpp_text(attribute.name) + ", " + path + ");\n";
    }
  });
  return text;
}

std::string ModuleWriter::write() {
  StructMembers& root = *modules_.front();
  const ClassInfo& info = *root_->info();
  for (const auto& method : info.methods) {
    const std::string name = last_part(method->name);
    if (info.method("forward") ? name == "forward" : name.rfind("__", 0) != 0)
      (void)method_name(root, *method);
  }
  for (const auto* hooks : {&info.hooks, &info.pre_hooks})
    if (!hooks->empty()) problems_.emplace_back("hooks have no C++", info.name);
  write_functions();
  struct_of(root);
  if (!problems_.empty()) {
    auto text = detail::classic<std::ostringstream>();
    text << info.name << " cannot be written as C++: got " << problems_.size()
         << (problems_.size() == 1 ? " problem" : " problems") << ", expected none";
    for (const auto& [what, place] : problems_) text << "\n  " << what << "\n    at " << place;
    fail(kOp, text.str());
  }
  auto text = detail::classic<std::ostringstream>();
  text
      << "// " << name_
      << ", written by ./tools/translate from a file of PyTorch: do not edit it.\n"
      << "//\n"
      << "//   auto net = std::make_shared<" << space() << "::" << name_ << ">();\n"
      << "//   ramet::formats::load_state_dict(*net, ramet::formats::state_dict(\"weights.pt\"));\n"
      << "//   net->forward(...);\n"
      << "#pragma once\n";
  for (const char* header : {"algorithm", "cmath", "cstdint", "limits", "map", "memory", "optional",
                             "sstream", "string", "tuple", "utility", "vector"})
    text << "#include <" << header << ">\n";
  text << "\n#include \"ramet.h\"\n\nnamespace " << space() << " {\n\n";
  for (const Helper& helper : helpers())
    if (called.count(helper.name) != 0) text << helper.text << "\n";
  std::reverse(function_texts_.begin(), function_texts_.end());
  // Functions call one another in any order.
  for (const std::string& function : function_texts_)
    text << function.substr(0, function.find(" {\n")) << ";\n";
  if (!function_texts_.empty()) text << "\n";
  for (const std::string& function : function_texts_) text << function << "\n";
  text << structs_text_ << "}  // namespace " << space() << "\n";
  return text.str();
}

OrderedDict<std::string, Tensor> ModuleWriter::tensors() const {
  OrderedDict<std::string, Tensor> list;
  const auto name = [](const Object& object, size_t i) {
    return object.info()->attributes[i].name;
  };
  const auto step = [&](const Object& object, size_t i) { return name(object, i) + "."; };
  for_each_module(step, [&](const Object& object, const std::string& owner) {
    for (size_t i = 0; i < object.slots.size(); ++i)
      if (const Tensor* t = tensor_of(object.slots[i]))
        list.insert(owner + name(object, i), t->detach());
    for (const auto& [constant, t] : members_.at(&object)->constants)
      list.insert(owner + constant, t.detach());
  });
  return list;
}

Translation translate(const jit::Module& module, const std::string& name) {
  const LoadedModule loaded = jit::ModuleAccess::loaded(module);
  RAMET_CHECK(loaded.object, kOp, "got a module that holds nothing, expected a loaded one");
  std::set<std::string> none;
  RAMET_CHECK(!name.empty() && cpp_name(name, none) == name && name != "ramet" && name != "std",
              kOp, "name: got '", name, "', expected one that a struct of C++ may have");
  compile_all(loaded);
  const std::lock_guard<std::mutex> lock(loaded.texts->compiling);
  ModuleWriter writer(*loaded.object->unit(), loaded.object, name);
  Translation made;
  made.header = writer.write();
  made.tensors = writer.tensors();
  return made;
}

}  // namespace ramet::script
