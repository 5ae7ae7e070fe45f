// `with` blocks and fork() as C++.
//
// PyTorch's own classes for blocks are guards of C++. A guard stands in the place of the object's
// creation, of __init__() and of __enter__(). An object of another class keeps its methods. Then a
// guard calls __exit__() on every way out.
#include <algorithm>

#include "nn/script/interpreter_internal.h"
#include "nn/script/translation/translation_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

constexpr const char* kNoGrad = "__torch__.torch.autograd.grad_mode.no_grad";
constexpr const char* kGradMode = "__torch__.exported.GradMode";
constexpr const char* kSpan = "__torch__.torch.autograd.profiler.record_function";

const char* device_kind(const std::string& device) {
  return Device(device).type() == kCUDA ? "ramet::kCUDA" : "ramet::kCPU";
}

size_t parameter_named(const ScriptFunction& function, const std::string& name) {
  size_t i = 0;
  while (i < function.parameters.size() && function.parameters[i].name != name) ++i;
  return i;
}

}  // namespace

// Blocks with an object that is made, initialized and entered in one place, and used nowhere else.
void FunctionWriter::find_guards() {
  const Program& p = *listing_.program;
  const auto uses = [&](uint32_t slot) {
    return std::count_if(p.operands.begin(), p.operands.end(),
                         [&](const Operand& o) { return !o.is_constant() && o.index() == slot; });
  };
  for (size_t i = 1; i < p.instructions.size(); ++i) {
    const Instruction &enter = p.instructions[i], &init = p.instructions[i - 1];
    if (enter.code != Code::kEnter || init.code != Code::kFunction || init.count == 0) continue;
    const Operand object = p.operands[enter.first];
    if (object.is_constant() || p.operands[init.first].is_constant() ||
        p.operands[init.first].index() != object.index() || uses(object.index()) != 2 ||
        slots_[object.index()].writes != 1 ||
        (enter.result != Instruction::kNone && uses(enter.result) != 0))
      continue;
    const ScriptFunction& function = *p.functions[init.extra];
    if (!function.owner || function.name != function.owner->name + ".__init__") continue;
    size_t made = 0;
    while (made < i && p.instructions[made].result != object.index()) ++made;
    if (made == i || p.instructions[made].code != Code::kObject) continue;
    guards_[i] = i - 1;
    if (guard_text(i).empty()) {
      guards_.erase(i);
      continue;
    }
    unwritten_.insert({made, i - 1});
    slots_[object.index()].alias = Written();
    for (const uint32_t result : {enter.result, init.result})
      if (result != Instruction::kNone) slots_[result].alias = Written();
  }
}

// The type and the arguments of the guard of a block; empty where there is none.
std::string FunctionWriter::guard_text(size_t i) {
  const Program& p = *listing_.program;
  const Instruction& init = p.instructions[guards_.at(i)];
  const ScriptFunction& function = *p.functions[init.extra];
  const std::string name = unmangled(function.owner->name);
  const auto argument = [&](size_t place, const char* reader) {
    return place < init.count ? words_.argument(operand(init, place), reader).value_or("") : "";
  };
  if (name == kNoGrad && init.count == 1) return "ramet::NoGradGuard no_grad";
  if (name == kGradMode && init.count == 2) {
    const std::string on = argument(1, "truth");
    return on.empty() ? on : "ramet::AutoGradMode mode(" + on + ")";
  }
  if (name == kSpan && init.count >= 2) {
    const std::string text = argument(1, "text");
    return text.empty() ? text : "ramet::RecordScope span(" + text + ")";
  }
  if (!is_autocast_class(name)) return "";
  const size_t device = parameter_named(function, "device_type");
  const size_t dtype = parameter_named(function, "dtype");
  if (device >= init.count || dtype >= init.count) return "";
  const Written kind = operand(init, device), type = operand(init, dtype);
  const std::string on = argument(parameter_named(function, "enabled"), "truth");
  if (!kind.constant || !kind.constant->isString() || !type.constant || on.empty()) return "";
  const std::string on_device = device_kind(kind.constant->toStringRef());
  return "ramet::AutocastGuard autocast(" + on_device + ", " +
         (type.constant->isNone() ? "ramet::autocast::get_autocast_dtype(" + on_device + ")"
                                  : argument(dtype, "dtype")) +
         ", " + on + ")";
}

