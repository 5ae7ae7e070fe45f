// Names, types, constants and arguments as C++ writes them.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sstream>

#include "autograd/schema/arguments_internal.h"
#include "nn/script/translate_internal.h"
#include "runtime/base/classic.h"
#include "runtime/tensor/print.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

constexpr std::string_view kKeywords[] = {
    "alignas",      "alignof",       "and",          "asm",
    "auto",         "bitand",        "bitor",        "bool",
    "break",        "case",          "catch",        "char",
    "class",        "compl",         "concept",      "const",
    "constexpr",    "continue",      "co_await",     "co_yield",
    "decltype",     "default",       "delete",       "do",
    "double",       "else",          "enum",         "explicit",
    "export",       "extern",        "false",        "float",
    "for",          "friend",        "goto",         "if",
    "inline",       "int",           "long",         "mutable",
    "namespace",    "new",           "noexcept",     "not",
    "nullptr",      "operator",      "or",           "private",
    "protected",    "public",        "ramet",        "register",
    "requires",     "return",        "short",        "signed",
    "sizeof",       "static",        "std",          "struct",
    "switch",       "template",      "this",         "throw",
    "true",         "try",           "typedef",      "typeid",
    "typename",     "union",         "unsigned",     "using",
    "virtual",      "void",          "volatile",     "wchar_t",
    "while",        "xor",           "main",         "errno",
    "assert",       "NULL",          "NAN",          "INFINITY",
    "and_eq",       "or_eq",         "not_eq",       "xor_eq",
    "static_cast",  "const_cast",    "dynamic_cast", "reinterpret_cast",
    "thread_local", "static_assert", "co_return",    "char8_t",
    "char16_t",     "char32_t",      "constinit",    "consteval"};

std::string cpp_int(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min()) return "std::numeric_limits<int64_t>::min()";
  return std::to_string(value);
}

std::string cpp_double(double value) {
  if (std::isnan(value)) return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(value))
    return std::string(value < 0 ? "-" : "") + "std::numeric_limits<double>::infinity()";
  auto text = detail::classic<std::ostringstream>();
  for (const int digits : {6, 15, 17}) {
    text.str("");
    text.precision(digits);
    text << value;
    auto back = detail::classic<std::istringstream>();
    back.str(text.str());
    double again = 0;
    if (back >> again && again == value) break;
  }
  std::string made = text.str();
  if (made.find_first_of(".e") == std::string::npos) made += ".0";
  return made;
}

template <class T, class F> std::string joined(const std::vector<T>& items, F&& text) {
  std::string list;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) list += ", ";
    list += text(items[i]);
  }
  return list;
}

std::string cpp_bool(bool value) { return value ? "true" : "false"; }

/// A number as a literal; empty where it is none.
std::string cpp_number(const IValue& value) {
  if (value.isBool()) return cpp_bool(value.toBool());
  if (value.isInt()) return cpp_int(value.toInt());
  if (value.isDouble()) return cpp_double(value.toDouble());
  if (!value.isScalar()) return "";
  const Scalar number = value.toScalar();
  if (number.isBoolean()) return cpp_bool(number.toBool());
  return number.isFloatingPoint() ? cpp_double(number.toDouble()) : cpp_int(number.toLong());
}

/// The items of a list of numbers, in braces.
std::optional<std::string> numbers_in_braces(const IValue& list) {
  if (list.isIntList()) return "{" + joined(list.toIntVector(), cpp_int) + "}";
  if (list.isDoubleList()) return "{" + joined(list.toDoubleVector(), cpp_double) + "}";
  if (list.isBoolList())
    return "{" + joined(list.toBoolList().vec(), [](bool b) { return cpp_bool(b); }) + "}";
  return std::nullopt;
}

bool is(const Written& value, Kind kind) { return value.type && value.type->kind() == kind; }
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

