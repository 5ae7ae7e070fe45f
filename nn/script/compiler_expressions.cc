// Compiling expressions: literals, items, and operators that are written as signs.
#include <algorithm>
#include <limits>

#include "nn/script/compiler_internal.h"

namespace ramet::script {

using TypeKind = Type::Kind;

namespace {

/// Names of arithmetic and comparisons. `in` and its opposite are not here: they swap operands.
struct Sign {
  const char* sign;
  const char* name;
};
constexpr Sign kSigns[] = {
    {"+", "aten::add"},         {"-", "aten::sub"},
    {"*", "aten::mul"},         {"/", "aten::div"},
    {"//", "aten::floordiv"},   {"%", "aten::remainder"},
    {"**", "aten::pow"},        {"@", "aten::matmul"},
    {"==", "aten::eq"},         {"!=", "aten::ne"},
    {"<", "aten::lt"},          {">", "aten::gt"},
    {"<=", "aten::le"},         {">=", "aten::ge"},
    {"is", "aten::__is__"},     {"is not", "aten::__isnot__"},
    {"&", "aten::__and__"},     {"|", "aten::__or__"},
    {"^", "aten::__xor__"},     {"<<", "aten::__lshift__"},
    {">>", "aten::__rshift__"},
};

/// List[T] of a hint List[T] or Optional[List[T]]; null where it is something else.
TypePtr expected(const TypePtr& hint, TypeKind kind) {
  if (!hint) return nullptr;
  if (hint->kind() == TypeKind::kOptional) return expected(hint->element(), kind);
  return hint->kind() == kind ? hint : nullptr;
}

}  // namespace

Value FunctionCompiler::compile_expression(const Expression& e, const TypePtr& hint) {
  const Deeper deeper(*this);
  if (deeper.too_deep()) return problem(e.offset, kTooDeep);
  switch (e.kind) {
    case Kind::kName:
    case Kind::kAttribute: return value_of(meaning_of(e), e.offset);
    case Kind::kCall: return compile_call(e, hint);
    case Kind::kSubscript: return compile_subscript(e);
    case Kind::kInt: return constant(e.number, Type::of(TypeKind::kInt));
    case Kind::kFloat: return constant(e.real, Type::of(TypeKind::kFloat));
    case Kind::kString: return constant(e.text, Type::of(TypeKind::kString));
    case Kind::kTrue: return constant(true, Type::of(TypeKind::kBool));
    case Kind::kFalse: return constant(false, Type::of(TypeKind::kBool));
    case Kind::kNone: return constant(IValue(), Type::of(TypeKind::kNone));
    case Kind::kList: return compile_list(e, hint);
    case Kind::kTuple: return compile_tuple(e, hint);
    case Kind::kDict: return compile_dict(e, hint);
    case Kind::kUnary: return compile_unary(e);
    case Kind::kBinary: return compile_binary(e);
    case Kind::kConditional: return compile_conditional(e, hint);
    case Kind::kSlice:
    case Kind::kEllipsis: break;
  }
  return problem(e.offset, "an expression: got a slice or `...`, expected a value");
}

Value FunctionCompiler::compile_list(const Expression& e, const TypePtr& hint) {
  const TypePtr wanted = expected(hint, TypeKind::kList);
  TypePtr item = wanted ? wanted->element() : nullptr;
  std::vector<Operand> operands;
  bool fine = true;
  for (const ExpressionPtr& part : e.items) {
    Value value = compile_expression(*part, item);
    if (value && wanted) value = fit(value, item, "an item of a list", part->offset);
    fine = fine && value;
    if (!value) continue;
    operands.push_back(value.place);
    if (wanted) continue;
    const TypePtr both = item ? unify(item, value.type) : value.type;
    if (!both)
      return problem(part->offset,
                     "an item of a list: got " + value.type->text() + ", expected " + item->text());
    item = both;
  }
  if (!fine) return {};
  if (!item) item = Type::of(TypeKind::kTensor);
  return emit_value(Code::kList, operands, static_cast<uint32_t>(item->kind()), Type::list(item),
                    e.offset);
}

Value FunctionCompiler::compile_dict(const Expression& e, const TypePtr& hint) {
  const TypePtr wanted = expected(hint, TypeKind::kDict);
  TypePtr types[2] = {wanted ? wanted->element(0) : nullptr, wanted ? wanted->element(1) : nullptr};
  std::vector<Operand> operands;
  bool fine = true;
  for (const Named& entry : e.named)
    for (int side = 0; side < 2; ++side) {
      const Expression& part = side == 0 ? *entry.key : *entry.value;
      Value value = compile_expression(part, types[side]);
      if (value && wanted) value = fit(value, types[side], "an entry of a dict", part.offset);
      fine = fine && value;
      if (!value) continue;
      operands.push_back(value.place);
      if (wanted) continue;
      const TypePtr both = types[side] ? unify(types[side], value.type) : value.type;
      if (!both)
        return problem(part.offset, "an entry of a dict: got " + value.type->text() +
                                        ", expected " + types[side]->text());
      types[side] = both;
    }
  if (!fine) return {};
  if (!types[0]) types[0] = Type::of(TypeKind::kString);
  if (!types[1]) types[1] = Type::of(TypeKind::kTensor);
  return emit_value(Code::kDict, operands, 0, Type::dict(types[0], types[1]), e.offset);
}

Value FunctionCompiler::compile_tuple(const Expression& e, const TypePtr& hint) {
  const TypePtr wanted = expected(hint, TypeKind::kTuple);
  const bool fits = wanted && wanted->elements().size() == e.items.size();
  std::vector<Operand> operands;
  std::vector<TypePtr> types;
  bool fine = true;
  for (size_t i = 0; i < e.items.size(); ++i) {
    Value value = compile_expression(*e.items[i], fits ? wanted->element(i) : nullptr);
    if (value && fits)
      value = fit(value, wanted->element(i), "an item of a tuple", e.items[i]->offset);
    fine = fine && value;
    operands.push_back(value.place);
    types.push_back(value.type);
  }
  if (!fine) return {};
  return emit_value(Code::kTuple, operands, 0, Type::tuple(std::move(types)), e.offset);
}

Value FunctionCompiler::compile_subscript(const Expression& e) {
  const Value container = compile_expression(*e.items.at(0));
  if (!container) return {};
  const Expression& key = *e.items.at(1);
  if (e.items.size() > 2) return problem(e.offset, "an item: got several keys, expected one");
  if (container.type->kind() == TypeKind::kTuple) return compile_tuple_subscript(e, container);
  if (key.kind == Kind::kSlice) {
    std::vector<Value> arguments{container};
    for (const ExpressionPtr& bound : key.items)
      arguments.push_back(bound ? compile_expression(*bound)
                                : constant(IValue(), Type::of(TypeKind::kNone)));
    while (arguments.size() < 3) arguments.push_back(constant(IValue(), Type::of(TypeKind::kNone)));
    if (arguments.size() < 4 || key.items.size() < 3 || !key.items[2])
      arguments.resize(3), arguments.push_back(constant(int64_t{1}, Type::of(TypeKind::kInt)));
    return call_operator("aten::slice", arguments, e.offset);
  }
  return call_operator("aten::__getitem__", {container, compile_expression(key)}, e.offset);
}

// The type of an item of a tuple depends on which one it is. So the index is a constant, or all
// items have one type.
Value FunctionCompiler::compile_tuple_subscript(const Expression& e, const Value& tuple) {
  const std::vector<TypePtr>& types = tuple.type->elements();
  const auto size = static_cast<int64_t>(types.size());
  const Expression& key = *e.items.at(1);
  const auto number = [&](size_t i, int64_t otherwise) -> std::optional<int64_t> {
    if (i >= key.items.size() || !key.items[i]) return otherwise;
    const Value value = compile_expression(*key.items[i]);
    const IValue* known = value ? constant_of(value) : nullptr;
    if (known && known->isInt()) return known->toInt() < 0 ? known->toInt() + size : known->toInt();
    return std::nullopt;
  };
  const auto item = [&](int64_t i) {
    return emit_value(Code::kItem, {tuple.place}, static_cast<uint32_t>(i),
                      types[static_cast<size_t>(i)], e.offset);
  };
  if (key.kind == Kind::kSlice) {
    const auto begin = number(0, 0);
    const auto end = number(1, size);
    if (!begin || !end || (key.items.size() > 2 && key.items[2]))
      return problem(e.offset, "a slice of a tuple: expected constant bounds without a step");
    std::vector<Operand> operands;
    std::vector<TypePtr> kept;
    for (int64_t i = std::max<int64_t>(*begin, 0); i < std::min(*end, size); ++i) {
      operands.push_back(item(i).place);
      kept.push_back(types[static_cast<size_t>(i)]);
    }
    return emit_value(Code::kTuple, operands, 0, Type::tuple(std::move(kept)), e.offset);
  }
  const Value index = compile_expression(key);
  if (!index) return {};
  if (const IValue* known = constant_of(index); known && known->isInt()) {
    const int64_t i = known->toInt() < 0 ? known->toInt() + size : known->toInt();
    if (i < 0 || i >= size)
      return problem(e.offset, "an item of a tuple: got " + std::to_string(known->toInt()) +
                                   ", expected one of " + std::to_string(size));
    return item(i);
  }
  for (const TypePtr& type : types)
    if (!same(type, types[0]))
      return problem(e.offset, "an item of " + tuple.type->text() + ": expected a constant index");
  if (types.empty()) return problem(e.offset, "an item of an empty tuple");
  const Value list = fit(tuple, Type::list(types[0]), "a tuple", e.offset);
  return call_operator("aten::__getitem__", {list, index}, e.offset);
}

Value FunctionCompiler::compile_unary(const Expression& e) {
  const Expression& operand = *e.items.at(0);
  if (e.text == "not") {
    const Value value = compile_condition(operand);
    return value ? call_operator("aten::__not__", {value}, e.offset) : value;
  }
  const Value value = compile_expression(operand);
  if (!value) return {};
  if (e.text == "+") return value;
  if (e.text == "~") return call_operator("aten::bitwise_not", {value}, e.offset);
  if (const IValue* known = constant_of(value)) {
    if (known->isInt() && known->toInt() != std::numeric_limits<int64_t>::min())
      return constant(-known->toInt(), value.type);
    if (known->isDouble()) return constant(-known->toDouble(), value.type);
  }
  return call_operator("aten::neg", {value}, e.offset);
}

Value FunctionCompiler::compile_binary(const Expression& e) {
  if (e.text == "and" || e.text == "or") return compile_short_circuit(e);
  const Value a = compile_expression(*e.items.at(0)), b = compile_expression(*e.items.at(1));
  if (!a || !b) return {};
  if (e.text == "in") return call_operator("aten::__contains__", {b, a}, e.offset);
  if (e.text == "not in") {
    const Value inside = call_operator("aten::__contains__", {b, a}, e.offset);
    return call_operator("aten::__not__", {inside}, e.offset);
  }
  for (const Sign& sign : kSigns)
    if (e.text == sign.sign) return call_operator(sign.name, {a, b}, e.offset);
  return problem(e.offset, "an expression: got the sign '" + e.text + "', which has no operator");
}

// `a and b`, `a or b`: b is only computed where a does not decide.
Value FunctionCompiler::compile_short_circuit(const Expression& e) {
  const Value a = compile_condition(*e.items.at(0));
  const uint32_t result = new_slot();
  const Operand place = a ? a.place : Operand::constant(0);
  emit(Code::kMove, result, {place}, 0, e.offset);
  const size_t decided =
      emit(Code::kJumpUnless, Instruction::kNone, {Operand::slot(result)}, 0, e.offset);
  size_t out = decided;
  if (e.text == "or") {
    out = emit(Code::kJump, Instruction::kNone, {}, 0, e.offset);
    jump_here(decided);
  }
  const Value b = compile_condition(*e.items.at(1));
  if (b) emit(Code::kMove, result, {b.place}, 0, e.offset);
  jump_here(out);
  if (!a || !b) return {};
  return {Operand::slot(result), Type::of(TypeKind::kBool)};
}

Value FunctionCompiler::compile_conditional(const Expression& e, const TypePtr& hint) {
  const Value condition = compile_condition(*e.items.at(1));
  const Operand place = condition ? condition.place : Operand::constant(0);
  const uint32_t result = new_slot();
  const size_t to_other = emit(Code::kJumpUnless, Instruction::kNone, {place}, 0, e.offset);
  const Value a = compile_expression(*e.items.at(0), hint);
  if (a) emit(Code::kMove, result, {a.place}, 0, e.offset);
  const size_t to_end = emit(Code::kJump, Instruction::kNone, {}, 0, e.offset);
  jump_here(to_other);
  const Value b = compile_expression(*e.items.at(2), hint);
  if (b) emit(Code::kMove, result, {b.place}, 0, e.offset);
  jump_here(to_end);
  if (!condition || !a || !b) return {};
  TypePtr type = unify(a.type, b.type);
  if (!type)
    return problem(e.offset, "a conditional: got " + a.type->text() + " and " + b.type->text() +
                                 ", expected one type");
  return {Operand::slot(result), std::move(type)};
}

Value FunctionCompiler::compile_condition(const Expression& e) {
  const Value value = compile_expression(e);
  if (!value || value.type->kind() == TypeKind::kBool) return value;
  return call_operator("aten::Bool", {value}, e.offset);
}

}  // namespace ramet::script