void FunctionWriter::write_with(const Step& step, size_t block, int depth) {
  const Program& p = *listing_.program;
  const Instruction& at = p.instructions[step.at];
  // "TYPE name(...)" with a name that is free.
  const auto declare = [&](const std::string& text, size_t name_at) {
    const size_t end = std::min(text.find('(', name_at), text.size());
    line(depth + 1, "const " + text.substr(0, name_at) +
                        cpp_name(text.substr(name_at, end - name_at), taken_) + text.substr(end) +
                        ";");
  };
  if (guards_.count(step.at) != 0) {
    const std::string guard = guard_text(step.at);
    line(depth, "{");
    declare(guard, guard.find(' ') + 1);
  } else {
    const ScriptFunction &enter = *p.functions[at.extra], &exit = *p.functions[at.extra + 1];
    const Written object = operand(at, 0);
    StructMembers* const members = out_.members_of(enter.owner);
    if (!members || !object.type || object.constant || object.module)
      return problem(step.at, "with: an object of a class that C++ cannot write");
    const std::string path = object.self ? "" : object.text + "->";
    const auto method = [&](const ScriptFunction& function) {
      return path + out_.method_name(*members, const_cast<ScriptFunction&>(function));
    };
    const TypePtr type = at.result == Instruction::kNone ? nullptr : slots_[at.result].type;
    line(depth, assignment(step.at, method(enter) + "()", type));
    line(depth, "{");
    if (is_autocast_class(enter.owner->name)) {
      const auto member = [&](const char* name) { return path + out_.member_name(*members, name); };
      declare("ramet::AutocastGuard autocast(ramet::Device(" + member("device") +
                  ").type(), python::scalar_type(" + member("fast_dtype") + "), " +
                  member("_enabled") + ")",
              21);
    }
    std::string nones;
    for (size_t k = 1; k < exit.parameters.size(); ++k) {
      const IValue none;
      Written value;
      value.constant = &none;
      nones += (k > 1 ? ", " : "") + words_.value(value, exit.parameters[k].type).value_or("{}");
    }
    line(depth + 1, "const python::Leave " + cpp_name("leave", taken_) + "([&] { " + method(exit) +
                        "(" + nones + "); });");
  }
  write_block(step.body, ids_[&step.body], depth + 1);
  line(depth, "}");
  static_cast<void>(block);
}

// What runs is a call, or the body of a function that is defined here.
std::optional<std::string> FunctionWriter::fork_text(const Instruction& at, size_t i) {
  const Program& p = *listing_.program;
  const auto& function = const_cast<ScriptFunction&>(*p.functions[at.extra]);
  const bool nested = std::any_of(p.nested.begin(), p.nested.end(),
                                  [&](const auto& one) { return one.get() == &function; });
  const std::string type = words_.type(function.result);
  if (type.empty()) {
    problem(i, "fork: " + function.result->text() + " is no type of C++ here");
    return std::nullopt;
  }
  const std::string made = "python::Future<" + type + ">([&] {";
  if (!nested) {
    Instruction call = at;
    call.code = Code::kFunction;
    const auto text = function_text(call, i);
    if (!text) return std::nullopt;
    const bool none = function.result->kind() == Kind::kNone;
    return made +
           (none ? " " + *text + "; return std::monostate(); })" : " return " + *text + "; })");
  }
  FunctionWriter inner(out_, const_cast<ScriptFunction&>(function), self_);
  inner.inside_ = true;
  inner.taken_ = taken_;
  for (size_t k = 0; k < at.count; ++k) {
    inner.slots_[k].alias = operand(at, k);
    if (inner.slots_[k].alias->type && !inner.slots_[k].alias->module)
      inner.slots_[k].type = inner.slots_[k].alias->type;
  }
  if (!inner.prepare()) return std::nullopt;
  inner.write_block(inner.steps_, 0, depth_ + 1);
  taken_ = inner.taken_;
  return made + "\n" + inner.text_ + std::string(static_cast<size_t>(2 * depth_), ' ') + "})";
}

}  // namespace ramet::script
