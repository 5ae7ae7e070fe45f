// Calls of operators as C++.
#include <algorithm>
#include <array>

#include "nn/script/translate_internal.h"
#include "runtime/base/classic.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

// Operators of the language that have a function of their own here. Letters are parameters' types.
//
//   i int, f float, b bool, r int or float, n number, s text, t tensor, l list, d dict, * any
struct Special {
  std::string_view name, types, expression;
  std::string_view helper = "";
};
constexpr Special kSpecial[] = {
    {"aten::add", "ii", "a.integer(0) + a.integer(1)"},
    {"aten::sub", "ii", "a.integer(0) - a.integer(1)"},
    {"aten::mul", "ii", "a.integer(0) * a.integer(1)"},
    {"aten::add", "rr", "a.real(0) + a.real(1)"},
    {"aten::sub", "rr", "a.real(0) - a.real(1)"},
    {"aten::mul", "rr", "a.real(0) * a.real(1)"},
    {"aten::div", "rr", "a.real(0) / a.real(1)"},
    {"aten::floordiv", "ii", "floordiv(a.integer(0), a.integer(1))", "floordiv"},
    {"aten::remainder", "ii", "remainder(a.integer(0), a.integer(1))", "remainder"},
    {"aten::neg", "i", "-a.integer(0)"},
    {"aten::neg", "f", "-a.real(0)"},
    {"aten::eq", "ii", "a.integer(0) == a.integer(1)"},
    {"aten::ne", "ii", "a.integer(0) != a.integer(1)"},
    {"aten::lt", "ii", "a.integer(0) < a.integer(1)"},
    {"aten::le", "ii", "a.integer(0) <= a.integer(1)"},
    {"aten::gt", "ii", "a.integer(0) > a.integer(1)"},
    {"aten::ge", "ii", "a.integer(0) >= a.integer(1)"},
    {"aten::eq", "rr", "a.real(0) == a.real(1)"},
    {"aten::ne", "rr", "a.real(0) != a.real(1)"},
    {"aten::lt", "rr", "a.real(0) < a.real(1)"},
    {"aten::le", "rr", "a.real(0) <= a.real(1)"},
    {"aten::gt", "rr", "a.real(0) > a.real(1)"},
    {"aten::ge", "rr", "a.real(0) >= a.real(1)"},
    {"aten::eq", "bb", "a.truth(0) == a.truth(1)"},
    {"aten::ne", "bb", "a.truth(0) != a.truth(1)"},
    {"aten::eq", "ss", "a.text(0) == a.text(1)"},
    {"aten::ne", "ss", "a.text(0) != a.text(1)"},
    {"prim::min", "ii", "std::min<int64_t>(a.integer(0), a.integer(1))"},
    {"prim::max", "ii", "std::max<int64_t>(a.integer(0), a.integer(1))"},
    {"prim::min", "ff", "std::min<double>(a.real(0), a.real(1))"},
    {"prim::max", "ff", "std::max<double>(a.real(0), a.real(1))"},
    {"aten::__not__", "b", "!a.truth(0)"},
    {"aten::__and__", "bb", "a.truth(0) && a.truth(1)"},
    {"aten::__or__", "bb", "a.truth(0) || a.truth(1)"},
    {"aten::sqrt", "i", "std::sqrt(a.real(0))"},
    {"aten::sqrt", "f", "std::sqrt(a.real(0))"},
    {"aten::Int", "f", "static_cast<int64_t>(a.real(0))"},
    {"aten::Int", "b", "static_cast<int64_t>(a.truth(0))"},
    {"aten::Int", "n", "a.integer(0)"},
    {"aten::Int", "t", "a.tensor(0).item<int64_t>()"},
    {"aten::IntImplicit", "t", "a.tensor(0).item<int64_t>()"},
    {"aten::Float", "i", "a.real(0)"},
    {"aten::Float", "b", "a.real(0)"},
    {"aten::Float", "n", "a.real(0)"},
    {"aten::Float", "t", "a.tensor(0).item<double>()"},
    {"aten::FloatImplicit", "t", "a.tensor(0).item<double>()"},
    {"aten::Bool", "i", "a.integer(0) != 0"},
    {"aten::Bool", "f", "a.real(0) != 0"},
    {"aten::Bool", "t", "a.tensor(0).item().toBool()"},
    {"aten::item", "t", "a.tensor(0).item()"},
    {"aten::ScalarImplicit", "t", "a.tensor(0).item()"},
    {"aten::size", "t", "a.tensor(0).sizes().vec()"},
    {"aten::size", "ti", "a.tensor(0).size(a.integer(1))"},
    {"aten::len", "t", "a.tensor(0).size(0)"},
    {"aten::dim", "t", "a.tensor(0).dim()"},
    {"aten::numel", "t", "a.tensor(0).numel()"},
    {"prim::dtype", "t", "number_of(a.tensor(0).scalar_type())", "number_of"},
    {"prim::device", "t", "a.tensor(0).device()"},
    {"aten::device", "s", "Device(a.text(0))"},
    {"aten::len", "l", "static_cast<int64_t>(a.any(0).size())"},
    {"aten::list", "l", "a.any(0)"},
    {"aten::__getitem__", "li", "item(a.any(0), a.integer(1))", "item"},
    {"aten::__getitem__", "di", "a.any(0).at(a.integer(1))"},
    {"aten::__getitem__", "ds", "a.any(0).at(a.text(1))"},
    {"aten::to", "ttbb*", "a.tensor(0).to(a.tensor(1), a.truth(2), a.truth(3), a.may_format(4))"},
    {"aten::to", "t*bb*", "a.tensor(0).to(a.dtype(1), a.truth(2), a.truth(3), a.may_format(4))"},
    {"aten::to", "t**bb*",
     "a.tensor(0).to(a.device(1), a.dtype(2), a.truth(3), a.truth(4), a.may_format(5))"},
    {"aten::contiguous", "t*", "a.tensor(0).contiguous(a.format(1))"},
};

