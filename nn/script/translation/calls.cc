// Calls of operators as C++.
#include <algorithm>

#include "nn/script/translation/translation_internal.h"

namespace ramet::script {

using Kind = Type::Kind;

namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}
bool names_member(std::string_view before) {
  return ends_with(before, ".") || ends_with(before, "::") || ends_with(before, "->");
}

bool is_list_of_numbers(const TypePtr& type) {
  if (!type) return false;
  if (type->kind() == Kind::kList) return is_list_of_numbers(type->element());
  return type->kind() == Kind::kInt || type->kind() == Kind::kFloat || type->kind() == Kind::kBool;
}

}  // namespace

/// Puts arguments into the places of an expression, and the namespace before names.
class Filler {
 public:
  Filler(const Words& words, std::string_view expression, const Operator& op,
         const std::vector<Written>& arguments, const TypePtr& type)
      : words_(words), e_(expression), op_(op), arguments_(arguments), type_(type) {}

  std::optional<std::string> fill() {
    while (i_ < e_.size()) {
      if (e_[i_] == '"') {
        copy_literal();
      } else if (!in_word(e_[i_])) {
        text_ += e_[i_++];
      } else {
        const size_t begin = i_;
        while (i_ < e_.size() && in_word(e_[i_])) ++i_;
        if (!word(e_.substr(begin, i_ - begin))) return std::nullopt;
      }
    }
    return text_;
  }

 private:
  void copy_literal() {
    const size_t end = e_.find('"', i_ + 1);
    text_.append(e_.substr(i_, end + 1 - i_));
    i_ = end + 1;
  }

  bool word(std::string_view w) {
    const bool member = names_member(text_);
    if (w == "a" && !member) return place();
    if (w == "refuse" && !member) {
      text_ += "python::refuse<" + words_.type(type_) + ">";
      return true;
    }
    if (!member && w[0] > '9') {
      if (is_own_word(w)) return false;
      if (!is_plain_word(w) && w != "ramet") text_ += "ramet::";
    }
    text_.append(w);
    return true;
  }

  // ".reader(3)" after the word "a".
  bool place() {
    if (i_ >= e_.size() || e_[i_] != '.') return false;
    const size_t open = e_.find('(', i_);
    const size_t close = e_.find(')', i_);
    if (open == std::string_view::npos || close == std::string_view::npos) return false;
    const std::string reader(e_.substr(i_ + 1, open - i_ - 1));
    size_t number = 0;
    for (size_t j = open + 1; j < close; ++j) {
      if (e_[j] < '0' || e_[j] > '9') return false;
      number = number * 10 + static_cast<size_t>(e_[j] - '0');
    }
    i_ = close + 1;
    if (reader == "result") {
      const std::string type = words_.type(type_);
      text_ += type;
      return !type.empty();
    }
    if (number >= arguments_.size()) return false;
    const std::optional<std::string> argument = argument_text(reader, number);
    if (!argument || argument->empty()) return false;
    // A sign before it, a member or an operator after it.
    const bool text = argument->front() == '"' && argument->back() == '"';
    const bool simple =
        text || (argument->find(' ') == std::string::npos && argument->front() != '-' &&
                 argument->front() != '*' && argument->front() != '!');
    const bool alone = (text_.empty() || text_.back() == '(' || ends_with(text_, ", ")) &&
                       i_ < e_.size() && (e_[i_] == ',' || e_[i_] == ')');
    text_ += simple || alone ? *argument : "(" + *argument + ")";
    return true;
  }

  std::optional<std::string> argument_text(const std::string& reader, size_t number) const {
    const Written& value = arguments_[number];
    if (reader == "options") return options(number);
    if (reader == "value") return words_.any(value);
    if (reader == "any") return whole(value, number);
    // Of a list or dictionary, the first argument.
    if (reader == "item" || reader == "key" || reader == "mapped") {
      const TypePtr& type = container();
      if (!type) return std::nullopt;
      return words_.value(value, type->element(reader == "mapped" ? 1 : 0));
    }
    return words_.argument(value, reader);
  }

  const TypePtr& container() const {
    static const TypePtr none;
    const TypePtr& type = arguments_[0].type;
    if (!type) return none;
    const TypePtr& held = type->kind() == Kind::kOptional ? type->element() : type;
    return held->kind() == Kind::kList || held->kind() == Kind::kDict ? held : none;
  }

  // As it is; what is optional, or of any type, as the operator takes it.
  std::optional<std::string> whole(const Written& value, size_t number) const {
    if (!value.type) return std::nullopt;
    const Kind kind = value.type->kind();
    if (kind == Kind::kAny || kind == Kind::kUnion)
      return number < op_.parameters.size() ? words_.from_any(value, op_.parameters[number].type)
                                            : std::nullopt;
    return words_.value(value, kind == Kind::kOptional ? value.type->element() : value.type);
  }

