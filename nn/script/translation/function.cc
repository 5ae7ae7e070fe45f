// One function as C++: its statements.
#include <algorithm>

#include "nn/script/translation/translation_internal.h"

namespace ramet::script {

using Kind = Type::Kind;

namespace {
constexpr size_t kLine = 100;  // columns, where a line can be broken

/// Does it change a list, a dictionary or a tensor in its place?
bool writes(const Operator& op) {
  for (const Parameter& parameter : op.parameters)
    if (parameter.written && parameter.type->kind() != Kind::kTensor) return true;
  return false;
}
}  // namespace

FunctionWriter::FunctionWriter(ModuleWriter& out, ScriptFunction& function, StructMembers* self)
    : out_(out),
      function_(function),
      self_(self),
      takes_self_(self && self->adopted.count(&function) == 0),
      words_(out.words),
      listing_(out.listing(function)),
      slots_(listing_.program->slots) {
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].type = listing_.types[i];
}

void FunctionWriter::problem(size_t i, const std::string& what) {
  const auto& offsets = listing_.program->offsets;
  out_.problem(function_, i < offsets.size() ? offsets[i] : function_.syntax->offset, what);
}

void FunctionWriter::line(int depth, const std::string& text) {
  text_.append(static_cast<size_t>(2 * depth), ' ').append(text).append("\n");
}

// False where a problem has been recorded.
bool FunctionWriter::prepare() {
  find_aliases();
  find_guards();
  auto steps = structure_of(*listing_.program);
  if (!steps) {
    problem(kNowhere, "its branches and loops do not nest");
    return false;
  }
  steps_ = std::move(*steps);
  parents_.push_back(0);
  // Parameters belong to the outermost block, wherever they are read.
  for (size_t i = 0; i < function_.parameters.size(); ++i) slots_[i].block = 0;
  find_places(steps_, 0);
  name_slots();
  return true;
}

std::string FunctionWriter::write(const std::string& name) {
  if (self_) taken_ = self_->taken;
  taken_.insert("python");
  // Of tensors in lists and tuples of the code.
  if (self_ && self_->object)
    words_.tensor_name = [this](const Tensor& t) {
      return t.defined() ? self_->constant_name(t) : std::string("ramet::Tensor()");
    };
  else words_.tensor_name = nullptr;
  if (!prepare()) return "";
  const size_t first = takes_self_ ? 1 : 0;
  for (size_t i = first; i < function_.parameters.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.name.empty()) slot.name = cpp_name(function_.parameters[i].name, taken_);
    slot.type = function_.parameters[i].type;
    slot.declared = true;
  }
  const int depth = self_ && self_->object ? 1 : 0;
  write_block(steps_, 0, depth + 1);
  line(depth, "}");
  const std::string body = std::move(text_);
  text_.clear();
  line(depth, heading(name, body));
  return text_ + body;
}

// What the body does not name has its name in a comment.
std::string FunctionWriter::heading(const std::string& name, const std::string& body) {
  std::string parameters;
  for (size_t i = takes_self_ ? 1 : 0; i < function_.parameters.size(); ++i) {
    const FunctionParameter& parameter = function_.parameters[i];
    const std::string type = words_.type(parameter.type);
    if (type.empty())
      problem(kNowhere, "parameter '" + parameter.name + "': " + parameter.type->text() +
                            " is no type of C++ here");
    const std::string& own = slots_[i].name;
    parameters += (parameters.empty() ? "" : ", ") + type + " " +
                  (has_word(body, own) ? own : "/*" + own + "*/");
  }
  const bool none = function_.result->kind() == Kind::kNone;
  const std::string result = none ? "void" : words_.type(function_.result);
  if (result.empty())
    problem(kNowhere, "result: " + function_.result->text() + " is no type of C++ here");
  const bool member = self_ && self_->object;
  return (member ? "" : "inline ") + result + " " + (self_ && !member ? self_->name + "::" : "") +
         name + "(" + parameters + ") {";
}

Written FunctionWriter::written(Operand operand) const {
  Written made;
  if (operand.is_constant()) {
    made.constant = &listing_.program->constants[operand.index()];
    made.type = listing_.constants[operand.index()];
    if (!self_ || !self_->object) return made;
    if (made.constant->isDevice() && means(made.constant->toDevice(), out_.unit.home)) {
      made.constant = nullptr;
      made.type = Type::of(Kind::kDevice);
      made.text = out_.device_of(*self_);
      return made;
    }
    if (!made.constant->isTensor() || !made.constant->toTensor().defined()) return made;
    // A tensor of the code becomes a buffer.
    const Tensor& t = made.constant->toTensor();
    made.constant = nullptr;
    made.type = Type::of(Kind::kTensor);
    made.text = self_->constant_name(t);
    return made;
  }
  const Slot& slot = slots_[operand.index()];
  if (slot.alias) return *slot.alias;
  made.text = slot.name;
  made.type = slot.type;
  return made;
}

