// Reads and writes PyTorch's text of schemas.
#include <charconv>
#include <sstream>

#include "autograd/schema/operators_internal.h"
#include "runtime/base/classic.h"

namespace ramet::script {
namespace {

/// Numbers by which ATen's texts name members of enumerations.
struct Word {
  std::string_view text;
  int64_t value;
};
constexpr Word kWords[] = {
    {"Mean", 1},  {"Sum", 2},    {"contiguous_format", 0}, {"preserve_format", 1}, {"long", 4},
    {"float", 6}, {"strided", 0}};

// What stands after a backslash for a character, or the character that it stands for.
char escape(char c, bool write) {
  constexpr char kPairs[][2] = {{'n', '\n'}, {'t', '\t'}, {'f', '\f'}, {'v', '\v'}, {'r', '\r'}};
  for (const auto& pair : kPairs)
    if (pair[write ? 1 : 0] == c) return pair[write ? 0 : 1];
  return write && c != '"' && c != '\\' ? '\0' : c;
}

class SchemaReader {
 public:
  explicit SchemaReader(std::string_view text) : text_(text) {}

  Operator read(Function function) {
    Operator op{name(), {}, {}, false, nullptr, function};
    if (take('.')) op.overload = word("an overload");
    expect('(');
    bool by_name = false;
    for (bool first = true; !take(')'); first = false) {
      if (!first) expect(',');
      if (take("...")) op.any_number = true;
      else if (take('*')) by_name = true;
      else op.parameters.push_back(parameter(by_name));
    }
    if (!take("->")) fail("'->'");
    op.result = results();
    if (at_ < text_.size()) fail("the end");
    return op;
  }

