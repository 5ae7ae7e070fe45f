// Writes the programs of a module as C++.
//
// Note [Translation]
// What is translated is the typed program, before its values are placed, and not the text. There
// each call has its overload, its conversions and all of its arguments. Branches and loops are read
// off the jumps: PyTorch prints no others than those that nest. The C++ of an operator is the
// expression of its line or row in autograd/schema, with the arguments in its places. So it is the
// code that the interpreter runs, and gives the same bits. What has no such expression is a
// problem; all of them are one Error. A struct is written for each object, the innermost first. Two
// objects with the same text share one: the twelve blocks of a model are one struct.
//
// A list of the language is shared by its names, and a std::vector is copied. So a list type that
// some code changes is a ramet::List; all others are vectors. This is decided by types: a changed
// list has the same static type under each of its names. A dictionary is always a ramet::Dict. An
// object of a plain class is a struct in a std::shared_ptr. What Python does and C++ has no
// word for is a function of the namespace `python`, which the header defines where it is called.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/module/ordered_dict.h"
#include "nn/script/compiler_internal.h"

namespace ramet::script {

/// A statement of structured code. `at` is an instruction: the whole of it, or the jump that
/// decides a branch or a loop, or the start of a `with` block.
struct Step {
  enum class Kind : uint8_t { kInstruction, kIf, kWhile, kFor, kWith, kBreak, kContinue };
  Kind kind = Kind::kInstruction;
  size_t at = 0;
  std::vector<Step> head;   // of a while: what computes the condition
  std::vector<Step> body;   // of loops and `with`, and of an if where its condition holds
  std::vector<Step> other;  // of an if where it does not hold
};
/// The branches and loops of a program. None where its jumps do not nest.
std::optional<std::vector<Step>> structure_of(const Program& program);

/// A name that C++ allows, and that is not among `taken`, which gets it.
std::string cpp_name(const std::string& name, std::set<std::string>& taken);
/// A text as a literal; with a zero in it as a std::string.
std::string cpp_text(const std::string& text);
/// A dtype: "ramet::kFloat".
std::string cpp_dtype(ScalarType dtype);
/// A number as a literal; empty where it is none.
std::string cpp_number(const IValue& value);
std::string cpp_double(double value);
std::string cpp_bool(bool value);

/// The part of a dotted name after the last dot.
std::string last_part(const std::string& name);
/// Is it a letter, a digit or "_"?
bool in_word(char c);
/// Is the word in the text, and not as a part of another one?
bool has_word(const std::string& text, const std::string& word);
/// A name of a file in a comment: it may hold any character, and must not end the line.
std::string in_comment(std::string name);

/// The place of a value in a written function.
struct Written {
  std::string text;                  // an expression; of a module the path to it, or ""
  TypePtr type;                      // null: has no type in C++
  const IValue* constant = nullptr;  // has no text then
  std::shared_ptr<Object> module;    // of a module
  bool self = false;                 // of an object of a plain class: the method's own

  bool is(Type::Kind kind) const { return type && type->kind() == kind; }
  /// Is it an IValue in C++?
  bool is_any() const { return is(Type::Kind::kAny) || is(Type::Kind::kUnion); }
  /// Of a variable that may hold None: the value in it.
  Written present() const;
};
/// The items of a list of numbers, in braces: "{1, 2}". None of another value.
std::optional<std::string> numbers_in_braces(const IValue& list);

/// Has a line of autograd/schema the word for itself, so that C++ elsewhere cannot say it?
bool is_own_word(std::string_view word);
/// Is it one of C++, or the namespace of helpers()?
bool is_plain_word(std::string_view word);
/// What the operators' expressions name in Ramet's namespace: "relu", "linalg::inv", sorted. A
/// test compiles a `using` of each.
std::vector<std::string> names_in_expressions();
/// Words of is_own_word() that no expression has.
std::vector<std::string> unused_own_words();

/// How one translation writes types, values and calls.
class Words {
 public:
  /// A type; empty where there is none.
  std::string type(const TypePtr& type) const;
  /// Is it a list that the code changes? Its names share it: it is a ramet::List.
  bool is_shared(const TypePtr& list) const { return changed.count(list->text()) != 0; }
  /// The value as an argument that Call::`reader` reads. None where C++ cannot write it.
  std::optional<std::string> argument(const Written& value, const std::string& reader) const;
  /// A constant or a variable as a value of `type`.
  std::optional<std::string> value(const Written& value, const TypePtr& type) const;
  /// A call of an operator with a result of `type`. None where there is no expression.
  std::optional<std::string> call(const Operator& op, const std::vector<Written>& arguments,
                                  const TypePtr& type) const;
  /// Has the value one of the types?
  std::optional<std::string> is_instance(const Written& value, const Type& types) const;

