// Compiling calls of operators: overloads are chosen here.
#include "autograd/schema/arguments_internal.h"
#include "nn/script/compiler_internal.h"
#include "nn/script/upgraders_internal.h"

namespace ramet::script {

using TypeKind = Type::Kind;

namespace {

/// The value of `[1, 2]`, `[0.5]` or `[True]`, where all items are numbers in the text; nothing
/// otherwise.
std::optional<IValue> literal(const Expression& e) {
  using Kind = Expression::Kind;
  if (e.kind != Kind::kList) return std::nullopt;
  if (e.items.empty()) return IValue(List<Tensor>());
  List<int64_t> ints;
  List<double> reals;
  List<bool> bools;
  for (const ExpressionPtr& item : e.items) {
    const bool minus = item->kind == Kind::kUnary && item->text == "-";
    const Expression& number = minus ? *item->items.at(0) : *item;
    if (number.kind == Kind::kInt) ints.push_back(minus ? -number.number : number.number);
    else if (number.kind == Kind::kFloat) reals.push_back(minus ? -number.real : number.real);
    else if (!minus && number.kind == Kind::kTrue) bools.push_back(true);
    else if (!minus && number.kind == Kind::kFalse) bools.push_back(false);
    else return std::nullopt;
  }
  if (ints.size() == e.items.size()) return IValue(ints);
  if (reals.size() == e.items.size()) return IValue(reals);
  if (bools.size() == e.items.size()) return IValue(bools);
  return std::nullopt;
}

TypePtr literal_type(const IValue& list) {
  return Type::list(Type::of(list.isIntList()      ? TypeKind::kInt
                             : list.isDoubleList() ? TypeKind::kFloat
                             : list.isBoolList()   ? TypeKind::kBool
                                                   : TypeKind::kTensor));
}

/// May a parameter of this type be given the same list at each call? It may where it is a list of
/// numbers that the operator does not write. A variable of the schema may be kept.
bool takes_constant_list(const Parameter& parameter) {
  const Type* type = parameter.type.get();
  if (type->kind() == TypeKind::kOptional) type = type->element().get();
  if (parameter.written || type->kind() != TypeKind::kList) return false;
  switch (type->element()->kind()) {
    case TypeKind::kInt:
    case TypeKind::kFloat:
    case TypeKind::kBool: return true;
    default: return false;
  }
}

bool is_enum(const Value& value) { return value.type->kind() == TypeKind::kEnum; }

}  // namespace

Value FunctionCompiler::call_operator(const std::string& name, const Expression& call,
                                      const Value* self) {
  std::vector<Argument> arguments;
  if (self) {
    arguments.emplace_back();
    arguments.back().value = *self;
  }
  const auto give = [&](const std::string& by_name, const Expression& e) {
    Argument argument;
    argument.name = by_name;
    argument.syntax = &e;
    argument.literal = literal(e);
    if (!argument.literal) argument.value = compile_expression(e);
    else argument.value.type = literal_type(*argument.literal);
    arguments.push_back(std::move(argument));
  };
  for (size_t i = 1; i < call.items.size(); ++i) give("", *call.items[i]);
  for (const Named& named : call.named) give(named.name, *named.value);
  return call_operator(name, std::move(arguments), call.offset);
}

Value FunctionCompiler::call_operator(const std::string& name, const std::vector<Value>& values,
                                      size_t offset) {
  std::vector<Argument> arguments(values.size());
  for (size_t i = 0; i < values.size(); ++i) arguments[i].value = values[i];
  return call_operator(name, std::move(arguments), offset);
}

Value FunctionCompiler::call_operator(const std::string& name, std::vector<Argument> arguments,
                                      size_t offset) {
  bool fine = true;
  for (const Argument& argument : arguments) fine = fine && argument.value;
  if (fine)
    if (const std::optional<Value> made = call_special_operator(name, arguments, offset))
      return *made;
  if (operators_named(name).empty()) return problem(offset, name + ": no such operation");
  if (!fine) return {};
  if (name == "aten::tensor" || name == "aten::as_tensor") state_dtype(arguments);
  std::vector<Given> given(arguments.size());
  for (size_t i = 0; i < given.size(); ++i) {
    given[i].name = arguments[i].name;
    given[i].type = arguments[i].value.type;
    given[i].constant =
        arguments[i].literal ? &*arguments[i].literal : constant_of(arguments[i].value);
  }
  std::string why;
  const Match match = match_operator(operators_of_version(name, unit_.version()), given, why);
  if (!match.op) return problem(offset, name + ": no overload takes the arguments\n" + why);
  std::vector<Operand> operands;
  for (size_t i = 0; i < match.sources.size(); ++i) {
    const int source = match.sources[i];
    operands.push_back(operator_argument(
        match, i, source < 0 ? nullptr : &arguments[static_cast<size_t>(source)], offset));
  }
  program_->operators.push_back(match.op);
  const Value made =
      emit_value(Code::kCall, operands, static_cast<uint32_t>(program_->operators.size() - 1),
                 match.result ? match.result : Type::of(TypeKind::kNone), offset);
  return name == "aten::values" ? listed(made, offset) : made;
}

// Lists of lists do not know their type. So a tensor of them gets it here: there may be no numbers
// in them that say it. For floats it is the default dtype of the time of the call.
void FunctionCompiler::state_dtype(std::vector<Argument>& arguments) {
  if (arguments.empty()) return;
  const Type* type = arguments[0].value.type.get();
  int depth = 0;
  for (; type->kind() == TypeKind::kList; type = type->element().get()) ++depth;
  const bool whole = type->kind() == TypeKind::kInt, truth = type->kind() == TypeKind::kBool;
  if (depth < 2 || (!whole && !truth)) return;
  const Value dtype = constant(number_of(whole ? kLong : kBool), Type::of(TypeKind::kInt));
  for (Argument& argument : arguments) {
    if (argument.name != "dtype") continue;
    const IValue* const known = argument.literal ? nullptr : constant_of(argument.value);
    if (known && known->isNone()) argument.value = dtype;
    return;
  }
  arguments.emplace_back();
  arguments.back().name = "dtype";
  arguments.back().value = dtype;
}

// A list of any values as one of its type. Others than lists of these are held so anyway.
Value FunctionCompiler::listed(const Value& value, size_t offset) {
  switch (value.type->element()->kind()) {
    case TypeKind::kInt:
    case TypeKind::kFloat:
    case TypeKind::kBool:
    case TypeKind::kTensor: break;
    default: return value;
  }
  Parameter parameter;
  parameter.type = value.type;
  program_->changes.push_back({Match::Change::kItemsToList, std::move(parameter)});
  return emit_value(Code::kChange, {value.place},
                    static_cast<uint32_t>(program_->changes.size() - 1), value.type, offset);
}

// The device of that name; nothing where there is no such kind, which is an Error of the call.
static std::optional<Device> device_named(const std::string& name) {
  try {
    return Device(name);
  } catch (const Error&) { return std::nullopt; }
}

// What needs no operator, or has no schema.
std::optional<Value> FunctionCompiler::call_special_operator(const std::string& name,
                                                             const std::vector<Argument>& arguments,
                                                             size_t offset) {
  const size_t count = arguments.size();
  if (count == 1) {
    const Argument& only = arguments[0];
    const IValue* known = only.literal ? nullptr : constant_of(only.value);
    if (name == "aten::wait") return call_wait(only.value, offset);
    if (name == "prim::unchecked_unwrap_optional") {
      Value value = only.literal ? compile_expression(*only.syntax) : only.value;
      if (!value) return value;
      if (value.type->kind() == TypeKind::kOptional) value.type = value.type->element();
      return value;
    }
    if (name == "aten::device" && known && known->isString() &&
        !(unit_.cpu_is_host && known->toStringRef() == "cpu")) {
      if (const auto device = unit_.device ? unit_.device : device_named(known->toStringRef()))
        return constant(*device, Type::of(TypeKind::kDevice));
    }
  }
  const bool equal = name == "aten::eq" || name == "aten::__is__";
  if (count == 2 && (equal || name == "aten::ne" || name == "aten::__isnot__") &&
      is_enum(arguments[0].value) && is_enum(arguments[1].value)) {
    const Value alike =
        emit_value(Code::kSameEnum, {arguments[0].value.place, arguments[1].value.place}, 0,
                   Type::of(TypeKind::kBool), offset);
    return equal ? alike : call_operator("aten::__not__", std::vector<Value>{alike}, offset);
  }
  return std::nullopt;
}

Operand FunctionCompiler::operator_argument(const Match& match, size_t i, Argument* given,
                                            size_t offset) {
  const bool declared = i < match.op->parameters.size();
  if (!given) {
    const Parameter& parameter = match.op->parameters.at(i);
    const IValue* const value = &parameter.value.value();
    const auto [at, is_new] = defaults_.emplace(value, 0);
    if (is_new) at->second = constant(*value, parameter.type).place.index();
    return Operand::constant(at->second);
  }
  const Match::Change what = i < match.changes.size() ? match.changes[i] : Match::Change::kNone;
  if (given->literal) {
    const Parameter* const parameter = declared ? &match.op->parameters[i] : nullptr;
    if (parameter && takes_constant_list(*parameter)) {
      const IValue fitted = what == Match::Change::kNone
                                ? *given->literal
                                : change(what, *parameter, *given->literal);
      return constant(fitted, parameter->type).place;
    }
    given->value = compile_expression(*given->syntax);
    given->literal.reset();
  }
  if (what == Match::Change::kNone || !declared) return given->value.place;
  Parameter parameter = match.op->parameters[i];
  const std::vector<TypePtr>& items = given->value.type->elements();
  if (what == Match::Change::kTupleToList && !items.empty() &&
      parameter.type->element()->kind() == TypeKind::kVariable)
    parameter.type = Type::list(items[0]);
  if (const IValue* known = constant_of(given->value))
    return constant(change(what, parameter, *known), parameter.type).place;
  program_->changes.push_back({what, parameter});
  return emit_value(Code::kChange, {given->value.place},
                    static_cast<uint32_t>(program_->changes.size() - 1), parameter.type, offset)
      .place;
}

}  // namespace ramet::script
