// Compiles one function: names, types and overloads are looked up here, and nothing is at run time.
//
// Note [Compiling a script]
// A variable has one slot in the whole function. So branches and loops need no joining of values,
// and only its type depends on the place. What a name means is one of the kinds of Meaning; only
// values exist at run time. A problem is recorded with its place, and the value that could not be
// made gets no type. What needs that value has no type either and records nothing. So one problem
// is reported once, and the rest of the program is checked all the same.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nn/script/program_internal.h"

namespace ramet::script {

/// A value while compiling: where it will be, and its type.
struct Value {
  Operand place = Operand::constant(0);
  TypePtr type;  // null: a problem has been recorded
  explicit operator bool() const { return type != nullptr; }
};

/// What a name or a dotted name means.
struct Meaning {
  enum class Kind : uint8_t {
    kValue,
    kFunction,   // of the archive
    kType,       // a class, enumeration or NamedTuple of the archive
    kNamespace,  // text: "__torch__.torch.nn", "torch", "ops", "ops.prim"
    kOperator,   // text: "aten::add"
    kMethod,     // text, of value
    kForm,       // text: "annotate" and other words of the language
    kClosure,    // a function inside this one
    kMissing,    // text: why it cannot be used
    kBad,        // a problem has been recorded
  };
  Kind kind = Kind::kBad;
  Value value;
  ScriptFunction* function = nullptr;
  TypePtr type;
  std::string text;
  FunctionSyntaxPtr closure;
};

/// The names that are known at a place of a function. Branches undo what they set.
class Scope {
 public:
  using Changes = std::map<std::string, Meaning>;
  const Meaning* find(const std::string& name) const;
  void set(const std::string& name, Meaning meaning);
  void erase(const std::string& name);
  size_t mark() const { return journal_.size(); }
  /// The names that have been set since, as they are now; erased ones are kMissing.
  Changes since(size_t mark) const;
  /// What the names that have been set since meant before; new ones are kMissing.
  Changes before(size_t mark) const;
  /// Undoes what has been set since.
  void undo(size_t mark);

 private:
  std::unordered_map<std::string, Meaning> names_;
  std::vector<std::pair<std::string, std::optional<Meaning>>> journal_;
};

/// A program before its values are placed: each variable and each value in the middle of an
/// expression has a slot of its own. To write the function in another language.
struct Listing {
  std::shared_ptr<const Program> program;
  std::vector<std::string> names;  // of slots; empty for values without one
  std::vector<TypePtr> types;      // of slots; null where a slot has values of several types
  std::vector<TypePtr> constants;  // types of the program's constants
};
/// Compiles a function once more. It has been compiled, without a problem.
Listing list_program(CompilationUnit& unit, ScriptFunction& function);

class FunctionCompiler {
 public:
  /// `needs` gets each function that this one calls.
  FunctionCompiler(CompilationUnit& unit, ScriptFunction& function,
                   std::vector<ScriptFunction*>& needs, std::set<std::string>& interface_calls,
                   std::vector<Problem>& problems);
  std::shared_ptr<const Program> compile();
  Listing list();

 private:
  using Code = Instruction::Code;
  using Kind = Expression::Kind;
  struct Loop {
    size_t mark = 0;                        // of the scope, at its start
    size_t managers = 0;                    // `with` blocks around it
    std::vector<size_t> breaks, continues;  // jumps to be completed
  };
  /// An argument of an operator.
  struct Argument {
    std::string name;  // empty: by position
    const Expression* syntax = nullptr;
    Value value;
    std::optional<IValue> literal;  // of [1, 2]: no instruction has made it yet
  };

  void compile_body();

  // Statements (compiler_statements.cc).
  void compile_block(const Block& block);
  void compile_statement(const Statement& statement);
  void compile_assignment(const Statement& statement);
  void assign(const Expression& target, const Value& value);
  void assign_name(const std::string& name, const Value& value, size_t offset);
  void assign_each(const Statement& statement);
  void unpack(const std::vector<ExpressionPtr>& targets, Value value, size_t offset);
  bool is_target(const std::vector<ExpressionPtr>& targets, Operand place) const;
  void forget(const Expression& target);
  void compile_return(const Statement& statement);
  void compile_with(const Statement& statement);
  void compile_raise(const Statement& statement);
  void compile_assert(const Statement& statement);
  void compile_delete(const Statement& statement);
  void leave_managers(size_t down_to, size_t offset);

  // Branches and loops (compiler_flow.cc).
  void compile_if(const Statement& statement);
  void compile_while(const Statement& statement);
  void compile_for(const Statement& statement);
  void compile_range(const Statement& statement, const Expression& range);
  void compile_each(const Statement& statement);
  void compile_counted(const Statement& statement, Value first, Value end, Value step,
                       const Value& items);
  void compile_jump(const Statement& statement);
  Value kept(const Value& value, size_t offset);
  void merge(const Scope::Changes& then, bool then_ends, const Scope::Changes& other,
             bool other_ends);
  void check_loop_types(const Loop& loop, size_t offset);
  void finish_loop(const Loop& loop);

