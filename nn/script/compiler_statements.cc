// Compiling statements: assignments, returns, `with`, raises.
#include "nn/script/compiler_internal.h"

namespace ramet::script {

using TypeKind = Type::Kind;

void FunctionCompiler::compile_block(const Block& block) {
  for (const Statement& statement : block) {
    if (!reachable_) return;
    try {
      compile_statement(statement);
    } catch (const Error& e) {  // of a type's name, or of a text that is read on demand
      problem(statement.offset, e.what());
      for (const ExpressionPtr& target : statement.targets) forget(*target);
    }
  }
}

void FunctionCompiler::compile_statement(const Statement& s) {
  const Deeper deeper(*this);
  switch (s.kind) {
    case Statement::Kind::kAssign: return compile_assignment(s);
    case Statement::Kind::kExpression: compile_expression(*s.value); return;
    case Statement::Kind::kIf: return compile_if(s);
    case Statement::Kind::kFor: return compile_for(s);
    case Statement::Kind::kWhile: return compile_while(s);
    case Statement::Kind::kReturn: return compile_return(s);
    case Statement::Kind::kWith: return compile_with(s);
    case Statement::Kind::kPass: return;
    case Statement::Kind::kBreak:
    case Statement::Kind::kContinue: return compile_jump(s);
    case Statement::Kind::kAssert: return compile_assert(s);
    case Statement::Kind::kRaise: return compile_raise(s);
    case Statement::Kind::kDelete: return compile_delete(s);
    case Statement::Kind::kFunction: {
      Meaning meaning;
      meaning.kind = Meaning::Kind::kClosure;
      meaning.closure = s.function;
      scope_.set(s.function->name, meaning);
      return;
    }
  }
}

void FunctionCompiler::compile_assignment(const Statement& s) {
  if (s.unpacks && s.value->kind == Kind::kTuple && s.value->items.size() == s.targets.size())
    return assign_each(s);
  if (s.unpacks) return unpack(s.targets, compile_expression(*s.value), s.offset);
  const Expression& target = *s.targets.at(0);
  if (target.kind == Kind::kName && !s.type &&
      (s.value->kind == Kind::kName || s.value->kind == Kind::kAttribute)) {
    const Meaning meaning = meaning_of(*s.value);
    if (meaning.kind == Meaning::Kind::kFunction || meaning.kind == Meaning::Kind::kType)
      return scope_.set(target.text, meaning);
    return assign(target, value_of(meaning, s.offset));
  }
  const TypePtr type = s.type ? type_argument(*s.type) : nullptr;
  Value value = compile_expression(*s.value, type);
  if (type && value) {
    value = fit(value, type, "the value of a variable", s.offset);
    if (value) value.type = type;
  }
  assign(target, value);
}

// All values are read before any variable is written: `a, b = b, a`.
void FunctionCompiler::assign_each(const Statement& s) {
  std::vector<Value> values;
  for (const ExpressionPtr& item : s.value->items) values.push_back(compile_expression(*item));
  for (size_t i = 1; i < values.size(); ++i)
    if (values[i] && is_target(s.targets, values[i].place)) values[i] = kept(values[i], s.offset);
  for (size_t i = 0; i < values.size(); ++i) assign(*s.targets[i], values[i]);
}

bool FunctionCompiler::is_target(const std::vector<ExpressionPtr>& targets, Operand place) const {
  if (place.is_constant()) return false;
  for (const ExpressionPtr& target : targets) {
    if (target->kind == Kind::kTuple && is_target(target->items, place)) return true;
    const auto at = slots_.find(target->text);
    if (target->kind == Kind::kName && at != slots_.end() && at->second == place.index())
      return true;
  }
  return false;
}

void FunctionCompiler::assign(const Expression& target, const Value& value) {
  switch (target.kind) {
    case Kind::kName: return assign_name(target.text, value, target.offset);
    case Kind::kTuple:
    case Kind::kList: return unpack(target.items, value, target.offset);
    case Kind::kSubscript: {
      if (target.items.size() > 2) {
        problem(target.offset, "an item: got several keys, expected one");
        return;
      }
      const Value container = compile_expression(*target.items.at(0));
      const Value key = compile_expression(*target.items.at(1));
      call_operator("aten::_set_item", {container, key, value}, target.offset);
      return;
    }
    case Kind::kAttribute: {
      const Value object = compile_expression(*target.items.at(0));
      if (!object || !value) return;
      const int64_t slot =
          object.type->kind() == TypeKind::kClass ? object.type->info()->slot(target.text) : -1;
      if (slot < 0) {
        problem(target.offset, object.type->text() + " has no attribute '" + target.text + "'");
        return;
      }
      const auto& attribute = object.type->info()->attributes[static_cast<size_t>(slot)];
      const Value fitted =
          fit(value, attribute.type, "attribute '" + target.text + "'", target.offset);
      if (!fitted) return;
      program_->fields.push_back({object.type->info(), static_cast<size_t>(slot)});
      emit(Code::kSet, Instruction::kNone, {object.place, fitted.place},
           static_cast<uint32_t>(program_->fields.size() - 1), target.offset);
      return;
    }
    default: problem(target.offset, "an assignment: expected a name, an attribute or an item");
  }
}

void FunctionCompiler::assign_name(const std::string& name, const Value& value, size_t offset) {
  Meaning meaning;
  if (value) {
    meaning.kind = Meaning::Kind::kValue;
    const uint32_t slot = slot_of(name);
    note_type(slot, value.type);
    Instruction* const newest =
        program_->instructions.empty() ? nullptr : &program_->instructions.back();
    if (newest && fresh_ == program_->instructions.size() - 1 && !value.place.is_constant() &&
        newest->result == value.place.index()) {
      newest->result = slot;        // the value is made where the variable is
      fresh_ = Instruction::kNone;  // from now on it is the variable's: `b = a` makes another one
    } else if (value.place.is_constant() || value.place.index() != slot) {
      emit(Code::kMove, slot, {value.place}, 0, offset);
    }
    meaning.value = {Operand::slot(slot), value.type};
  }
  scope_.set(name, meaning);
}

void FunctionCompiler::unpack(const std::vector<ExpressionPtr>& targets, Value value,
                              size_t offset) {
  const auto give_up = [&] {
    for (const ExpressionPtr& target : targets) forget(*target);
  };
  if (!value) return give_up();
  const TypePtr type = value.type;
  const bool tuple = type->kind() == TypeKind::kTuple;
  if (!tuple && type->kind() != TypeKind::kList) {
    problem(offset, "unpacking: got " + type->text() + ", expected a tuple or list");
    return give_up();
  }
  if (tuple && type->elements().size() != targets.size()) {
    problem(offset, "unpacking: got " + std::to_string(type->elements().size()) +
                        " values, expected " + std::to_string(targets.size()));
    return give_up();
  }
  if (is_target(targets, value.place)) value = kept(value, offset);
  if (!tuple)
    emit(Code::kCheckSize, Instruction::kNone, {value.place}, static_cast<uint32_t>(targets.size()),
         offset);
  for (size_t i = 0; i < targets.size(); ++i)
    assign(*targets[i], emit_value(Code::kItem, {value.place}, static_cast<uint32_t>(i),
                                   type->element(tuple ? i : 0), offset));
}

void FunctionCompiler::forget(const Expression& target) {
  if (target.kind == Kind::kName) scope_.set(target.text, Meaning());
  for (const ExpressionPtr& item : target.items)
    if (target.kind == Kind::kTuple || target.kind == Kind::kList) forget(*item);
}

void FunctionCompiler::compile_return(const Statement& s) {
  const TypePtr& result = function_.result;
  Value value = s.value ? compile_expression(*s.value, result)
                        : constant(IValue(), Type::of(TypeKind::kNone));
  reachable_ = false;
  if (!value) return;
  if (result_stated_) {
    value = fit(value, result, "the result of " + function_.name, s.offset);
    if (!value) return;
  } else {
    function_.result = result ? unify(result, value.type) : value.type;
    if (!function_.result) {
      problem(s.offset, "results of different types");
      function_.result = value.type;
    }
  }
  leave_managers(0, s.offset);
  emit(Code::kReturn, Instruction::kNone, {value.place}, 0, s.offset);
}

void FunctionCompiler::compile_with(const Statement& s) {
  const Value object = compile_expression(*s.value);
  ClassInfo* const info =
      object && object.type->kind() == TypeKind::kClass ? object.type->info() : nullptr;
  ScriptFunction* const enter = info ? info->method("__enter__") : nullptr;
  ScriptFunction* const exit = info ? info->method("__exit__") : nullptr;
  if (object && (!enter || !exit || exit->parameters.size() != 4))
    problem(s.offset, "with: got " + object.type->text() +
                          ", expected an object with __enter__() and __exit__() of 3 arguments");
  if (!enter || !exit) {
    for (const ExpressionPtr& target : s.targets) forget(*target);
    return compile_block(s.body);
  }
  const TypePtr entered = result_of(*enter, s.offset);
  const uint32_t number = function_number(*enter);
  function_number(*exit);  // number + 1
  const Value value = emit_value(Code::kEnter, {object.place}, number, entered, s.offset);
  if (!s.targets.empty()) assign(*s.targets[0], value);
  ++managers_;
  compile_block(s.body);
  --managers_;
  if (reachable_) emit(Code::kExit, Instruction::kNone, {}, 0, s.offset);
}

// Of a return, break or continue inside of `with` blocks.
void FunctionCompiler::leave_managers(size_t down_to, size_t offset) {
  for (size_t i = managers_; i > down_to; --i) emit(Code::kExit, Instruction::kNone, {}, 0, offset);
}

void FunctionCompiler::compile_raise(const Statement& s) {
  const Expression& raised = *s.value;
  const bool call = raised.kind == Kind::kCall;
  const Expression& type = call ? *raised.items.at(0) : raised;
  Value text = constant(type.text, Type::of(TypeKind::kString));
  if (call && raised.items.size() > 1) text = compile_expression(*raised.items[1]);
  if (text) text = fit(text, Type::of(TypeKind::kString), "the text of an exception", s.offset);
  reachable_ = false;
  if (text) emit(Code::kFail, Instruction::kNone, {text.place}, 0, s.offset);
}

void FunctionCompiler::compile_assert(const Statement& s) {
  const Value condition = compile_condition(*s.value);
  if (!condition) return;
  const size_t fails = emit(Code::kJumpUnless, Instruction::kNone, {condition.place}, 0, s.offset);
  const size_t holds = emit(Code::kJump, Instruction::kNone, {}, 0, s.offset);
  jump_here(fails);
  Value text = s.message ? compile_expression(*s.message)
                         : constant("AssertionError", Type::of(TypeKind::kString));
  text = fit(text, Type::of(TypeKind::kString), "the text of an assertion", s.offset);
  if (text) emit(Code::kFail, Instruction::kNone, {text.place}, 0, s.offset);
  jump_here(holds);
}

void FunctionCompiler::compile_delete(const Statement& s) {
  for (const ExpressionPtr& target : s.targets) {
    if (target->kind == Kind::kName) {
      scope_.erase(target->text);
    } else if (target->kind == Kind::kSubscript && target->items.size() == 2) {
      const Value container = compile_expression(*target->items.at(0));
      const Value key = compile_expression(*target->items.at(1));
      call_operator("aten::Delete", {container, key}, target->offset);
    } else {
      problem(target->offset, "del: expected a name or an item");
    }
  }
}

}  // namespace ramet::script
