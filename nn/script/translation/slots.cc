// Which values of a function are variables of C++, how they are named, and where they are declared.
#include <algorithm>

#include "nn/script/translation/translation_internal.h"

namespace ramet::script {

using Kind = Type::Kind;

// Attributes and modules that a slot names need no variable.
void FunctionWriter::find_aliases() {
  const Program& p = *listing_.program;
  for (const Instruction& at : p.instructions)
    if (at.result != Instruction::kNone) ++slots_[at.result].writes;
  if (takes_self_ && !inside_) {
    Written self;
    self.module = self_->object;
    self.type = self_->info->type;
    self.self = !self_->object;
    if (self.self) self.text = "shared_from_this()";
    slots_[0].alias = self;
  }
  for (const Instruction& at : p.instructions) {
    if (at.result == Instruction::kNone || slots_[at.result].writes != 1) continue;
    Slot& slot = slots_[at.result];
    if (at.code == Code::kMove) {
      const Written from = operand(at, 0);
      if (from.module || from.self) slot.alias = from;
    } else if (at.code == Code::kGet) {
      const Written object = operand(at, 0);
      const std::string& name = p.fields[at.extra].owner->attributes[p.fields[at.extra].slot].name;
      // Where the code assigns to it, its value at this time is a variable.
      if (object.module && !out_.is_assigned(object.module->info(), name))
        slot.alias = attribute(at);
    }
  }
}

// What a kGet or kSet names. None where its object is not known, or has no such member in C++.
std::optional<Written> FunctionWriter::attribute(const Instruction& at) {
  Written object = operand(at, 0);
  if (object.module) return attribute_of_module(at, object);
  if (object.type && object.type->kind() == Kind::kOptional) {
    object.type = object.type->element();
    object.text += ".value()";
  }
  const Program::Field& field = listing_.program->fields[at.extra];
  StructMembers* const members = out_.members_of(field.owner);
  if (!members || object.constant || !object.type || object.type->info() != field.owner)
    return std::nullopt;
  Written made;
  made.type = field.owner->attributes[field.slot].type;
  made.text = (object.self ? "" : object.text + "->") +
              out_.member_name(*members, field.owner->attributes[field.slot].name);
  return made;
}

std::optional<Written> FunctionWriter::attribute_of_module(const Instruction& at,
                                                           const Written& object) {
  const Program::Field& field = listing_.program->fields[at.extra];
  const std::string& name = field.owner->attributes[field.slot].name;
  const ClassInfo& info = *object.module->info();
  const int64_t place = info.slot(name);
  if (place < 0) return std::nullopt;
  const IValue& value = object.module->slots[static_cast<size_t>(place)];
  StructMembers& members = out_.members_of(object.module);
  const std::string path = object.text.empty() ? "" : object.text + "->";
  Written made;
  made.type = info.attributes[static_cast<size_t>(place)].type;
  if (name == "training" && value.isBool()) {
    made.text = path + "is_training()";
    return made;
  }
  const bool assigned = out_.is_assigned(&info, name);
  if (value.isNone() && !assigned) {
    made.constant = &value;
    return made;
  }
  if (value.isDevice() && !assigned && means(value.toDevice(), out_.unit.home)) {
    made.type = Type::of(Kind::kDevice);
    made.text = path + out_.device_of(members);
    return made;
  }
  if (const auto child = module_in(value)) made.module = child;
  else if (value.isTensor() && !assigned) made.type = Type::of(Kind::kTensor);
  else if (words_.type(made.type).empty()) return std::nullopt;
  if (!made.module && !value.isTensor()) members.used.insert(name);
  made.text = path + out_.member_name(members, name);
  return made;
}

void FunctionWriter::note_place(uint32_t number, size_t instruction, size_t block) {
  Slot& slot = slots_[number];
  if (slot.alias) return;
  slot.last = std::max(slot.last, instruction);
  if (slot.block == kNowhere) {
    slot.block = block;
    slot.first = instruction;
    return;
  }
  slot.block = common(slot.block, block);
}

void FunctionWriter::note_operands(size_t instruction, size_t block) {
  const Instruction& at = listing_.program->instructions[instruction];
  for (size_t i = 0; i < at.count; ++i)
    if (const Operand o = listing_.program->operands[at.first + i]; !o.is_constant())
      note_place(o.index(), instruction, block);
}

size_t FunctionWriter::common(size_t a, size_t b) const {
  // A block has a larger number than the one that it is in.
  while (a != b) (a > b ? a : b) = parents_[std::max(a, b)];
  return a;
}

void FunctionWriter::find_places(const std::vector<Step>& steps, size_t block) {
  const Program& p = *listing_.program;
  const auto inner = [&](const std::vector<Step>& inside) {
    const size_t id = parents_.size();
    parents_.push_back(block);
    ids_[&inside] = id;
    find_places(inside, id);
  };
  for (const Step& step : steps) {
    const Instruction& at = p.instructions[step.at];
    // The condition of a while is computed inside of it.
    if (step.kind == Step::Kind::kWhile) {
      const size_t id = parents_.size();
      parents_.push_back(block);
      ids_[&step.body] = id;
      find_places(step.head, id);
      note_operands(step.at, id);
      find_places(step.body, id);
      continue;
    }
    note_operands(step.at, block);
    if (at.result != Instruction::kNone) note_place(at.result, step.at, block);
    if (step.kind == Step::Kind::kIf || step.kind == Step::Kind::kFor ||
        step.kind == Step::Kind::kWith)
      inner(step.body);
    if (step.kind == Step::Kind::kIf) inner(step.other);
  }
}

// The file's names where there are some; other values are called after what computes them.
void FunctionWriter::name_slots() {
  const Program& p = *listing_.program;
  for (size_t i = 0; i < slots_.size(); ++i)
    if (!slots_[i].alias && !listing_.names[i].empty())
      slots_[i].name = cpp_name(listing_.names[i], taken_);
  for (const Instruction& at : p.instructions) {
    if (at.result == Instruction::kNone || slots_[at.result].alias) continue;
    Slot& slot = slots_[at.result];
    if (!slot.name.empty()) continue;
    std::string name = "value";
    if (at.code == Code::kCall) {
      name = p.operators[at.extra]->name;
      name = name.substr(name.rfind(':') + 1);
      while (name.size() > 1 && name.front() == '_') name.erase(0, 1);
      while (name.size() > 1 && name.back() == '_') name.pop_back();
    } else if (at.code == Code::kList) {
      name = "list";
    } else if (at.code == Code::kObject) {
      name = p.classes[at.extra]->name;
      name = name.substr(name.rfind('.') + 1);
    } else if (at.code == Code::kMove && at.count == 1 && p.operands[at.first].is_constant()) {
      name = "at";
    } else if (at.code == Code::kFunction || at.code == Code::kMethod) {
      const Written self = at.count > 0 ? operand(at, 0) : Written();
      if (self.module && !self.text.empty()) {
        const size_t last = self.text.rfind('>');
        name = "after_" + self.text.substr(last == std::string::npos ? 0 : last + 1);
      } else if (at.code == Code::kFunction) {
        name = p.functions[at.extra]->name;
        name = name.substr(name.rfind('.') + 1);
      }
    }
    slot.name = cpp_name(name, taken_);
  }
}

}  // namespace ramet::script