// Functions that lines of autograd/schema have for themselves, and macros.
constexpr std::string_view kOwn[] = {"IValue",
                                     "as_tensor",
                                     "attend",
                                     "begin_span",
                                     "broadcast_sizes",
                                     "capitalized",
                                     "check",
                                     "check_divisor",
                                     "check_metadata",
                                     "check_range",
                                     "constructed",
                                     "convolve_by_name",
                                     "device_of",
                                     "dtype_of",
                                     "encoder_layer",
                                     "end_span",
                                     "equal_values",
                                     "extend",
                                     "factorial",
                                     "filled_as",
                                     "find_last",
                                     "first_numbers",
                                     "float_of_text",
                                     "format_of",
                                     "from_exponent",
                                     "from_pairs",
                                     "functional_norm_of_batch",
                                     "gradients",
                                     "int_of_text",
                                     "is_format",
                                     "item_at",
                                     "length",
                                     "lists_less",
                                     "norm_except",
                                     "norm_of_batch",
                                     "norm_of_groups",
                                     "norm_of_layer",
                                     "number_of",
                                     "pack",
                                     "partition",
                                     "percent_format",
                                     "permuted",
                                     "pop_item",
                                     "popped",
                                     "power_of_ints",
                                     "present",
                                     "quotient_and_rest",
                                     "raise",
                                     "range_length",
                                     "refuse",
                                     "result",
                                     "scatter_by",
                                     "set_default",
                                     "shown",
                                     "split_last",
                                     "stripped",
                                     "titled",
                                     "to_integer",
                                     "unpack",
                                     "with_list",
                                     "wrapped_sum",
                                     "zero_filled"};

char letter(const TypePtr& type) {
  switch (type->kind()) {
    case Kind::kInt: return 'i';
    case Kind::kFloat: return 'f';
    case Kind::kBool: return 'b';
    case Kind::kString: return 's';
    case Kind::kNumber: return 'n';
    case Kind::kTensor: return 't';
    case Kind::kList: return 'l';
    case Kind::kDict: return 'd';
    case Kind::kOptional: return 'o';
    default: return '?';
  }
}

const Special* special_of(const Operator& op) {
  for (const Special& special : kSpecial) {
    if (special.name != op.name || special.types.size() != op.parameters.size()) continue;
    bool fits = true;
    for (size_t i = 0; fits && i < op.parameters.size(); ++i) {
      const char wanted = special.types[i], got = letter(op.parameters[i].type);
      fits = wanted == '*' || wanted == got || (wanted == 'r' && (got == 'i' || got == 'f'));
    }
    if (fits) return &special;
  }
  return nullptr;
}

bool in_word(char c) { return c == '_' || detail::is_letter_or_digit(c); }

/// dtype, layout, device and pin_memory as TensorOptions.
std::optional<std::string> options_argument(const std::vector<Written>& arguments, size_t i) {
  if (i + 3 >= arguments.size()) return std::nullopt;
  std::string text = "ramet::TensorOptions()";
  const auto is_none = [&](size_t j) {
    return arguments[j].constant && arguments[j].constant->isNone();
  };
  if (!is_none(i)) {
    const auto dtype = cpp_argument(arguments[i], arguments[i].constant ? "dtype" : "may_dtype");
    if (!dtype) return std::nullopt;
    text += ".dtype(" + *dtype + ")";
  }
  if (!is_none(i + 2)) {
    const auto device = cpp_argument(arguments[i + 2], "may_device");
    if (!device) return std::nullopt;
    text += ".device(" + *device + ")";
  }
  return text;
}

/// Puts arguments into the places of an expression, and the namespace before names.
class Filler {
 public:
  Filler(std::string_view expression, const std::vector<Written>& arguments)
      : e_(expression), arguments_(arguments) {}

  std::optional<std::string> fill(std::string_view helper) {
    while (i_ < e_.size()) {
      if (e_[i_] == '"') {
        copy_literal();
      } else if (!in_word(e_[i_])) {
        text_ += e_[i_++];
      } else {
        const size_t begin = i_;
        while (i_ < e_.size() && in_word(e_[i_])) ++i_;
        if (!word(e_.substr(begin, i_ - begin), helper)) return std::nullopt;
      }
    }
    return text_;
  }
  /// Does the text call scalar_type() of helpers()?
  bool reads_dtype() const { return reads_dtype_; }

