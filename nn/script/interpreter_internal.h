// The interpreter's state during one call from outside.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/autocast.h"
#include "nn/script/program_internal.h"

namespace ramet::script {

/// Runs programs on one thread. Functions that call each other share its steps and its memory for
/// frames.
class Machine {
 public:
  explicit Machine(const Limits& limits)
      : steps_(limits.steps), recursion_(limits.recursion), move_(MoveGuard::current()) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// Calls a function with arguments that fit its parameters. They are moved from.
  IValue call(const ScriptFunction& function, IValue* arguments, size_t count);

 private:
  struct Frame;
  friend struct Frame;
  /// Slots for a frame, all None.
  IValue* take(size_t count);
  void give_back(IValue* slots, size_t count);
  IValue run(const Program& program, IValue* slots);
  IValue call_operands(Frame& frame, const ScriptFunction& function, const Instruction& at);
  IValue call_method(Frame& frame, const Instruction& at);
  IValue fork(Frame& frame, const Instruction& at);
  IValue enter(Frame& frame, const Instruction& at);
  void exit(Frame& frame);

  struct Chunk {
    std::unique_ptr<IValue[]> slots;
    size_t size = 0, used = 0;
  };
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0;  // the one in use
  int64_t steps_, recursion_;
  const Move* const move_;  // null where the module was not moved
};

/// A class's name without "___torch_mangle_3.", which PyTorch puts into the names of further
/// classes of one name.
std::string unmangled(std::string name);
/// Is it a class of torch.autocast?
bool is_autocast_class(const std::string& name);
/// The region of autocast that `with object:` opens, where the object is one of torch.autocast.
/// Else null.
std::unique_ptr<AutocastGuard> autocast_of(const Object& object);

/// A tensor as nested lists of numbers, as Tensor.tolist() gives them.
IValue lists_of(const Tensor& tensor, const TypePtr& type);

}  // namespace ramet::script
