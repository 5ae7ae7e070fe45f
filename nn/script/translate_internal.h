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
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nn/module/ordered_dict.h"
#include "nn/script/compiler_internal.h"

namespace ramet::script {

/// A statement of structured code. `at` is an instruction: the whole of it, or the jump that
/// decides a branch or a loop.
struct Step {
  enum class Kind : uint8_t { kInstruction, kIf, kWhile, kFor, kBreak, kContinue };
  Kind kind = Kind::kInstruction;
  size_t at = 0;
  std::vector<Step> head;   // of a while: what computes the condition
  std::vector<Step> body;   // of loops, and of an if where its condition holds
  std::vector<Step> other;  // of an if where it does not hold
};
/// The branches and loops of a program. None where its jumps do not nest.
std::optional<std::vector<Step>> structure_of(const Program& program);

/// A name that C++ allows, and that is not among `taken`, which gets it.
std::string cpp_name(const std::string& name, std::set<std::string>& taken);
/// A type as C++ writes it; empty where there is none.
std::string cpp_type(const TypePtr& type);
/// A text as a literal.
std::string cpp_text(const std::string& text);
/// A dtype: "ramet::kFloat".
std::string cpp_dtype(ScalarType dtype);

/// The place of a value in a written function.
struct Written {
  std::string text;                  // an expression; of a module the path to it, or ""
  TypePtr type;                      // null: has no type in C++
  const IValue* constant = nullptr;  // has no text then
  std::shared_ptr<Object> module;    // of a module
};

/// The value as an argument that Call::`reader` reads. None where C++ cannot write it.
std::optional<std::string> cpp_argument(const Written& value, const std::string& reader);
/// A constant or a variable as a value of `type`.
std::optional<std::string> cpp_value(const Written& value, const TypePtr& type);
/// A call of an operator. None where there is no expression.
/// `called` gets the names of functions in helpers() that the text calls.
std::optional<std::string> cpp_call(const Operator& op, const std::vector<Written>& arguments,
                                    std::set<std::string>& called);
/// A small function that written code may call.
struct Helper {
  std::string name, text;
};
const std::vector<Helper>& helpers();

/// The members of an object's struct.
struct StructMembers {
  std::shared_ptr<Object> object;
  std::string path;                          // in Python: "layers.0"
  std::set<std::string> taken;               // names in use
  std::map<std::string, std::string> names;  // of attributes
  std::set<std::string> used;  // attributes that are no tensor or module, and are read
  std::vector<std::pair<const ScriptFunction*, std::string>> methods;  // and their C++
  std::map<const ScriptFunction*, std::string> method_names;
  std::set<const ScriptFunction*> called;                 // methods that are written
  std::vector<std::pair<std::string, Tensor>> constants;  // tensors of the code, as buffers
};

class ModuleWriter;

/// Writes one function.
class FunctionWriter {
 public:
  FunctionWriter(ModuleWriter& out, ScriptFunction& function, StructMembers* self);
  /// Its definition, indented for a struct. Empty where problems have been recorded.
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

  std::string heading(const std::string& name, const std::string& body);
  void find_aliases();
  void find_places(const std::vector<Step>& steps, size_t block);
  void note_place(uint32_t slot, size_t instruction, size_t block);
  void note_operands(size_t instruction, size_t block);
  size_t common(size_t a, size_t b) const;
  void name_slots();
  void write_block(const std::vector<Step>& steps, size_t block, int depth);
  void declare_before(const Step& step, size_t block, int depth);
  void write_instruction(size_t i, size_t block, int depth);
  void write_loop(const Step& step, const Step* before, int depth);
  std::string assignment(size_t i, const std::string& value, const TypePtr& type);
  std::optional<std::string> value_text(size_t i);
  std::optional<std::string> call_text(const Instruction& at, size_t i);
  std::optional<std::string> function_text(const Instruction& at, size_t i);
  std::optional<std::string> set_text(const Instruction& at, size_t i);
  std::optional<Written> attribute(const Instruction& at);
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
  Listing listing_;
  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  std::vector<size_t> parents_;                     // of blocks
  std::map<const std::vector<Step>*, size_t> ids_;  // of blocks
  std::set<std::string> taken_;
  std::string text_;
};

/// Writes a module and all that it calls.
class ModuleWriter {
 public:
  ModuleWriter(CompilationUnit& unit, std::shared_ptr<Object> root, std::string name);
  std::string write();
  /// The values of the written structs' tensors, by their names in the state dict.
  OrderedDict<std::string, Tensor> tensors() const;

  /// For FunctionWriter. The members of a module; the name of a function that is called on a
  /// module, or of one outside of modules. Both are written when they are first named.
  StructMembers& members_of(const std::shared_ptr<Object>& object);
  std::string method_name(StructMembers& members, ScriptFunction& function);
  std::string function_name(ScriptFunction& function);
  std::string member_name(StructMembers& members, const std::string& attribute);
  /// The namespace of all that is written: the name in lower case.
  std::string space() const;
  /// Does the code of any class assign to it?
  bool is_assigned(const ClassInfo* info, const std::string& attribute) const;
  void problem(const ScriptFunction& function, size_t offset, const std::string& what);
  std::set<std::string> called;  // of helpers()
  CompilationUnit& unit;

 private:
  struct Waiting {
    StructMembers* members;  // null: outside of modules
    ScriptFunction* function;
  };
  void find_modules(const std::shared_ptr<Object>& object, const std::string& path, int depth);
  void write_functions();
  std::string struct_of(StructMembers& members);
  std::string registrations(StructMembers& members, std::vector<std::string>& declared);
  std::string shared_tensors() const;
  /// Calls f(object, path) for each module, once for every path from the root to it. A module in an
  /// attribute adds step(object, i) to the path.
  template <class Step, class F> void for_each_module(Step&& step, F&& f) const;

  std::shared_ptr<Object> root_;
  std::string name_;
  std::vector<std::unique_ptr<StructMembers>> modules_;  // the root first
  std::map<const Object*, StructMembers*> members_;
  std::vector<Waiting> waiting_;
  std::map<const ScriptFunction*, std::string> functions_;
  std::vector<std::string> function_texts_;
  std::set<std::pair<const ClassInfo*, std::string>> assigned_;  // attributes
  std::set<std::string> taken_;                                  // names of structs and functions
  std::map<std::string, std::string> structs_;                   // by their texts without the name
  std::map<const Object*, std::string> struct_names_;
  std::string structs_text_;
  std::vector<std::pair<std::string, std::string>> problems_;
};

}  // namespace ramet::script
