// What one instruction computes, as an expression of C++.
#include "nn/script/translation/translation_internal.h"

namespace ramet::script {

using Kind = Type::Kind;

// A cast that no value passes: in a frozen file, `if not isinstance(x, Tensor)` is still there
// where x is known to be a tensor. C++ needs a value of that type.
std::optional<std::string> FunctionWriter::impossible_cast(const Written& from,
                                                           const TypePtr& type) const {
  const std::string name = words_.type(type);
  const auto is_plain = [](const TypePtr& one) {
    switch (one->kind()) {
      case Kind::kTensor:
      case Kind::kInt:
      case Kind::kFloat:
      case Kind::kBool:
      case Kind::kString:
      case Kind::kDevice:
      case Kind::kList:
      case Kind::kDict:
      case Kind::kTuple: return true;
      default: return false;
    }
  };
  if (from.constant || !from.type || name.empty() || from.type->kind() == type->kind() ||
      !is_plain(from.type) || !is_plain(type))
    return std::nullopt;
  return "python::impossible<" + name + ">(" +
         cpp_text("unchecked_cast: got a " + from.type->text() + ", expected a " + type->text()) +
         ")";
}

std::optional<std::string> FunctionWriter::value_text(size_t i) {
  const Program& p = *listing_.program;
  const Instruction& at = p.instructions[i];
  const TypePtr type = at.result == Instruction::kNone ? nullptr : slots_[at.result].type;
  std::optional<std::string> text;
  switch (at.code) {
    case Code::kCall: return call_text(at, i);
    case Code::kFunction:
    case Code::kMethod: return function_text(at, i);
    case Code::kChange: text = change_text(at); break;
    case Code::kMove:
      text = words_.value(operand(at, 0), type);
      if (!text) text = impossible_cast(operand(at, 0), type);
      break;
    case Code::kItem: {
      const Written from = operand(at, 0);
      if (from.constant || !from.type) break;
      const bool tuple = from.type->kind() == Kind::kTuple;
      if (!tuple && from.type->kind() != Kind::kList) break;
      Written item;
      item.type = from.type->element(tuple ? at.extra : 0);
      item.text = tuple ? "std::get<" + std::to_string(at.extra) + ">(" + from.text + ")"
                        : from.text + "[" + std::to_string(at.extra) + "]";
      text = type ? words_.value(item, type) : item.text;
      break;
    }
    case Code::kList:
    case Code::kTuple: {
      const std::string name = words_.type(type);
      if (name.empty()) break;
      std::string items;
      bool fine = true;
      for (size_t k = 0; k < at.count; ++k) {
        const auto item =
            words_.value(operand(at, k), type->element(at.code == Code::kTuple ? k : 0));
        fine = fine && item;
        items += (k > 0 ? ", " : "") + item.value_or("");
      }
      if (fine) text = name + "{" + items + "}";
      break;
    }
    case Code::kDict: {
      const std::string name = words_.type(type);
      if (name.empty()) break;
      std::string items;
      bool fine = true;
      for (size_t k = 0; k + 1 < at.count; k += 2) {
        const auto key = words_.value(operand(at, k), type->element(0));
        const auto value = words_.value(operand(at, k + 1), type->element(1));
        fine = fine && key && value;
        items += (k > 0 ? ", {" : "{") + key.value_or("") + ", " + value.value_or("") + "}";
      }
      if (fine) text = name + "{" + items + "}";
      break;
    }
    case Code::kSet: return set_text(at, i);
    case Code::kGet:
      if (const auto member = attribute(at)) text = words_.value(*member, type);
      if (!text) problem(i, "an attribute that is no tensor, number or text of a known module");
      return text;
    case Code::kFork: return fork_text(at, i);
    case Code::kWait: {
      const Written future = operand(at, 0);
      if (future.type && !future.constant) text = future.text + ".wait()";
      break;
    }
    case Code::kObject: {
      const auto known = words_.structs.find(p.classes[at.extra]);
      if (known != words_.structs.end()) text = "std::make_shared<" + known->second + ">()";
      break;
    }
    case Code::kSameEnum:
      text = operand(at, 0).text + "->name == " + operand(at, 1).text + "->name";
      break;
    case Code::kIsInstance: text = words_.is_instance(operand(at, 0), *p.types[at.extra]); break;
    case Code::kToList: {
      const auto tensor = words_.argument(operand(at, 0), "tensor");
      const std::string name = words_.type(p.types[at.extra]);
      if (tensor && !name.empty()) text = "python::Listed<" + name + ">::of(" + *tensor + ")";
      break;
    }
    default: problem(i, "a form of the language that has no C++"); return text;
  }
  if (!text) problem(i, "a value of a type that C++ cannot write");
  return text;
}

std::optional<std::string> FunctionWriter::call_text(const Instruction& at, size_t i) {
  const Operator& op = *listing_.program->operators[at.extra];
  std::vector<Written> arguments;
  for (size_t k = 0; k < at.count; ++k) arguments.push_back(operand(at, k));
  const TypePtr type = at.result == Instruction::kNone ? nullptr : slots_[at.result].type;
  auto text = words_.call(op, arguments, type);
  if (!text) problem(i, op.text());
  return text;
}

std::optional<std::string> FunctionWriter::function_text(const Instruction& at, size_t i) {
  const Program& p = *listing_.program;
  std::string name;
  size_t first = 0;
  const ScriptFunction* called = nullptr;
  const Written self = at.count > 0 ? operand(at, 0) : Written();
  if (self.module) {
    first = 1;
    called = at.code == Code::kMethod ? self.module->info()->method(p.names[at.extra])
                                      : p.functions[at.extra];
    if (!called) {
      problem(i, "a method that the object does not have");
      return std::nullopt;
    }
    // A function outside of classes that takes a module is a method of its struct.
    const std::string own = called->owner ? "" : "this->";
    name = (self.text.empty() ? own : self.text + "->") +
           out_.method_name(out_.members_of(self.module), const_cast<ScriptFunction&>(*called));
  } else if (at.code == Code::kFunction && !p.functions[at.extra]->owner) {
    called = p.functions[at.extra];
    auto& function = const_cast<ScriptFunction&>(*called);
    // With this-> or its namespace: a variable may have the function's name.
    if (self_ && self_->object && out_.needs_module(function))
      name = "this->" + out_.adopted_name(*self_, function);
    else name = out_.space() + "::" + out_.function_name(function);
  } else {
    StructMembers* const members =
        at.code == Code::kFunction ? out_.members_of(p.functions[at.extra]->owner) : nullptr;
    const auto object =
        self.type
            ? words_.value(self, p.functions.empty() || !members ? self.type : members->info->type)
            : std::nullopt;
    if (!members || !object) {
      problem(i, "a call of a method whose object is not known beforehand");
      return std::nullopt;
    }
    first = 1;
    called = p.functions[at.extra];
    name = (self.self ? "" : *object + "->") +
           out_.method_name(*members, const_cast<ScriptFunction&>(*called));
  }
  std::string arguments;
  for (size_t k = first; k < at.count; ++k) {
    const auto text = words_.value(operand(at, k), called->parameters.at(k).type);
    if (!text) {
      problem(i, called->name + ": argument '" + called->parameters[k].name +
                     "' is a value that C++ cannot write");
      return std::nullopt;
    }
    arguments += (k > first ? ", " : "") + *text;
  }
  return name + "(" + arguments + ")";
}

// A tensor of a module is a member and in the registry.
std::optional<std::string> FunctionWriter::set_text(const Instruction& at, size_t i) {
  const auto member = attribute(at);
  const Written object = operand(at, 0);
  const Program::Field& field = listing_.program->fields[at.extra];
  const ClassInfo::Attribute& a = field.owner->attributes[field.slot];
  if (object.module && a.name == "training") {
    const auto on = words_.argument(operand(at, 1), "truth");
    if (on && object.text.empty()) return "set_own_training(" + *on + ")";
  }
  const auto value = member && !member->module && !member->constant && a.name != "training"
                         ? words_.value(operand(at, 1), member->type)
                         : std::nullopt;
  if (!value) {
    problem(i, "an assignment to the attribute '" + a.name + "'");
    return std::nullopt;
  }
  std::string text = member->text + " = " + *value;
  if (!object.module) return text;
  const int64_t place = object.module->info()->slot(a.name);
  if (!object.module->slots[static_cast<size_t>(place)].isTensor()) return text;
  const bool optional = member->type->kind() == Kind::kOptional;
  return text + "; " + (object.text.empty() ? "" : object.text + "->") +
         (a.parameter ? "set_own_parameter(" : "set_own_buffer(") + cpp_text(a.name) + ", " +
         member->text + (optional ? ".value_or(ramet::Tensor())" : "") + ")";
}

std::optional<std::string> FunctionWriter::change_text(const Instruction& at) {
  const Program::Change& change = listing_.program->changes[at.extra];
  const Written value = operand(at, 0);
  using Change = Match::Change;
  switch (change.what) {
    case Change::kNone: return words_.value(value, change.parameter.type);
    case Change::kRepeat: {
      const auto number = words_.argument(value, "integer");
      if (!number) return std::nullopt;
      const std::string list =
          "std::vector<int64_t>(" + std::to_string(change.parameter.repeat) + ", " + *number + ")";
      const TypePtr ints = Type::list(Type::of(Kind::kInt));
      return words_.is_shared(ints) ? words_.type(ints) + "(" + list + ")" : list;
    }
    case Change::kTensorToInt:
    case Change::kTensorToFloat:
    case Change::kTensorToNumber: {
      const auto tensor = words_.argument(value, "tensor");
      if (!tensor) return std::nullopt;
      return *tensor + (change.what == Change::kTensorToInt     ? ".item<int64_t>()"
                        : change.what == Change::kTensorToFloat ? ".item<double>()"
                                                                : ".item()");
    }
    case Change::kIntToFloat: return words_.argument(value, "real");
    case Change::kTensorsToInts: {
      const auto tensors = words_.argument(value, "tensors");
      if (!tensors) return std::nullopt;
      const TypePtr ints = Type::list(Type::of(Kind::kInt));
      const std::string list = "python::ints(" + *tensors + ")";
      return words_.is_shared(ints) ? words_.type(ints) + "(" + list + ")" : list;
    }
    case Change::kTupleToList: {
      if (!value.type || value.type->kind() != Kind::kTuple || value.constant) return std::nullopt;
      TypePtr list = change.parameter.type;
      if (list->kind() == Kind::kOptional) list = list->element();
      const std::string name = words_.type(list);
      if (name.empty()) return std::nullopt;
      std::string items;
      for (size_t k = 0; k < value.type->elements().size(); ++k)
        items += (k > 0 ? ", " : "") + std::string("std::get<") + std::to_string(k) + ">(" +
                 value.text + ")";
      return name + "{" + items + "}";
    }
    // A list of a dictionary's keys or values has its type already.
    case Change::kItemsToList: return words_.value(value, value.type);
    case Change::kEmptyList: {
      TypePtr list = change.parameter.type;
      if (list->kind() == Kind::kOptional) list = list->element();
      const std::string name = words_.type(list);
      return name.empty() ? std::nullopt : std::optional<std::string>(name + "()");
    }
    case Change::kIntsToFloats: {
      const auto list = words_.argument(value, "integers");
      if (!list || value.constant) return std::nullopt;
      return "python::floats(" + *list + ")";
    }
  }
  return std::nullopt;
}

}  // namespace ramet::script
