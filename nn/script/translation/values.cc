// Types, constants and values as C++ writes them.
#include <algorithm>

#include "nn/script/translation/translation_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;
using Text = std::optional<std::string>;

template <class T, class F> std::string joined(const std::vector<T>& items, F&& text) {
  std::string list;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) list += ", ";
    list += text(items[i]);
  }
  return list;
}

}  // namespace

Text numbers_in_braces(const IValue& list) {
  if (list.isIntList())
    return "{" + joined(list.toIntVector(), [](int64_t n) { return cpp_number(n); }) + "}";
  if (list.isDoubleList()) return "{" + joined(list.toDoubleVector(), cpp_double) + "}";
  if (list.isBoolList())
    return "{" + joined(list.toBoolList().vec(), [](bool b) { return cpp_bool(b); }) + "}";
  return std::nullopt;
}

std::string Words::type(const TypePtr& type) const {
  if (!type) return "";
  const auto of_elements = [&](const char* name) {
    std::string list;
    for (const TypePtr& element : type->elements()) {
      const std::string item = this->type(element);
      if (item.empty()) return std::string();
      list += (list.empty() ? "" : ", ") + item;
    }
    return std::string(name) + "<" + list + ">";
  };
  switch (type->kind()) {
    case Kind::kTensor: return "ramet::Tensor";
    case Kind::kInt: return "int64_t";
    case Kind::kFloat: return "double";
    case Kind::kBool: return "bool";
    case Kind::kNumber: return "ramet::Scalar";
    case Kind::kString: return "std::string";
    case Kind::kDevice: return "ramet::Device";
    case Kind::kNone: return "std::monostate";
    case Kind::kAny:
    case Kind::kUnion: return "ramet::IValue";
    case Kind::kList: return of_elements(is_shared(type) ? "ramet::List" : "std::vector");
    case Kind::kTuple: return of_elements("std::tuple");
    case Kind::kOptional: return of_elements("std::optional");
    case Kind::kDict: return of_elements("ramet::Dict");
    case Kind::kFuture: return of_elements("python::Future");
    case Kind::kClass:
    case Kind::kEnum: {
      const auto known = structs.find(type->info());
      return known == structs.end() ? "" : "std::shared_ptr<" + known->second + ">";
    }
    default: return "";
  }
}

// A constant that holds values, as an IValue.
Text Words::any_of_several(const IValue& constant) const {
  if (constant.isTensor()) {
    if (!constant.toTensor().defined()) return "ramet::IValue(ramet::Tensor())";
    return tensor_name ? Text("ramet::IValue(" + tensor_name(constant.toTensor()) + ")")
                       : std::nullopt;
  }
  if (constant.isBoolList())
    return "ramet::IValue(ramet::List<bool>" + *numbers_in_braces(constant) + ")";
  std::string list;
  const auto item = [&](const IValue& one) {
    Written value;
    value.constant = &one;
    return any(value);
  };
  const auto items = [&](const std::vector<IValue>& values) {
    for (const IValue& one : values) {
      const Text text = item(one);
      if (!text) return false;
      list += (list.empty() ? "" : ", ") + *text;
    }
    return true;
  };
  if (constant.isTensorList()) {
    for (const Tensor& t : constant.toTensorVector()) {
      if (!tensor_name) return std::nullopt;
      list += (list.empty() ? "" : ", ") + tensor_name(t);
    }
    return "ramet::IValue(ramet::List<ramet::Tensor>{" + list + "})";
  }
  if (constant.isList()) {  // numbers are written above
    const IValue::GenericList values = constant.toList();
    if (!items(values.vec())) return std::nullopt;
    return "ramet::IValue(ramet::List<ramet::IValue>{" + list + "})";
  }
  if (constant.isTuple() && !constant.toTupleRef().names()) {
    if (!items(constant.toTupleRef().elements())) return std::nullopt;
    return "ramet::IValue(ramet::IValue::Tuple::create({" + list + "}))";
  }
  if (!constant.isGenericDict()) return std::nullopt;
  for (const auto& entry : constant.toGenericDict()) {
    const Text key = item(entry.key()), held = item(entry.value());
    if (!key || !held) return std::nullopt;
    list += (list.empty() ? "{" : ", {") + *key + ", " + *held + "}";
  }
  return "ramet::IValue(ramet::IValue::GenericDict{" + list + "})";
}

