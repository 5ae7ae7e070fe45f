// Compiling calls of functions, methods and types of the archive.
#include <algorithm>

#include "nn/script/compiler_internal.h"

namespace ramet::script {

using TypeKind = Type::Kind;
using MeaningKind = Meaning::Kind;

Value FunctionCompiler::compile_call(const Expression& e, const TypePtr& hint) {
  const Meaning callee = meaning_of(*e.items.at(0));
  switch (callee.kind) {
    case MeaningKind::kOperator: return call_operator(callee.text, e, nullptr);
    case MeaningKind::kFunction: return call_function(*callee.function, nullptr, e);
    case MeaningKind::kType: return construct(callee.type, e);
    case MeaningKind::kMethod: return call_method(callee.value, callee.text, e, hint);
    case MeaningKind::kForm:
      if (callee.text == "__new__") return make_object(callee.type, e.offset);
      return call_form(callee.text, e, hint);
    case MeaningKind::kValue: {  // a module that is called
      const Value& self = callee.value;
      const bool object = self.type->kind() == TypeKind::kClass;
      for (const char* name : {"__call__", "forward"})
        if (object && self.type->info()->method(name)) return call_method(self, name, e, hint);
      return problem(e.offset, self.type->text() + " cannot be called");
    }
    default: return value_of(callee, e.offset);
  }
}

TypePtr FunctionCompiler::result_of(ScriptFunction& function, size_t offset) {
  needs_.push_back(&function);
  if (!function.result) unit_.compile(function);
  if (!function.result)
    problem(offset, function.name + " calls itself, and does not state its result");
  return function.result;
}

uint32_t FunctionCompiler::function_number(ScriptFunction& function) {
  needs_.push_back(&function);
  program_->functions.push_back(&function);
  return static_cast<uint32_t>(program_->functions.size() - 1);
}

uint32_t FunctionCompiler::type_number(TypePtr type) {
  program_->types.push_back(std::move(type));
  return static_cast<uint32_t>(program_->types.size() - 1);
}

// `skipped`: items of the call before its arguments.
bool FunctionCompiler::function_arguments(const ScriptFunction& function, const Value* self,
                                          const Expression& call, size_t skipped,
                                          std::vector<Operand>& operands) {
  const std::vector<FunctionParameter>& parameters = function.parameters;
  std::vector<Value> values(parameters.size());
  std::vector<bool> given(parameters.size(), false);
  bool fine = true;
  const auto give = [&](size_t i, const Expression& e) {
    given[i] = true;
    const FunctionParameter& parameter = parameters[i];
    values[i] = fit(compile_expression(e, parameter.type), parameter.type,
                    function.name + ": argument '" + parameter.name + "'", e.offset);
    fine = fine && values[i];
  };
  size_t next = 0;
  if (self && !parameters.empty()) {
    values[0] = *self;
    given[0] = true;
    next = 1;
  }
  for (size_t i = skipped; i < call.items.size(); ++i, ++next) {
    if (next < parameters.size()) give(next, *call.items[i]);
    else if (fine)
      fine = static_cast<bool>(problem(
          call.offset, function.name + ": got " + std::to_string(next + call.items.size() - i) +
                           " arguments, expected " + std::to_string(parameters.size())));
  }
  for (const Named& named : call.named) {
    size_t i = 0;
    while (i < parameters.size() && parameters[i].name != named.name) ++i;
    if (i < parameters.size() && !given[i]) {
      give(i, *named.value);
    } else {
      problem(call.offset, function.name + ": argument '" + named.name + "' is " +
                               (i < parameters.size() ? "given twice" : "unknown"));
      fine = false;
    }
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!given[i] && parameters[i].value) {
      values[i] = constant(*parameters[i].value, parameters[i].type);
      // Each call has a list of its own, which the function may change.
      const IValue& held = *parameters[i].value;
      if (held.isList() || held.isGenericDict())
        values[i] = call_operator("aten::copy", {values[i]}, call.offset);
    } else if (!given[i]) {
      problem(call.offset, function.name + ": argument '" + parameters[i].name + "' is missing");
      fine = false;
    }
    operands.push_back(values[i].place);
  }
  return fine;
}

