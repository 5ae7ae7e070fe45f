// Making instructions, constants and conversions.
#include "nn/script/compiler_internal.h"

namespace ramet::script {
namespace {

using TypeKind = Type::Kind;

bool is(const TypePtr& type, TypeKind kind) { return type->kind() == kind; }

/// What change() does to a value of type `from` where `to` is expected; kNone where nothing does.
Match::Change change_between(const TypePtr& from, const TypePtr& to) {
  using Change = Match::Change;
  if (is(from, TypeKind::kTensor)) {
    if (is(to, TypeKind::kInt)) return Change::kTensorToInt;
    if (is(to, TypeKind::kFloat)) return Change::kTensorToFloat;
    if (is(to, TypeKind::kNumber)) return Change::kTensorToNumber;
  }
  if (is(from, TypeKind::kTuple) && is(to, TypeKind::kList)) {
    for (const TypePtr& item : from->elements())
      if (!is_subtype(item, to->element())) return Change::kNone;
    return Change::kTupleToList;
  }
  return Change::kNone;
}

/// The operator that converts between numbers, and strings to devices; empty where none does.
const char* conversion_between(const TypePtr& from, const TypePtr& to) {
  if (is(from, TypeKind::kNumber) && is(to, TypeKind::kFloat)) return "aten::Float";
  if (is(from, TypeKind::kNumber) && is(to, TypeKind::kInt)) return "aten::Int";
  if (is(from, TypeKind::kBool) && is(to, TypeKind::kFloat)) return "aten::Float";
  if (is(from, TypeKind::kBool) && is(to, TypeKind::kInt)) return "aten::Int";
  if (is(from, TypeKind::kString) && is(to, TypeKind::kDevice)) return "aten::device";
  return "";
}

}  // namespace

size_t FunctionCompiler::emit(Code code, uint32_t result, const std::vector<Operand>& operands,
                              uint32_t extra, size_t offset) {
  Instruction made;
  made.code = code;
  made.result = result;
  made.first = static_cast<uint32_t>(program_->operands.size());
  made.count = static_cast<uint32_t>(operands.size());
  made.extra = extra;
  program_->operands.insert(program_->operands.end(), operands.begin(), operands.end());
  program_->instructions.push_back(made);
  program_->offsets.push_back(offset);
  return program_->instructions.size() - 1;
}

Value FunctionCompiler::emit_value(Code code, const std::vector<Operand>& operands, uint32_t extra,
                                   TypePtr type, size_t offset) {
  const uint32_t result = new_slot();
  fresh_ = emit(code, result, operands, extra, offset);
  note_type(result, type);
  return {Operand::slot(result), std::move(type)};
}

void FunctionCompiler::jump_here(size_t instruction) {
  program_->instructions[instruction].extra = static_cast<uint32_t>(program_->instructions.size());
}

uint32_t FunctionCompiler::slot_of(const std::string& name) {
  const auto [at, is_new] = slots_.emplace(name, 0);
  if (is_new) at->second = new_slot();
  return at->second;
}

void FunctionCompiler::note_type(uint32_t slot, const TypePtr& type) {
  if (slot >= slot_types_.size()) slot_types_.resize(slot + 1);
  TypePtr& known = slot_types_[slot];
  const TypePtr both = known && type ? unify(known, type) : type;
  if (known && !both) mixed_.insert(slot);
  else if (both) known = both;
}

Value FunctionCompiler::constant(IValue value, TypePtr type) {
  program_->constants.push_back(std::move(value));
  constant_types_.push_back(type);
  return {Operand::constant(static_cast<uint32_t>(program_->constants.size() - 1)),
          std::move(type)};
}

const IValue* FunctionCompiler::constant_of(const Value& value) const {
  return value.place.is_constant() ? &program_->constants[value.place.index()] : nullptr;
}

Value FunctionCompiler::fit(const Value& value, const TypePtr& type, const std::string& what,
                            size_t offset) {
  if (!value || !type) return {};
  if (is_subtype(value.type, type)) return value;
  if (is(type, TypeKind::kOptional) && !is(value.type, TypeKind::kOptional))
    return fit(value, type->element(), what, offset);
  if (const char* name = conversion_between(value.type, type); *name != '\0')
    return call_operator(name, {value}, offset);
  const Match::Change change = change_between(value.type, type);
  if (change == Match::Change::kNone)
    return problem(offset, what + ": got " + value.type->text() + ", expected " + type->text());
  Parameter parameter;
  parameter.name = what;
  parameter.type = type;
  program_->changes.push_back({change, std::move(parameter)});
  return emit_value(Code::kChange, {value.place},
                    static_cast<uint32_t>(program_->changes.size() - 1), type, offset);
}

Listing FunctionCompiler::list() {
  compile_body();
  Listing listing;
  listing.names.resize(program_->slots);
  for (const auto& [name, slot] : slots_) listing.names[slot] = name;
  // Variables know their types. Counters and what branches move to one slot do not.
  for (const Instruction& at : program_->instructions) {
    if (at.code != Code::kMove || !listing.names[at.result].empty()) continue;
    const Operand from = program_->operands[at.first];
    const auto& types = from.is_constant() ? constant_types_ : slot_types_;
    note_type(at.result, from.index() < types.size() ? types[from.index()] : nullptr);
  }
  slot_types_.resize(program_->slots);
  for (uint32_t slot : mixed_) slot_types_[slot] = nullptr;
  listing.types = std::move(slot_types_);
  listing.constants = std::move(constant_types_);
  listing.program = program_;
  return listing;
}

Listing list_program(CompilationUnit& unit, ScriptFunction& function) {
  std::vector<ScriptFunction*> needs;
  std::set<std::string> interface_calls;
  std::vector<Problem> problems;
  Listing listing = FunctionCompiler(unit, function, needs, interface_calls, problems).list();
  RAMET_CHECK(problems.empty(), "torch::jit", function.name, ": got ", problems.size(),
              " problems, expected a function that has been compiled");
  return listing;
}

}  // namespace ramet::script
