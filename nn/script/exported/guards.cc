// The tracer's guards: what the graph assumes of its inputs.
//
// Note [Guards]
// Python's code may ask for sizes: `if x.shape[0] > 5`. A graph has one of the branches, and the
// file the condition, as Python's text. ExportedProgram.module() refuses inputs that do not meet
// it, and so does forward() here. This is the grammar. Anything else is an Error.
//   guard  = number | "True" | "False" | source | operation | call.
//   source = input [ ".size()" "[" number "]" | ".stride()" "[" number "]" | ".storage_offset()" ].
//   input  = "L" { "[" (name in quotes | number) "]" | "." field of a NamedTuple }.
//   call   = a function of number_call(), with guards as arguments.
// Operations are those of Python on numbers, comparisons, `and`, `or`, `not`.
//
// The source of a guard may be no input but, say, an object of Python. Such a guard is left out:
// the file does not have the object.
#include <algorithm>
#include <iterator>

#include "nn/script/exported/forward_internal.h"

namespace ramet::script {
namespace {

using Form = Expression::Kind;

constexpr int64_t kMostText = 100000, kMostDepth = 200;

struct Operation {
  const char *symbol, *function;
};
constexpr Operation kOperations[] = {
    {"+", "_operator.add"},     {"-", "_operator.sub"},       {"*", "_operator.mul"},
    {"/", "_operator.truediv"}, {"//", "_operator.floordiv"}, {"%", "_operator.mod"},
    {"**", "_operator.pow"},    {"==", "_operator.eq"},       {"!=", "_operator.ne"},
    {"<", "_operator.lt"},      {"<=", "_operator.le"},       {">", "_operator.gt"},
    {">=", "_operator.ge"},     {"and", "_operator.and_"},    {"or", "_operator.or_"}};

// A part of an input's name.
struct Step {
  enum Kind : uint8_t { kText, kNumber, kField } kind;
  std::string text;
};

struct UnknownSource {};

class GuardPrinter {
 public:
  GuardPrinter(const Field& at, const GuardedInputs& inputs,
               std::map<std::string, std::string>& uses)
      : at_(at), inputs_(inputs), uses_(uses) {}

  std::string print(const Expression& e) {
    switch (e.kind) {
      case Form::kInt: return std::to_string(e.number);
      case Form::kFloat: return real_text(e.real);
      case Form::kTrue: return "True";
      case Form::kFalse: return "False";
      case Form::kUnary:
        if (e.text == "not") return call("_operator.not_", {print(*e.items[0])});
        if (e.text == "-") return call("_operator.neg", {print(*e.items[0])});
        break;
      case Form::kBinary:
        for (const Operation& operation : kOperations)
          if (e.text == operation.symbol)
            return call(operation.function, {print(*e.items[0]), print(*e.items[1])});
        break;
      case Form::kConditional:
        return call("torch.sym_ite", {print(*e.items[1]), print(*e.items[0]), print(*e.items[2])});
      case Form::kSubscript:
        if (is_call_of(*e.items[0], "size")) return dimension("torch.size(", e);
        if (is_call_of(*e.items[0], "stride")) return dimension("torch.stride(", e);
        return input(e).variable;
      case Form::kAttribute: return input(e).variable;
      case Form::kCall:
        if (is_call_of(e, "storage_offset"))
          return "torch.storage_offset(" + tensor(*e.items[0]->items[0]) + ")";
        return function(e);
      default: break;
    }
    bad("numbers, sizes, and operations on them");
  }

