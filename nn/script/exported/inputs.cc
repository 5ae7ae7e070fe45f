// The checks of an exported program's inputs: rank, kind of dtype, sizes, values of constants.
#include "nn/script/exported/forward_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

struct Extent {
  std::optional<int64_t> number;
  std::optional<SymbolicSize> size;
  std::string shown() const { return number ? std::to_string(*number) : size->shown(); }
};

Extent extent_of(const Field& at) {
  const auto [kind, value] = at.only();
  Extent made;
  if (kind == "as_int") {
    made.number = value.integer();
    return made;
  }
  if (kind != "as_expr") at.bad("got \"", kind, "\" as a size, expected as_int or as_expr");
  made.size.emplace(value["expr_str"], value["expr_str"].text());
  return made;
}

const char* kind_of_dtype(int64_t dtype) {
  if (dtype == 12) return "bool";
  return (dtype >= 6 && dtype <= 8) || dtype == 13 ? "floating-point" : "integer";
}

}  // namespace

// Raises an error unless `test` holds. `message` has a {} for each of `values`.
void InputChecks::expect(const std::string& test, const std::string& message,
                         const std::string& values) {
  into_.add(2, "if " + test + ":");
  into_.add(3, "pass");
  into_.add(2, "else:");
  into_.add(3, "ops.prim.RaiseException(torch.format(" + quoted(message) +
                   (values.empty() ? "" : ", " + values) + "))");
}

void InputChecks::tensor(const Field& meta, const std::string& variable, const std::string& name) {
  std::vector<Extent> extents;
  std::string shown = "[";
  for (const Field& size : meta["sizes"].items()) {
    extents.push_back(extent_of(size));
    shown += (extents.size() > 1 ? ", " : "") + extents.back().shown();
  }
  shown += "]";
  const std::string input = "input '" + name + "': got ";
  const std::string sizes = "torch.size(" + variable + ")";
  const std::string expected = ", expected " + shown;
  expect("torch.eq(torch.dim(" + variable + "), " + std::to_string(extents.size()) + ")",
         input + "the size {}" + expected, sizes);
  const std::string kind = kind_of_dtype(meta["dtype"].integer());
  const std::string is_bool = "torch.eq(ops.prim.dtype(" + variable + "), 11)";
  const std::string is_real = "torch.is_floating_point(" + variable + ")";
  expect(kind == "bool"             ? is_bool
         : kind == "floating-point" ? is_real
                                    : "not torch.__or__(" + is_real + ", " + is_bool + ")",
         input + "dtype number {}, expected a tensor of " + kind + " elements",
         "ops.prim.dtype(" + variable + ")");
  for (size_t i = 0; i < extents.size(); ++i) {
    const std::string size = "torch.size(" + variable + ", " + std::to_string(i) + ")";
    const std::string what = input + "the size {}" + expected;
    if (extents[i].number) {
      expect("torch.eq(" + size + ", " + std::to_string(*extents[i].number) + ")", what, sizes);
    } else {
      dimension(*extents[i].size, size, what, sizes, name);
    }
  }
}

void InputChecks::number(const Field& value, const std::string& variable, const std::string& name) {
  const Extent extent = extent_of(value);
  const std::string what = "input '" + name + "': got {}, expected " + extent.shown();
  if (extent.number)
    return expect("torch.eq(" + variable + ", " + std::to_string(*extent.number) + ")", what,
                  variable);
  dimension(*extent.size, variable, what, variable, name);
}

// A symbol alone gets its value here, where it has none. What is known is compared, and the rest at
// the end.
void InputChecks::dimension(const SymbolicSize& size, const std::string& value,
                            const std::string& what, const std::string& values,
                            const std::string& name) {
  const std::set<std::string> symbols = size.symbols();
  if (symbols.size() == 1 && size.shown() == *symbols.begin() &&
      variables_.count(*symbols.begin()) == 0) {
    solve(size, *symbols.begin(), value, name);
    return;
  }
  open_.push_back({size, value, what, values, name});
}

// symbol = (value - rest) // factor
void InputChecks::solve(const SymbolicSize& size, const std::string& symbol,
                        const std::string& value, const std::string& name) {
  int64_t factor = 0, rest = 0;
  size.linear(symbol, factor, rest);
  const std::string variable = names_.unique(symbol);
  std::string text = value;
  if (rest != 0) text = "torch.sub(" + text + ", " + std::to_string(rest) + ")";
  if (factor != 1) text = "torch.floordiv(" + text + ", " + std::to_string(factor) + ")";
  into_.add(2, variable + " = " + text);
  variables_[symbol] = variable;
  const auto range = ranges_ ? ranges_->find(symbol) : std::nullopt;
  if (!range) return;
  const auto least = range->find("min_val"), most = range->find("max_val");
  const std::string what = "input '" + name + "': got {} for the size " + symbol + ", expected ";
  // As in PyTorch: a least size of 2 is what export assumed, and no bound.
  if (least && least->integer() > 2)
    expect("torch.ge(" + variable + ", " + std::to_string(least->integer()) + ")",
           what + "at least " + std::to_string(least->integer()), variable);
  if (most && most->integer() < std::numeric_limits<int64_t>::max())
    expect("torch.le(" + variable + ", " + std::to_string(most->integer()) + ")",
           what + "at most " + std::to_string(most->integer()), variable);
}

void InputChecks::finish(const Field& at) {
  // A size such as 2*s gives s its value, where no input has s alone.
  for (bool again = true; again;) {
    again = false;
    for (const Open& one : open_) {
      std::string unknown;
      int64_t count = 0, factor = 0, rest = 0;
      for (const std::string& symbol : one.size.symbols())
        if (variables_.count(symbol) == 0) unknown = symbol, ++count;
      if (count != 1 || !one.size.linear(unknown, factor, rest)) continue;
      solve(one.size, unknown, one.value, one.name);
      again = true;
    }
  }
  for (const Open& one : open_) {
    for (const std::string& symbol : one.size.symbols())
      if (variables_.count(symbol) == 0)
        at.bad("got the size ", one.size.shown(), " of input '", one.name,
               "', which does not say what ", symbol,
               " is: expected an input with that size, or with a multiple of it");
    expect("torch.eq(" + one.value + ", " + one.size.print(variables_) + ")",
           one.what + " with " + known(), one.values + shown_values());
  }
}

std::string InputChecks::known() const {
  std::string text;
  for (const auto& [symbol, variable] : variables_)
    text += (text.empty() ? "" : ", ") + symbol + " = {}";
  return text;
}
std::string InputChecks::shown_values() const {
  std::string text;
  for (const auto& [symbol, variable] : variables_) text += ", " + variable;
  return text;
}

}  // namespace ramet::script
