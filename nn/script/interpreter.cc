// Running programs: the loop over instructions.
//
// Note [Running a script]
// Arguments of operators are pointers into the frame or to constants. Nothing is copied for a call,
// and what was used for the last time is given back right after it. Functions of the script are
// calls of run() inside each other, up to Limits::recursion. All checks of kinds are IValue's own,
// so code that lies about types ends in an Error. An Error gets one line for each
// function that it leaves, with the place in the Python source.
#include <array>
#include <limits>
#include <new>
#include <stdexcept>
#include <typeinfo>

#include "autograd/schema/values_internal.h"
#include "nn/script/interpreter_internal.h"
#include "runtime/observe/observer.h"

namespace ramet::script {
namespace {

using Code = Instruction::Code;
constexpr const char* kRun = "torch::jit";
constexpr const char* kNoMemory =
    "[torch::jit] a text, list or frame: got no memory for it, expected a smaller one";

Object& object_of(const IValue& value) {
  IValue::Object& object = *value.toObject();
  RAMET_CHECK(typeid(object) == typeid(Object), kRun, "an object: got ", object.class_name(),
              ", expected one of a script's class");
  return static_cast<Object&>(object);
}

IValue& slot_of(const IValue& value, const Program::Field& field) {
  Object& object = object_of(value);
  RAMET_CHECK(object.info() == field.owner && field.slot < object.slots.size(), kRun,
              "an attribute: got an object of ", object.class_name(), ", expected ",
              field.owner->name);
  return object.slots[field.slot];
}

/// The operands of an instruction as pointers.
class Pointers {
 public:
  Pointers(const Program& program, const IValue* constants, IValue* slots, const Instruction& at)
      : size_(at.count) {
    if (size_ > few_.size()) {
      many_.resize(size_);
      data_ = many_.data();
    }
    const Operand* operand = program.operands.data() + at.first;
    for (size_t i = 0; i < size_; ++i, ++operand)
      data_[i] = operand->is_constant() ? &constants[operand->index()] : &slots[operand->index()];
  }
  Pointers(const Pointers&) = delete;
  Pointers& operator=(const Pointers&) = delete;
  Arguments get() const { return {data_, size_}; }

 private:
  size_t size_;
  std::array<const IValue*, 16> few_;
  std::vector<const IValue*> many_;
  const IValue** data_ = few_.data();
};

IValue item_of(const IValue& value, size_t i) {
  if (!value.isTuple()) return item_at(value, static_cast<int64_t>(i));
  const std::vector<IValue>& items = value.toTupleRef().elements();
  RAMET_CHECK(i < items.size(), kRun, "unpacking: got ", items.size(),
              " values, expected more than ", i);
  return items[i];
}

IValue make_dict(Arguments items) {
  IValue::GenericDict dict;
  for (size_t i = 0; i + 1 < items.size(); i += 2) dict.insert_or_assign(*items[i], *items[i + 1]);
  return dict;
}

IValue make_tuple(const Program& program, const Instruction& at, Arguments items) {
  std::vector<IValue> elements;
  elements.reserve(items.size());
  for (const IValue* item : items) elements.push_back(*item);
  return IValue::TuplePtr(std::make_shared<const IValue::Tuple>(
      std::move(elements), at.extra == 0 ? nullptr : program.tuple_names[at.extra - 1]));
}

bool has_one_of(const IValue& value, const Type& types) {
  for (const TypePtr& type : types.elements())
    if (has_type(value, type)) return true;
  return false;
}

/// Does a counter of range() have a round at `at`?
bool more(int64_t at, int64_t end, int64_t step) {
  RAMET_CHECK(step != 0, kRun, "range: got a step of 0, expected another number");
  return step > 0 ? at < end : at > end;
}

/// The counter after `at`. Past the largest integer it is that one, which is at no range's inside.
int64_t stepped(int64_t at, int64_t step) {
  int64_t next = 0;
  if (!__builtin_add_overflow(at, step, &next)) return next;
  return step > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

/// Enumerators are objects of one class with one name.
bool same_enumerator(const IValue& a, const IValue& b) {
  const Object &x = object_of(a), &y = object_of(b);
  const int64_t name = x.info()->slot("name");
  if (x.info() != y.info() || name < 0) return false;
  const auto at = static_cast<size_t>(name);
  return x.slots.at(at).toStringRef() == y.slots.at(at).toStringRef();
}

}  // namespace

struct Machine::Frame {
  Machine& machine;
  const Program& program;
  const IValue* const constants;
  IValue* const slots;
  size_t next = 0;  // instruction
  struct Entered {
    IValue object;
    const ScriptFunction* exit;
    std::unique_ptr<AutocastGuard> casts;
  };
  /// Of `with` blocks.
  std::vector<Entered> entered = {};