Written FunctionWriter::operand(const Instruction& at, size_t i) const {
  return written(listing_.program->operands[at.first + i]);
}

// Variables that this step names first, inside of a block, and that live after it.
void FunctionWriter::declare_before(const Step& step, size_t block, int depth) {
  if (step.kind == Step::Kind::kInstruction) return;
  std::vector<const std::vector<Step>*> waiting{&step.head, &step.body, &step.other};
  while (!waiting.empty()) {
    const std::vector<Step>& steps = *waiting.back();
    waiting.pop_back();
    for (const Step& inner : steps) {
      waiting.insert(waiting.end(), {&inner.head, &inner.body, &inner.other});
      const uint32_t result = listing_.program->instructions[inner.at].result;
      if (result == Instruction::kNone) continue;
      Slot& slot = slots_[result];
      if (slot.alias || slot.declared || slot.block != block) continue;
      slot.declared = true;
      const std::string type = words_.type(slot.type);
      if (type.empty())
        problem(inner.at, "'" + slot.name + "': " +
                              (slot.type ? slot.type->text() + " is no type of C++ here"
                                         : "has values of several types"));
      line(depth, type + " " + slot.name + "{};");
    }
  }
}

void FunctionWriter::write_block(const std::vector<Step>& steps, size_t block, int depth) {
  for (size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    declare_before(step, block, depth);
    switch (step.kind) {
      case Step::Kind::kInstruction: {
        // A counter's start is written with its loop.
        const bool starts = s + 1 < steps.size() && steps[s + 1].kind == Step::Kind::kFor;
        const auto& instructions = listing_.program->instructions;
        if (starts && instructions[step.at].code == Code::kMove &&
            instructions[step.at].result ==
                listing_.program->operands[instructions[steps[s + 1].at].first].index()) {
          write_loop(steps[s + 1], &step, depth);
          ++s;
        } else {
          write_instruction(step.at, block, depth);
        }
        break;
      }
      case Step::Kind::kIf: {
        const std::string holds = condition(step.at);
        if (step.body.empty()) {
          line(depth, "if (!" + holds + ") {");
          write_block(step.other, ids_[&step.other], depth + 1);
        } else {
          line(depth, "if (" + holds + ") {");
          write_block(step.body, ids_[&step.body], depth + 1);
          if (!step.other.empty()) {
            line(depth, "} else {");
            write_block(step.other, ids_[&step.other], depth + 1);
          }
        }
        line(depth, "}");
        break;
      }
      case Step::Kind::kWhile:
      case Step::Kind::kFor: write_loop(step, nullptr, depth); break;
      case Step::Kind::kWith: write_with(step, block, depth); break;
      case Step::Kind::kBreak: line(depth, "break;"); break;
      case Step::Kind::kContinue: line(depth, "continue;"); break;
    }
  }
}

// `before`: the move that sets the counter, or null.
void FunctionWriter::write_loop(const Step& step, const Step* before, int depth) {
  const Instruction& at = listing_.program->instructions[step.at];
  const size_t id = ids_[&step.body];
  if (step.kind == Step::Kind::kWhile) {
    if (step.head.empty()) {
      line(depth, "while (" + condition(step.at) + ") {");
    } else {
      line(depth, "while (true) {");
      write_block(step.head, id, depth + 1);
      line(depth + 1, "if (!" + condition(step.at) + ") break;");
    }
    write_block(step.body, id, depth + 1);
    line(depth, "}");
    return;
  }
  const Written counter = operand(at, 0), end = operand(at, 1), by = operand(at, 2);
  const auto last = words_.argument(end, "integer");
  const bool known = by.constant && by.constant->isInt() && by.constant->toInt() != 0;
  if (!last || !known) {
    problem(step.at,
            "range(): got bounds that C++ cannot write, expected ints and a constant step");
    return;
  }
  const int64_t stride = by.constant->toInt();
  std::string first;
  if (before) {
    Slot& slot = slots_[listing_.program->instructions[before->at].result];
    const auto from =
        words_.argument(operand(listing_.program->instructions[before->at], 0), "integer");
    first = (slot.declared ? "" : "int64_t ") + slot.name + " = " + from.value_or("0");
  }
  line(depth,
       "for (" + first + "; " + counter.text + (stride > 0 ? " < " : " > ") + *last + "; " +
           (stride == 1 ? "++" + counter.text : counter.text + " += " + std::to_string(stride)) +
           ") {");
  write_block(step.body, id, depth + 1);
  line(depth, "}");
}