 private:
  void copy_literal() {
    const size_t end = e_.find('"', i_ + 1);
    text_.append(e_.substr(i_, end + 1 - i_));
    i_ = end + 1;
  }

  bool word(std::string_view w, std::string_view helper) {
    const bool member = ends_with(".") || ends_with("::") || ends_with("->");
    if (w == "a" && !member) return place();
    if (member || w == helper || w[0] <= '9') {
      text_.append(w);
      return true;
    }
    static constexpr std::string_view kPlain[] = {"std",    "true",        "false",   "int64_t",
                                                  "double", "static_cast", "bool",    "const",
                                                  "int",    "uint64_t",    "nullptr", "RAMET_WARN"};
    if (std::find(std::begin(kOwn), std::end(kOwn), w) != std::end(kOwn)) return false;
    if (std::find(std::begin(kPlain), std::end(kPlain), w) == std::end(kPlain)) text_ += "ramet::";
    text_.append(w);
    return true;
  }

  bool ends_with(std::string_view end) const {
    return text_.size() >= end.size() &&
           std::string_view(text_).substr(text_.size() - end.size()) == end;
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
    if (number >= arguments_.size()) return false;
    i_ = close + 1;
    std::optional<std::string> argument;
    if (reader == "options") argument = options_argument(arguments_, number);
    else if (reader == "any") argument = cpp_value(arguments_[number], arguments_[number].type);
    else argument = cpp_argument(arguments_[number], reader);
    if (!argument) return false;
    reads_dtype_ = reads_dtype_ || argument->find("scalar_type(") != std::string::npos;
    // A sign before it, a member or an operator after it.
    const bool simple = argument->find(' ') == std::string::npos && argument->front() != '-';
    const bool alone = (text_.empty() || text_.back() == '(' || ends_with(", ")) &&
                       i_ < e_.size() && (e_[i_] == ',' || e_[i_] == ')');
    text_ += simple || alone || argument->back() == ')' ? *argument : "(" + *argument + ")";
    return true;
  }

  std::string_view e_;
  const std::vector<Written>& arguments_;
  size_t i_ = 0;
  bool reads_dtype_ = false;
  std::string text_;
};

/// `x is None`: known, or a question to an optional.
std::optional<std::string> identity_text(const Operator& op,
                                         const std::vector<Written>& arguments) {
  const bool is = op.name == "aten::__is__";
  if (!is && op.name != "aten::__isnot__") return std::nullopt;
  const auto none = [](const Written& w) { return w.constant && w.constant->isNone(); };
  const Written& value = none(arguments[0]) ? arguments[1] : arguments[0];
  if (!none(arguments[0]) && !none(arguments[1])) return std::nullopt;
  if (none(value)) return is ? "true" : "false";
  if (value.type && value.type->kind() == Kind::kOptional)
    return (is ? "!" : "") + value.text + ".has_value()";
  return is ? "false" : "true";
}

/// "{} of {}".format(a, b): texts of errors, most of the time.
std::optional<std::string> format_text(const std::vector<Written>& arguments) {
  std::string text;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::optional<std::string> argument;
    for (const char* reader : {"text", "integer", "real", "integers"})
      if (!argument) argument = cpp_argument(arguments[i], reader);
    if (!argument || (i == 0 && !cpp_argument(arguments[0], "text"))) return std::nullopt;
    const bool list = arguments[i].type && arguments[i].type->kind() == Kind::kList;
    text += (i > 0 ? ", " : "") + (list ? "ramet::IntArrayRef(" + *argument + ")" : *argument);
  }
  return "text(" + text + ")";
}

}  // namespace

std::optional<std::string> cpp_call(const Operator& op, const std::vector<Written>& arguments,
                                    std::set<std::string>& called) {
  if (auto text = identity_text(op, arguments)) return text;
  if (op.name == "aten::_unwrap_optional" || op.name == "prim::unchecked_cast") {
    Written value = arguments.at(0);
    if (!value.type) return std::nullopt;
    const bool unwraps = value.type->kind() == Kind::kOptional && op.name[0] == 'a';
    return cpp_value(value, unwraps ? value.type->element() : value.type);
  }
  if (op.name == "prim::RaiseException") {
    const auto text = cpp_argument(arguments.at(0), "text");
    return text ? std::optional<std::string>("throw ramet::Error(" + *text + ")") : std::nullopt;
  }
  if (op.name == "aten::format") {
    auto text = format_text(arguments);
    if (text) called.insert("text");
    return text;
  }
  const Special* const special = special_of(op);
  if (!special && op.expression.empty()) return std::nullopt;
  Filler filler(special ? special->expression : op.expression, arguments);
  auto text = filler.fill(special ? special->helper : "");
  if (!text) return std::nullopt;
  if (special && !special->helper.empty()) called.emplace(special->helper);
  if (filler.reads_dtype()) called.insert("scalar_type");
  return text;
}

}  // namespace ramet::script