  const IValue& operand(const Instruction& at, size_t i) const {
    const Operand operand = program.operands[at.first + i];
    return operand.is_constant() ? constants[operand.index()] : slots[operand.index()];
  }
  /// Moved from where this is its last use.
  IValue take(const Instruction& at, size_t i) const {
    const Operand operand = program.operands[at.first + i];
    if (operand.is_constant()) return constants[operand.index()];
    IValue& value = slots[operand.index()];
    return operand.is_last() ? std::move(value) : value;
  }
  void free(const Instruction& at) const {
    const Operand* operand = program.operands.data() + at.first;
    for (size_t i = 0; i < at.count; ++i, ++operand)
      if (operand->is_last()) slots[operand->index()] = IValue();
  }
  void store(const Instruction& at, IValue value) const {
    if (at.frees) free(at);
    if (at.result != Instruction::kNone) slots[at.result] = std::move(value);
  }
  void jump_unless(bool condition, const Instruction& at) {
    if (!condition) next = at.extra;
  }
  /// The place in Python of the instruction that runs.
  size_t offset() const { return program.offsets[next == 0 ? 0 : next - 1]; }
  IValue watched_call(const Operator& op, Arguments arguments) const;
  IValue loop();
};

// Observers get the line as a scope: "net.py:12 in __torch__.net.Net.forward".
[[gnu::noinline]] IValue Machine::Frame::watched_call(const Operator& op,
                                                      Arguments arguments) const {
  // A span that begins here outlives the call, and scopes end in reverse order.
  if (op.name.compare(0, 10, "profiler::") == 0) return op.function(arguments);
  const ScriptFunction& function = *program.function;
  const RecordScope scope(function.source->line(offset()) + " in " + function.name);
  return op.function(arguments);
}

IValue Machine::Frame::loop() {
  const Instruction* const instructions = program.instructions.data();
  const size_t count = program.instructions.size();
  while (next < count) {
    const Instruction& at = instructions[next++];
    if (RAMET_UNLIKELY(--machine.steps_ < 0))
      fail(kRun, "steps: got a call of more than ", program.limits.steps,
           " instructions, expected at most so many (Limits::steps)");
    switch (at.code) {
      case Code::kCall: {
        const Pointers arguments(program, constants, slots, at);
        const Operator& op = *program.operators[at.extra];
        const bool watched = observed() || ramet::detail::tls.watching != 0;
        store(at, RAMET_UNLIKELY(watched) ? watched_call(op, arguments.get())
                                          : op.function(arguments.get()));
        break;
      }
      case Code::kChange: {
        const Program::Change& change_to = program.changes[at.extra];
        store(at, change(change_to.what, change_to.parameter, operand(at, 0)));
        break;
      }
      case Code::kMove: store(at, take(at, 0)); break;
      case Code::kFree:
        for (size_t i = 0; i < at.count; ++i)
          slots[program.operands[at.first + i].index()] = IValue();
        break;
      case Code::kJump: next = at.extra; break;
      case Code::kJumpUnless: {
        const bool condition = operand(at, 0).toBool();
        if (at.frees) free(at);
        jump_unless(condition, at);
        break;
      }
      case Code::kJumpUnlessMore: {
        const bool condition =
            more(operand(at, 0).toInt(), operand(at, 1).toInt(), operand(at, 2).toInt());
        if (at.frees) free(at);
        jump_unless(condition, at);
        break;
      }
      case Code::kStep: store(at, stepped(operand(at, 0).toInt(), operand(at, 1).toInt())); break;
      case Code::kReturn: return take(at, 0);
      case Code::kFunction:
        store(at, machine.call_operands(*this, *program.functions[at.extra], at));
        break;
      case Code::kMethod: store(at, machine.call_method(*this, at)); break;
      case Code::kFork: store(at, machine.fork(*this, at)); break;
      case Code::kWait: store(at, operand(at, 0).toFuture()->value()); break;
      case Code::kList: {
        const Pointers items(program, constants, slots, at);
        store(at, make_list(static_cast<Type::Kind>(at.extra), items.get()));
        break;
      }
      case Code::kDict: {
        const Pointers items(program, constants, slots, at);
        store(at, make_dict(items.get()));
        break;
      }
      case Code::kTuple: {
        const Pointers items(program, constants, slots, at);
        store(at, make_tuple(program, at, items.get()));
        break;
      }
      case Code::kItem: store(at, item_of(operand(at, 0), at.extra)); break;
      case Code::kCheckSize: {
        const size_t size = length(operand(at, 0));
        RAMET_CHECK(size == at.extra, kRun, "unpacking: got ", size, " values, expected ",
                    at.extra);
        if (at.frees) free(at);
        break;
      }
      case Code::kObject: {
        ClassInfo* const info = program.classes[at.extra];
        store(at,
              IValue::ObjectPtr(std::make_shared<Object>(info->unit->shared_from_this(), info)));
        break;
      }
      case Code::kGet: store(at, slot_of(operand(at, 0), program.fields[at.extra])); break;
      case Code::kSet:
        slot_of(operand(at, 0), program.fields[at.extra]) = operand(at, 1);
        if (at.frees) free(at);
        break;
      case Code::kIsInstance:
        store(at, has_one_of(operand(at, 0), *program.types[at.extra]));
        break;
      case Code::kToList:
        store(at, lists_of(operand(at, 0).toTensor(), program.types[at.extra]));
        break;
      case Code::kEnter: store(at, machine.enter(*this, at)); break;
      case Code::kExit: machine.exit(*this); break;
      case Code::kSameEnum: store(at, same_enumerator(operand(at, 0), operand(at, 1))); break;
      case Code::kFail: throw Error(operand(at, 0).toStringRef());
    }
  }
  return IValue();
}

IValue Machine::run(const Program& program, IValue* slots) {
  std::shared_ptr<const std::vector<IValue>> moved;
  if (RAMET_UNLIKELY(move_ != nullptr)) moved = program.moved.get(program.constants, *move_);
  Frame frame{*this, program, (moved ? *moved : program.constants).data(), slots};
  const auto leave = [&] {
    // The first exception is the one to report.
    while (!frame.entered.empty()) try {
        exit(frame);
      } catch (const std::exception&) {}
  };
  const auto place = [&] {
    const ScriptFunction& function = *program.function;
    return "in " + function.name + ", " + function.source->place(frame.offset());
  };
  try {
    return frame.loop();
  } catch (Error& e) {
    const std::string where = place();
    leave();
    e.add_context(where);
    throw;
  } catch (const std::bad_alloc&) {
    leave();
    throw OutOfMemoryError(kNoMemory);
  } catch (const std::length_error&) {  // of a text or list with a size that none can have
    leave();
    throw OutOfMemoryError(kNoMemory);
  } catch (...) {
    leave();
    throw;
  }
}

IValue Machine::call_operands(Frame& frame, const ScriptFunction& function, const Instruction& at) {
  std::array<IValue, 8> few;
  std::vector<IValue> many(at.count > few.size() ? at.count : 0);
  IValue* const arguments = many.empty() ? few.data() : many.data();
  for (size_t i = 0; i < at.count; ++i) arguments[i] = frame.take(at, i);
  return call(function, arguments, at.count);
}

IValue Machine::call_method(Frame& frame, const Instruction& at) {
  const std::string& name = frame.program.names[at.extra];
  const Object& self = object_of(frame.operand(at, 0));
  const ScriptFunction* const method = self.info()->method(name);
  RAMET_CHECK(method, kRun, name, "(): got an object of ", self.class_name(),
              ", expected one with this method");
  return call_operands(frame, *method, at);
}

IValue Machine::fork(Frame& frame, const Instruction& at) {
  try {
    return IValue::FuturePtr(std::make_shared<const IValue::Future>(
        call_operands(frame, *frame.program.functions[at.extra], at)));
  } catch (const std::exception&) {
    return IValue::FuturePtr(std::make_shared<const IValue::Future>(std::current_exception()));
  }
}

IValue Machine::enter(Frame& frame, const Instruction& at) {
  const IValue object = frame.operand(at, 0);
  IValue argument = object;
  IValue value = call(*frame.program.functions[at.extra], &argument, 1);
  frame.entered.push_back(
      {object, frame.program.functions[at.extra + 1], autocast_of(object_of(object))});
  return value;
}

// __exit__(None, None, None), also where an exception leaves the block: as PyTorch's interpreter.
void Machine::exit(Frame& frame) {
  RAMET_CHECK(!frame.entered.empty(), kRun, "with: got an end without a start");
  Frame::Entered last = std::move(frame.entered.back());
  frame.entered.pop_back();
  last.casts.reset();
  std::array<IValue, 4> arguments;
  arguments[0] = std::move(last.object);
  call(*last.exit, arguments.data(), arguments.size());
}

}  // namespace ramet::script
