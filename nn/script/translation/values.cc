// Types, constants and arguments as C++ writes them.
#include <algorithm>

#include "autograd/schema/arguments_internal.h"
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

/// The items of a list of numbers, in braces.
Text numbers_in_braces(const IValue& list) {
  if (list.isIntList())
    return "{" + joined(list.toIntVector(), [](int64_t n) { return cpp_number(n); }) + "}";
  if (list.isDoubleList()) return "{" + joined(list.toDoubleVector(), cpp_double) + "}";
  if (list.isBoolList())
    return "{" + joined(list.toBoolList().vec(), [](bool b) { return cpp_bool(b); }) + "}";
  return std::nullopt;
}

bool is(const Written& value, Kind kind) { return value.type && value.type->kind() == kind; }
bool is_any(const Written& value) { return is(value, Kind::kAny) || is(value, Kind::kUnion); }
bool is_list_of(const TypePtr& type, Kind kind) {
  return type && type->kind() == Kind::kList && type->element()->kind() == kind;
}
/// Of a variable that may hold None: the value in it.
Written present(const Written& value) {
  if (!is(value, Kind::kOptional)) return value;
  Written inside = value;
  inside.type = value.type->element();
  inside.text += ".value()";
  return inside;
}

Text int_argument(const Written& value) {
  if (value.constant)
    return value.constant->isInt() || value.constant->isBool() ? Text(cpp_number(*value.constant))
                                                               : std::nullopt;
  const Written inside = present(value);
  if (is(inside, Kind::kInt) || is(inside, Kind::kBool)) return inside.text;
  if (is(inside, Kind::kNumber)) return inside.text + ".toLong()";
  if (is_any(inside)) return inside.text + ".toInt()";
  return std::nullopt;
}
Text real_argument(const Written& value) {
  if (value.constant) {
    if (value.constant->isDouble()) return cpp_number(*value.constant);
    if (value.constant->isInt()) return cpp_double(static_cast<double>(value.constant->toInt()));
    return std::nullopt;
  }
  const Written inside = present(value);
  if (is(inside, Kind::kFloat)) return inside.text;
  if (is(inside, Kind::kInt) || is(inside, Kind::kBool))
    return "static_cast<double>(" + inside.text + ")";
  if (is(inside, Kind::kNumber)) return inside.text + ".toDouble()";
  if (is_any(inside)) return inside.text + ".toScalar().toDouble()";
  return std::nullopt;
}
Text bool_argument(const Written& value) {
  if (value.constant)
    return value.constant->isBool() || value.constant->isInt() ? Text(cpp_number(*value.constant))
                                                               : std::nullopt;
  const Written inside = present(value);
  if (is(inside, Kind::kBool)) return inside.text;
  if (is_any(inside)) return inside.text + ".toBool()";
  return std::nullopt;
}
Text number_argument(const Written& value) {
  if (value.constant) {
    const std::string text = cpp_number(*value.constant);
    return text.empty() ? std::nullopt : Text(text);
  }
  const Written inside = present(value);
  for (const Kind kind : {Kind::kInt, Kind::kFloat, Kind::kBool, Kind::kNumber})
    if (is(inside, kind)) return inside.text;
  if (is(inside, Kind::kTensor)) return inside.text + ".item()";
  if (is_any(inside)) return inside.text + ".toScalar()";
  return std::nullopt;
}
// The language holds dtypes as PyTorch's numbers.
Text dtype_argument(const Written& value) {
  if (!value.constant) {
    const Text number = int_argument(value);
    return number ? Text("python::scalar_type(" + *number + ")") : std::nullopt;
  }
  if (!value.constant->isInt()) return std::nullopt;
  return cpp_dtype(dtype_of(value.constant->toInt()));
}
Text format_argument(const Written& value) {
  if (!value.constant || !value.constant->isInt()) return std::nullopt;
  switch (format_of(value.constant->toInt())) {
    case MemoryFormat::Contiguous: return "ramet::MemoryFormat::Contiguous";
    case MemoryFormat::Preserve: return "ramet::MemoryFormat::Preserve";
    case MemoryFormat::ChannelsLast: return "ramet::MemoryFormat::ChannelsLast";
  }
  return std::nullopt;
}
Text text_argument(const Written& value) {
  if (value.constant)
    return value.constant->isString() ? Text(cpp_text(value.constant->toStringRef()))
                                      : std::nullopt;
  const Written inside = present(value);
  if (is(inside, Kind::kString)) return inside.text;
  return is_any(inside) ? Text(inside.text + ".toStringRef()") : std::nullopt;
}
Text device_argument(const Written& value) {
  if (value.constant) {
    if (!value.constant->isDevice() && !value.constant->isString()) return std::nullopt;
    return "ramet::Device(" + cpp_text(device_of(*value.constant).str()) + ")";
  }
  const Written inside = present(value);
  if (is(inside, Kind::kString)) return "ramet::Device(" + inside.text + ")";
  return is(inside, Kind::kDevice) ? Text(inside.text) : std::nullopt;
}
Text tensor_argument(const Written& value) {
  if (value.constant) return value.constant->isNone() ? Text("ramet::Tensor()") : std::nullopt;
  const Written inside = present(value);
  if (is_any(inside)) return inside.text + ".toTensor()";
  return is(inside, Kind::kTensor) ? Text(inside.text) : std::nullopt;
}

}  // namespace

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

