// A .pt2 archive: what torch.export.save() writes.
//
// Note [Exported programs]
// Such an archive has a graph as JSON and its tensors. Each node of the graph calls an operator by
// ATen's name, or runs another graph. This library prints the graph as TorchScript's text: each
// node is one statement, and its name the variable. Parser, compiler and interpreter then do what
// they do with any file, so the module can be saved as TorchScript. `net.0.weight` becomes the
// attribute `weight` of the module `0` in the module `net`. Graphs inside the graph are methods.
// forward() takes the arguments as Python's function did. It checks their sizes first.
// All that the file asks for and this library lacks is one Error, with the Python lines.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autograd/schema/operators_internal.h"
#include "nn/script/archive_internal.h"
#include "nn/script/ast_internal.h"

namespace ramet::script {

using Json = nlohmann::json;

/// Does an archive hold an exported program?
bool is_exported(const formats::detail::ZipReader& zip);
/// Reads one: all in it but its compilation. Fills the values of `extra`'s keys that it has.
LoadedModule read_exported(formats::detail::ZipReader& zip, const LoadOptions& options,
                           jit::ExtraFilesMap* extra);

/// A value of the graph's JSON, and its place for errors. An Error where it is not what is asked
/// for.
class Field {
 public:
  /// `file` names the file and the entry, and has to stay.
  Field(const Json& json, const std::string& file, std::string path = "")
      : json_(&json), file_(&file), path_(std::move(path)) {}
  /// A member of an object.
  Field operator[](const std::string& key) const;
  /// The same; nothing where it is missing or null.
  std::optional<Field> find(const std::string& key) const;
  std::vector<Field> items() const;
  std::vector<std::pair<std::string, Field>> members() const;
  /// The one member of a union: {"as_int": 3}.
  std::pair<std::string, Field> only() const;
  std::string text() const;
  int64_t integer() const;
  double real() const;
  bool truth() const;
  template <class... Parts> [[noreturn]] void bad(const Parts&... parts) const {
    fail("torch::jit::load", *file_, path_.empty() ? "" : ", ", path_, ": ", parts...);
  }

 private:
  std::string kind() const;
  const Json* json_;
  const std::string* file_;
  std::string path_;
};

/// Lines of code, and the Python lines that they come from.
struct PrintedLines {
  std::string text;
  std::vector<Source::Origin> origins;

  void add(int indent, const std::string& line, const Source::Origin& from = {0, "", 0});
  void add(const PrintedLines& more);
};

/// A value in the text.
struct Printed {
  std::string text;
  TypePtr type;                    // null: it is known to be wrong
  std::optional<IValue> constant;  // where the text is one
};

/// Names of variables, methods or classes, each given once.
class Namer {
 public:
  /// `name`, with what no name may have replaced, and a number where it is taken or has a meaning.
  std::string unique(const std::string& name);
  static bool is_identifier(const std::string& name);

 private:
  std::set<std::string> taken_;
  std::map<std::string, int64_t> next_;
};

/// Text of a constant: "\"a\\n\"", "0.5", "-inf".
std::string quoted(const std::string& text);
std::string real_text(double value);

/// A tensor of the state, as attribute of a module.
struct Attached {
  std::string target;  // "features.0.weight"
  Tensor tensor;
  bool parameter = false;
};

/// The modules that hold the state: their classes as text, and then their objects.
class ExportedModules {
 public:
  explicit ExportedModules(const std::vector<Attached>& state);
  /// The expression for a tensor: "getattr(self.features, \"0\").weight".
  static std::string expression(const std::string& target);
  /// The text of all classes. The root's has `methods`.
  void print(PrintedLines& into, const PrintedLines& methods) const;
  std::shared_ptr<Object> make(const std::shared_ptr<CompilationUnit>& unit) const;
  static const char* root_name() { return "__torch__.exported.Module"; }

 private:
  struct Part {
    std::string name;  // of the class
    std::vector<std::pair<std::string, const Attached*>> tensors;
    std::vector<std::pair<std::string, size_t>> parts;
  };
  std::shared_ptr<Object> make(const std::shared_ptr<CompilationUnit>& unit, size_t part) const;
  std::vector<Part> parts_;  // the root first
};

/// The variables of one graph.
struct ExportedScope {
  Namer names;
  std::map<std::string, Printed> values;  // by the graph's names
  std::set<std::string> used;
};

/// What this library lacks for a node, and the node's Python line.
struct GraphProblem {
  std::string what, place;
};

/// Prints graphs as methods.
class ExportedPrinter {
 public:
  explicit ExportedPrinter(const LoadOptions& options) : depth_left_(options.depth) {}