std::optional<std::string> int_argument(const Written& value) {
  if (value.constant)
    return value.constant->isInt() || value.constant->isBool()
               ? std::optional<std::string>(cpp_number(*value.constant))
               : std::nullopt;
  const Written inside = present(value);
  if (is(inside, Kind::kInt) || is(inside, Kind::kBool)) return inside.text;
  if (is(inside, Kind::kNumber)) return inside.text + ".toLong()";
  return std::nullopt;
}
std::optional<std::string> real_argument(const Written& value) {
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
  return std::nullopt;
}
std::optional<std::string> bool_argument(const Written& value) {
  if (value.constant)
    return value.constant->isBool() || value.constant->isInt()
               ? std::optional<std::string>(cpp_number(*value.constant))
               : std::nullopt;
  const Written inside = present(value);
  if (is(inside, Kind::kBool)) return inside.text;
  return std::nullopt;
}
std::optional<std::string> number_argument(const Written& value) {
  if (value.constant) {
    const std::string text = cpp_number(*value.constant);
    return text.empty() ? std::nullopt : std::optional<std::string>(text);
  }
  const Written inside = present(value);
  for (const Kind kind : {Kind::kInt, Kind::kFloat, Kind::kBool, Kind::kNumber})
    if (is(inside, kind)) return inside.text;
  if (is(inside, Kind::kTensor)) return inside.text + ".item()";
  return std::nullopt;
}
std::optional<std::string> list_argument(const Written& value, Kind item, const char* reference) {
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
  if (is_list_of(inside.type, item)) return inside.text;
  return std::nullopt;
}
// The language holds dtypes as PyTorch's numbers.
std::optional<std::string> dtype_argument(const Written& value) {
  if (!value.constant) {
    const Written inside = present(value);
    if (!is(inside, Kind::kInt)) return std::nullopt;
    return "scalar_type(" + inside.text + ")";
  }
  if (!value.constant->isInt()) return std::nullopt;
  return cpp_dtype(dtype_of(value.constant->toInt()));
}
std::optional<std::string> format_argument(const Written& value) {
  if (!value.constant || !value.constant->isInt()) return std::nullopt;
  switch (format_of(value.constant->toInt())) {
    case MemoryFormat::Contiguous: return "ramet::MemoryFormat::Contiguous";
    case MemoryFormat::Preserve: return "ramet::MemoryFormat::Preserve";
    case MemoryFormat::ChannelsLast: return "ramet::MemoryFormat::ChannelsLast";
  }
  return std::nullopt;
}
std::optional<std::string> text_argument(const Written& value) {
  if (value.constant)
    return value.constant->isString()
               ? std::optional<std::string>(cpp_text(value.constant->toStringRef()))
               : std::nullopt;
  const Written inside = present(value);
  return is(inside, Kind::kString) ? std::optional<std::string>(inside.text) : std::nullopt;
}
std::optional<std::string> device_argument(const Written& value) {
  if (value.constant) {
    if (!value.constant->isDevice() && !value.constant->isString()) return std::nullopt;
    return "ramet::Device(" + cpp_text(device_of(*value.constant).str()) + ")";
  }
  const Written inside = present(value);
  return is(inside, Kind::kDevice) ? std::optional<std::string>(inside.text) : std::nullopt;
}
std::optional<std::string> tensor_argument(const Written& value) {
  if (value.constant) {
    if (value.constant->isNone()) return "ramet::Tensor()";
    return std::nullopt;
  }
  const Written inside = present(value);
  return is(inside, Kind::kTensor) ? std::optional<std::string>(inside.text) : std::nullopt;
}
std::optional<std::string> tensors_argument(const Written& value, bool optional) {
  const char* const none =
      optional ? "std::vector<std::optional<ramet::Tensor>>()" : "ramet::TensorList()";
  if (value.constant)
    return value.constant->isList() ? std::optional<std::string>(none) : std::nullopt;
  const Written inside = present(value);
  if (!is(inside, Kind::kList)) return std::nullopt;
  const TypePtr& item = inside.type->element();
  const bool maybe = item->kind() == Kind::kOptional && item->element()->kind() == Kind::kTensor;
  if (item->kind() != Kind::kTensor && !(optional && maybe)) return std::nullopt;
  if (optional && !maybe)
    return "std::vector<std::optional<ramet::Tensor>>(" + inside.text + ".begin(), " + inside.text +
           ".end())";
  return inside.text;
}

}  // namespace

std::string cpp_name(const std::string& name, std::set<std::string>& taken) {
  std::string made;
  for (const char c : name) made += detail::is_letter_or_digit(c) ? c : '_';
  // Names with two underscores, and with one before a capital, are the compiler's.
  for (size_t at; (at = made.find("__")) != std::string::npos;) made.erase(at, 1);
  if (made.empty() || (made[0] >= '0' && made[0] <= '9')) made.insert(0, "_");
  if (made.size() > 1 && made[0] == '_' && made[1] >= 'A' && made[1] <= 'Z') made.erase(0, 1);
  if (std::find(std::begin(kKeywords), std::end(kKeywords), made) != std::end(kKeywords))
    made += '_';
  std::string tried = made;
  for (int i = 2; !taken.insert(tried).second; ++i)
    tried = made + (made.back() == '_' ? "" : "_") + std::to_string(i);
  return tried;
}

