// A compilation unit: the classes and functions of one archive, declared from its code on demand.
#pragma once
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autograd/schema/operators_internal.h"
#include "nn/script/ast_internal.h"

namespace ramet::script {

class CompilationUnit;
struct ArchiveTexts;
struct Program;

/// A parameter of a function of the archive.
struct FunctionParameter {
  std::string name;
  TypePtr type;
  std::optional<IValue> value;  // the default
};

/// A function or method of the archive: its declaration, and once compile() has been called its
/// program. Immutable from then on, so that several threads may run it.
struct ScriptFunction {
  std::string name;  // "__torch__.net.Net.forward"
  SourcePtr source;
  FunctionSyntaxPtr syntax;
  ClassInfo* owner = nullptr;  // of a method: its first parameter is self
  std::vector<FunctionParameter> parameters;
  TypePtr result;                          // null until compiled, where the text does not state it
  std::shared_ptr<const Program> program;  // null until compiled
};

/// What the language knows of a class, an interface or an enumeration.
class ClassInfo {
 public:
  struct Attribute {
    std::string name;
    TypePtr type;
    bool parameter = false, buffer = false;
  };
  enum class Kind : uint8_t { kModule, kClass, kInterface, kEnum };

  std::string name;  // "__torch__.net.Net"
  Kind kind = Kind::kClass;
  TypePtr type;
  CompilationUnit* unit = nullptr;  // that owns this
  /// Attribute i is slot i of an object.
  std::vector<Attribute> attributes;
  std::map<std::string, IValue> constants;  // Final attributes; an enumeration's values by name
  std::vector<std::unique_ptr<ScriptFunction>> methods;
  /// Methods that run after, and before, forward.
  std::vector<std::string> hooks, pre_hooks;

  /// The slot of an attribute, or -1.
  int64_t slot(const std::string& attribute) const;
  /// Null where there is none.
  ScriptFunction* method(const std::string& name) const;
};

/// Bounds of what a file may ask for. Each is an Error that names it when exceeded.
struct Limits {
  int64_t depth = 200;      // of expressions, blocks and values in each other
  int64_t recursion = 200;  // of calls in each other while running
  int64_t steps = std::numeric_limits<int64_t>::max();  // instructions of one call from outside
  int64_t text_bytes = int64_t{1} << 30;                // of a text of the code
  int64_t expressions = 10'000'000;                     // of a text of the code
};

/// One problem found while compiling: an operation that does not exist here, a type that does not
/// fit.
struct Problem {
  std::string what;  // "aten::fft_fft: no such operation"
  SourcePtr source;
  size_t offset = 0;
  std::string function;  // "__torch__.net.Net.forward"

  /// "net.py:12 (code/__torch__/net.py:30), in __torch__.net.Net.forward". Counts the text's lines.
  std::string place() const;
};

/// What the compilers of a unit are doing.
struct CompilerWork {
  /// Statements and expressions inside each other, in functions inside each other.
  int64_t depth = 0;
  /// Statements and expressions of functions that fork() runs: each fork compiles them once more.
  int64_t forked = 0;
};

class CompilationUnit : public std::enable_shared_from_this<CompilationUnit> {
 public:
  /// Returns the text of a module of the archive: "__torch__.torch.nn.modules.linear" is
  /// code/__torch__/torch/nn/modules/linear.py. Null where there is none.
  using Lookup = std::function<SourcePtr(const std::string& module)>;

  /// `constants`: what CONSTANTS.c0, CONSTANTS.c1, ... are. `version`: of the file's operators.
  CompilationUnit(Lookup lookup, std::vector<IValue> constants, int64_t version, Limits limits);
  ~CompilationUnit();

  /// Declares the class with all its methods, but compiles none. An Error where the archive has no
  /// such class. Sets ClassInfo::type. NamedTuples are types without a ClassInfo: use type_named().
  ClassInfo* class_named(const std::string& name);
  /// The type of a qualified name: a class, interface, enumeration or NamedTuple.
  TypePtr type_named(const std::string& name);
  /// A function outside of classes ("__torch__.net.helper"). An Error where there is none.
  ScriptFunction* function_named(const std::string& name);
  /// Does the archive have a class, or a function, of that name?
  bool has_type(const std::string& name);
  bool has_function(const std::string& name);

  /// The type that an annotation states: "Optional[Tensor]", "__torch__.net.Net",
  /// "List[Tuple[int, str]]", "Future[Tensor]", "Device", "number", "NoneType", "Any". `source` is
  /// for errors.
  TypePtr type_of(const Expression& annotation, const Source& source);
  /// Of a text; as pickles name types of lists ("List[int]").
  TypePtr type_of_text(const std::string& text);

  /// Compiles a function, and all that it may call, once. Problems are collected, not thrown.
  void compile(ScriptFunction& function);
  const std::vector<Problem>& problems() const { return problems_; }
  /// One Error that lists all problems since the last report; nothing where there are none. After
  /// an Error no function has a program that it did not have at the last report.
  void report_problems();
  CompilerWork work;
  std::shared_ptr<ArchiveTexts> texts;  // of the file: a module that an object becomes has them

