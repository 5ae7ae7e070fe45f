#include <algorithm>

#include "nn/script/changes_internal.h"

namespace ramet::script {
namespace {

using Code = Instruction::Code;

// Values that no operator changes.
bool stays_as_it_is(const TypePtr& type) {
  switch (type->kind()) {
    case Type::Kind::kNone:
    case Type::Kind::kInt:
    case Type::Kind::kFloat:
    case Type::Kind::kBool:
    case Type::Kind::kNumber:
    case Type::Kind::kString:
    case Type::Kind::kDevice:
    case Type::Kind::kEnum: return true;
    default: return false;
  }
}

// May a value of the type have tensors or objects in it?
bool is_container(const TypePtr& type) {
  if (stays_as_it_is(type) || type->kind() == Type::Kind::kTensor) return false;
  if (type->kind() == Type::Kind::kOptional) return is_container(type->element());
  return type->kind() != Type::Kind::kList || !stays_as_it_is(type->element());
}

// Adds the fields of `more`. Were some of them new?
bool grow(Changes::Fields& into, const Changes::Fields& more) {
  const size_t before = into.size();
  into.insert(more.begin(), more.end());
  return into.size() != before;
}

// Operators on tensors with a result that is never an argument, nor a view of one.
bool makes_new(const Operator& op) {
  static const std::set<std::string> names{
      "aten::add",     "aten::sub",  "aten::mul",        "aten::div",  "aten::neg",
      "aten::exp",     "aten::cat",  "aten::stack",      "aten::mm",   "aten::matmul",
      "aten::bmm",     "aten::lstm", "aten::embedding",  "aten::gru",  "aten::linear",
      "aten::softmax", "aten::relu", "aten::layer_norm", "aten::sqrt", "aten::rsqrt",
      "aten::pow",     "aten::sum",  "aten::mean",       "aten::tanh", "aten::sigmoid",
      "aten::clone",   "aten::eq",   "aten::ne",         "aten::lt",   "aten::gt"};
  return op.result->kind() != Type::Kind::kList && names.count(op.name) != 0;
}

}  // namespace

void Changes::unite(Fields& into, const Fields& more) {
  if (grow(into, more)) grown_ = true;
}

// Has this changed?
bool Changes::State::unite(const State& other) {
  bool changed = false;
  for (const auto& [slot, fields] : other.held)
    if (grow(held[slot], fields)) changed = true;
  for (auto at = training.begin(); at != training.end();) {
    const auto same = other.training.find(at->first);
    if (same != other.training.end() && same->second == at->second) {
      ++at;
    } else {
      at = training.erase(at);
      changed = true;
    }
  }
  return changed;
}

void Changes::add(const ScriptFunction& function) {
  if (!function.program || functions_.count(&function) != 0) return;
  functions_[&function].parameters.resize(function.parameters.size());
  order_.push_back(&function);
  const Program& program = *function.program;
  for (const ScriptFunction* called : program.functions) add(*called);
  std::vector<std::string> names = program.names;
  for (const Instruction& at : program.instructions)
    if (at.code == Code::kEnter) names.insert(names.end(), {"__enter__", "__exit__"});
  for (const std::string& name : names) {
    if (!methods_.emplace(name, std::vector<const ScriptFunction*>()).second) continue;
    for (const auto& info : unit_.classes())
      if (const ScriptFunction* method = info->method(name)) {
        methods_[name].push_back(method);
        add(*method);
      }
  }
}

void Changes::add_hook(const ScriptFunction& hook) {
  hooks_.insert(&hook);
  add(hook);
}

void Changes::find() {
  do {
    grown_ = false;
    for (size_t i = order_.size(); i-- > 0;) run(*order_[i]);
    for (size_t i = 0; i < order_.size(); ++i) run(*order_[i]);
  } while (grown_);
}

bool Changes::has_of_objects() const {
  return std::any_of(changed_.begin(), changed_.end(), [](const Field& field) {
    return field.first->kind != ClassInfo::Kind::kModule;
  });
}

// Is the condition of a jump `self.training`, and false?
bool Changes::is_training(const Program& program, const Instruction& at, const State& state) const {
  const Operand condition = program.operands[at.first];
  if (condition.is_constant()) return false;
  const auto found = state.training.find(condition.index());
  return found != state.training.end() && in_training_.count(found->second.first) == 0 &&
         changed_.count(found->second) == 0;
}

void Changes::run(const ScriptFunction& function) {
  const Program& program = *function.program;
  const size_t count = program.instructions.size();
  std::vector<bool> start(count + 1, false);  // of a block: something jumps there
  for (const Instruction& at : program.instructions)
    if (at.code == Code::kJump || at.code == Code::kJumpUnless || at.code == Code::kJumpUnlessMore)
      start[std::min<size_t>(at.extra, count)] = true;
  std::map<size_t, State> states;
  std::vector<size_t> waiting;
  const auto go = [&](size_t to, const State& state) {
    const auto [at, first] = states.emplace(to, state);
    if (first || at->second.unite(state)) waiting.push_back(to);
  };
  State state;
  const std::vector<Fields>& parameters = functions_[&function].parameters;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].empty()) state.held[i] = parameters[i];
  go(0, state);
  while (!waiting.empty()) {
    size_t next = waiting.back();
    waiting.pop_back();
    state = states[next];
    while (next < count) {
      const Instruction& at = program.instructions[next++];
      const bool off = at.code == Code::kJumpUnless && is_training(program, at, state);
      step(program, at, state);
      if (at.code == Code::kReturn) {
        const Fields result = operand(program, at, 0, state);
        unite(functions_[&function].result, result);
        if (hooks_.count(&function) != 0) change(result);
      }
      if (at.code == Code::kReturn || at.code == Code::kFail) break;
      if (at.code == Code::kJump || at.code == Code::kJumpUnless ||
          at.code == Code::kJumpUnlessMore)
        go(at.extra, state);
      if (at.code == Code::kJump || off) break;
      if (!start[next]) continue;
      go(next, state);
      break;
    }
  }
}