 private:
  [[noreturn]] void bad(const std::string& expected) const {
    at_.bad("got the guard \"", at_.text().substr(0, 200), "\", expected ", expected);
  }
  std::string call(const std::string& name, const std::vector<std::string>& arguments) const {
    const auto text = number_call(name, arguments);
    if (!text) bad("a function that this library has, not " + name);
    // Some texts have an argument twice, so calls inside each other double.
    if (text->size() > static_cast<size_t>(kMostText)) bad("a shorter one");
    return *text;
  }
  // x.name(), without arguments.
  static bool is_call_of(const Expression& e, const std::string& name) {
    return e.kind == Form::kCall && e.items.size() == 1 && e.named.empty() &&
           e.items[0]->kind == Form::kAttribute && e.items[0]->text == name;
  }
  std::string function(const Expression& e) {
    const Expression& f = *e.items[0];
    std::string name = f.kind == Form::kName ? "builtins." + f.text : "";
    if (f.kind == Form::kAttribute && f.items[0]->kind == Form::kName)
      name = f.items[0]->text + "." + f.text;
    if (name.empty() || !e.named.empty()) bad("a function of numbers");
    std::vector<std::string> arguments;
    for (size_t i = 1; i < e.items.size(); ++i) arguments.push_back(print(*e.items[i]));
    return call(name, arguments);
  }
  std::string dimension(const std::string& function, const Expression& e) {
    if (e.items.size() != 2 || e.items[1]->kind != Form::kInt) bad("the number of a dimension");
    return function + tensor(*e.items[0]->items[0]->items[0]) + ", " +
           std::to_string(e.items[1]->number) + ")";
  }
  std::string tensor(const Expression& e) {
    const GuardedInput& found = input(e);
    if (found.type->kind() != Type::Kind::kTensor) bad("a tensor instead of " + found.path);
    uses_.emplace(found.path, found.variable);
    return found.variable;
  }
  const GuardedInput& input(const Expression& e) const {
    const std::vector<Step> steps = steps_of(e);
    const std::string& first = steps[0].text;
    const GuardedInput* found = at_steps(first, steps, 1);
    if (!found && steps.size() > 1 && !is_parameter(first)) {
      // *args become parameters args_0, args_1, ... and **kwargs parameters of their own names.
      const Step& key = steps[1];
      if (key.kind == Step::kText) found = at_steps(key.text, steps, 2);
      else if (key.kind == Step::kNumber) found = at_steps(first + "_" + key.text, steps, 2);
    }
    if (!found) throw UnknownSource();
    return *found;
  }
  // "pair", 0 and "k" of L['pair'][0]["k"].
  std::vector<Step> steps_of(const Expression& e) const {
    if (e.kind == Form::kAttribute) {
      std::vector<Step> steps = steps_of(*e.items[0]);
      steps.push_back({Step::kField, e.text});
      return steps;
    }
    if (e.kind != Form::kSubscript || e.items.size() != 2 || !e.items[1]) bad("an input");
    const Expression& key = *e.items[1];
    const bool text = key.kind == Form::kString;
    if (!text && key.kind != Form::kInt) bad("an input's name or number");
    std::vector<Step> steps;
    const bool whole = e.items[0]->kind == Form::kName && e.items[0]->text == "L" && text;
    if (!whole) steps = steps_of(*e.items[0]);
    steps.push_back(text ? Step{Step::kText, key.text}
                         : Step{Step::kNumber, std::to_string(key.number)});
    return steps;
  }
  // The input at these steps, from number `next` on, below a parameter. Null where there is none.
  const GuardedInput* at_steps(std::string path, const std::vector<Step>& steps,
                               size_t next) const {
    for (; next < steps.size(); ++next) {
      const Step& step = steps[next];
      if (step.kind == Step::kField) {
        const auto field = inputs_.fields.find(path + "." + step.text);
        if (field == inputs_.fields.end()) return nullptr;
        path = field->second;
      } else {
        path += "[" + (step.kind == Step::kText ? quoted(step.text) : step.text) + "]";
      }
    }
    for (const GuardedInput& one : inputs_.all)
      if (one.path == path) return &one;
    return nullptr;
  }
  bool is_parameter(const std::string& name) const {
    return std::any_of(inputs_.all.begin(), inputs_.all.end(), [&](const GuardedInput& one) {
      return one.path == name || one.path.rfind(name + "[", 0) == 0;
    });
  }

  const Field& at_;
  const GuardedInputs& inputs_;
  std::map<std::string, std::string>& uses_;
};

}  // namespace

std::optional<std::string> print_guard(const Field& at, const GuardedInputs& inputs,
                                       std::map<std::string, std::string>& uses) {
  Source source;
  source.name = "a guard";
  source.text = at.text();
  ExpressionPtr expression;
  try {
    expression = parse_annotation(source, {kMostDepth, kMostText, kMostText});
  } catch (const Error& error) { at.bad("got a guard that is no expression: ", error.what()); }
  try {
    return "bool(" + GuardPrinter(at, inputs, uses).print(*expression) + ")";
  } catch (const UnknownSource&) { return std::nullopt; }
}

}  // namespace ramet::script