  const std::vector<IValue>& constants() const { return constants_; }
  int64_t version() const { return version_; }
  const Limits& limits() const { return limits_; }
  /// The device that torch.device("cuda:0") and other constants in the code mean; as they say where
  /// none is set. Set before compile().
  std::optional<Device> device;
  /// The device of load(): the one above, or that of the file's tensors (Note [Moved modules]).
  Device home = Device(kCPU, 0);
  /// The file's tensors were on a GPU. So where its code names the CPU, it means the host, whatever
  /// `device` is. Set before compile().
  bool cpu_is_host = false;
  /// All classes that were declared, in that order.
  const std::vector<std::unique_ptr<ClassInfo>>& classes() const { return classes_; }

 private:
  struct Module;
  Module& module(const std::string& name);
  TypePtr declare(Module& in, const std::string& qualified, const ClassSyntax& syntax);
  TypePtr declare_tuple(Module& in, const std::string& qualified, const ClassSyntax& syntax);
  void declare(ScriptFunction& function, const std::shared_ptr<const FunctionSyntax>& syntax,
               const SourcePtr& source);
  void finish_classes();
  void fill(ClassInfo& info, const ClassSyntax& syntax, const SourcePtr& source);
  void fill_enumeration(ClassInfo& info, const ClassSyntax& syntax, const Source& source);
  Lookup lookup_;
  std::vector<IValue> constants_;
  int64_t version_;
  Limits limits_;
  std::map<std::string, std::unique_ptr<Module>> modules_;
  std::vector<std::unique_ptr<ClassInfo>> classes_;
  /// Classes that have types already, but no attributes and methods yet. A queue rather than a
  /// recursion: classes refer to one another in any way.
  struct Unfilled {
    ClassInfo* info;
    std::shared_ptr<const ClassSyntax> syntax;
    SourcePtr source;
  };
  std::deque<Unfilled> unfilled_;
  bool filling_ = false;
  std::map<std::string, std::exception_ptr> broken_;  // classes with a wrong text
  int64_t tuples_ = 0;  // NamedTuples that are being declared, inside each other
  std::vector<Problem> problems_;
  std::set<const ScriptFunction*> started_;  // compiled, or being compiled
  std::set<std::string> interface_calls_;    // names of methods that are called through interfaces
  // Since the last report; and the calls until then.
  std::vector<ScriptFunction*> unreported_;
  std::set<std::string> reported_calls_;
  int64_t compiling_ = 0;  // functions inside each other
};

/// An instance of a class of the archive: a module, or an object of a plain class. Enumerators are
/// objects of the class kEnum with the slots name and value.
class Object final : public IValue::Object {
 public:
  Object(std::shared_ptr<CompilationUnit> unit, ClassInfo* info)
      : unit_(std::move(unit)), info_(info), slots(info->attributes.size()) {}
  const std::string& class_name() const override { return info_->name; }
  Role role() const override;
  IValue getAttr(const std::string& name) const override;
  void setAttr(const std::string& name, IValue value) override;
  /// Sets an attribute. An Error of `op` where the value has not the attribute's type.
  void set_slot(const char* op, int64_t slot, IValue value);
  ClassInfo* info() const { return info_; }
  const std::shared_ptr<CompilationUnit>& unit() const { return unit_; }

 private:
  std::shared_ptr<CompilationUnit> unit_;  // keeps the ClassInfo
  ClassInfo* info_;

 public:
  std::vector<IValue> slots;
};

/// The object of a script's class that a value holds; null where it holds anything else.
std::shared_ptr<Object> object_in(const IValue& value);
/// The same, of a module alone.
std::shared_ptr<Object> module_in(const IValue& value);

/// Calls a compiled function. The arguments are checked against its parameters, with defaults for
/// those that are missing. An Error thrown inside ends with the calls that led there, each with its
/// Python line.
IValue call(const ScriptFunction& function, std::vector<IValue> arguments,
            const std::vector<std::pair<std::string, IValue>>& by_name = {});

/// Calls a module as Python's `module(x)`: forward() between its pre-hooks and its hooks, which may
/// replace arguments and result. All must have been compiled.
IValue call_module(const std::shared_ptr<Object>& module, std::vector<IValue> arguments,
                   const std::vector<std::pair<std::string, IValue>>& by_name = {});

/// The value of a constant expression: a default, or a Final attribute. It becomes one of `type`
/// where that is another way to hold it (a list of ints, a float). Without a type, of what it looks
/// like. An Error where it is no constant.
IValue constant_of(CompilationUnit& unit, const Expression& expression, const TypePtr& type,
                   const Source& source);

/// Does the value have the type that an annotation promises of an attribute or an argument?
bool has_type(const IValue& value, const TypePtr& type);

}  // namespace ramet::script