  /// dtype, layout, device and pin_memory as TensorOptions.
  std::optional<std::string> options(size_t i) const {
    if (i + 3 >= arguments_.size()) return std::nullopt;
    std::string text = "ramet::TensorOptions()";
    const auto is_none = [&](size_t j) {
      return arguments_[j].constant && arguments_[j].constant->isNone();
    };
    if (!is_none(i)) {
      const auto dtype =
          words_.argument(arguments_[i], arguments_[i].constant ? "dtype" : "may_dtype");
      if (!dtype) return std::nullopt;
      text += ".dtype(" + *dtype + ")";
    }
    if (!is_none(i + 2)) {
      const auto device = words_.argument(arguments_[i + 2], "may_device");
      if (!device) return std::nullopt;
      text += ".device(" + *device + ")";
    }
    return text;
  }

  const Words& words_;
  std::string_view e_;
  const Operator& op_;
  const std::vector<Written>& arguments_;
  const TypePtr& type_;
  size_t i_ = 0;
  std::string text_;
};

namespace {

bool is_none(const Written& w) {
  return (w.constant && w.constant->isNone()) || (w.type && w.type->kind() == Kind::kNone);
}

/// `x is None`: known, or a question to an optional.
std::optional<std::string> identity_text(const Operator& op,
                                         const std::vector<Written>& arguments) {
  const bool is = op.name == "aten::__is__";
  if (!is && op.name != "aten::__isnot__") return std::nullopt;
  const bool first = is_none(arguments[0]);
  const Written& value = first ? arguments[1] : arguments[0];
  if (is_none(value)) return cpp_bool(is);
  const Kind kind = value.type ? value.type->kind() : Kind::kAny;
  const std::string no = is ? "!" : "";
  if (first || is_none(arguments[1])) {
    if (value.module || value.constant || !value.type) return cpp_bool(!is);
    if (kind == Kind::kOptional) return no + value.text + ".has_value()";
    if (kind == Kind::kAny || kind == Kind::kUnion)
      return (is ? "" : "!") + value.text + ".isNone()";
    return cpp_bool(!is);
  }
  const Written& other = arguments[1];
  if (value.constant || other.constant || !other.type || other.type->kind() != kind)
    return std::nullopt;
  if (kind == Kind::kTensor) return (is ? "" : "!") + value.text + ".is_same(" + other.text + ")";
  if (kind == Kind::kClass) return value.text + (is ? " == " : " != ") + other.text;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Words::call(const Operator& op, const std::vector<Written>& arguments,
                                       const TypePtr& type) const {
  if (auto text = identity_text(op, arguments)) return text;
  if (op.name == "aten::_unwrap_optional" || op.name == "prim::unchecked_cast" ||
      op.name == "prim::unchecked_unwrap_optional") {
    Written value = arguments.at(0);
    if (!value.type) return std::nullopt;
    const bool unwraps = value.type->kind() == Kind::kOptional && op.name != "prim::unchecked_cast";
    return this->value(value, unwraps ? value.type->element() : value.type);
  }
  if (op.name == "prim::RaiseException") {
    const auto text = argument(arguments.at(0), "text");
    return text ? std::optional<std::string>("throw ramet::Error(" + *text + ")") : std::nullopt;
  }
  // "{} of {}".format(a, b): texts of errors, most of the time. Values are shown as PyTorch does.
  if (op.name == "aten::format" || op.name == "prim::Print") {
    const bool prints = op.name == "prim::Print";
    std::string places, list;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const bool is_format = !prints && i == 0;
      const auto text = is_format ? argument(arguments[0], "text") : any(arguments[i]);
      if (!text) return std::nullopt;
      list += (list.empty() ? "" : ", ") + *text;
      places += i > 0 ? " {}" : "{}";
    }
    if (!prints) return "python::text(" + list + ")";
    return "std::cout << python::text(" + cpp_text(places + "\n") +
           (list.empty() ? "" : ", " + list) + ")";
  }
  if ((op.name == "aten::eq" || op.name == "aten::ne") && op.overload == "enum" &&
      arguments[0].type && arguments[0].type->kind() == Kind::kEnum)
    return arguments[0].text + "->name" + (op.name == "aten::eq" ? " == " : " != ") +
           arguments[1].text + "->name";
  if (op.name == "aten::tensor" && arguments[0].type && arguments[0].type->kind() == Kind::kList &&
      !is_list_of_numbers(arguments[0].type))
    return std::nullopt;
  const Special* const special = special_of(op);
  if (!special && op.expression.empty()) return std::nullopt;
  auto text =
      Filler(*this, special ? special->expression : op.expression, op, arguments, type).fill();
  // What Ramet's functions return is a std::vector.
  const bool writes = std::any_of(op.parameters.begin(), op.parameters.end(),
                                  [](const Parameter& parameter) { return parameter.written; });
  const bool native =
      !writes && (!special || special->expression.find("python::") == std::string::npos);
  if (text && native && type && type->kind() == Kind::kList && is_shared(type) &&
      op.name != "aten::__getitem__")
    text = this->type(type) + "(" + *text + ")";
  // An item of a container of any values, as one of the type that the code says it has.
  const TypePtr& container = arguments.empty() ? nullptr : arguments[0].type;
  if (text && type && op.name == "aten::__getitem__" && container &&
      (container->kind() == Kind::kList || container->kind() == Kind::kDict)) {
    Written item;
    item.text = *text;
    item.type = container->elements().back();
    text = value(item, type);
  }
  return text;
}

}  // namespace ramet::script
