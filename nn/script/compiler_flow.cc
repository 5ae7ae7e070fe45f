// Compiling branches and loops.
#include <algorithm>

#include "nn/script/compiler_internal.h"

namespace ramet::script {

using TypeKind = Type::Kind;
using MeaningKind = Meaning::Kind;

void FunctionCompiler::compile_if(const Statement& s) {
  const Value condition = compile_condition(*s.value);
  const Operand place = condition ? condition.place : Operand::constant(0);
  const size_t mark = scope_.mark();
  const size_t to_other = emit(Code::kJumpUnless, Instruction::kNone, {place}, 0, s.offset);
  compile_block(s.body);
  const bool then_ends = !reachable_;
  const Scope::Changes then = scope_.since(mark);
  scope_.undo(mark);
  reachable_ = true;
  size_t to_end = Instruction::kNone;
  if (!s.other.empty() && !then_ends)
    to_end = emit(Code::kJump, Instruction::kNone, {}, 0, s.offset);
  jump_here(to_other);
  compile_block(s.other);
  const bool other_ends = !reachable_;
  const Scope::Changes other = scope_.since(mark);
  scope_.undo(mark);
  if (to_end != Instruction::kNone) jump_here(to_end);
  reachable_ = !then_ends || !other_ends;
  merge(then, then_ends, other, other_ends);
}

void FunctionCompiler::merge(const Scope::Changes& then, bool then_ends,
                             const Scope::Changes& other, bool other_ends) {
  Scope::Changes all = then;
  all.insert(other.begin(), other.end());
  for (const auto& entry : all) {
    const std::string& name = entry.first;
    Meaning missing;
    missing.kind = MeaningKind::kMissing;
    missing.text = "'" + name + "' has a value after one branch of an `if` only";
    const auto after = [&](const Scope::Changes& branch) {
      const auto at = branch.find(name);
      if (at != branch.end()) return at->second;
      const Meaning* before = scope_.find(name);
      return before ? *before : missing;
    };
    Meaning a = after(then), b = after(other);
    if (then_ends && !other_ends) a = b;
    if (other_ends && !then_ends) b = a;
    if (a.kind == MeaningKind::kBad || b.kind == MeaningKind::kBad) {
      a = Meaning();
    } else if (a.kind == MeaningKind::kMissing || a.kind != b.kind) {
      a = missing;
    } else if (a.kind == MeaningKind::kValue) {
      TypePtr type = unify(a.value.type, b.value.type);
      if (!type) {
        missing.text = "'" + name + "' is " + a.value.type->text() + " after one branch and " +
                       b.value.type->text() + " after the other";
        a = missing;
      } else {
        a.value.type = std::move(type);
      }
    }
    scope_.set(name, a);
  }
}

// Values that a loop needs in each round: variables of the same name may change in between.
Value FunctionCompiler::kept(const Value& value, size_t offset) {
  if (!value || value.place.is_constant()) return value;
  return emit_value(Code::kMove, {value.place}, 0, value.type, offset);
}

void FunctionCompiler::compile_while(const Statement& s) {
  Loop loop;
  loop.mark = scope_.mark();
  loop.managers = managers_;
  const auto start = static_cast<uint32_t>(program_->instructions.size());
  const Value condition = compile_condition(*s.value);
  const Operand place = condition ? condition.place : Operand::constant(0);
  const size_t out = emit(Code::kJumpUnless, Instruction::kNone, {place}, 0, s.offset);
  loops_.push_back(&loop);
  compile_block(s.body);
  loops_.pop_back();
  if (reachable_) check_loop_types(loop, s.offset);
  emit(Code::kJump, Instruction::kNone, {}, start, s.offset);
  for (size_t jump : loop.continues) program_->instructions[jump].extra = start;
  jump_here(out);
  finish_loop(loop);
}

void FunctionCompiler::compile_for(const Statement& s) {
  const Expression& over = *s.value;
  if (over.kind == Kind::kCall && over.items.at(0)->kind == Kind::kName &&
      over.items[0]->text == "range" && !scope_.find("range"))
    return compile_range(s, over);
  compile_each(s);
}

void FunctionCompiler::compile_range(const Statement& s, const Expression& range) {
  const TypePtr& number = Type::of(TypeKind::kInt);
  std::vector<Value> bounds;
  for (size_t i = 1; i < range.items.size(); ++i)
    bounds.push_back(
        fit(compile_expression(*range.items[i]), number, "a bound of range()", range.offset));
  if (bounds.empty() || bounds.size() > 3 || !range.named.empty()) {
    problem(range.offset, "range: got " + std::to_string(bounds.size()) +
                              " arguments, expected 1 to 3 without names");
    bounds.assign(1, Value());
  }
  if (bounds.size() == 1) bounds.insert(bounds.begin(), constant(int64_t{0}, number));
  if (bounds.size() == 2) bounds.push_back(constant(int64_t{1}, number));
  compile_counted(s, bounds[0], bounds[1], bounds[2], {});
}

// The number of rounds is that of the items at the start, as in PyTorch.
void FunctionCompiler::compile_each(const Statement& s) {
  Value items = compile_expression(*s.value);
  if (items && items.type->kind() == TypeKind::kDict)
    items = call_operator("aten::keys", {items}, s.offset);
  const TypePtr& number = Type::of(TypeKind::kInt);
  const Value end = items ? call_operator("aten::len", {items}, s.offset) : Value();
  compile_counted(s, constant(int64_t{0}, number), end, constant(int64_t{1}, number),
                  kept(items, s.offset));
}

// With `items` the variable is an item in each round; otherwise it is the counter.
void FunctionCompiler::compile_counted(const Statement& s, Value first, Value end, Value step,
                                       const Value& items) {
  const bool fine = first && end && step;
  const TypePtr& number = Type::of(TypeKind::kInt);
  const uint32_t counter = new_slot();
  const Operand at = Operand::slot(counter);
  end = kept(end, s.offset);
  step = kept(step, s.offset);
  if (fine) emit(Code::kMove, counter, {first.place}, 0, s.offset);
  Loop loop;
  loop.mark = scope_.mark();
  loop.managers = managers_;
  const auto start = static_cast<uint32_t>(program_->instructions.size());
  const size_t out =
      emit(Code::kJumpUnlessMore, Instruction::kNone, {at, end.place, step.place}, 0, s.offset);
  Value value;
  if (fine && items) value = call_operator("aten::__getitem__", {items, {at, number}}, s.offset);
  else if (fine) value = {at, number};
  if (s.unpacks) unpack(s.targets, value, s.offset);
  else assign(*s.targets.at(0), value);
  loops_.push_back(&loop);
  compile_block(s.body);
  loops_.pop_back();
  if (reachable_) check_loop_types(loop, s.offset);
  for (size_t jump : loop.continues) jump_here(jump);
  emit(Code::kStep, counter, {at, step.place}, 0, s.offset);
  emit(Code::kJump, Instruction::kNone, {}, start, s.offset);
  jump_here(out);
  finish_loop(loop);
}

void FunctionCompiler::compile_jump(const Statement& s) {
  const bool breaks = s.kind == Statement::Kind::kBreak;
  reachable_ = false;
  if (loops_.empty()) {
    problem(s.offset, breaks ? "break outside of a loop" : "continue outside of a loop");
    return;
  }
  Loop& loop = *loops_.back();
  check_loop_types(loop, s.offset);
  leave_managers(loop.managers, s.offset);
  (breaks ? loop.breaks : loop.continues)
      .push_back(emit(Code::kJump, Instruction::kNone, {}, 0, s.offset));
}

// The code of a loop is compiled once, so its variables have the types that they had before it.
void FunctionCompiler::check_loop_types(const Loop& loop, size_t offset) {
  for (const auto& [name, before] : scope_.before(loop.mark)) {
    const Meaning* now = scope_.find(name);
    if (before.kind != MeaningKind::kValue || !now || now->kind == MeaningKind::kBad) continue;
    if (now->kind != MeaningKind::kValue)
      problem(offset, "'" + name + "' is no value after a round of the loop");
    else if (!is_subtype(now->value.type, before.value.type))
      problem(offset, "'" + name + "' changes its type in a loop: got " + now->value.type->text() +
                          ", expected " + before.value.type->text());
  }
}

// Names that the loop defines are unknown after it: it may have had no round.
void FunctionCompiler::finish_loop(const Loop& loop) {
  for (size_t jump : loop.breaks) jump_here(jump);
  scope_.undo(loop.mark);
  reachable_ = true;
}

}  // namespace ramet::script