  std::set<std::string> changed;                    // texts of types of lists and dictionaries
  std::map<const ClassInfo*, std::string> structs;  // of plain classes, with the namespace
  /// The name of a tensor that a value of the file holds. Set while such values are written.
  std::function<std::string(const Tensor&)> tensor_name;

 private:
  std::optional<std::string> literal(const IValue& value, const TypePtr& type) const;
  std::optional<std::string> list_argument(const Written& value, Type::Kind item,
                                           const char* reference) const;
  std::optional<std::string> tensors_argument(const Written& value, bool optional) const;
  std::optional<std::string> any(const Written& value) const;
  std::optional<std::string> any_of_several(const IValue& constant) const;
  std::optional<std::string> from_any(const Written& value, const TypePtr& type) const;
  friend class Filler;
};

/// An operator of the language that has an expression of its own here.
struct Special {
  std::string_view name, types, expression;
};
/// Null where there is none.
const Special* special_of(const Operator& op);

/// A small function, or several, that written code may call as `python::name`.
struct Helper {
  std::string name, text;
};
const std::vector<Helper>& helpers();
/// Those of lists and dictionaries, of values of any type, and of layers with their statistics:
std::vector<Helper> helpers_of_lists();
std::vector<Helper> helpers_of_values();
std::vector<Helper> helpers_of_layers();

/// The members of a struct: of a module, or of a plain class.
struct StructMembers {
  const ClassInfo* info = nullptr;
  std::shared_ptr<Object> object;            // null: of a plain class
  std::string path;                          // in Python: "layers.0"
  std::string name;                          // of a plain class's struct
  std::set<std::string> taken;               // names in use
  std::map<std::string, std::string> names;  // of attributes
  std::set<std::string> used;  // attributes that are no tensor or module, and are read
  std::vector<std::pair<const ScriptFunction*, std::string>> methods;  // and their C++
  std::map<const ScriptFunction*, std::string> method_names;
  std::set<const ScriptFunction*> called;                 // methods that are written
  std::set<const ScriptFunction*> adopted;                // of them, functions without self
  std::string place;                                      // a tensor on the module's device
  std::vector<std::pair<std::string, Tensor>> constants;  // tensors of the code, as buffers
  /// The buffer for a tensor of the code.
  std::string constant_name(const Tensor& t);
};

class ModuleWriter;

/// Writes one function.
class FunctionWriter {
 public:
  /// A method of `self`, or a function outside of classes where it is null.
  FunctionWriter(ModuleWriter& out, ScriptFunction& function, StructMembers* self);
  /// Its definition, indented for a module's struct. Empty where problems have been recorded.
  std::string write(const std::string& name);

 private:
  using Code = Instruction::Code;
  struct Slot {
    std::string name;
    TypePtr type;
    std::optional<Written> alias;  // a member, a module or a constant: it needs no variable
    size_t writes = 0;
    size_t block = kNowhere;  // the innermost one with all places that name it
    size_t first = 0, last = 0;
    bool declared = false;
  };
  static constexpr size_t kNowhere = ~size_t{0};

  bool prepare();
  std::string heading(const std::string& name, const std::string& body);
  void find_aliases();
  void find_guards();
  void find_places(const std::vector<Step>& steps, size_t block);
  void note_place(uint32_t slot, size_t instruction, size_t block);
  void note_operands(size_t instruction, size_t block);
  size_t common(size_t a, size_t b) const;
  void name_slots();
  void write_block(const std::vector<Step>& steps, size_t block, int depth);
  void declare_before(const Step& step, size_t block, int depth);
  void write_instruction(size_t i, size_t block, int depth);
  void write_loop(const Step& step, const Step* before, int depth);
  void write_with(const Step& step, size_t block, int depth);
  std::string guard_text(size_t i);
  std::string assignment(size_t i, const std::string& value, const TypePtr& type);
  std::optional<std::string> value_text(size_t i);
  std::optional<std::string> impossible_cast(const Written& from, const TypePtr& type) const;
  std::optional<std::string> call_text(const Instruction& at, size_t i);
  std::optional<std::string> function_text(const Instruction& at, size_t i);
  std::optional<std::string> fork_text(const Instruction& at, size_t i);
  std::optional<std::string> set_text(const Instruction& at, size_t i);
  std::optional<Written> attribute(const Instruction& at);
  std::optional<Written> attribute_of_module(const Instruction& at, const Written& object);
  std::optional<std::string> change_text(const Instruction& at);
  std::string releases(size_t i, size_t block) const;
  Written written(Operand operand) const;
  Written operand(const Instruction& at, size_t i) const;
  std::string condition(size_t i);
  void line(int depth, const std::string& text);
  void problem(size_t i, const std::string& what);