Value FunctionCompiler::call_function(ScriptFunction& function, const Value* self,
                                      const Expression& call) {
  std::vector<Operand> operands;
  const bool fine = function_arguments(function, self, call, 1, operands);
  const TypePtr result = result_of(function, call.offset);
  if (!fine || !result) return {};
  return emit_value(Code::kFunction, operands, function_number(function), result, call.offset);
}

Value FunctionCompiler::call_method(const Value& self, const std::string& name,
                                    const Expression& call, const TypePtr& hint) {
  ClassInfo* const info = self.type->info();
  if (!info || self.type->kind() == TypeKind::kEnum) {  // of a tensor, list, string, ...
    if (name != "tolist") return call_operator("aten::" + name, call, &self);
    if (!hint) return problem(call.offset, "tolist: expected annotate(TYPE, x.tolist())");
    return call_tolist(self, hint, call.offset);
  }
  ScriptFunction& method = *info->method(name);
  if (info->kind != ClassInfo::Kind::kInterface) return call_function(method, &self, call);
  std::vector<Operand> operands;
  if (!function_arguments(method, &self, call, 1, operands)) return {};
  if (!method.result)
    return problem(call.offset, method.name + ": a method of an interface has no stated result");
  interface_calls_.insert(name);
  program_->names.push_back(name);
  return emit_value(Code::kMethod, operands, static_cast<uint32_t>(program_->names.size() - 1),
                    method.result, call.offset);
}

Value FunctionCompiler::construct(const TypePtr& type, const Expression& call) {
  if (type->kind() == TypeKind::kTuple) return make_named_tuple(type, call);
  if (type->kind() != TypeKind::kClass)
    return problem(call.offset, type->text() + " cannot be made");
  const Value object = make_object(type, call.offset);
  ScriptFunction* const init = type->info()->method("__init__");
  if (!init) return problem(call.offset, type->text() + " has no __init__()");
  std::vector<Operand> operands;
  if (!function_arguments(*init, &object, call, 1, operands)) return {};
  if (!result_of(*init, call.offset)) return {};
  emit(Code::kFunction, new_slot(), operands, function_number(*init), call.offset);
  return object;
}

Value FunctionCompiler::make_object(const TypePtr& type, size_t offset) {
  if (!type->info()) return problem(offset, type->text() + " is no class");
  program_->classes.push_back(type->info());
  return emit_value(Code::kObject, {}, static_cast<uint32_t>(program_->classes.size() - 1), type,
                    offset);
}

Value FunctionCompiler::make_named_tuple(const TypePtr& type, const Expression& call) {
  const std::vector<std::string>& fields = type->fields();
  std::vector<const Expression*> parts(fields.size(), nullptr);
  if (call.items.size() - 1 > fields.size())
    return problem(call.offset, type->name() + ": got " + std::to_string(call.items.size() - 1) +
                                    " values, expected " + std::to_string(fields.size()));
  for (size_t i = 1; i < call.items.size(); ++i) parts[i - 1] = call.items[i].get();
  for (const Named& named : call.named) {
    const auto i =
        static_cast<size_t>(std::find(fields.begin(), fields.end(), named.name) - fields.begin());
    if (i == fields.size() || parts[i])
      return problem(call.offset, type->name() + ": the field '" + named.name + "' is " +
                                      (i == fields.size() ? "unknown" : "given twice"));
    parts[i] = named.value.get();
  }
  std::vector<Operand> operands;
  bool fine = true;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!parts[i])
      return problem(call.offset, type->name() + ": the field '" + fields[i] + "' is missing");
    const Value value = fit(compile_expression(*parts[i], type->element(i)), type->element(i),
                            type->name() + ": field '" + fields[i] + "'", call.offset);
    fine = fine && value;
    operands.push_back(value.place);
  }
  if (!fine) return {};
  program_->tuple_names.push_back(
      std::make_shared<const IValue::Tuple::Names>(IValue::Tuple::Names{type->name(), fields}));
  return emit_value(Code::kTuple, operands, static_cast<uint32_t>(program_->tuple_names.size()),
                    type, call.offset);
}

}  // namespace ramet::script