 private:
  [[noreturn]] void fail(const char* expected) const {
    const std::string_view rest = text_.substr(at_);
    RAMET_CHECK(false, "schema", text_, ": got \"", rest.substr(0, 20), "\", expected ", expected);
    std::abort();
  }
  void blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  char next() {
    blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view what) {
    blanks();
    if (text_.substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }
  bool take(char what) { return take(std::string_view(&what, 1)); }
  void expect(char what) {
    const char shown[] = {what, '\0'};
    if (!take(what)) fail(shown);
  }
  static bool in_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  std::string_view word(const char* expected) {
    blanks();
    const size_t begin = at_;
    while (at_ < text_.size() && in_word(text_[at_])) ++at_;
    if (at_ == begin) fail(expected);
    return text_.substr(begin, at_ - begin);
  }
  std::string name() {
    std::string made(word("a namespace"));
    if (!take("::")) fail("'::'");
    return made.append("::").append(word("a name"));
  }

  Parameter parameter(bool by_name) {
    Parameter made;
    made.by_name = by_name;
    made.type = type(&made);
    made.name = word("a parameter's name");
    if (take('=')) made.value = value(made);
    return made;
  }

  // Of a parameter, together with its type: annotation and repetition go into it.
  TypePtr type(Parameter* of) {
    TypePtr made = plain_type();
    for (;;) {
      if (take("[]")) made = Type::list(made);
      else if (take('[')) {
        if (of) of->repeat = integer();
        else (void)integer();
        expect(']');
        made = Type::list(made);
      } else if (take('?')) made = Type::optional(made);
      else if (take('(')) {  // Tensor(a!), Tensor(a -> *)
        while (next() != ')') {
          if (next() == '!' && of) of->written = true;
          if (at_ == text_.size()) fail("')'");
          ++at_;
        }
        expect(')');
      } else return made;
    }
  }
  TypePtr plain_type() {
    if (take('(')) {
      std::vector<TypePtr> elements;
      while (!take(')')) {
        if (!elements.empty()) expect(',');
        elements.push_back(type(nullptr));
      }
      return Type::tuple(std::move(elements));
    }
    const std::string_view text = word("a type");
    using Kind = Type::Kind;
    if (text == "Tensor") return Type::of(Kind::kTensor);
    if (text == "int" || text == "SymInt" || text == "ScalarType" || text == "Layout" ||
        text == "MemoryFormat")
      return Type::of(Kind::kInt);
    // The number of a span (spans_internal.h).
    if (text == "__torch__" && take(".torch.classes.profiler._RecordFunction"))
      return Type::of(Kind::kInt);
    if (text == "float") return Type::of(Kind::kFloat);
    if (text == "bool" || text == "SymBool") return Type::of(Kind::kBool);
    if (text == "Scalar" || text == "number") return Type::of(Kind::kNumber);
    if (text == "str") return Type::of(Kind::kString);
    if (text == "Device") return Type::of(Kind::kDevice);
    if (text == "Generator") return Type::of(Kind::kGenerator);
    if (text == "Any" || text == "AnyEnumType") return Type::of(Kind::kAny);
    if (text == "NoneType" || text == "None") return Type::of(Kind::kNone);
    if (text == "Dict") {
      expect('(');
      TypePtr key = type(nullptr);
      expect(',');
      TypePtr value = type(nullptr);
      expect(')');
      return Type::dict(std::move(key), std::move(value));
    }
    if (text == "Future") {
      expect('(');
      TypePtr element = type(nullptr);
      expect(')');
      return Type::future(std::move(element));
    }
    // "t", "tVal", "key": a variable. Types that only PyTorch has begin with a capital letter.
    if (text[0] < 'a' || text[0] > 'z') fail("a type");
    return Type::variable(std::string(text));
  }

  TypePtr results() {
    if (!take('(')) return type(nullptr);
    std::vector<TypePtr> elements;
    while (!take(')')) {
      if (!elements.empty()) expect(',');
      elements.push_back(type(nullptr));
      blanks();
      if (at_ < text_.size() && in_word(text_[at_])) (void)word("a result's name");
    }
    if (elements.empty()) return Type::of(Type::Kind::kNone);
    if (elements.size() == 1) return elements[0];
    return Type::tuple(std::move(elements));
  }

  int64_t integer() {
    const IValue number = this->number();
    if (!number.isInt()) fail("an integer");
    return number.toInt();
  }
  IValue number() {
    blanks();
    const size_t begin = at_;
    bool real = false;
    while (at_ < text_.size() && ((text_[at_] >= '0' && text_[at_] <= '9') || text_[at_] == '.' ||
                                  text_[at_] == '-' || text_[at_] == '+' || text_[at_] == 'e')) {
      real = real || text_[at_] == '.' || text_[at_] == 'e';
      ++at_;
    }
    const char* const from = text_.data() + begin;
    const char* const to = text_.data() + at_;
    std::from_chars_result read{};
    double d = 0;
    int64_t i = 0;
    if (real) read = std::from_chars(from, to, d);
    else read = std::from_chars(from, to, i);
    if (read.ec != std::errc() || read.ptr != to || from == to) fail("a number");
    return real ? IValue(d) : IValue(i);
  }
  std::string quoted(char quote) {
    std::string made;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      const bool escaped = text_[at_] == '\\' && at_ + 1 < text_.size();
      if (escaped) ++at_;
      made += escaped ? escape(text_[at_], false) : text_[at_];
    }
    if (at_ == text_.size()) fail("a closing quote");
    ++at_;
    return made;
  }