Text Words::list_argument(const Written& value, Kind item, const char* reference) const {
  const std::string type = std::string("ramet::ArrayRef<") + reference + ">";
  if (value.constant) {
    const auto items = numbers_in_braces(*value.constant);
    // Braces with one item, or none, could be a number too.
    if (items) {
      if (*items == "{}") return type + "()";
      return items->find(',') == std::string::npos ? type + "(" + *items + ")" : *items;
    }
    if (value.constant->isList() && value.constant->toList().size() == 0) return type + "()";
    return std::nullopt;
  }
  const Written inside = present(value);
  if (is_any(inside))
    return inside.text + (item == Kind::kInt ? ".toIntVector()" : ".toDoubleVector()");
  if (!is_list_of(inside.type, item)) return std::nullopt;
  return inside.text + (is_shared(inside.type) ? ".vec()" : "");
}

Text Words::tensors_argument(const Written& value, bool optional) const {
  const char* const none =
      optional ? "std::vector<std::optional<ramet::Tensor>>()" : "ramet::TensorList()";
  if (value.constant) return value.constant->isList() ? Text(none) : std::nullopt;
  Written inside = present(value);
  if (!is(inside, Kind::kList)) return std::nullopt;
  if (is_shared(inside.type)) inside.text += ".vec()";
  const TypePtr& item = inside.type->element();
  const bool maybe = item->kind() == Kind::kOptional && item->element()->kind() == Kind::kTensor;
  if (item->kind() != Kind::kTensor && !(optional && maybe)) return std::nullopt;
  if (optional && !maybe)
    return "std::vector<std::optional<ramet::Tensor>>(" + inside.text + ".begin(), " + inside.text +
           ".end())";
  return inside.text;
}

