// Constant expressions: what defaults and Final attributes are.
#include "autograd/schema/values_internal.h"
#include "nn/script/lexer_internal.h"
#include "nn/script/unit_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;
using Form = Expression::Kind;

[[noreturn]] void no_constant(const Expression& e, const Source& source) {
  fail_at(source, e.offset, "got an expression, expected a constant");
}

// CONSTANTS.c12
IValue of_table(const CompilationUnit& unit, const Expression& e, const Source& source) {
  if (e.items[0]->kind != Form::kName || e.items[0]->text != "CONSTANTS") no_constant(e, source);
  const std::vector<IValue>& table = unit.constants();
  size_t index = 0;
  bool number = e.text.size() > 1 && e.text.size() < 10 && e.text[0] == 'c';
  for (size_t i = 1; i < e.text.size() && number; ++i) {
    number = e.text[i] >= '0' && e.text[i] <= '9';
    index = index * 10 + static_cast<size_t>(e.text[i] - '0');
  }
  if (!number || index >= table.size()) {
    fail_at(source, e.offset, "got CONSTANTS.", e.text, ", expected one of the file's ",
            table.size(), " constants");
  }
  return table[index];
}

// annotate(List[int], []) and torch.device("cpu").
IValue of_call(CompilationUnit& unit, const Expression& e, const Source& source) {
  const Expression& f = *e.items[0];
  if (f.kind == Form::kName && f.text == "annotate" && e.items.size() == 3 && e.named.empty())
    return constant_of(unit, *e.items[2], unit.type_of(*e.items[1], source), source);
  const bool torch =
      f.kind == Form::kAttribute && f.items[0]->kind == Form::kName && f.items[0]->text == "torch";
  if (torch && f.text == "device" && e.items.size() == 2 && e.items[1]->kind == Form::kString &&
      e.named.empty()) {
    return unit.device ? *unit.device : Device(e.items[1]->text);
  }
  no_constant(e, source);
}

template <class T> IValue list_of(const std::vector<IValue>& items) {
  List<T> list;
  for (const IValue& item : items) list.push_back(item.to<T>());
  return list;
}

IValue list_of(const std::vector<IValue>& items, const TypePtr& element) {
  const auto all = [&](bool (IValue::*is)() const) {
    for (const IValue& item : items)
      if (!(item.*is)()) return false;
    return !items.empty();
  };
  const Kind kind = element ? element->kind() : Kind::kAny;
  if (kind == Kind::kInt || (!element && all(&IValue::isInt))) return list_of<int64_t>(items);
  if (kind == Kind::kFloat || (!element && all(&IValue::isDouble))) return list_of<double>(items);
  if (kind == Kind::kBool || (!element && all(&IValue::isBool))) return list_of<bool>(items);
  if (kind == Kind::kTensor || (!element && all(&IValue::isTensor))) return list_of<Tensor>(items);
  return list_of<IValue>(items);
}

IValue value_of(CompilationUnit& unit, const Expression& e, const TypePtr& given,
                const Source& source) {
  const TypePtr type = given && given->kind() == Kind::kOptional ? given->element() : given;
  const auto element = [&](Kind kind, size_t i) -> TypePtr {
    return type && type->kind() == kind && i < type->elements().size() ? type->element(i) : nullptr;
  };
  switch (e.kind) {
    case Form::kInt:
      if (type && type->kind() == Kind::kFloat) return static_cast<double>(e.number);
      return e.number;
    case Form::kFloat: return e.real;
    case Form::kString:
      if (type && type->kind() == Kind::kDevice) return unit.device ? *unit.device : Device(e.text);
      return e.text;
    case Form::kTrue: return true;
    case Form::kFalse: return false;
    case Form::kNone: return IValue();
    case Form::kList: {
      std::vector<IValue> items;
      const TypePtr one = element(Kind::kList, 0);
      for (const ExpressionPtr& item : e.items)
        items.push_back(constant_of(unit, *item, one, source));
      return list_of(items, one);
    }
    case Form::kTuple: {
      std::vector<IValue> items;
      for (size_t i = 0; i < e.items.size(); ++i)
        items.push_back(constant_of(unit, *e.items[i], element(Kind::kTuple, i), source));
      return IValue::Tuple::create(std::move(items));
    }
    case Form::kDict: {
      IValue::GenericDict dict;
      for (const Named& entry : e.named) {
        dict.insert_or_assign(constant_of(unit, *entry.key, element(Kind::kDict, 0), source),
                              constant_of(unit, *entry.value, element(Kind::kDict, 1), source));
      }
      return dict;
    }
    case Form::kAttribute: return of_table(unit, e, source);
    case Form::kCall: return of_call(unit, e, source);
    default: no_constant(e, source);
  }
}

}  // namespace

IValue constant_of(CompilationUnit& unit, const Expression& expression, const TypePtr& type,
                   const Source& source) {
  IValue value = value_of(unit, expression, type, source);
  if (type && !has_type(value, type))
    fail_at(source, expression.offset, "got the value ", short_text(value), ", expected a ",
            type->text());
  return value;
}

}  // namespace ramet::script
