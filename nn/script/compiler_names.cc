// What names and dotted names mean.
#include <cmath>
#include <limits>

#include "nn/script/compiler_internal.h"

namespace ramet::script {

using TypeKind = Type::Kind;
using MeaningKind = Meaning::Kind;

namespace {

Meaning of_text(MeaningKind kind, std::string text) {
  Meaning meaning;
  meaning.kind = kind;
  meaning.text = std::move(text);
  return meaning;
}

Meaning of_value(const Value& value) {
  Meaning meaning;
  meaning.value = value;
  if (value) meaning.kind = MeaningKind::kValue;
  return meaning;
}

/// Words of the language that call_form() compiles.
constexpr const char* kForms[] = {
    "annotate", "unchecked_cast", "uninitialized", "getattr", "hasattr", "isinstance", "fork",
    "int",      "float",          "bool",          "str"};

/// Functions of Python that are operators.
struct Builtin {
  const char* name;
  const char* op;
};
constexpr Builtin kBuiltins[] = {
    {"print", "prim::Print"},   {"len", "aten::len"},
    {"min", "prim::min"},       {"max", "prim::max"},
    {"abs", "prim::abs"},       {"round", "aten::round"},
    {"ord", "aten::ord"},       {"chr", "aten::chr"},
    {"hex", "aten::hex"},       {"oct", "aten::oct"},
    {"bin", "aten::bin"},       {"hash", "aten::hash"},
    {"id", "prim::id"},         {"all", "aten::all"},
    {"any", "aten::any"},       {"sum", "aten::sum"},
    {"pow", "aten::pow"},       {"divmod", "aten::divmod"},
    {"list", "aten::list"},     {"dict", "aten::dict"},
    {"sorted", "aten::sorted"}, {"rangelist", "prim::rangelist"},
};

}  // namespace

Meaning FunctionCompiler::meaning_of(const Expression& e) {
  if (e.kind == Kind::kName) return meaning_of_name(e);
  if (e.kind == Kind::kAttribute) return member(meaning_of(*e.items.at(0)), e.text, e.offset);
  return of_value(compile_expression(e));
}

Meaning FunctionCompiler::meaning_of_name(const Expression& e) {
  const std::string& name = e.text;
  if (const Meaning* known = scope_.find(name)) return *known;
  if (name == "torch" || name == "ops" || name == "__torch__" || name == "CONSTANTS")
    return of_text(MeaningKind::kNamespace, name);
  const double infinity = std::numeric_limits<double>::infinity();
  if (name == "inf") return of_value(constant(infinity, Type::of(TypeKind::kFloat)));
  if (name == "nan") return of_value(constant(std::nan(""), Type::of(TypeKind::kFloat)));
  for (const char* form : kForms)
    if (name == form) return of_text(MeaningKind::kForm, name);
  for (const Builtin& builtin : kBuiltins)
    if (name == builtin.name) return of_text(MeaningKind::kOperator, builtin.op);
  problem(e.offset, "the name '" + name + "' is unknown");
  return {};
}

Meaning FunctionCompiler::member(const Meaning& of, const std::string& name, size_t offset) {
  switch (of.kind) {
    case MeaningKind::kBad: return of;
    case MeaningKind::kNamespace: return member_of_namespace(of.text, name, offset);
    case MeaningKind::kType: return member_of_type(of.type, name, offset);
    default: return member_of_value(value_of(of, offset), name, offset);
  }
}

// A class may be the namespace of functions, too: of its hooks, and of what it defines inside.
Meaning FunctionCompiler::member_of_type(const TypePtr& type, const std::string& name,
                                         size_t offset) {
  const std::string whole = type->name() + "." + name;
  if (unit_.has_function(whole) || unit_.has_type(whole))
    return member_of_namespace(type->name(), name, offset);
  if (type->kind() == TypeKind::kEnum) return enumerator(type, name, offset);
  Meaning found;
  if (name == "__new__") {
    found = of_text(MeaningKind::kForm, name);
    found.type = type;
  } else if (ScriptFunction* method = type->info() ? type->info()->method(name) : nullptr) {
    found.kind = MeaningKind::kFunction;
    found.function = method;
  } else {
    problem(offset, type->text() + " has no member '" + name + "' without an object");
  }
  return found;
}

Meaning FunctionCompiler::member_of_namespace(const std::string& space, const std::string& name,
                                              size_t offset) {
  // torch.autograd.grad is the operator aten::grad, as in PyTorch.
  if (space == "torch" && name == "autograd") return of_text(MeaningKind::kNamespace, space);
  if (space == "torch") return of_text(MeaningKind::kOperator, "aten::" + name);
  if (space == "ops") return of_text(MeaningKind::kNamespace, "ops." + name);
  if (space.compare(0, 4, "ops.") == 0)
    return of_text(MeaningKind::kOperator, space.substr(4) + "::" + name);
  if (space == "CONSTANTS") return of_value(table_constant(name, offset));
  const std::string whole = space + "." + name;
  Meaning meaning;
  if (unit_.has_function(whole)) {
    meaning.kind = MeaningKind::kFunction;
    meaning.function = unit_.function_named(whole);
  } else if (unit_.has_type(whole)) {
    meaning.kind = MeaningKind::kType;
    meaning.type = unit_.type_named(whole);
  } else {
    meaning = of_text(MeaningKind::kNamespace, whole);
  }
  return meaning;
}

// CONSTANTS.c12: tensors, and other values that have no text.
Value FunctionCompiler::table_constant(const std::string& name, size_t offset) {
  const std::vector<IValue>& table = unit_.constants();
  size_t index = 0;
  bool number = name.size() > 1 && name.size() < 10 && name[0] == 'c';
  for (size_t i = 1; i < name.size() && number; ++i) {
    number = name[i] >= '0' && name[i] <= '9';
    index = index * 10 + static_cast<size_t>(name[i] - '0');
  }
  if (!number || index >= table.size())
    return problem(offset, "CONSTANTS." + name + ": expected c0 to c" +
                               std::to_string(table.size()) + ", without the last");
  const IValue& value = table[index];
  if (value.isTensor()) return constant(value, Type::of(TypeKind::kTensor));
  if (value.isGenerator()) return constant(value, Type::of(TypeKind::kGenerator));
  return problem(offset, "CONSTANTS." + name + ": expected a tensor");
}

Meaning FunctionCompiler::member_of_value(const Value& value, const std::string& name,
                                          size_t offset) {
  if (!value) return {};
  const Type& type = *value.type;
  Meaning method = of_text(MeaningKind::kMethod, name);
  method.value = value;
  if (type.kind() == TypeKind::kClass || type.kind() == TypeKind::kEnum)
    return member_of_object(value, name, offset);
  if (type.kind() == TypeKind::kInterface) {
    if (type.info()->method(name)) return method;
    problem(offset, type.text() + " has no method '" + name + "'");
    return {};
  }
  for (size_t i = 0; i < type.fields().size(); ++i)  // of a NamedTuple
    if (type.fields()[i] == name)
      return of_value(emit_value(Code::kItem, {value.place}, static_cast<uint32_t>(i),
                                 type.element(i), offset));
  if (name == "tolist" || !operators_named("aten::" + name).empty()) return method;
  if (!operators_named("prim::" + name).empty())  // x.device, x.dtype
    return of_value(call_operator("prim::" + name, {value}, offset));
  problem(offset, type.text() + " has no attribute '" + name + "'");
  return {};
}

Meaning FunctionCompiler::member_of_object(const Value& value, const std::string& name,
                                           size_t offset) {
  const ClassInfo& info = *value.type->info();
  if (const int64_t slot = info.slot(name); slot >= 0) {
    const auto at = static_cast<size_t>(slot);
    program_->fields.push_back({&info, at});
    return of_value(emit_value(Code::kGet, {value.place},
                               static_cast<uint32_t>(program_->fields.size() - 1),
                               info.attributes[at].type, offset));
  }
  if (info.method(name)) {
    Meaning method = of_text(MeaningKind::kMethod, name);
    method.value = value;
    return method;
  }
  const auto known = info.constants.find(name);
  if (info.kind != ClassInfo::Kind::kEnum && known != info.constants.end()) {
    const IValue& held = known->second;
    const TypeKind kind = held.isInt()      ? TypeKind::kInt
                          : held.isBool()   ? TypeKind::kBool
                          : held.isDouble() ? TypeKind::kFloat
                          : held.isString() ? TypeKind::kString
                          : held.isTensor() ? TypeKind::kTensor
                                            : TypeKind::kNone;
    if (kind != TypeKind::kNone || held.isNone()) return of_value(constant(held, Type::of(kind)));
  }
  problem(offset, info.name + " has no attribute '" + name + "'");
  return {};
}

// An object is made each time: it holds the unit, which owns this program.
Meaning FunctionCompiler::enumerator(const TypePtr& type, const std::string& name, size_t offset) {
  const ClassInfo& info = *type->info();
  const auto at = info.constants.find(name);
  if (at == info.constants.end() || info.slot("name") < 0 || info.slot("value") < 0) {
    problem(offset, info.name + " has no enumerator '" + name + "'");
    return {};
  }
  const Value object = make_object(type, offset);
  const std::pair<const char*, Value> parts[] = {
      {"name", constant(name, Type::of(TypeKind::kString))}, {"value", constant(at->second, type)}};
  for (const auto& [field, value] : parts) {
    program_->fields.push_back({&info, static_cast<size_t>(info.slot(field))});
    emit(Code::kSet, Instruction::kNone, {object.place, value.place},
         static_cast<uint32_t>(program_->fields.size() - 1), offset);
  }
  return of_value(object);
}

Value FunctionCompiler::value_of(const Meaning& meaning, size_t offset) {
  switch (meaning.kind) {
    case MeaningKind::kValue: return meaning.value;
    case MeaningKind::kBad: return {};
    case MeaningKind::kMissing: return problem(offset, meaning.text);
    case MeaningKind::kNamespace:
      return problem(offset, meaning.text + ": the archive has no such class or function");
    case MeaningKind::kFunction:
      return problem(offset, meaning.function->name + ": a function is used as a value");
    case MeaningKind::kType:
      return problem(offset, meaning.type->text() + ": a type is used as a value");
    case MeaningKind::kClosure:
      return problem(offset, meaning.closure->name + ": a function is used as a value");
    default: return problem(offset, meaning.text + ": a function is used as a value");
  }
}

}  // namespace ramet::script
