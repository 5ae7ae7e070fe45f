#include "tests/autograd/schema/called.h"

namespace ramet::script {

TypePtr type_of(const IValue& value) {
  using Kind = Type::Kind;
  if (value.isNone()) return Type::of(Kind::kNone);
  if (value.isInt()) return Type::of(Kind::kInt);
  if (value.isDouble()) return Type::of(Kind::kFloat);
  if (value.isBool()) return Type::of(Kind::kBool);
  if (value.isString()) return Type::of(Kind::kString);
  if (value.isTensor()) return Type::of(Kind::kTensor);
  if (value.isDevice()) return Type::of(Kind::kDevice);
  if (value.isIntList()) return Type::list(Type::of(Kind::kInt));
  if (value.isDoubleList()) return Type::list(Type::of(Kind::kFloat));
  if (value.isBoolList()) return Type::list(Type::of(Kind::kBool));
  if (value.isTensorList()) return Type::list(Type::of(Kind::kTensor));
  if (value.isTuple()) {
    std::vector<TypePtr> elements;
    for (const IValue& element : value.toTupleRef().elements())
      elements.push_back(type_of(element));
    return Type::tuple(std::move(elements));
  }
  if (value.isGenericDict()) {
    const auto& dict = value.toGenericDict();
    if (dict.empty()) return Type::dict(Type::of(Kind::kString), Type::of(Kind::kTensor));
    return Type::dict(type_of(dict.begin()->key()), type_of(dict.begin()->value()));
  }
  if (value.isList()) {
    TypePtr element;
    for (const IValue& item : value.toListRef())
      element = element ? unify(element, type_of(item)) : type_of(item);
    return Type::list(element ? element : Type::of(Kind::kTensor));
  }
  return Type::of(Kind::kAny);
}

Match matched(const std::string& name, const std::vector<Passing>& arguments) {
  std::vector<Given> given;
  for (const Passing& argument : arguments)
    given.push_back({argument.name, argument.type ? argument.type : type_of(argument.value),
                     &argument.value});
  std::string why;
  Match match = match_operator(name, given, why);
  EXPECT_TRUE(match.op) << name << ": " << why;
  return match;
}

IValue call_match(const Match& match, const std::vector<Passing>& arguments) {
  std::vector<IValue> values;
  for (size_t i = 0; i < match.sources.size(); ++i) {
    const int source = match.sources[i];
    if (i >= match.op->parameters.size()) {
      values.push_back(arguments[static_cast<size_t>(source)].value);
      continue;
    }
    const Parameter& parameter = match.op->parameters[i];
    values.push_back(source < 0 ? *parameter.value
                                : change(match.changes[i], parameter,
                                         arguments[static_cast<size_t>(source)].value));
  }
  std::vector<const IValue*> pointers;
  for (const IValue& value : values) pointers.push_back(&value);
  return match.op->function(pointers);
}

IValue called(const std::string& name, const std::vector<Passing>& arguments) {
  const Match match = matched(name, arguments);
  return match.op ? call_match(match, arguments) : IValue();
}

}  // namespace ramet::script