  IValue value(const Parameter& of) {
    const bool optional = of.type->kind() == Type::Kind::kOptional;
    const TypePtr type = optional ? of.type->element() : of.type;
    if (take("None")) return {};
    if (take("True")) return true;
    if (take("False")) return false;
    if (take('"')) return quoted('"');
    if (take('\'')) return quoted('\'');
    if (take('[')) return list(*type);
    IValue made;
    if (const char c = next(); (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      const std::string_view text = word("a value");
      for (const Word& known : kWords)
        if (known.text == text) made = known.value;
      if (made.isNone()) fail("a value");
    } else {
      made = number();
    }
    // `int[2] stride=1` repeats the number; a float may be written as an integer.
    if (type->kind() == Type::Kind::kList)
      return std::vector<int64_t>(static_cast<size_t>(std::max<int64_t>(of.repeat, 1)),
                                  made.toInt());
    if (type->kind() == Type::Kind::kFloat && made.isInt())
      return static_cast<double>(made.toInt());
    return made;
  }
  IValue list(const Type& type) {
    std::vector<int64_t> ints;
    for (bool first = true; !take(']'); first = false) {
      if (!first) expect(',');
      ints.push_back(integer());
    }
    const bool tensors =
        type.kind() == Type::Kind::kList && type.element()->kind() == Type::Kind::kTensor;
    return tensors ? IValue(std::vector<Tensor>()) : IValue(std::move(ints));
  }

  std::string_view text_;
  size_t at_ = 0;
};

void show_type(std::ostream& out, const Type& type, int64_t repeat) {
  using Kind = Type::Kind;
  switch (type.kind()) {
    case Kind::kAny: out << "Any"; break;
    case Kind::kNone: out << "NoneType"; break;
    case Kind::kTensor: out << "Tensor"; break;
    case Kind::kInt: out << "int"; break;
    case Kind::kFloat: out << "float"; break;
    case Kind::kBool: out << "bool"; break;
    case Kind::kNumber: out << "Scalar"; break;
    case Kind::kString: out << "str"; break;
    case Kind::kDevice: out << "Device"; break;
    case Kind::kGenerator: out << "Generator"; break;
    case Kind::kList:
      show_type(out, *type.element(), 0);
      out << '[';
      if (repeat > 0) out << repeat;
      out << ']';
      break;
    case Kind::kOptional:
      show_type(out, *type.element(), repeat);
      out << '?';
      break;
    case Kind::kDict:
      out << "Dict(";
      show_type(out, *type.element(0), 0);
      out << ", ";
      show_type(out, *type.element(1), 0);
      out << ')';
      break;
    case Kind::kFuture:
      out << "Future(";
      show_type(out, *type.element(), 0);
      out << ')';
      break;
    case Kind::kTuple: {
      out << '(';
      const char* between = "";
      for (const TypePtr& element : type.elements()) {
        out << between;
        show_type(out, *element, 0);
        between = ", ";
      }
      out << ')';
      break;
    }
    default: out << (type.name().empty() ? type.text() : type.name());
  }
}

void show_value(std::ostream& out, const Parameter& parameter) {
  const IValue& value = *parameter.value;
  if (value.isString()) {
    out << '"';
    for (const char c : value.toStringRef()) {
      if (const char after = escape(c, true); after != '\0') out << '\\' << after;
      else out << c;
    }
    out << '"';
    return;
  }
  const auto equal = [](const std::vector<int64_t>& list) {
    for (const int64_t item : list)
      if (item != list[0]) return false;
    return true;
  };
  if (parameter.repeat > 0 && value.isIntList() &&
      static_cast<int64_t>(value.toIntVector().size()) == parameter.repeat &&
      equal(value.toIntVector())) {
    out << value.toIntVector()[0];
    return;
  }
  out << value;
}

}  // namespace

std::string Operator::text() const {
  auto out = detail::classic<std::ostringstream>();
  out << name;
  if (!overload.empty()) out << '.' << overload;
  out << '(';
  const char* between = "";
  bool by_name = false;
  for (const Parameter& parameter : parameters) {
    out << between;
    between = ", ";
    if (parameter.by_name && !by_name) {
      out << "*, ";
      by_name = true;
    }
    show_type(out, *parameter.type, parameter.repeat);
    if (parameter.written) out << "(!)";
    out << ' ' << parameter.name;
    if (parameter.value) {
      out << '=';
      show_value(out, parameter);
    }
  }
  if (any_number) out << between << "...";
  out << ") -> ";
  if (result->kind() == Type::Kind::kNone) out << "()";
  else show_type(out, *result, 0);
  return out.str();
}

Operator parse_schema(std::string_view text, Function function) {
  return SchemaReader(text).read(function);
}

}  // namespace ramet::script
