// Sizes as expressions of symbols.
//
// Note [Symbolic sizes]
// PyTorch writes a size that is not fixed as an expression of SymPy. Since 2.6 it is a call of
// classes: "Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(1))". Before it was as people
// write it: "2*s0 + 1". This is the grammar of both. Anything else is an Error.
//   sum     = ["-"] product { ("+" | "-") product }.
//   product = power { ("*" | "//" | "%") power }.
//   power   = atom [ "**" number ].
//   atom    = number | symbol | "(" sum ")" | call.
//   call    = "Integer" "(" number ")" | "Symbol" "(" quoted { "," name "=" name } ")"
//           | function "(" sum { "," sum } ")".
//   function = "Add" | "Mul" | "Pow" | "FloorDiv" | "CleanDiv" | "Mod" | "PythonMod" | "Max" |
//              "Min"
#include <algorithm>
#include <iterator>

#include "nn/script/exported/exported_internal.h"

namespace ramet::script {
namespace {

using Tree = SymbolicSize::Tree;

constexpr int kMostDepth = 100;
constexpr size_t kMostText = 10000;

struct Function {
  const char* name;
  const char* operation;  // in TorchScript
  const char* shown;
};
constexpr Function kFunctions[] = {
    {"Add", "torch.add", " + "},          {"Mul", "torch.mul", "*"},
    {"FloorDiv", "torch.floordiv", "//"}, {"CleanDiv", "torch.floordiv", "//"},
    {"Mod", "torch.remainder", "%"},      {"PythonMod", "torch.remainder", "%"},
    {"Max", "ops.prim.max", ", "},        {"Min", "ops.prim.min", ", "}};

class Parser {
 public:
  Parser(const Field& at, const std::string& text) : place_(at), text_(text) {}
  Tree whole() {
    if (text_.size() > kMostText) bad("a shorter text");
    Tree made = sum();
    if (!at_end()) bad("the end of the expression");
    return made;
  }

