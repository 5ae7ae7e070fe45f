#include <algorithm>
#include <set>

#include "autograd/schema/values_internal.h"
#include "nn/script/lexer_internal.h"
#include "nn/script/unit_internal.h"

namespace ramet::script {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "__torch__.net.Net": the module "__torch__.net" and what it defines, "Net".
std::pair<std::string, std::string> split(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {"", name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

// What record_function() of PyTorch's profiler gives: the number of a span here.
bool is_span(const std::string& name) {
  return name == "__torch__.torch.classes.profiler._RecordFunction";
}
bool is_custom(const std::string& name) { return name.rfind("__torch__.torch.classes.", 0) == 0; }

ClassInfo::Kind kind_of(const ClassSyntax& syntax, const Source& source) {
  if (syntax.base.empty()) return ClassInfo::Kind::kClass;
  if (syntax.base == "Module") return ClassInfo::Kind::kModule;
  if (syntax.base == "Interface" || syntax.base == "ModuleInterface")
    return ClassInfo::Kind::kInterface;
  if (syntax.base == "Enum") return ClassInfo::Kind::kEnum;
  fail_at(source, syntax.offset, "class ", syntax.name, ": got the base class \"", syntax.base,
          "\", expected Module, Interface, ModuleInterface, NamedTuple, Enum or none");
}

// Has a class all methods of an interface, with as many parameters?
bool has_methods(const ClassInfo& type, const ClassInfo& interface) {
  for (const auto& wanted : interface.methods) {
    const ScriptFunction* method = type.method(wanted->name.substr(interface.name.size() + 1));
    if (!method || method->syntax->parameters.size() != wanted->syntax->parameters.size())
      return false;
  }
  return true;
}

}  // namespace

struct CompilationUnit::Module {
  FileSyntax file;  // empty where the archive has no such module
  std::map<std::string, std::shared_ptr<const ClassSyntax>> classes;
  std::map<std::string, FunctionSyntaxPtr> functions;
  std::map<std::string, TypePtr> types;  // that have been declared
  std::map<std::string, std::unique_ptr<ScriptFunction>> declared;
  std::set<std::string> declaring;  // NamedTuples
};

int64_t ClassInfo::slot(const std::string& attribute) const {
  for (size_t i = 0; i < attributes.size(); ++i)
    if (attributes[i].name == attribute) return static_cast<int64_t>(i);
  return -1;
}

ScriptFunction* ClassInfo::method(const std::string& wanted) const {
  for (const auto& m : methods)
    if (m->syntax->name == wanted) return m.get();
  return nullptr;
}

CompilationUnit::CompilationUnit(Lookup lookup, std::vector<IValue> constants, int64_t version,
                                 Limits limits)
    : lookup_(std::move(lookup)),
      constants_(std::move(constants)),
      version_(version),
      limits_(limits) {}

CompilationUnit::~CompilationUnit() = default;

CompilationUnit::Module& CompilationUnit::module(const std::string& name) {
  if (const auto at = modules_.find(name); at != modules_.end()) return *at->second;
  auto made = std::make_unique<Module>();
  if (SourcePtr source = name.empty() ? nullptr : lookup_(name)) {
    made->file = parse(source, {limits_.depth, limits_.text_bytes, limits_.expressions});
    const auto twice = [&](size_t offset, const std::string& what) {
      fail_at(*source, offset, "got a second definition of \"", what, "\", expected one");
    };
    for (const auto& c : made->file.classes)
      if (!made->classes.emplace(c->name, c).second) twice(c->offset, c->name);
    for (const auto& f : made->file.functions)
      if (!made->functions.emplace(f->name, f).second) twice(f->offset, f->name);
  }
  return *modules_.emplace(name, std::move(made)).first->second;
}

bool CompilationUnit::has_type(const std::string& name) {
  const auto [in, atom] = split(name);
  return is_custom(name) || module(in).classes.count(atom) != 0;
}

bool CompilationUnit::has_function(const std::string& name) {
  const auto [in, atom] = split(name);
  return module(in).functions.count(atom) != 0;
}

ClassInfo* CompilationUnit::class_named(const std::string& name) {
  const TypePtr type = type_named(name);
  if (!type->info())
    fail("torch::jit::load", "got the NamedTuple \"", name, "\", expected a class");
  return type->info();
}

TypePtr CompilationUnit::type_named(const std::string& name) {
  if (is_span(name)) return Type::of(Type::Kind::kInt);
  if (is_custom(name)) {
    fail("torch::jit::load", "got the custom class \"", name,
         "\", which a C++ library registers (quantised layers have such): they are not supported");
  }
  const auto [in, atom] = split(name);
  Module& m = module(in);
  const auto at = m.classes.find(atom);
  if (at == m.classes.end())
    fail("torch::jit::load", "got the class \"", name, "\", which the code of the file lacks");
  const auto known = m.types.find(atom);
  TypePtr type = known != m.types.end() ? known->second : declare(m, name, *at->second);
  finish_classes();
  // Naming such a class in the text of another is no use of it yet.
  if (const auto broken = broken_.find(name); !filling_ && broken != broken_.end())
    std::rethrow_exception(broken->second);
  return type;
}

TypePtr CompilationUnit::declare(Module& in, const std::string& qualified,
                                 const ClassSyntax& syntax) {
  if (syntax.base == "NamedTuple") return declare_tuple(in, qualified, syntax);
  auto info = std::make_unique<ClassInfo>();
  info->name = qualified;
  info->kind = kind_of(syntax, *in.file.source);
  info->unit = this;
  info->type = info->kind == ClassInfo::Kind::kInterface
                   ? Type::interface_of(qualified, info.get(), has_methods)
               : info->kind == ClassInfo::Kind::kEnum ? Type::enum_of(qualified, info.get())
                                                      : Type::class_of(qualified, info.get());
  in.types[syntax.name] = info->type;
  unfilled_.push_back({info.get(), in.classes.at(syntax.name), in.file.source});
  classes_.push_back(std::move(info));
  return classes_.back()->type;
}

TypePtr CompilationUnit::declare_tuple(Module& in, const std::string& qualified,
                                       const ClassSyntax& syntax) {
  const Source& source = *in.file.source;
  if (in.declaring.count(syntax.name))
    fail_at(source, syntax.offset, "got the NamedTuple ", syntax.name, " with itself as a field");
  struct Declaring {
    Module& in;
    const std::string& name;
    int64_t& depth;
    Declaring(Module& module, const std::string& tuple, int64_t& tuples)
        : in(module), name(tuple), depth(tuples) {
      in.declaring.insert(name), ++depth;
    }
    ~Declaring() { in.declaring.erase(name), --depth; }
  } declaring(in, syntax.name, tuples_);
  if (tuples_ > limits_.depth) {
    fail_at(source, syntax.offset, "got more than ", limits_.depth,
            " NamedTuples inside each other (a limit of load)");
  }
  std::vector<std::string> fields;
  std::vector<TypePtr> types;
  for (const AttributeSyntax& field : syntax.attributes) {
    if (!field.type) fail_at(source, field.offset, "field ", field.name, ": expected its type");
    if (has(fields, field.name))
      fail_at(source, field.offset, "got the field ", field.name, " twice, expected once");
    fields.push_back(field.name);
    types.push_back(type_of(*field.type, source));
  }
  TypePtr type = Type::named_tuple(qualified, std::move(fields), std::move(types));
  in.types[syntax.name] = type;
  return type;
}

// A class with a wrong text is an error whenever it is used, but not where others are.
void CompilationUnit::finish_classes() {
  if (filling_) return;
  filling_ = true;
  while (!unfilled_.empty()) {
    const Unfilled next = std::move(unfilled_.front());
    unfilled_.pop_front();
    try {
      fill(*next.info, *next.syntax, next.source);
    } catch (const Error&) { broken_[next.info->name] = std::current_exception(); }
  }
  filling_ = false;
}

void CompilationUnit::fill(ClassInfo& info, const ClassSyntax& syntax, const SourcePtr& source) {
  if (info.kind == ClassInfo::Kind::kEnum) return fill_enumeration(info, syntax, *source);
  for (const AttributeSyntax& a : syntax.attributes) {
    if (!a.type) fail_at(*source, a.offset, "attribute ", a.name, ": expected its type");
    if (info.slot(a.name) >= 0 || info.constants.count(a.name))
      fail_at(*source, a.offset, "got the attribute ", a.name, " twice, expected once");
    const TypePtr type = type_of(*a.type, *source);
    if (a.constant) {
      info.constants[a.name] = constant_of(*this, *a.value, type, *source);
      continue;
    }
    const bool parameter = has(syntax.parameters, a.name);
    const bool is_tensor = type->kind() == Type::Kind::kTensor;
    info.attributes.push_back(
        {a.name, type, parameter,
         syntax.states_buffers ? has(syntax.buffers, a.name)
                               : info.kind == ClassInfo::Kind::kModule && is_tensor && !parameter});
  }
  for (const FunctionSyntaxPtr& m : syntax.methods) {
    if (info.method(m->name))
      fail_at(*source, m->offset, "got the method ", m->name, " twice, expected once");
    if (m->parameters.empty())
      fail_at(*source, m->offset, "method ", m->name, ": got no parameters, expected self");
    auto method = std::make_unique<ScriptFunction>();
    method->name = info.name + "." + m->name;
    method->owner = &info;
    declare(*method, m, source);
    info.methods.push_back(std::move(method));
  }
  info.hooks = syntax.hooks;
  info.pre_hooks = syntax.pre_hooks;
  for (const auto* names : {&info.hooks, &info.pre_hooks})
    for (const std::string& name : *names)
      if (!info.method(name))
        fail_at(*source, syntax.offset, "class ", info.name, ": got the hook ", name,
                ", expected one of its methods");
}

void CompilationUnit::fill_enumeration(ClassInfo& info, const ClassSyntax& syntax,
                                       const Source& source) {
  TypePtr type;
  for (const AttributeSyntax& a : syntax.attributes) {
    if (!a.value) fail_at(source, a.offset, "enumerator ", a.name, ": expected its value");
    IValue value = constant_of(*this, *a.value, nullptr, source);
    const TypePtr one = Type::of(value.isInt()      ? Type::Kind::kInt
                                 : value.isDouble() ? Type::Kind::kFloat
                                 : value.isString() ? Type::Kind::kString
                                                    : Type::Kind::kAny);
    if (one->kind() == Type::Kind::kAny || (type && !same(type, one))) {
      fail_at(source, a.offset, "enumerator ", a.name, ": got the value ", short_text(value),
              ", expected an int, a float or a str, as the others have");
    }
    type = one;
    if (!info.constants.emplace(a.name, std::move(value)).second)
      fail_at(source, a.offset, "got the enumerator ", a.name, " twice, expected once");
  }
  info.attributes.push_back({"name", Type::of(Type::Kind::kString), false, false});
  info.attributes.push_back({"value", type ? type : Type::of(Type::Kind::kInt), false, false});
}

ScriptFunction* CompilationUnit::function_named(const std::string& name) {
  const auto [in, atom] = split(name);
  Module& m = module(in);
  const auto known = m.declared.find(atom);
  if (known != m.declared.end()) return known->second.get();
  const auto at = m.functions.find(atom);
  if (at == m.functions.end())
    fail("torch::jit::load", "got the function \"", name, "\", which the code of the file lacks");
  auto function = std::make_unique<ScriptFunction>();
  function->name = name;
  declare(*function, at->second, m.file.source);
  return m.declared.emplace(atom, std::move(function)).first->second.get();
}

void CompilationUnit::declare(ScriptFunction& function, const FunctionSyntaxPtr& syntax,
                              const SourcePtr& source) {
  function.syntax = syntax;
  function.source = source;
  std::set<std::string> names;
  for (const ParameterSyntax& p : syntax->parameters) {
    if (!names.insert(p.name).second)
      fail_at(*source, syntax->offset, "function ", syntax->name, ": got two parameters ", p.name);
    FunctionParameter made;
    made.name = p.name;
    if (function.owner && function.parameters.empty()) made.type = function.owner->type;
    else if (p.type) made.type = type_of(*p.type, *source);
    else made.type = Type::of(Type::Kind::kTensor);
    // An enumerator as a value would own this unit, which owns it. The code itself always gives it.
    if (p.value && made.type->kind() != Type::Kind::kEnum)
      made.value = constant_of(*this, *p.value, made.type, *source);
    function.parameters.push_back(std::move(made));
  }
  if (syntax->result) function.result = type_of(*syntax->result, *source);
}

}  // namespace ramet::script