std::string cpp_type(const TypePtr& type) {
  if (!type) return "";
  const auto of_elements = [&](const char* name) {
    std::string list;
    for (const TypePtr& element : type->elements()) {
      const std::string item = cpp_type(element);
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
    case Kind::kList: return of_elements("std::vector");
    case Kind::kTuple: return of_elements("std::tuple");
    case Kind::kOptional: return of_elements("std::optional");
    case Kind::kDict: return of_elements("std::map");
    default: return "";
  }
}

std::string cpp_text(const std::string& text) {
  std::string made = "\"";
  static constexpr char kDigits[] = "01234567";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') made.append(1, '\\').append(1, c);
    else if (c == '\n') made += "\\n";
    else if (byte < 32 || byte >= 127 || c == '?')
      made.append(1, '\\')
          .append(1, kDigits[byte >> 6])
          .append(1, kDigits[byte >> 3 & 7])
          .append(1, kDigits[byte & 7]);
    else made += c;
  }
  return made + '"';
}

std::string cpp_dtype(ScalarType dtype) {
  return "ramet::ScalarType::" + std::string(toString(dtype));
}

std::optional<std::string> cpp_argument(const Written& value, const std::string& reader) {
  if (value.module) return std::nullopt;
  if (!value.constant && !value.type) return std::nullopt;
  const bool optional = reader.rfind("may_", 0) == 0;
  if (optional && value.constant && value.constant->isNone())
    return reader == "may_dtype" ? "std::optional<ramet::ScalarType>()" : "std::nullopt";
  // A variable that may hold None, where None is allowed.
  if (optional && !value.constant && is(value, Kind::kOptional)) {
    const Kind held = value.type->element()->kind();
    if (reader == "may_tensor" && held == Kind::kTensor) return value.text;
    if (reader == "may_integer" && held == Kind::kInt) return value.text;
    if (reader == "may_real" && held == Kind::kFloat) return value.text;
    if (reader == "may_truth" && held == Kind::kBool) return value.text;
    if (reader == "may_device" && held == Kind::kDevice) return value.text;
    if (reader == "may_dtype" && held == Kind::kInt)
      return "(" + value.text + " ? std::optional<ramet::ScalarType>(scalar_type(*" + value.text +
             ")) : std::nullopt)";
    return std::nullopt;
  }
  const std::string kind = optional ? reader.substr(4) : reader;
  std::optional<std::string> text;
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

std::optional<std::string> cpp_value(const Written& value, const TypePtr& type) {
  if (!type || value.module) return std::nullopt;
  const std::string name = cpp_type(type);
  if (name.empty()) return std::nullopt;
  if (!value.constant) {
    if (!value.type) return std::nullopt;
    if (same(value.type, type)) return value.text;
    if (type->kind() == Kind::kOptional) {
      if (is_subtype(value.type, type)) return value.text;
      return cpp_value(value, type->element());
    }
    if (is(value, Kind::kOptional)) return cpp_value(present(value), type);
    if (type->kind() == Kind::kNumber || type->kind() == Kind::kFloat || type->kind() == Kind::kInt)
      return cpp_argument(value, type->kind() == Kind::kNumber  ? "number"
                                 : type->kind() == Kind::kFloat ? "real"
                                                                : "integer");
    return is_subtype(value.type, type) ? std::optional<std::string>(value.text) : std::nullopt;
  }
  const IValue& constant = *value.constant;
  // What uninitialized(int) gives: no correct program reads it.
  if (constant.isNone() && type->kind() != Kind::kOptional && type->kind() != Kind::kTensor)
    return name + "{}";
  switch (type->kind()) {
    case Kind::kOptional:
      return constant.isNone() ? std::optional<std::string>("std::nullopt")
                               : cpp_value(value, type->element());
    case Kind::kTensor: return tensor_argument(value);
    case Kind::kInt: return int_argument(value);
    case Kind::kFloat: return real_argument(value);
    case Kind::kBool: return bool_argument(value);
    case Kind::kNumber: return number_argument(value);
    case Kind::kString: return text_argument(value);
    case Kind::kDevice: return device_argument(value);
    case Kind::kList: {
      if (const auto items = numbers_in_braces(constant)) return name + *items;
      if (constant.isList() && constant.toList().size() == 0) return name + "()";
      return std::nullopt;
    }
    default: return std::nullopt;
  }
}

}  // namespace ramet::script
