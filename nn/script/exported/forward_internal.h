// forward() of an exported program.
#pragma once
#include "nn/script/exported/exported_internal.h"

namespace ramet::script {

/// Prints the checks of inputs.
class InputChecks {
 public:
  /// `ranges`: of symbols, by name.
  InputChecks(PrintedLines& into, Namer& names, std::optional<Field> ranges)
      : into_(into), names_(names), ranges_(std::move(ranges)) {}

  void expect(const std::string& test, const std::string& message, const std::string& values);
  void tensor(const Field& meta, const std::string& variable, const std::string& name);
  /// An int: a number, or an expression of symbols.
  void number(const Field& value, const std::string& variable, const std::string& name);
  /// The sizes that depend on several inputs.
  void finish(const Field& at);

 private:
  struct Open {
    SymbolicSize size;
    std::string value, what, values, name;
  };
  void dimension(const SymbolicSize& size, const std::string& value, const std::string& what,
                 const std::string& values, const std::string& name);
  void solve(const SymbolicSize& size, const std::string& symbol, const std::string& value,
             const std::string& name);
  std::string known() const;
  std::string shown_values() const;

  PrintedLines& into_;
  Namer& names_;
  std::optional<Field> ranges_;
  std::map<std::string, std::string> variables_;  // of symbols
  std::vector<Open> open_;
};

/// An input that is a tensor or a number, as guards name it: "x", "pair[0]", "more[\"k\"]".
struct GuardedInput {
  std::string path;
  std::string variable;  // in the text
  TypePtr type;
};
struct GuardedInputs {
  std::vector<GuardedInput> all;
  std::map<std::string, std::string> fields;  // of NamedTuples: "pair.first" is "pair[0]"
};
/// A guard of the tracer ("L['x'].size()[0] > 5") as a test in TorchScript's text. `uses` gets the
/// variables of the tensors in it, by path. Nothing where it names something that is no input. An
/// Error of `at` where the grammar is another.
std::optional<std::string> print_guard(const Field& at, const GuardedInputs& inputs,
                                       std::map<std::string, std::string>& uses);

/// The text as a part of a message for format(), which replaces each {}.
std::string format_part(std::string text);

/// How Python's values are nested: what torch.utils._pytree writes.
struct Structure {
  enum class Kind : uint8_t { kLeaf, kTuple, kList, kDict, kNone };
  Kind kind = Kind::kLeaf;
  std::vector<std::string> keys;  // of a dictionary, as text
  bool number_keys = false;
  std::string class_name;  // of a NamedTuple
  std::vector<Structure> items;

  /// Reads one. `limit`: of levels.
  static Structure read(const Field& at, const std::string& text, int64_t limit);
  /// The type of such a value. Its leaves have the types from `next` on, which is moved on.
  TypePtr type(const std::vector<TypePtr>& leaves, size_t& next) const;
  size_t leaves() const;
  std::string key_text(size_t i) const;
};

}  // namespace ramet::script