Text Words::argument(const Written& value, const std::string& reader) const {
  if (value.module) return std::nullopt;
  if (!value.constant && !value.type) return std::nullopt;
  const bool optional = reader.rfind("may_", 0) == 0;
  if (optional && (is(value, Kind::kNone) || (value.constant && value.constant->isNone())))
    return reader == "may_dtype" ? "std::optional<ramet::ScalarType>()" : "std::nullopt";
  // A variable that may hold None, where None is allowed.
  if (optional && !value.constant && is(value, Kind::kOptional)) {
    const TypePtr& type = value.type->element();
    const Kind held = type->kind();
    if (reader == "may_tensor" && held == Kind::kTensor) return value.text;
    if (reader == "may_integer" && held == Kind::kInt) return value.text;
    if (reader == "may_real" && held == Kind::kFloat) return value.text;
    if (reader == "may_truth" && held == Kind::kBool) return value.text;
    if (reader == "may_device" && held == Kind::kDevice) return value.text;
    if (reader == "may_text" && held == Kind::kString) return value.text;
    const auto if_present = [&](const char* wanted, const std::string& inside) {
      return "(" + value.text + " ? " + wanted + "(" + inside + ") : std::nullopt)";
    };
    if (reader == "may_dtype" && held == Kind::kInt)
      return if_present("std::optional<ramet::ScalarType>",
                        "python::scalar_type(*" + value.text + ")");
    if (reader == "may_number" && (held == Kind::kInt || held == Kind::kFloat))
      return if_present("std::optional<ramet::Scalar>", "*" + value.text);
    const std::string items = "*" + value.text;
    const std::string plain = is_shared(type) ? "(" + items + ").vec()" : items;
    if (reader == "may_integers" && is_list_of(type, Kind::kInt))
      return if_present("ramet::OptionalIntArrayRef", plain);
    if (reader == "may_reals" && is_list_of(type, Kind::kFloat))
      return if_present("std::optional<ramet::ArrayRef<double>>", plain);
    return std::nullopt;
  }
  const std::string kind = optional ? reader.substr(4) : reader;
  Text text;
  if (kind == "tensor" || kind == "written") text = tensor_argument(value);
  else if (kind == "integer") text = int_argument(value);
  else if (kind == "real") text = real_argument(value);
  else if (kind == "truth") text = bool_argument(value);
  else if (kind == "number") text = number_argument(value);
  else if (kind == "integers") text = list_argument(value, Kind::kInt, "int64_t");
  else if (kind == "reals") text = list_argument(value, Kind::kFloat, "double");
  else if (kind == "tensors") text = tensors_argument(value, false);
  else if (kind == "optional_tensors") text = tensors_argument(value, true);
  else if (kind == "text") text = text_argument(value);
  else if (kind == "dtype") text = dtype_argument(value);
  else if (kind == "format") text = format_argument(value);
  else if (kind == "device") text = device_argument(value);
  if (text && reader == "may_number") text = "ramet::Scalar(" + *text + ")";
  if (text && optional && text->front() == '{')
    text = std::string("ramet::ArrayRef<") + (kind == "reals" ? "double" : "int64_t") + ">(" +
           *text + ")";
  return text;
}

// The value as an IValue.
Text Words::any(const Written& value) const {
  if (value.constant) {
    const IValue& constant = *value.constant;
    if (constant.isNone()) return "ramet::IValue()";
    if (constant.isDevice()) return "ramet::IValue(" + *device_argument(value) + ")";
    if (constant.isString()) return "ramet::IValue(" + cpp_text(constant.toStringRef()) + ")";
    if (const std::string number = cpp_number(constant); !number.empty())
      return "ramet::IValue(" + number + ")";
    if (constant.isIntList() || constant.isDoubleList())
      return std::string("ramet::IValue(std::vector<") +
             (constant.isIntList() ? "int64_t" : "double") + ">" + *numbers_in_braces(constant) +
             ")";
    return std::nullopt;
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
      return tensor_argument(value);
    case Kind::kInt: return int_argument(value);
    case Kind::kFloat: return real_argument(value);
    case Kind::kBool: return bool_argument(value);
    case Kind::kNumber: return number_argument(value);
    case Kind::kString: return text_argument(value);
    case Kind::kDevice: return device_argument(value);
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
    if (is_any(value)) return from_any(value, type);
    if (type->kind() == Kind::kNone) return "std::monostate()";
    if (type->kind() == Kind::kOptional) {
      if (is(value, Kind::kNone)) return "std::nullopt";
      if (is_subtype(value.type, type)) return value.text;
      return this->value(value, type->element());
    }
    if (is(value, Kind::kOptional)) return this->value(present(value), type);
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
  if (!is_any(value)) {
    const bool optional = is(value, Kind::kOptional);
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
