// Modules as C++: structs, registrations, the header.
#include "nn/script/translate.h"

#include <algorithm>
#include <sstream>

#include "nn/script/module_internal.h"
#include "nn/script/translation/translation_internal.h"
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
                                        "parameters_",
                                        "share"};

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

bool has_hooks(const ClassInfo& info) { return !info.hooks.empty() || !info.pre_hooks.empty(); }

/// The value of a tensor attribute; null where it is none.
const Tensor* tensor_of(const IValue& value) {
  return value.isTensor() && value.toTensor().defined() ? &value.toTensor() : nullptr;
}

}  // namespace

ModuleWriter::ModuleWriter(CompilationUnit& unit_in, std::shared_ptr<Object> root, std::string name)
    : unit(unit_in), root_(std::move(root)), name_(std::move(name)) {
  taken_.insert({"ramet", "std", "python", name_});
  find_classes();
  find_changes();
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
  if (!is_new) return;
  modules_.push_back(std::make_unique<StructMembers>());
  at->second = modules_.back().get();
  StructMembers& members = *modules_.back();
  members.info = object->info();
  members.object = object;
  members.path = path;
  members.taken.insert(std::begin(kModuleNames), std::end(kModuleNames));
  const auto& attributes = object->info()->attributes;
  // All names are taken before any function is written, so that no variable hides one.
  for (const ClassInfo::Attribute& attribute : attributes)
    (void)member_name(members, attribute.name);
  for (const auto& method : object->info()->methods) {
    std::string name = last_part(method->name);
    const bool hooked = object == root_ && has_hooks(*object->info());
    if (name == "forward" && hooked) name = "forward_without_hooks";
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

StructMembers* ModuleWriter::members_of(const ClassInfo* info) {
  const auto known = plain_.find(info);
  return known == plain_.end() ? nullptr : known->second;
}

std::string StructMembers::constant_name(const Tensor& t) {
  for (const auto& [name, known] : constants)
    if (known.is_same(t)) return name;
  const std::string name = cpp_name("constant" + std::to_string(constants.size()), taken);
  constants.emplace_back(name, t);
  return name;
}

std::string ModuleWriter::member_name(StructMembers& members, const std::string& attribute) {
  auto [at, is_new] = members.names.emplace(attribute, "");
  if (is_new) at->second = cpp_name(attribute, members.taken);
  return at->second;
}

std::string ModuleWriter::method_name(StructMembers& members, ScriptFunction& function) {
  if (members.called.insert(&function).second) waiting_.push_back({&members, &function});
  std::string& name = members.method_names[&function];
  if (name.empty()) name = cpp_name(last_part(function.name), members.taken);
  return name;
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
  std::string later;  // what needs tensors
  for (size_t i = 0; i < attributes.size(); ++i) {
    const ClassInfo::Attribute& attribute = attributes[i];
    const IValue& value = members.object->slots[i];
    const std::string quoted = cpp_text(attribute.name);
    if (const Tensor* t = tensor_of(value)) {
      const std::string name = member_name(members, attribute.name);
      const bool assigned = is_assigned(members.info, attribute.name);
      if (assigned && attribute.type->kind() == Type::Kind::kOptional)
        declared.push_back("std::optional<ramet::Tensor> " + name + ";");
      else declare(name);
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
      const std::string type = words.type(attribute.type);
      bool has_tensor = false;
      const std::string literal = value_of_attribute(members, i, has_tensor);
      declared.push_back(type + " " + name + (has_tensor ? ";" : " = " + literal + ";"));
      if (has_tensor) later += "    " + name + " = " + literal + ";\n";
      if (!has_tensor && is_mutable(attribute.type)) {
        note_copies(attribute.type);
        later += "    " + name + " = python::own(" + name + ");\n";
      }
    }
  }
  for (const auto& [name, t] : members.constants) {
    text += "    " + name + " = register_buffer(\"" + name + "\", " + zeros(t) + ");\n";
    declare(name);
  }
  if (!tensors.empty()) declared.push_back("ramet::Tensor " + tensors + ";");
  return text + later;
}

std::string ModuleWriter::struct_of(StructMembers& members) {
  if (const auto known = struct_names_.find(members.object.get()); known != struct_names_.end())
    return known->second;
  for (const IValue& value : members.object->slots)
    if (const auto child = module_in(value)) struct_of(members_of(child));
  const bool is_root = members.object == root_;
  std::vector<std::string> declared;
  std::string body = "  void reset() override {\n" + registrations(members, declared);
  const std::string shared = is_root ? shared_values() : "";
  if (!shared.empty()) body += "    share();\n";
  body += "  }\n";
  // A clone copies each child by itself.
  if (!shared.empty())
    body += "  /// What the file has in several places is one here, too.\n  void share() {\n" +
            shared +
            "  }\n  std::shared_ptr<ramet::nn::Module> clone(\n      const "
            "std::optional<ramet::Device>& device = std::nullopt) const override {\n"
            "    auto made = Cloneable::clone(device);\n    static_cast<" +
            name_ + "&>(*made).share();\n    return made;\n  }\n";
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

// What the file has in several places is one in the struct, too. So it is for tensors, for modules
// with attributes that the code assigns, and for other values that it changes.
std::string ModuleWriter::shared_values() const {
  std::string text;
  std::map<const void*, std::string> known;  // the first path to a value
  std::vector<std::string> replaced;         // paths of modules that were replaced
  const auto member = [&](const Object& object, size_t i) {
    return members_.at(&object)->names.at(object.info()->attributes[i].name);
  };
  const auto step = [&](const Object& object, size_t i) { return member(object, i) + "->"; };
  for_each_module(step, [&](const Object& object, const std::string& owner) {
    for (const std::string& path : replaced)
      if (owner.rfind(path, 0) == 0) return;
    for (size_t i = 0; i < object.slots.size(); ++i) {
      const IValue& value = object.slots[i];
      const ClassInfo::Attribute& attribute = object.info()->attributes[i];
      const auto child = module_in(value);
      const bool tensor = tensor_of(value) != nullptr;
      const bool changed = child ? is_assigned(*child)
                                 : members_.at(&object)->used.count(attribute.name) != 0 &&
                                       is_mutable(attribute.type);
      const void* const id = tensor || changed ? identity(value) : nullptr;
      if (!id) continue;
      const std::string path = owner + member(object, i);
      const auto [first, is_new] = known.emplace(id, path);
      if (is_new) continue;
      text += "    " + path + " = " + first->second + ";\n";
      if (tensor)
        text += "    " + owner + (attribute.parameter ? "set_own_parameter(" : "set_own_buffer(") +
                cpp_text(attribute.name) + ", " + path + ");\n";
      if (!child) continue;
      replaced.push_back(path + "->");
      text += "    " + owner + "replace_module(" + cpp_text(attribute.name) + ", " + path + ");\n";
    }
  });
  return text;
}

std::string ModuleWriter::write() {
  StructMembers& root = *modules_.front();
  const ClassInfo& info = *root_->info();
  for (ScriptFunction* method : outermost()) (void)method_name(root, *method);
  write_functions();
  if (has_hooks(info)) write_hooked_forward(root);
  struct_of(root);
  const std::string plain = plain_structs();
  if (!problems_.empty()) {
    auto text = detail::classic<std::ostringstream>();
    text << info.name << " cannot be written as C++: got " << problems_.size()
         << (problems_.size() == 1 ? " problem" : " problems") << ", expected none";
    for (const auto& [what, place] : problems_) text << "\n  " << what << "\n    at " << place;
    fail(kOp, text.str());
  }
  std::reverse(function_texts_.begin(), function_texts_.end());
  std::string functions;
  // Functions call one another in any order.
  for (const std::string& function : function_texts_)
    functions += function.substr(0, function.find(" {\n")) + ";\n";
  if (!functions.empty()) functions += "\n";
  std::string methods;
  for (const auto& members : classes_)
    if (named_.count(members->info) != 0) methods += methods_of(*members, false);
  for (const std::string& function : function_texts_) methods += function + "\n";
  const std::string body = plain + functions + methods + structs_text_;
  auto text = detail::classic<std::ostringstream>();
  text
      << "// " << name_
      << ", written by ./tools/translate from a file of PyTorch: do not edit it.\n"
      << "//\n"
      << "//   auto net = std::make_shared<" << space() << "::" << name_ << ">();\n"
      << "//   ramet::formats::load_state_dict(*net, ramet::formats::state_dict(\"weights.pt\"));\n"
      << "//   net->forward(...);\n"
      << "#pragma once\n";
  for (const char* header : {"algorithm", "atomic", "cmath", "cstdint", "exception", "functional",
                             "iostream", "limits", "memory", "optional", "sstream", "string",
                             "tuple", "type_traits", "utility", "variant", "vector"})
    text << "#include <" << header << ">\n";
  text << "\n#include \"ramet.h\"\n\nnamespace " << space() << " {\n\n"
       << helper_texts(body) << body << "}  // namespace " << space() << "\n";
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
