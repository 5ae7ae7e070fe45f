// Finds the overload that a call means, and fits the arguments to its parameters.
#include <map>
#include <sstream>

#include "autograd/schema/operators_internal.h"
#include "autograd/schema/values_internal.h"
#include "runtime/base/classic.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;
using Change = Match::Change;
using Variables = std::map<std::string, TypePtr>;

// What an attempt may do in addition to what every call may: nothing, or PyTorch's implicit
// conversions of tensors and numbers. The last also does those that only traces need.
enum class Allowed { kNothing, kImplicit, kAll };

TypePtr replaced(const TypePtr& type, const Variables& variables) {
  std::vector<TypePtr> elements;
  switch (type->kind()) {
    case Kind::kVariable: {
      const auto found = variables.find(type->name());
      return found == variables.end() ? type : found->second;
    }
    case Kind::kList: return Type::list(replaced(type->element(), variables));
    case Kind::kOptional: return Type::optional(replaced(type->element(), variables));
    case Kind::kFuture: return Type::future(replaced(type->element(), variables));
    case Kind::kDict:
      return Type::dict(replaced(type->element(0), variables),
                        replaced(type->element(1), variables));
    case Kind::kTuple:
      for (const TypePtr& element : type->elements())
        elements.push_back(replaced(element, variables));
      return Type::tuple(std::move(elements));
    default: return type;
  }
}

bool has_variable(const TypePtr& type) {
  if (type->kind() == Kind::kVariable) return true;
  for (const TypePtr& element : type->elements())
    if (has_variable(element)) return true;
  return false;
}

// Gives the variables of `formal` the types that they have in `actual`.
bool bind(const TypePtr& formal, const TypePtr& actual, Variables& variables) {
  if (!has_variable(formal)) return true;
  if (formal->kind() == Kind::kVariable) {
    const auto [at, fresh] = variables.emplace(formal->name(), actual);
    return fresh || is_subtype(actual, at->second);
  }
  if (formal->kind() == Kind::kOptional) {
    if (actual->kind() == Kind::kNone) return true;
    return bind(formal->element(), actual->kind() == Kind::kOptional ? actual->element() : actual,
                variables);
  }
  if (formal->kind() != actual->kind() || formal->elements().size() != actual->elements().size())
    return false;
  for (size_t i = 0; i < formal->elements().size(); ++i)
    if (!bind(formal->element(i), actual->element(i), variables)) return false;
  return true;
}

bool is_list_of(const TypePtr& type, Kind kind) {
  return type->kind() == Kind::kList && type->element()->kind() == kind;
}

bool is_empty_list(const IValue* constant) {
  return constant && constant->isList() && length(*constant) == 0;
}

// The conversion of a tensor or number to a number; kNone where there is none.
Change to_number(Kind from, Kind to, Allowed allowed) {
  if (from == Kind::kTensor || from == Kind::kNumber || from == Kind::kBool) {
    if (to == Kind::kInt) return Change::kTensorToInt;
    if (to == Kind::kFloat) return Change::kTensorToFloat;
    if (to == Kind::kNumber) return Change::kTensorToNumber;
  }
  if (allowed == Allowed::kAll && from == Kind::kInt && to == Kind::kFloat)
    return Change::kIntToFloat;
  return Change::kNone;
}

// Does the argument fit the parameter's type, and with which change?
bool fits(const Parameter& parameter, const Given& given, Allowed allowed, Variables& variables,
          Change& change) {
  change = Change::kNone;
  Variables tried = variables;
  if (bind(parameter.type, given.type, tried) &&
      is_subtype(given.type, replaced(parameter.type, tried))) {
    variables = std::move(tried);
    return true;
  }
  const TypePtr& formal =
      parameter.type->kind() == Kind::kOptional ? parameter.type->element() : parameter.type;
  const TypePtr& actual = given.type;
  if (formal->kind() == Kind::kList) {
    const TypePtr& element = formal->element();
    if (is_empty_list(given.constant)) return change = Change::kEmptyList, true;
    if (parameter.repeat > 0 && actual->kind() == element->kind())
      return change = Change::kRepeat, true;
    if (actual->kind() == Kind::kTuple) {
      tried = variables;
      for (const TypePtr& item : actual->elements())
        if (!bind(element, item, tried) || !is_subtype(item, replaced(element, tried)))
          return false;
      variables = std::move(tried);
      return change = Change::kTupleToList, true;
    }
    if (allowed == Allowed::kAll && element->kind() == Kind::kInt &&
        is_list_of(actual, Kind::kTensor))
      return change = Change::kTensorsToInts, true;
    if (allowed == Allowed::kAll && element->kind() == Kind::kFloat &&
        is_list_of(actual, Kind::kInt))
      return change = Change::kIntsToFloats, true;
    return false;
  }
  // Operators take the text of a device as the device.
  if (formal->kind() == Kind::kDevice && actual->kind() == Kind::kString)
    return allowed != Allowed::kNothing;
  if (allowed == Allowed::kNothing) return false;
  change = to_number(actual->kind(), formal->kind(), allowed);
  return change != Change::kNone;
}