  /// The statements of a graph's nodes.
  void nodes(const Field& graph, ExportedScope& scope, int indent, PrintedLines& into);
  /// A graph's argument or result as text.
  Printed argument(const Field& argument, ExportedScope& scope);
  /// A tensor, as signatures write it: {"name": "x"}.
  static Printed argument_of_tensor(const Field& argument, ExportedScope& scope);
  /// Gives a value of the graph a variable.
  const Printed& declare(const Field& at, ExportedScope& scope, const std::string& name,
                         const TypePtr& type);
  const std::vector<GraphProblem>& problems() const { return problems_; }
  void problem(const std::string& what, const std::string& place) {
    problems_.push_back({what, place});
  }
  /// Methods for graphs in the graph, and names of methods.
  PrintedLines methods;
  Namer method_names;
  /// Does the text need the class GradMode?
  bool uses_grad_mode = false;
  /// Does it need PyTorch's class of autocast blocks?
  bool uses_autocast = false;
  static constexpr const char* kAutocastClass = "__torch__.torch.amp.autocast_mode.autocast";

 private:
  struct Output {
    std::string name;  // empty: not used
    TypePtr type;
    bool list = false;               // a list of tensors,
    std::vector<std::string> items;  // and their names
  };
  struct Node;
  void node(const Field& node, ExportedScope& scope, int indent, PrintedLines& into);
  void operator_call(Node& node);
  void function_call(Node& node);
  void higher_order(Node& node);
  void cond(Node& node, const std::vector<Field>& inputs);
  void while_loop(Node& node, const std::vector<Field>& inputs);
  void grad_region(Node& node, const std::vector<Field>& inputs);
  void autocast_region(Node& node, const std::vector<Field>& inputs);
  void loop(Node& node, const Field& graph, const std::vector<Printed>& carried,
            const std::vector<Printed>& slices, const std::vector<Printed>& more);
  void scan(Node& node, const std::vector<Field>& inputs);
  void map(Node& node, const std::vector<Field>& inputs);
  void associative_scan(Node& node, const std::vector<Field>& inputs);
  std::string region(Node& node, const Field& graph, const std::vector<Printed>& given);
  static std::vector<std::pair<std::string, TypePtr>> results_of(const Node& node);
  std::string targets(Node& node);
  void assign(Node& node, const std::string& call);
  void give_up(Node& node, const std::string& what);
  std::vector<Printed> operands(Node& node, const std::vector<Field>& inputs, size_t from,
                                size_t end);
  static bool is_list(const std::string& kind);
  std::string subgraph(Node& node, const Field& argument, const std::vector<Printed>& operands,
                       size_t& outputs);
  /// An item of a list of that kind ("as_ints").
  Printed list_item(const Field& at, const std::string& kind, ExportedScope& scope);
  Printed list(const Field& at, const std::string& kind, ExportedScope& scope);

  int64_t depth_left_;
  std::vector<GraphProblem> problems_;
};

/// A size as an expression of symbols: see the grammar in symbols.cc.
class SymbolicSize {
 public:
  /// An Error of `at` where the text is no such expression.
  SymbolicSize(const Field& at, const std::string& text);
  std::set<std::string> symbols() const;
  /// As TorchScript's text, with these variables for symbols.
  std::string print(const std::map<std::string, std::string>& variables) const;
  /// Is it `factor * symbol + rest`, for whole numbers? Then sets both.
  bool linear(const std::string& symbol, int64_t& factor, int64_t& rest) const;
  std::string shown() const;  // "2*s0 + 1"

  struct Tree {
    std::string kind;  // "int", "symbol", "Add", "Mul", "FloorDiv", ...
    std::string name;
    int64_t number = 0;
    std::vector<Tree> items;
  };

 private:
  Tree tree_;
};

/// A function of Python on numbers as text: "_operator.add", "math.floor", "torch.sym_max". Nothing
/// where there is none of so many arguments.
std::optional<std::string> number_call(const std::string& function,
                                       const std::vector<std::string>& arguments);

/// Prints forward(): its parameters, the checks of inputs, the graph, and its results.
/// `state_targets`: the file's tensors by name. `limit`: of levels in nested arguments.
void print_forward(const Field& program, ExportedPrinter& printer, int64_t limit,
                   const std::map<std::string, std::string>& state_targets, PrintedLines& into);

}  // namespace ramet::script