  // Expressions (compiler_expressions.cc). `hint`: the type that is expected, for literals.
  Value compile_expression(const Expression& e, const TypePtr& hint = nullptr);
  Value compile_list(const Expression& e, const TypePtr& hint);
  Value compile_dict(const Expression& e, const TypePtr& hint);
  Value compile_tuple(const Expression& e, const TypePtr& hint);
  Value compile_subscript(const Expression& e);
  Value compile_tuple_subscript(const Expression& e, const Value& tuple);
  Value compile_unary(const Expression& e);
  Value compile_binary(const Expression& e);
  Value compile_short_circuit(const Expression& e);
  Value compile_conditional(const Expression& e, const TypePtr& hint);
  Value compile_condition(const Expression& e);

  // Names (compiler_names.cc).
  Meaning meaning_of(const Expression& e);
  Meaning meaning_of_name(const Expression& e);
  Meaning member(const Meaning& of, const std::string& name, size_t offset);
  Meaning member_of_namespace(const std::string& space, const std::string& name, size_t offset);
  Meaning member_of_type(const TypePtr& type, const std::string& name, size_t offset);
  Meaning member_of_value(const Value& value, const std::string& name, size_t offset);
  Meaning member_of_object(const Value& value, const std::string& name, size_t offset);
  Meaning enumerator(const TypePtr& type, const std::string& name, size_t offset);
  Value table_constant(const std::string& name, size_t offset);
  Value value_of(const Meaning& meaning, size_t offset);

  // Calls (compiler_calls.cc).
  Value compile_call(const Expression& e, const TypePtr& hint);
  Value call_operator(const std::string& name, const Expression& call, const Value* self);
  Value call_operator(const std::string& name, const std::vector<Value>& arguments, size_t offset);
  Value call_operator(const std::string& name, std::vector<Argument> arguments, size_t offset);
  std::optional<Value> call_special_operator(const std::string& name,
                                             const std::vector<Argument>& arguments, size_t offset);
  void state_dtype(std::vector<Argument>& arguments);
  Value listed(const Value& value, size_t offset);
  Operand operator_argument(const Match& match, size_t i, Argument* given, size_t offset);
  Value call_function(ScriptFunction& function, const Value* self, const Expression& call);
  Value call_method(const Value& self, const std::string& name, const Expression& call,
                    const TypePtr& hint);
  bool function_arguments(const ScriptFunction& function, const Value* self, const Expression& call,
                          size_t skipped, std::vector<Operand>& operands);
  Value construct(const TypePtr& type, const Expression& call);
  Value make_named_tuple(const TypePtr& type, const Expression& call);
  Value make_object(const TypePtr& type, size_t offset);
  TypePtr result_of(ScriptFunction& function, size_t offset);
  uint32_t function_number(ScriptFunction& function);

  // Words of the language (compiler_forms.cc).
  Value call_form(const std::string& form, const Expression& call, const TypePtr& hint);
  Value call_cast(const std::string& form, const Expression& call);
  Value call_getattr(const std::string& form, const Expression& call);
  Value call_isinstance(const Expression& call);
  Value call_tolist(const Value& tensor, const TypePtr& type, size_t offset);
  Value call_fork(const Expression& call);
  Value call_wait(const Value& future, size_t offset);
  Value fork_closure(const FunctionSyntaxPtr& closure, size_t offset);
  TypePtr type_argument(const Expression& e) { return unit_.type_of(e, *function_.source); }
  uint32_t type_number(TypePtr type);

  // Making instructions (compiler_emit.cc).
  size_t emit(Code code, uint32_t result, const std::vector<Operand>& operands, uint32_t extra,
              size_t offset);
  Value emit_value(Code code, const std::vector<Operand>& operands, uint32_t extra, TypePtr type,
                   size_t offset);
  void jump_here(size_t instruction);
  uint32_t new_slot() { return static_cast<uint32_t>(program_->slots++); }
  uint32_t slot_of(const std::string& name);
  /// The slot holds a value of this type, among others.
  void note_type(uint32_t slot, const TypePtr& type);
  Value constant(IValue value, TypePtr type);
  const IValue* constant_of(const Value& value) const;
  /// The value as one of `type`, converted as PyTorch does for arguments; a problem that starts
  /// with `what` where that cannot be.
  Value fit(const Value& value, const TypePtr& type, const std::string& what, size_t offset);
  Value problem(size_t offset, const std::string& what);
  /// Counts a statement or expression while it is compiled.
  class Deeper {
   public:
    explicit Deeper(FunctionCompiler& compiler);
    ~Deeper() { --work_.depth; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    bool too_deep() const { return work_.depth > most_; }

   private:
    CompilerWork& work_;
    int64_t most_;
  };
  static constexpr const char* kTooDeep =
      "functions without stated results are inside each other too deeply (a limit of load)";

  CompilationUnit& unit_;
  ScriptFunction& function_;
  std::vector<ScriptFunction*>& needs_;
  std::set<std::string>& interface_calls_;
  std::vector<Problem>& problems_;
  std::shared_ptr<Program> program_;
  Scope scope_;
  std::unordered_map<std::string, uint32_t> slots_;
  std::vector<TypePtr> slot_types_, constant_types_;
  std::set<uint32_t> mixed_;                    // slots with values of several types
  std::map<const IValue*, uint32_t> defaults_;  // of operators, among the constants
  std::vector<Loop*> loops_;
  size_t managers_ = 0;  // `with` blocks around this place
  bool reachable_ = true;
  bool result_stated_ = true;
  bool forked_ = false;                // a function that fork() runs
  size_t fresh_ = Instruction::kNone;  // the instruction that made the newest temporary value
};

}  // namespace ramet::script