// Tries one overload.
bool fits(const Operator& op, const std::vector<Given>& given, Allowed allowed, Match& match,
          std::string& why) {
  match = {};
  size_t by_position = 0;
  while (by_position < given.size() && given[by_position].name.empty()) ++by_position;
  std::vector<bool> used(given.size(), false);
  Variables variables;
  const auto refuse = [&why](auto... parts) {
    auto text = detail::classic<std::ostringstream>();
    (text << ... << parts);
    why = text.str();
    return false;
  };
  size_t next = 0;
  for (const Parameter& parameter : op.parameters) {
    int source = -1;
    if (!parameter.by_name && next < by_position) source = static_cast<int>(next++);
    else
      for (size_t i = by_position; i < given.size(); ++i)
        if (given[i].name == parameter.name) source = static_cast<int>(i);
    Change change = Change::kNone;
    if (source < 0) {
      if (!parameter.value) return refuse("parameter '", parameter.name, "' has no value");
    } else {
      used[static_cast<size_t>(source)] = true;
      const Given& argument = given[static_cast<size_t>(source)];
      if (!fits(parameter, argument, allowed, variables, change))
        return refuse("parameter '", parameter.name, "': got ", argument.type->text(),
                      ", expected ", replaced(parameter.type, variables)->text());
    }
    match.sources.push_back(source);
    match.changes.push_back(change);
  }
  if (op.any_number)
    for (; next < by_position; ++next) {
      used[next] = true;
      match.sources.push_back(static_cast<int>(next));
      match.changes.push_back(Change::kNone);
    }
  for (size_t i = 0; i < given.size(); ++i) {
    if (used[i]) continue;
    if (given[i].name.empty())
      return refuse("got ", by_position, " arguments by position, expected at most ", next);
    return refuse("there is no parameter '", given[i].name, "', or it is given twice");
  }
  match.op = &op;
  match.result = replaced(op.result, variables);
  return true;
}

int64_t int_of(const IValue& value) {
  if (value.isInt()) return value.toInt();
  if (!value.isTensor()) return value.toScalar().toLong();
  return value.toTensor().item().toLong();
}
double float_of(const IValue& value) {
  if (value.isDouble()) return value.toDouble();
  return value.isTensor() ? value.toTensor().item().toDouble() : value.toScalar().toDouble();
}

}  // namespace

Match match_operator(std::string_view name, const std::vector<Given>& given, std::string& why) {
  const std::vector<const Operator*>& overloads = operators_named(name);
  Match match = match_operator(overloads, given, why);
  if (overloads.empty()) why.assign("there is no operator ").append(name);
  return match;
}

Match match_operator(const std::vector<const Operator*>& overloads, const std::vector<Given>& given,
                     std::string& why) {
  Match match;
  for (const Allowed allowed : {Allowed::kNothing, Allowed::kImplicit, Allowed::kAll}) {
    why.clear();
    for (const Operator* op : overloads) {
      std::string reason;
      if (fits(*op, given, allowed, match, reason)) {
        why.clear();
        return match;
      }
      why.append(why.empty() ? "" : "\n").append(op->text()).append(": ").append(reason);
    }
  }
  return {};
}

IValue change(Match::Change what, const Parameter& parameter, const IValue& value) {
  const auto element = [&parameter]() -> const TypePtr& {
    return (parameter.type->kind() == Kind::kOptional ? parameter.type->element() : parameter.type)
        ->element();
  };
  const auto count = static_cast<size_t>(parameter.repeat);
  switch (what) {
    case Change::kNone: return value;
    case Change::kRepeat: return make_list(element(), std::vector<IValue>(count, value));
    case Change::kTensorToInt: return int_of(value);
    case Change::kTensorToFloat:
    case Change::kIntToFloat: return float_of(value);
    case Change::kTensorToNumber: return value.isTensor() ? IValue(value.toTensor().item()) : value;
    case Change::kTensorsToInts: {
      std::vector<int64_t> ints;
      for (const Tensor& item : value.toTensorVector()) ints.push_back(item.item().toLong());
      return ints;
    }
    case Change::kTupleToList: return make_list(element(), value.toTupleRef().elements());
    case Change::kItemsToList: return make_list(element(), value.toList().vec());
    case Change::kIntsToFloats: {
      std::vector<double> floats;
      for (const int64_t item : value.toIntVector()) floats.push_back(static_cast<double>(item));
      return floats;
    }
    case Change::kEmptyList: return make_list(element(), {});
  }
  return value;
}

}  // namespace ramet::script