// The value as an IValue.
Text Words::any(const Written& value) const {
  if (value.constant) {
    const IValue& constant = *value.constant;
    if (constant.isNone()) return "ramet::IValue()";
    if (constant.isDevice()) return "ramet::IValue(" + *argument(value, "device") + ")";
    if (constant.isString()) return "ramet::IValue(" + cpp_text(constant.toStringRef()) + ")";
    if (const std::string number = cpp_number(constant); !number.empty())
      return "ramet::IValue(" + number + ")";
    if (constant.isIntList() || constant.isDoubleList())
      return std::string("ramet::IValue(std::vector<") +
             (constant.isIntList() ? "int64_t" : "double") + ">" + *numbers_in_braces(constant) +
             ")";
    return any_of_several(constant);
  }
  if (!value.type || type(value.type).empty()) return std::nullopt;
  switch (value.type->kind()) {
    case Kind::kAny:
    case Kind::kUnion: return value.text;
    case Kind::kNone: return "ramet::IValue()";
    case Kind::kTensor:
    case Kind::kInt:
    case Kind::kFloat:
    case Kind::kBool:
    case Kind::kNumber:
    case Kind::kString:
    case Kind::kDevice: return "ramet::IValue(" + value.text + ")";
    case Kind::kClass:
    case Kind::kEnum:
    case Kind::kFuture: return std::nullopt;
    default: return "python::as_any(" + value.text + ")";
  }
}

Text Words::from_any(const Written& value, const TypePtr& type) const {
  switch (type->kind()) {
    case Kind::kNone: return "std::monostate()";
    case Kind::kTensor: return value.text + ".toTensor()";
    case Kind::kInt: return value.text + ".toInt()";
    case Kind::kFloat: return value.text + ".toDouble()";
    case Kind::kBool: return value.text + ".toBool()";
    case Kind::kNumber: return value.text + ".toScalar()";
    case Kind::kString: return value.text + ".toStringRef()";
    case Kind::kDevice: return value.text + ".toDevice()";
    case Kind::kAny:
    case Kind::kUnion: return value.text;
    case Kind::kList:
    case Kind::kDict:
    case Kind::kTuple:
    case Kind::kOptional: {
      const std::string name = this->type(type);
      if (name.empty()) return std::nullopt;
      return "python::From<" + name + ">::of(" + value.text + ")";
    }
    default: return std::nullopt;
  }
}

// A value of the file.
Text Words::literal(const IValue& constant, const TypePtr& type) const {
  Written value;
  value.constant = &constant;
  const std::string name = this->type(type);
  if (name.empty()) return std::nullopt;
  // Several values in braces. None where one of them has no C++.
  std::string list;
  const auto item = [&](const IValue& one, const TypePtr& of) {
    const Text text = literal(one, of);
    if (text) list += (list.empty() ? "" : ", ") + *text;
    return text.has_value();
  };
  switch (type->kind()) {
    case Kind::kOptional:
      return constant.isNone() ? Text("std::nullopt") : literal(constant, type->element());
    case Kind::kAny:
    case Kind::kUnion: return any(value);
    case Kind::kNone: return "std::monostate()";
    case Kind::kTensor:
      if (constant.isTensor() && tensor_name) return tensor_name(constant.toTensor());
      return argument(value, "tensor");
    case Kind::kInt: return argument(value, "integer");
    case Kind::kFloat: return argument(value, "real");
    case Kind::kBool: return argument(value, "truth");
    case Kind::kNumber: return argument(value, "number");
    case Kind::kString: return argument(value, "text");
    case Kind::kDevice: return argument(value, "device");
    case Kind::kList: {
      if (const auto items = numbers_in_braces(constant)) return name + *items;
      if (!constant.isList()) return std::nullopt;
      const IValue::GenericList items = constant.toList();
      for (const IValue& one : items.vec())
        if (!item(one, type->element())) return std::nullopt;
      return name + (list.empty() ? "()" : "{" + list + "}");
    }
    case Kind::kTuple: {
      if (!constant.isTuple()) return std::nullopt;
      const std::vector<IValue>& items = constant.toTupleRef().elements();
      for (size_t i = 0; i < items.size(); ++i)
        if (i >= type->elements().size() || !item(items[i], type->element(i))) return std::nullopt;
      return name + "{" + list + "}";
    }
    case Kind::kDict: {
      if (!constant.isGenericDict()) return std::nullopt;
      for (const auto& entry : constant.toGenericDict()) {
        const Text key = literal(entry.key(), type->element(0));
        const Text held = literal(entry.value(), type->element(1));
        if (!key || !held) return std::nullopt;
        list += (list.empty() ? "{" : ", {") + *key + ", " + *held + "}";
      }
      return name + (list.empty() ? "()" : "{" + list + "}");
    }
    case Kind::kClass:
    case Kind::kEnum: {
      const auto object = object_in(constant);
      if (!object || object->info() != type->info()) return std::nullopt;
      const std::vector<ClassInfo::Attribute>& attributes = object->info()->attributes;
      for (size_t i = 0; i < attributes.size(); ++i)
        if (!item(object->slots[i], attributes[i].type)) return std::nullopt;
      return structs.at(type->info()) + "::with(" + list + ")";
    }
    default: return std::nullopt;
  }
}

