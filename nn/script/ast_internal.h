// The syntax tree of TorchScript's printed code: the part of Python that torch.jit.save() writes.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ramet::script {

/// Where the lines of a text end. Found when it is first asked for; the text must not change then.
class LineEnds {
 public:
  LineEnds() = default;
  LineEnds(const LineEnds&) {}  // may be of another text
  LineEnds& operator=(const LineEnds&) = delete;
  /// How many lines end before the offset.
  int64_t before(const std::string& text, size_t offset) const;

 private:
  mutable std::mutex mutex_;
  mutable bool found_ = false;
  mutable std::vector<size_t> ends_;
};

/// A text of an archive ("code/__torch__/net.py"), and where its lines came from.
struct Source {
  std::string name;
  std::string text;
  /// From debug_pkl: the text from `offset` on came from this line of this Python file. Sorted by
  /// offset; empty where the archive has no such table.
  struct Origin {
    size_t offset;
    std::string file;
    int64_t line;
  };
  std::vector<Origin> origins;
  LineEnds ends = {};

  /// "net.py:12 (code/__torch__/net.py:30)": the Python line where it is known, then the archive's.
  std::string place(size_t offset) const;
  /// "net.py:12", or the archive's line where Python's is not known.
  std::string line(size_t offset) const;
};
using SourcePtr = std::shared_ptr<const Source>;

/// What an archive's table `name` ("code/__torch__/net.py.debug_pkl") says about its text. An Error
/// where the bytes are no such table.
std::vector<Source::Origin> read_origins(const std::string& name, const std::string& bytes);

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;
struct Statement;
using Block = std::vector<Statement>;

/// An argument `name=value` of a call, or an entry `key: value` of a dictionary.
struct Named {
  std::string name;   // empty in dictionaries
  ExpressionPtr key;  // of dictionaries only
  ExpressionPtr value;
};

/// An expression. Which members it has depends on its kind.
struct Expression {
  enum class Kind : uint8_t {
    kName,       // text
    kAttribute,  // items[0].text
    kCall,       // items[0](items[1], ..., named...)
    kSubscript,  // items[0][items[1], ...]
    kSlice,      // items[0]:items[1]:items[2], each may be null; only inside a subscript
    kInt,        // number; a minus before it is part of it
    kFloat,      // real; so are the names inf and nan, and a minus before them
    kString,     // text, with its escapes replaced
    kTrue,
    kFalse,
    kNone,
    kEllipsis,
    kList,         // items
    kTuple,        // items
    kDict,         // named
    kUnary,        // text ("-", "not", "~") items[0]
    kBinary,       // items[0] text items[1]: arithmetic, comparison, "and", "or", "is", "in", ...
    kConditional,  // items[0] if items[1] else items[2]
  };
  Kind kind;
  size_t offset = 0;  // in the source's text
  std::string text;
  int64_t number = 0;
  double real = 0;
  std::vector<ExpressionPtr> items;
  std::vector<Named> named;
};

/// A parameter of a function.
struct ParameterSyntax {
  std::string name;
  ExpressionPtr type;   // null: Tensor, or self's class
  ExpressionPtr value;  // the default, or null
  bool by_name = false;
};

/// A function or method.
struct FunctionSyntax {
  std::string name;
  size_t offset = 0;
  std::vector<ParameterSyntax> parameters;
  ExpressionPtr result;  // null: not stated
  Block body;
};
using FunctionSyntaxPtr = std::shared_ptr<const FunctionSyntax>;

/// A statement. Which members it has depends on its kind.
struct Statement {
  enum class Kind : uint8_t {
    kAssign,      // targets[0], targets[1], ... = value; with a type: targets[0] : type = value
    kExpression,  // value
    kIf,          // if value: body else: other
    kFor,         // for targets... in value: body
    kWhile,       // while value: body
    kReturn,      // value, or null
    kWith,        // with value as targets[0]: body; several managers are nested statements
    kPass,
    kBreak,
    kContinue,
    kAssert,    // assert value, message
    kRaise,     // raise value
    kFunction,  // def, inside a function: what fork() runs
    kDelete,    // del targets
  };
  Kind kind;
  size_t offset = 0;
  /// Names, attributes, subscripts, or tuples of them. `unpacks`: is it `a, = x`, not `a = x`?
  std::vector<ExpressionPtr> targets;
  bool unpacks = false;
  ExpressionPtr type;
  ExpressionPtr value;
  ExpressionPtr message;
  Block body, other;
  FunctionSyntaxPtr function;
};

/// An attribute of a class.
struct AttributeSyntax {
  std::string name;
  size_t offset = 0;
  ExpressionPtr type;
  ExpressionPtr value;  // Final constants, enumerators, defaults of fields; may be null
  bool constant = false;
};

/// A class.
struct ClassSyntax {
  std::string name;
  size_t offset = 0;
  std::string base;  // "Module", "Interface", "ModuleInterface", "NamedTuple", "Enum"; may be empty
  std::vector<AttributeSyntax> attributes;
  std::vector<std::string> parameters, buffers;  // __parameters__, __buffers__
  bool states_buffers = false;                   // before PyTorch 1.5 there is no such line
  std::vector<std::string> hooks, pre_hooks;     // __forward_hooks__, __forward_pre_hooks__
  std::vector<FunctionSyntaxPtr> methods;
};

/// All of one text.
struct FileSyntax {
  SourcePtr source;
  std::vector<std::shared_ptr<const ClassSyntax>> classes;
  std::vector<FunctionSyntaxPtr> functions;
};

/// What a text may hold before it is refused.
struct ParseLimits {
  int64_t depth = 200;  // of expressions and blocks inside each other
  int64_t bytes = int64_t{1} << 30;
  int64_t expressions = 10'000'000;  // each takes memory of some 150 bytes
};

/// Reads a text. An Error "[torch::jit::load] ..." with the place where it is no TorchScript.
FileSyntax parse(SourcePtr source, const ParseLimits& limits = {});
/// Reads a type alone, as pickles name it: "List[int]".
ExpressionPtr parse_annotation(const Source& source, const ParseLimits& limits = {});

}  // namespace ramet::script