std::string FunctionWriter::condition(size_t i) {
  const auto text = words_.argument(operand(listing_.program->instructions[i], 0), "truth");
  if (!text) problem(i, "a condition that C++ cannot write");
  const std::string made = text.value_or("");
  return made.find(' ') == std::string::npos ? made : "(" + made + ")";
}

// A tensor gives its memory back after its last use, as in the interpreter.
std::string FunctionWriter::releases(size_t i, size_t block) const {
  const Instruction& at = listing_.program->instructions[i];
  std::string text;
  std::set<uint32_t> seen;
  for (size_t k = 0; k < at.count; ++k) {
    const Operand o = listing_.program->operands[at.first + k];
    if (o.is_constant() || o.index() == at.result || !seen.insert(o.index()).second) continue;
    const Slot& slot = slots_[o.index()];
    if (slot.alias || slot.last != i || slot.block != block || !slot.type) continue;
    if (slot.type->kind() == Kind::kTensor) text += " " + slot.name + ".reset();";
  }
  return text;
}

std::string FunctionWriter::assignment(size_t i, const std::string& value, const TypePtr& type) {
  const uint32_t result = listing_.program->instructions[i].result;
  if (result == Instruction::kNone) return value + ";";
  Slot& slot = slots_[result];
  if (slot.writes > 0 && slot.last == i && slot.first == i && !slot.declared) {
    const Instruction& at = listing_.program->instructions[i];
    const bool no_value = slot.type && slot.type->kind() == Kind::kNone;
    const bool changes = at.code == Code::kCall && writes(*listing_.program->operators[at.extra]);
    if (no_value || changes) return value + ";";
    return (value.rfind("throw ", 0) == 0 ? "" : "static_cast<void>(") + value +
           (value.rfind("throw ", 0) == 0 ? ";" : ");");
  }
  std::string declared;
  if (!slot.declared) {
    slot.declared = true;
    declared = words_.type(slot.type);
    if (declared.empty())
      problem(i, "'" + slot.name + "': " +
                     (slot.type ? slot.type->text() + " is no type of C++ here"
                                : "has values of several types"));
    if (declared == "ramet::Tensor" && type && type->kind() == Kind::kTensor) declared = "auto";
    if (value.rfind("std::make_shared<", 0) == 0 || value.rfind("python::Future<", 0) == 0)
      declared = "auto";
    declared += " ";
  }
  // "std::vector<int64_t> x = std::vector<int64_t>{1}" says its type twice.
  const std::string of_type = declared.substr(0, declared.empty() ? 0 : declared.size() - 1) + "{";
  const bool twice = of_type.size() > 1 && value.rfind(of_type, 0) == 0;
  return declared + slot.name + " = " + (twice ? value.substr(of_type.size() - 1) : value) + ";";
}

void FunctionWriter::write_instruction(size_t i, size_t block, int depth) {
  if (unwritten_.count(i) != 0) return;
  depth_ = depth;
  const Instruction& at = listing_.program->instructions[i];
  const bool alias = at.result != Instruction::kNone && slots_[at.result].alias.has_value();
  switch (at.code) {
    case Code::kFree:
    case Code::kExit: return;
    case Code::kGet:
    case Code::kMove:
      if (alias) return;
      break;
    case Code::kReturn: {
      if (function_.result->kind() == Kind::kNone)
        return line(depth, inside_ ? "return std::monostate();" : "return;");
      const auto text = words_.value(operand(at, 0), function_.result);
      if (!text) problem(i, "the result: got a value that C++ cannot write");
      return line(depth, "return " + text.value_or("") + ";");
    }
    case Code::kFail: {
      const auto text = words_.argument(operand(at, 0), "text");
      if (!text) problem(i, "raise: got a text that is not a constant");
      return line(depth, "throw ramet::Error(" + text.value_or("") + ");");
    }
    case Code::kCheckSize: {
      const Written list = operand(at, 0);
      if (list.type && list.type->kind() == Kind::kTuple) return;
      return line(depth,
                  "if (" + list.text + ".size() != " + std::to_string(at.extra) +
                      ") throw ramet::Error(\"unpacking: got another number of values than " +
                      std::to_string(at.extra) + "\");");
    }
    default: break;
  }
  const auto value = value_text(i);
  if (!value) return;  // a problem has been recorded
  const TypePtr type = at.result == Instruction::kNone ? nullptr : slots_[at.result].type;
  const std::string statement = assignment(i, *value, type), freed = releases(i, block);
  const bool fits = static_cast<size_t>(2 * depth) + statement.size() + freed.size() <= kLine;
  line(depth, statement + (fits ? freed : ""));
  if (!fits && !freed.empty()) line(depth, freed.substr(1));
}

}  // namespace ramet::script