Text Words::value(const Written& value, const TypePtr& type) const {
  if (!type || value.module) return std::nullopt;
  const std::string name = this->type(type);
  if (name.empty()) return std::nullopt;
  if (type->kind() == Kind::kAny || type->kind() == Kind::kUnion) return any(value);
  if (!value.constant) {
    if (!value.type) return std::nullopt;
    if (same(value.type, type)) return value.text;
    if (value.is_any()) return from_any(value, type);
    if (type->kind() == Kind::kNone) return "std::monostate()";
    if (type->kind() == Kind::kOptional) {
      if (value.is(Kind::kNone)) return "std::nullopt";
      if (is_subtype(value.type, type)) return value.text;
      return this->value(value, type->element());
    }
    if (value.is(Kind::kOptional)) return this->value(value.present(), type);
    if (type->kind() == Kind::kNumber || type->kind() == Kind::kFloat || type->kind() == Kind::kInt)
      return argument(value, type->kind() == Kind::kNumber  ? "number"
                             : type->kind() == Kind::kFloat ? "real"
                                                            : "integer");
    return is_subtype(value.type, type) ? Text(value.text) : std::nullopt;
  }
  // What uninitialized(int) gives: no correct program reads it.
  if (value.constant->isNone() && type->kind() != Kind::kOptional && type->kind() != Kind::kTensor)
    return name + "{}";
  return literal(*value.constant, type);
}

Text Words::is_instance(const Written& value, const Type& types) const {
  if (value.constant || !value.type || value.module) return std::nullopt;
  if (!value.is_any()) {
    const bool optional = value.is(Kind::kOptional);
    bool none = false, held = false;
    for (const TypePtr& type : types.elements()) {
      none = none || is_subtype(Type::of(Kind::kNone), type);
      held = held || is_subtype(optional ? value.type->element() : value.type, type);
    }
    if (!optional || none == held) return cpp_bool(held);
    return (held ? "" : "!") + value.text + ".has_value()";
  }
  std::string text;
  for (const TypePtr& type : types.elements()) {
    const Kind item = type->kind() == Kind::kList ? type->element()->kind() : Kind::kAny;
    const char* const question = type->kind() == Kind::kTensor   ? "isTensor"
                                 : type->kind() == Kind::kInt    ? "isInt"
                                 : type->kind() == Kind::kFloat  ? "isDouble"
                                 : type->kind() == Kind::kBool   ? "isBool"
                                 : type->kind() == Kind::kString ? "isString"
                                 : type->kind() == Kind::kNone   ? "isNone"
                                 : item == Kind::kInt            ? "isIntList"
                                 : item == Kind::kFloat          ? "isDoubleList"
                                 : item == Kind::kBool           ? "isBoolList"
                                 : item == Kind::kTensor         ? "isTensorList"
                                                                 : nullptr;
    if (!question) return std::nullopt;
    text += (text.empty() ? "" : " || ") + value.text + "." + question + "()";
  }
  return text;
}

}  // namespace ramet::script
