// A compiled function of TorchScript: instructions over the slots of a frame.
//
// Note [Programs]
// A program is a register machine. Each variable has a slot of the frame, and so has each value in
// the middle of an expression. An instruction names the slots of its operands and of its result; it
// borrows operands by pointer, and copies none. The compiler has decided all types, overloads and
// conversions, so that running a program looks up no name. It also knows where each value is used
// last. There the interpreter gives it back, so that a script needs the memory of a C++ program.
// A program never changes: any number of threads may run it, each with a frame of its own.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/script/moved_internal.h"
#include "nn/script/unit_internal.h"

namespace ramet::script {

/// An operand of an instruction: a slot of the frame, or a constant of the program.
class Operand {
 public:
  static Operand slot(uint32_t index) { return Operand(index); }
  static Operand constant(uint32_t index) { return Operand(index | kConstant); }
  bool is_constant() const { return (bits_ & kConstant) != 0; }
  /// Is this the last use of the slot's value?
  bool is_last() const { return (bits_ & kLast) != 0; }
  void set_last(bool last) { bits_ = last ? bits_ | kLast : bits_ & ~kLast; }
  uint32_t index() const { return bits_ & kIndex; }
  void set_index(uint32_t index) { bits_ = (bits_ & ~kIndex) | index; }

  static constexpr uint32_t kIndex = (uint32_t{1} << 30) - 1;

 private:
  explicit Operand(uint32_t bits) : bits_(bits) {}
  static constexpr uint32_t kConstant = uint32_t{1} << 31, kLast = uint32_t{1} << 30;
  uint32_t bits_;
};

/// One step of a program. `a`, `b`, ... are its operands, `extra` is as its code says.
struct Instruction {
  enum class Code : uint8_t {
    kCall,            // operators[extra](a, b, ...)
    kChange,          // changes[extra] of a
    kMove,            // a
    kFree,            // gives back the slots a, b, ...
    kJump,            // to instruction `extra`
    kJumpUnless,      // to instruction `extra` where a is false
    kJumpUnlessMore,  // to instruction `extra` where a, the counter of range(.., b, c), is at its
                      // end
    kStep,            // a + b, of a counter
    kReturn,          // a
    kFunction,        // functions[extra](a, b, ...)
    kMethod,          // a.names[extra](b, ...), of the class that a has
    kFork,            // a future of functions[extra](a, b, ...)
    kWait,            // the value of the future a
    kList,            // a list [a, b, ...]; extra: the kind of its items' type
    kDict,            // a dictionary {a: b, ...}
    kTuple,           // a tuple; extra: 1 + the NamedTuple in tuple_names, or 0
    kItem,            // item `extra` of the tuple or list a
    kCheckSize,       // an Error unless the list a has `extra` items
    kObject,          // a new object of classes[extra]
    kGet,             // a.field, fields[extra]
    kSet,             // a.field = b
    kIsInstance,      // has a one of the types types[extra]?
    kToList,          // tensor a as nested lists, of types[extra]
    kEnter,           // a.__enter__(), and keeps a for kExit
    kExit,            // __exit__() of the object that was entered last
    kSameEnum,        // are a and b the same enumerator?
    kFail,            // raises a, a text
  };
  static constexpr uint32_t kNone = ~uint32_t{0};

  Code code;
  bool frees = false;             // is an operand used for the last time?
  uint32_t result = kNone;        // a slot, or the value is not kept
  uint32_t first = 0, count = 0;  // the operands: Program::operands[first], ...
  uint32_t extra = 0;
};

struct Program {
  struct Change {
    Match::Change what;
    Parameter parameter;
  };
  struct Field {
    const ClassInfo* owner;
    size_t slot;
  };
  const ScriptFunction* function = nullptr;
  std::vector<Instruction> instructions;
  std::vector<size_t> offsets;  // of each instruction in the source
  std::vector<Operand> operands;
  std::vector<IValue> constants;
  MovedConstants moved;
  size_t slots = 0;  // of a frame; the first are the parameters
  std::vector<const Operator*> operators;
  std::vector<Change> changes;
  std::vector<const ScriptFunction*> functions;
  std::vector<std::string> names;
  std::vector<ClassInfo*> classes;
  std::vector<Field> fields;
  std::vector<TypePtr> types;
  std::vector<std::shared_ptr<const IValue::Tuple::Names>> tuple_names;
  /// What fork() runs: their first parameters are the variables that they read.
  std::vector<std::unique_ptr<ScriptFunction>> nested;
  Limits limits;
};

/// Marks the last use of each value, and frees values that some branch does not use. Values that do
/// not live at the same time share slots.
void place_values(Program& program);

}  // namespace ramet::script