 private:
  [[noreturn]] void bad(const char* expected) const {
    place_.bad("got the size \"", text_.substr(0, 200), "\", expected ", expected, " at place ",
               at_);
  }
  void blank() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool at_end() {
    blank();
    return at_ == text_.size();
  }
  bool accept(const std::string& symbol) {
    blank();
    if (text_.compare(at_, symbol.size(), symbol) != 0) return false;
    // "*" is no "**".
    if (symbol == "*" && text_.compare(at_, 2, "**") == 0) return false;
    at_ += symbol.size();
    return true;
  }
  void expect(const char* symbol, const char* what) {
    if (!accept(symbol)) bad(what);
  }
  static bool letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
  }
  std::string word() {
    blank();
    const size_t from = at_;
    while (at_ < text_.size() && letter(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }
  int64_t number(const std::string& digits) const {
    int64_t value = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9' || __builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{c - '0'}, &value))
        bad("a number of 64 bits or a symbol");
    }
    if (digits.empty()) bad("a number");
    return value;
  }
  int64_t signed_number() {
    const bool minus = accept("-");
    const int64_t value = number(word());
    return minus ? -value : value;
  }
  static Tree of(int64_t value) { return {"int", "", value, {}}; }

  Tree sum() {
    if (++depth_ > kMostDepth) bad("fewer levels");
    Tree made = accept("-") ? Tree{"Mul", "", 0, {of(-1), product()}} : product();
    while (true) {
      if (accept("+")) made = {"Add", "", 0, {std::move(made), product()}};
      else if (accept("-"))
        made = {"Add", "", 0, {std::move(made), {"Mul", "", 0, {of(-1), product()}}}};
      else break;
    }
    --depth_;
    return made;
  }
  Tree product() {
    Tree made = power();
    while (true) {
      if (accept("//")) made = {"FloorDiv", "", 0, {std::move(made), power()}};
      else if (accept("*")) made = {"Mul", "", 0, {std::move(made), power()}};
      else if (accept("%")) made = {"PythonMod", "", 0, {std::move(made), power()}};
      else return made;
    }
  }
  Tree power() {
    Tree base = atom();
    if (!accept("**")) return base;
    return to_power(base, signed_number());
  }
  Tree to_power(const Tree& base, int64_t exponent) const {
    if (exponent < 1 || exponent > 8) bad("an exponent from 1 to 8");
    Tree made = base;
    for (int64_t i = 1; i < exponent; ++i) made = {"Mul", "", 0, {std::move(made), base}};
    return made;
  }
  Tree atom() {
    if (accept("(")) {
      Tree made = sum();
      expect(")", "\")\"");
      return made;
    }
    const std::string name = word();
    if (name.empty()) bad("a number, a symbol or a function");
    if (name[0] >= '0' && name[0] <= '9') return of(number(name));
    if (!accept("(")) return {"symbol", name, 0, {}};
    if (name == "Integer") {
      Tree made = of(signed_number());
      expect(")", "\")\"");
      return made;
    }
    if (name == "Symbol") return symbol();
    return call(name);
  }
  Tree symbol() {
    expect("'", "the name of a symbol, in quotes");
    Tree made{"symbol", word(), 0, {}};
    expect("'", "the end of the name");
    if (made.name.empty() || (made.name[0] >= '0' && made.name[0] <= '9'))
      bad("the name of a symbol");
    while (accept(",")) {
      word();
      expect("=", "\"=\"");
      word();
    }
    expect(")", "\")\"");
    return made;
  }
  Tree call(const std::string& name) {
    const bool power = name == "Pow";
    const bool known = power || std::any_of(std::begin(kFunctions), std::end(kFunctions),
                                            [&](const Function& f) { return name == f.name; });
    if (!known) bad("Add, Mul, Pow, FloorDiv, CleanDiv, Mod, PythonMod, Max or Min");
    Tree made{name, "", 0, {}};
    do made.items.push_back(sum());
    while (accept(","));
    expect(")", "\")\"");
    const bool two =
        name == "FloorDiv" || name == "CleanDiv" || name == "Mod" || name == "PythonMod" || power;
    if (two && made.items.size() != 2) bad("two arguments");
    if (!power) return made;
    if (made.items[1].kind != "int") bad("a number as exponent");
    return to_power(made.items[0], made.items[1].number);
  }

  const Field& place_;
  const std::string& text_;
  size_t at_ = 0;
  int depth_ = 0;
};

const Function& function_of(const Tree& tree) {
  return *std::find_if(std::begin(kFunctions), std::end(kFunctions),
                       [&](const Function& f) { return tree.kind == f.name; });
}

void find_symbols(const Tree& tree, std::set<std::string>& into) {
  if (tree.kind == "symbol") into.insert(tree.name);
  for (const Tree& item : tree.items) find_symbols(item, into);
}

std::string printed(const Tree& tree, const std::map<std::string, std::string>& variables) {
  if (tree.kind == "int") return std::to_string(tree.number);
  if (tree.kind == "symbol") return variables.at(tree.name);
  std::string text = printed(tree.items[0], variables);
  for (size_t i = 1; i < tree.items.size(); ++i)
    text = std::string(function_of(tree).operation) + "(" + text + ", " +
           printed(tree.items[i], variables) + ")";
  return text;
}

std::string shown_of(const Tree& tree) {
  if (tree.kind == "int") return std::to_string(tree.number);
  if (tree.kind == "symbol") return tree.name;
  const bool named = tree.kind == "Max" || tree.kind == "Min";
  std::string text;
  for (const Tree& item : tree.items) {
    const bool simple = named || item.items.empty();
    if (!text.empty()) text += function_of(tree).shown;
    text += simple ? shown_of(item) : "(" + shown_of(item) + ")";
  }
  return named ? tree.kind + "(" + text + ")" : text;
}

// factor * symbol + rest. The other symbols make it false.
bool find_linear(const Tree& tree, const std::string& symbol, int64_t& factor, int64_t& rest) {
  factor = rest = 0;
  if (tree.kind == "int") return rest = tree.number, true;
  if (tree.kind == "symbol") return factor = 1, tree.name == symbol;
  if (tree.kind != "Add" && tree.kind != "Mul") return false;
  const bool product = tree.kind == "Mul";
  rest = product ? 1 : 0;
  for (const Tree& item : tree.items) {
    int64_t f = 0, r = 0;
    if (!find_linear(item, symbol, f, r)) return false;
    if (!product) {
      if (__builtin_add_overflow(factor, f, &factor) || __builtin_add_overflow(rest, r, &rest))
        return false;
      continue;
    }
    if (factor != 0 && f != 0) return false;  // a square
    int64_t a = 0, b = 0;
    if (__builtin_mul_overflow(factor, r, &a) || __builtin_mul_overflow(rest, f, &b) ||
        __builtin_add_overflow(a, b, &factor) || __builtin_mul_overflow(rest, r, &rest))
      return false;
  }
  return true;
}

}  // namespace

SymbolicSize::SymbolicSize(const Field& at, const std::string& text)
    : tree_(Parser(at, text).whole()) {}

std::set<std::string> SymbolicSize::symbols() const {
  std::set<std::string> found;
  find_symbols(tree_, found);
  return found;
}

std::string SymbolicSize::print(const std::map<std::string, std::string>& variables) const {
  return printed(tree_, variables);
}

bool SymbolicSize::linear(const std::string& symbol, int64_t& factor, int64_t& rest) const {
  return find_linear(tree_, symbol, factor, rest) && factor != 0;
}

std::string SymbolicSize::shown() const { return shown_of(tree_); }

}  // namespace ramet::script