// The attributes that may be in operand i.
Changes::Fields Changes::operand(const Program& program, const Instruction& at, size_t i,
                                 const State& state) {
  const Operand operand = program.operands[at.first + i];
  if (operand.is_constant()) return {};
  const auto found = state.held.find(operand.index());
  return found == state.held.end() ? Fields() : found->second;
}

// What is in the result.
void Changes::step(const Program& program, const Instruction& at, State& state) {
  Fields result;
  std::optional<Field> training;
  const auto all = [&] {
    for (size_t i = 0; i < at.count; ++i) {
      const Fields more = operand(program, at, i, state);
      result.insert(more.begin(), more.end());
    }
  };
  switch (at.code) {
    case Code::kCall: result = called(program, at, state); break;
    case Code::kGet: {
      const Program::Field& field = program.fields[at.extra];
      const ClassInfo::Attribute& attribute = field.owner->attributes[field.slot];
      if (!stays_as_it_is(attribute.type)) result = {{field.owner, field.slot}};
      if (field.owner->kind == ClassInfo::Kind::kModule && attribute.name == "training")
        training = Field(field.owner, field.slot);
      break;
    }
    case Code::kSet: {
      const Program::Field& field = program.fields[at.extra];
      change({{field.owner, field.slot}});
      change(operand(program, at, 1, state));  // it has two names now
      break;
    }
    case Code::kFunction:
    case Code::kFork: result = pass(*program.functions[at.extra], program, at, state); break;
    case Code::kMethod:
      if (const auto methods = methods_.find(program.names[at.extra]); methods != methods_.end())
        for (const ScriptFunction* method : methods->second) {
          const Fields more = pass(*method, program, at, state);
          result.insert(more.begin(), more.end());
        }
      break;
    case Code::kMove: {
      const Operand from = program.operands[at.first];
      const auto known = state.training.find(from.index());
      if (!from.is_constant() && known != state.training.end()) training = known->second;
      all();
      break;
    }
    case Code::kStep:
    case Code::kIsInstance:
    case Code::kToList:
    case Code::kSameEnum: break;
    default: all();
  }
  if (at.code == Code::kFree)
    for (size_t i = 0; i < at.count; ++i) {
      const Operand freed = program.operands[at.first + i];
      state.held.erase(freed.index());
      state.training.erase(freed.index());
    }
  if (at.result == Instruction::kNone) return;
  state.held.erase(at.result);
  state.training.erase(at.result);
  if (!result.empty()) state.held[at.result] = std::move(result);
  if (training) state.training.emplace(at.result, *training);
}

// The result of an operator may be its first argument, what it has written, or a view of them.
// Where containers are among arguments or results, it may be any argument.
Changes::Fields Changes::called(const Program& program, const Instruction& at, const State& state) {
  const Operator& op = *program.operators[at.extra];
  const size_t named = std::min<size_t>(at.count, op.parameters.size());
  bool container = is_container(op.result), grows = false;
  for (size_t i = 0; i < named; ++i) {
    const Parameter& parameter = op.parameters[i];
    container = container || is_container(parameter.type);
    grows = grows || (parameter.written && is_container(parameter.type));
  }
  Fields result;
  for (size_t i = 0; i < at.count; ++i) {
    const bool written = i < named && op.parameters[i].written;
    const Fields fields = operand(program, at, i, state);
    // What is put into a container has two names afterwards.
    if (written || grows) change(fields);
    if (written || i == 0 || container) result.insert(fields.begin(), fields.end());
  }
  return stays_as_it_is(op.result) || makes_new(op) ? Fields() : result;
}

// A call of a function with the operands.
Changes::Fields Changes::pass(const ScriptFunction& to, const Program& program,
                              const Instruction& at, const State& state) {
  const auto found = functions_.find(&to);
  for (size_t i = 0; i < at.count; ++i) {
    const Fields fields = operand(program, at, i, state);
    if (found == functions_.end() || i >= found->second.parameters.size()) change(fields);
    else unite(found->second.parameters[i], fields);
  }
  return found == functions_.end() ? Fields() : found->second.result;
}

}  // namespace ramet::script
