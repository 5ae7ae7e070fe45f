// Values as the arguments of an operator's expression.
#include "autograd/schema/arguments_internal.h"
#include "nn/script/translation/translation_internal.h"

namespace ramet::script {

using Kind = Type::Kind;
using Text = std::optional<std::string>;

Written Written::present() const {
  if (!is(Kind::kOptional)) return *this;
  Written inside = *this;
  inside.type = type->element();
  inside.text += ".value()";
  return inside;
}

namespace {

bool is_list_of(const TypePtr& type, Kind kind) {
  return type && type->kind() == Kind::kList && type->element()->kind() == kind;
}

Text int_argument(const Written& value) {
  if (value.constant)
    return value.constant->isInt() || value.constant->isBool() ? Text(cpp_number(*value.constant))
                                                               : std::nullopt;
  const Written inside = value.present();
  if (inside.is(Kind::kInt) || inside.is(Kind::kBool)) return inside.text;
  if (inside.is(Kind::kNumber)) return inside.text + ".toLong()";
  if (inside.is_any()) return inside.text + ".toInt()";
  return std::nullopt;
}
Text real_argument(const Written& value) {
  if (value.constant) {
    if (value.constant->isDouble()) return cpp_number(*value.constant);
    if (value.constant->isInt()) return cpp_double(static_cast<double>(value.constant->toInt()));
    return std::nullopt;
  }
  const Written inside = value.present();
  if (inside.is(Kind::kFloat)) return inside.text;
  if (inside.is(Kind::kInt) || inside.is(Kind::kBool))
    return "static_cast<double>(" + inside.text + ")";
  if (inside.is(Kind::kNumber)) return inside.text + ".toDouble()";
  if (inside.is_any()) return inside.text + ".toScalar().toDouble()";
  return std::nullopt;
}
Text bool_argument(const Written& value) {
  if (value.constant)
    return value.constant->isBool() || value.constant->isInt() ? Text(cpp_number(*value.constant))
                                                               : std::nullopt;
  const Written inside = value.present();
  if (inside.is(Kind::kBool)) return inside.text;
  if (inside.is_any()) return inside.text + ".toBool()";
  return std::nullopt;
}
Text number_argument(const Written& value) {
  if (value.constant) {
    const std::string text = cpp_number(*value.constant);
    return text.empty() ? std::nullopt : Text(text);
  }
  const Written inside = value.present();
  for (const Kind kind : {Kind::kInt, Kind::kFloat, Kind::kBool, Kind::kNumber})
    if (inside.is(kind)) return inside.text;
  if (inside.is(Kind::kTensor)) return inside.text + ".item()";
  if (inside.is_any()) return inside.text + ".toScalar()";
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
  const Written inside = value.present();
  if (inside.is(Kind::kString)) return inside.text;
  return inside.is_any() ? Text(inside.text + ".toStringRef()") : std::nullopt;
}
Text device_argument(const Written& value) {
  if (value.constant) {
    if (!value.constant->isDevice() && !value.constant->isString()) return std::nullopt;
    return "ramet::Device(" + cpp_text(device_of(*value.constant).str()) + ")";
  }
  const Written inside = value.present();
  if (inside.is(Kind::kString)) return "ramet::Device(" + inside.text + ")";
  return inside.is(Kind::kDevice) ? Text(inside.text) : std::nullopt;
}
Text tensor_argument(const Written& value) {
  if (value.constant) return value.constant->isNone() ? Text("ramet::Tensor()") : std::nullopt;
  const Written inside = value.present();
  if (inside.is_any()) return inside.text + ".toTensor()";
  return inside.is(Kind::kTensor) ? Text(inside.text) : std::nullopt;
}

}  // namespace

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
  const Written inside = value.present();
  if (inside.is_any())
    return inside.text + (item == Kind::kInt ? ".toIntVector()" : ".toDoubleVector()");
  if (!is_list_of(inside.type, item)) return std::nullopt;
  return inside.text + (is_shared(inside.type) ? ".vec()" : "");
}

Text Words::tensors_argument(const Written& value, bool optional) const {
  const char* const none =
      optional ? "std::vector<std::optional<ramet::Tensor>>()" : "ramet::TensorList()";
  if (value.constant) return value.constant->isList() ? Text(none) : std::nullopt;
  Written inside = value.present();
  if (!inside.is(Kind::kList)) return std::nullopt;
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
  if (optional && (value.is(Kind::kNone) || (value.constant && value.constant->isNone())))
    return reader == "may_dtype" ? "std::optional<ramet::ScalarType>()" : "std::nullopt";
  // A variable that may hold None, where None is allowed.
  if (optional && !value.constant && value.is(Kind::kOptional)) {
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

}  // namespace ramet::script
