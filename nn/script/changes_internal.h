// Which attributes a program changes: freeze() keeps them.
//
// Note [Changed attributes]
// A program changes an attribute where it assigns to it. It also does where an operator writes a
// value that may be the attribute's, a part or a view of it. For each slot of a frame a set says
// which attributes may be in it. Where branches meet, the sets unite. Calls hand them to parameters
// and results. All is repeated until no set grows. `if self.training` is not entered, where the
// condition is that attribute on all ways and all modules of the class are in evaluation mode.
// Attributes are those of a class: of all its objects. Where this is not sure, an attribute counts
// as changed.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nn/script/program_internal.h"

namespace ramet::script {

class Changes {
 public:
  using Field = std::pair<const ClassInfo*, size_t>;  // a class and the number of its attribute
  using Fields = std::set<Field>;

  /// `in_training`: classes of modules of which one is in training mode.
  Changes(const CompilationUnit& unit, std::set<const ClassInfo*> in_training)
      : unit_(unit), in_training_(std::move(in_training)) {}
  /// A function that runs. All have to be compiled.
  void add(const ScriptFunction& function);
  /// A hook: what it returns is handed to other functions, which may write it.
  void add_hook(const ScriptFunction& hook);
  /// After all add().
  void find();
  bool has(const ClassInfo* owner, size_t slot) const { return changed_.count({owner, slot}) != 0; }
  /// Is an attribute of an object that is no module changed?
  bool has_of_objects() const;

 private:
  // What is known at an instruction.
  struct State {
    std::map<size_t, Fields> held;  // by slot of the frame
    std::map<size_t, Field> training;
    bool unite(const State& other);
  };
  struct Function {
    std::vector<Fields> parameters;
    Fields result;
  };
  void run(const ScriptFunction& function);
  bool is_training(const Program& program, const Instruction& at, const State& state) const;
  void step(const Program& program, const Instruction& at, State& state);
  Fields called(const Program& program, const Instruction& at, const State& state);
  Fields pass(const ScriptFunction& to, const Program& program, const Instruction& at,
              const State& state);
  static Fields operand(const Program& program, const Instruction& at, size_t i,
                        const State& state);
  void change(const Fields& fields) { unite(changed_, fields); }
  void unite(Fields& into, const Fields& more);

  const CompilationUnit& unit_;
  std::set<const ClassInfo*> in_training_;
  std::vector<const ScriptFunction*> order_;
  std::map<const ScriptFunction*, Function> functions_;
  std::map<std::string, std::vector<const ScriptFunction*>> methods_;  // that interfaces call
  std::set<const ScriptFunction*> hooks_;
  Fields changed_;
  bool grown_ = false;
};

}  // namespace ramet::script
