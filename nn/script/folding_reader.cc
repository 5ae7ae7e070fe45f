// What a module's forward() does with the attributes that the module has.
#include "autograd/schema/values_internal.h"
#include "nn/script/folding_reader_internal.h"

namespace ramet::script {
namespace {

using Code = Instruction::Code;

constexpr int kMostCalls = 8;       // inside each other
constexpr int kMostSteps = 10'000;  // instructions

bool is_layer(const Operator& op) {
  static const std::set<std::string> names{
      "aten::conv1d",           "aten::conv2d",           "aten::conv3d",
      "aten::convolution",      "aten::_convolution",     "aten::conv_transpose1d",
      "aten::conv_transpose2d", "aten::conv_transpose3d", "aten::batch_norm"};
  return names.count(op.name) != 0;
}

// Has it no effect but its result, which is no tensor?
bool is_pure(const Operator& op) {
  if (op.result->kind() == Type::Kind::kTensor || op.result->kind() == Type::Kind::kNone)
    return false;
  for (const Parameter& parameter : op.parameters)
    if (parameter.written) return false;
  return op.name.compare(0, 6, "aten::") == 0;
}

}  // namespace

const Listing& Listings::of(const ScriptFunction& function) {
  const auto known = known_.find(&function);
  if (known != known_.end()) return known->second;
  return known_.emplace(&function, list_program(unit_, const_cast<ScriptFunction&>(function)))
      .first->second;
}

std::optional<Layer> LayerReader::read(const ScriptFunction& forward,
                                       const std::shared_ptr<Object>& self) {
  if (!forward.program || forward.parameters.size() < 2) return std::nullopt;
  layer_ = Layer();
  steps_ = 0;
  std::vector<Value> arguments(2);
  arguments[0] = Value::known(IValue(IValue::ObjectPtr(self)));
  arguments[1].what = Value::What::kInput;
  for (size_t i = 2; i < forward.parameters.size(); ++i) {
    if (!forward.parameters[i].value) return std::nullopt;
    arguments.push_back(Value::known(*forward.parameters[i].value));
  }
  const std::optional<Value> result = run(forward, std::move(arguments), 0);
  if (!result || result->what != Value::What::kResult) return std::nullopt;
  return std::move(layer_);
}

// None where it cannot be read.
std::optional<LayerReader::Value> LayerReader::run(const ScriptFunction& function,
                                                   std::vector<Value> slots, int depth) {
  if (depth > kMostCalls || !function.program || slots.size() != function.parameters.size())
    return std::nullopt;
  const Program& p = *listings_.of(function).program;
  slots.resize(p.slots);
  for (size_t next = 0; next < p.instructions.size();) {
    if (++steps_ > kMostSteps) return std::nullopt;
    const Instruction& at = p.instructions[next++];
    const auto operand = [&](size_t i) -> Value {
      const Operand o = p.operands[at.first + i];
      return o.is_constant() ? Value::known(p.constants[o.index()]) : slots[o.index()];
    };
    std::vector<Value> operands;
    bool all_known = true;
    for (size_t i = 0; i < at.count; ++i) {
      operands.push_back(operand(i));
      all_known = all_known && operands.back().what == Value::What::kKnown;
    }
    Value result;
    switch (at.code) {
      case Code::kMove: result = operands[0]; break;
      case Code::kFree: continue;
      case Code::kReturn: return operands[0];
      case Code::kJump: next = at.extra; continue;
      case Code::kJumpUnless: {
        const auto to = branch(p, next, at, operands[0], slots);
        if (!to) return std::nullopt;
        next = *to;
        continue;
      }
      case Code::kGet: {
        const auto object = all_known ? object_in(operands[0].value) : nullptr;
        const Program::Field& field = p.fields[at.extra];
        if (!object || object->info() != field.owner) return std::nullopt;
        result = Value::known(object->slots[field.slot]);
        if (!module_in(result.value)) layer_.read.emplace_back(object, field.slot);
        break;
      }
      case Code::kCall: {
        const Operator& op = *p.operators[at.extra];
        if (is_layer(op) && operands[0].what == Value::What::kInput) {
          if (layer_.op || operands.size() != op.parameters.size()) return std::nullopt;
          for (size_t i = 1; i < operands.size(); ++i)
            if (operands[i].what != Value::What::kKnown) return std::nullopt;
          layer_.op = &op;
          layer_.function = &function;
          layer_.offset = p.offsets[next - 1];
          for (const Value& value : operands) layer_.arguments.push_back(value.value);
          result.what = Value::What::kResult;
          break;
        }
        for (size_t i = 0; i < op.parameters.size(); ++i)
          if (op.parameters[i].written) return std::nullopt;
        if (all_known && is_pure(op)) {
          std::vector<const IValue*> pointers;
          for (const Value& value : operands) pointers.push_back(&value.value);
          try {
            result = Value::known(op.function(pointers));
          } catch (const Error&) {  // it would be thrown while running
            return std::nullopt;
          }
        }
        break;
      }
      case Code::kFunction: {
        const auto called = run(*p.functions[at.extra], std::move(operands), depth + 1);
        if (!called) return std::nullopt;
        result = *called;
        break;
      }
      case Code::kList:
        if (all_known) {
          std::vector<const IValue*> pointers;
          for (const Value& value : operands) pointers.push_back(&value.value);
          result = Value::known(make_list(static_cast<Type::Kind>(at.extra), pointers));
        }
        break;
      case Code::kTuple:
      case Code::kItem:
      case Code::kIsInstance: break;  // unknown
      default: return std::nullopt;
    }
    if (at.result != Instruction::kNone) slots[at.result] = std::move(result);
  }
  return Value::known(IValue());
}

// Where it goes on. A condition that is not known has to decide only whether something is raised.
std::optional<size_t> LayerReader::branch(const Program& p, size_t next, const Instruction& at,
                                          const Value& condition, std::vector<Value>& slots) const {
  const size_t other = at.extra;
  if (condition.what == Value::What::kKnown && condition.value.isBool())
    return condition.value.toBool() ? next : other;
  const auto raises = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < std::min(end, p.instructions.size()); ++i) {
      const Instruction& step = p.instructions[i];
      if (step.code == Code::kFail) return true;
      if (step.code == Code::kCall && p.operators[step.extra]->name == "prim::RaiseException")
        return true;
      if (step.code == Code::kReturn || step.code == Code::kJumpUnless) return false;
    }
    return false;
  };
  if (other < next || other > p.instructions.size()) return std::nullopt;  // a loop
  if (raises(next, other)) return other;
  // "if c: pass else: raise": the first part ends with a jump over the second.
  const bool both = other > next && p.instructions[other - 1].code == Code::kJump;
  const size_t end = both ? p.instructions[other - 1].extra : other;
  if (end < other || end > p.instructions.size()) return std::nullopt;
  if (both && raises(other, end)) return next;
  // Two ways to compute a value: it is not known.
  for (size_t i = next; i < end; ++i) {
    const Instruction& step = p.instructions[i];
    const bool jump = both && i == other - 1;
    const bool plain = step.code == Code::kMove || step.code == Code::kFree ||
                       (step.code == Code::kCall && is_pure(*p.operators[step.extra]));
    if (!jump && !plain) return std::nullopt;
    if (step.result != Instruction::kNone) slots[step.result] = Value();
  }
  return end;
}

}  // namespace ramet::script