  ModuleWriter& out_;
  ScriptFunction& function_;
  StructMembers* self_;
  bool takes_self_;  // as its first parameter
  Words& words_;
  Listing listing_;
  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  std::vector<size_t> parents_;                     // of blocks
  std::map<const std::vector<Step>*, size_t> ids_;  // of blocks
  std::set<std::string> taken_;
  /// `with` blocks of a class that C++ has as a guard: the call of __init__(). The other
  /// instructions that make the object are not written.
  std::map<size_t, size_t> guards_;
  std::set<size_t> unwritten_;
  bool inside_ = false;  // of another function: what fork() runs
  int depth_ = 0;        // of the line that is being written
  std::string text_;
};

/// Writes a module and all that it calls.
class ModuleWriter {
 public:
  ModuleWriter(CompilationUnit& unit, std::shared_ptr<Object> root, std::string name);
  std::string write();
  /// The values of the written structs' tensors, by their names in the state dict.
  OrderedDict<std::string, Tensor> tensors() const;

  /// For FunctionWriter: the members of a module and of a plain class, and names of functions. A
  /// function is written when its name is first asked for.
  StructMembers& members_of(const std::shared_ptr<Object>& object);
  StructMembers* members_of(const ClassInfo* info);
  std::string method_name(StructMembers& members, ScriptFunction& function);
  std::string function_name(ScriptFunction& function);
  /// Note [Places in translations]
  bool needs_module(const ScriptFunction& function);
  /// A function outside of classes as a method.
  std::string adopted_name(StructMembers& members, ScriptFunction& function);
  /// The device of a module, as an expression of its methods.
  std::string device_of(StructMembers& members);
  std::string member_name(StructMembers& members, const std::string& attribute);
  const Listing& listing(ScriptFunction& function);
  /// The namespace of all that is written: the name in lower case.
  std::string space() const;
  /// Does the code of any class assign to it?
  bool is_assigned(const ClassInfo* info, const std::string& attribute) const;
  void problem(const ScriptFunction& function, size_t offset, const std::string& what);
  Words words;
  CompilationUnit& unit;

 private:
  struct Waiting {
    StructMembers* members;  // null: outside of classes
    ScriptFunction* function;
  };
  void find_modules(const std::shared_ptr<Object>& object, const std::string& path, int depth);
  void find_classes();
  std::vector<ScriptFunction*> outermost() const;
  void find_changes();
  void find_changes(ScriptFunction& function, std::vector<ScriptFunction*>& waiting);
  void write_functions();
  void write_hooked_forward(StructMembers& root);
  std::string struct_of(StructMembers& members);
  void note_copies(const TypePtr& type);
  std::string plain_structs();
  std::string methods_of(StructMembers& members, bool declared) const;
  std::string registrations(StructMembers& members, std::vector<std::string>& declared);
  std::string value_of_attribute(StructMembers& members, size_t i, bool& has_tensor);
  std::string shared_values() const;
  std::string tensor_path(const Object& object, std::set<const Object*>& seen);
  bool is_mutable(const TypePtr& type) const;
  bool is_assigned(const Object& object) const;
  std::string trouble_of(const IValue& value, const TypePtr& type, const std::string& path,
                         int inside);
  std::string helper_texts(const std::string& text) const;
  /// Calls f(object, path) for each module, once for every path from the root to it. A module in an
  /// attribute adds step(object, i) to the path.
  template <class Step, class F> void for_each_module(Step&& step, F&& f) const;

  std::shared_ptr<Object> root_;
  std::string name_;
  std::vector<std::unique_ptr<StructMembers>> modules_;  // the root first
  std::map<const Object*, StructMembers*> members_;
  std::vector<std::unique_ptr<StructMembers>> classes_;  // plain ones
  std::map<const ClassInfo*, StructMembers*> plain_;
  std::set<const ClassInfo*> copied_;  // those with a copy()
  std::set<const ClassInfo*> named_;   // plain classes that the code uses
  std::vector<Waiting> waiting_;
  std::map<const ScriptFunction*, std::string> functions_;
  std::map<const ScriptFunction*, Listing> listings_;
  std::map<const ScriptFunction*, bool> needy_;  // known needs_module()
  std::vector<std::string> function_texts_;
  std::set<std::pair<const ClassInfo*, std::string>> assigned_;  // attributes
  mutable std::map<const ClassInfo*, bool> mutable_;             // known is_mutable()
  mutable std::map<const Object*, bool> assigns_;                // known is_assigned()
  /// Values that the code changes: the path of an attribute, and whether it is the value itself.
  std::map<const void*, std::pair<std::string, bool>> held_;
  size_t values_ = 0;                           // that trouble_of() has seen
  std::set<std::string> taken_;                 // names of structs and functions
  std::map<std::string, std::string> structs_;  // by their texts without the name
  std::map<const Object*, std::string> struct_names_;
  std::string structs_text_;
  std::vector<std::pair<std::string, std::string>> problems_;
};

}  // namespace ramet::script
