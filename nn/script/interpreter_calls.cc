// Calls from outside, frames, and values that instructions make.
#include <algorithm>

#include "autograd/schema/spans_internal.h"
#include "nn/script/archive_internal.h"
#include "nn/script/interpreter_internal.h"

namespace ramet::script {
namespace {

constexpr const char* kRun = "torch::jit";
constexpr size_t kChunk = 256;  // slots that a machine takes at once

IValue held_as(const IValue& value, const TypePtr& type);

/// A tuple with its elements held so. Where a NamedTuple is expected, a plain tuple becomes one.
IValue tuple_as(const IValue& value, const Type& type) {
  const IValue::Tuple& tuple = value.toTupleRef();
  if (tuple.size() != type.elements().size()) return value;
  std::vector<IValue> elements;
  for (size_t i = 0; i < tuple.size(); ++i)
    elements.push_back(held_as(tuple.elements()[i], type.element(i)));
  auto names = tuple.names();
  if (!names && !type.name().empty())
    names = std::make_shared<const IValue::Tuple::Names>(
        IValue::Tuple::Names{type.name(), type.fields()});
  return IValue::TuplePtr(
      std::make_shared<const IValue::Tuple>(std::move(elements), std::move(names)));
}

/// `value` as a script holds values of the type. Lists from C++ programs may hold any values, and a
/// number may be an int.
IValue held_as(const IValue& value, const TypePtr& type) {
  if (type->kind() == Type::Kind::kFloat && value.isInt())
    return static_cast<double>(value.toInt());
  if (type->kind() == Type::Kind::kOptional && !value.isNone())
    return held_as(value, type->element());
  if (type->kind() == Type::Kind::kTuple && value.isTuple()) return tuple_as(value, *type);
  if (type->kind() != Type::Kind::kList || !value.isList()) return value;
  const auto elements_fit = [&] {  // of an untyped list
    const IValue::GenericList list = value.toList();
    for (size_t i = 0; i < list.size(); ++i)
      if (!has_type(list.get(i), type->element())) return false;
    return true;
  };
  switch (type->element()->kind()) {
    case Type::Kind::kInt: return value.isIntList() || !elements_fit() ? value : value.toIntList();
    case Type::Kind::kFloat:
      return value.isDoubleList() || !elements_fit() ? value : value.toDoubleList();
    case Type::Kind::kBool:
      return value.isBoolList() || !elements_fit() ? value : value.toBoolList();
    case Type::Kind::kTensor:
      return value.isTensorList() || !elements_fit() ? value : value.toTensorList();
    default: return value;
  }
}

/// The default is its own in each call: the function may change it.
IValue default_of(const FunctionParameter& parameter) {
  const IValue& value = *parameter.value;
  return value.isList() || value.isTuple() || value.isGenericDict()
             ? DeepCopy(std::nullopt).of(value)
             : value;
}

template <class T> IValue numbers_of(const Tensor& tensor, int64_t dim, const T*& at) {
  if (dim == tensor.dim()) return IValue(*at++);
  if (dim + 1 == tensor.dim()) {
    List<T> list;
    list.reserve(static_cast<size_t>(tensor.size(dim)));
    for (int64_t i = 0; i < tensor.size(dim); ++i) list.push_back(*at++);
    return list;
  }
  IValue::GenericList list;
  for (int64_t i = 0; i < tensor.size(dim); ++i) list.push_back(numbers_of(tensor, dim + 1, at));
  return list;
}

template <class T> IValue numbers_of(const Tensor& tensor, ScalarType type) {
  const Tensor plain = tensor.detach().to(Device("cpu")).to(type).contiguous();
  const T* at = plain.data_ptr<T>();
  return numbers_of(plain, 0, at);
}

}  // namespace

IValue lists_of(const Tensor& tensor, const TypePtr& type) {
  int64_t depth = 0;
  const Type* item = type.get();
  for (; item->kind() == Type::Kind::kList; item = item->element().get()) ++depth;
  RAMET_CHECK(tensor.dim() == depth, "tolist", "got a tensor of ", tensor.dim(),
              " dimensions, expected ", depth, " for ", type->text());
  const ScalarType from = tensor.scalar_type();
  const auto check = [&](bool fits) {
    RAMET_CHECK(fits, "tolist", "got a tensor of ", from, ", expected one for ", type->text());
  };
  switch (item->kind()) {
    case Type::Kind::kInt:
      check(isIntegralType(from, false));
      return numbers_of<int64_t>(tensor, kInt64);
    case Type::Kind::kBool: check(from == kBool); return numbers_of<bool>(tensor, kBool);
    default: check(isFloatingType(from)); return numbers_of<double>(tensor, kFloat64);
  }
}

IValue* Machine::take(size_t count) {
  size_t at = chunk_;
  while (at < chunks_.size() && chunks_[at].size - chunks_[at].used < count) ++at;
  if (at == chunks_.size()) {
    Chunk chunk;
    chunk.size = std::max(count, kChunk);
    chunk.slots = std::make_unique<IValue[]>(chunk.size);
    chunks_.push_back(std::move(chunk));
  }
  chunk_ = at;  // nothing has changed where there was no memory
  Chunk& chunk = chunks_[chunk_];
  chunk.used += count;
  return chunk.slots.get() + chunk.used - count;
}

void Machine::give_back(IValue* slots, size_t count) {
  for (size_t i = 0; i < count; ++i) slots[i] = IValue();
  while (chunks_[chunk_].used == 0 && chunk_ > 0) --chunk_;
  chunks_[chunk_].used -= count;
}

IValue Machine::call(const ScriptFunction& function, IValue* arguments, size_t count) {
  RAMET_CHECK(function.program, kRun, function.name,
              "(): got a function that has not been compiled, expected compile() before a call");
  RAMET_CHECK(recursion_ > 0, kRun, "recursion: got more than ", function.program->limits.recursion,
              " calls inside each other, expected at most so many (Limits::recursion)");
  RAMET_CHECK(count == function.parameters.size(), kRun, function.name, "(): got ", count,
              " arguments, expected ", function.parameters.size());
  struct Taken {
    Machine& machine;
    size_t count;
    IValue* slots;
    ~Taken() {
      machine.give_back(slots, count);
      ++machine.recursion_;
    }
  };
  const Program& program = *function.program;
  const Taken taken{*this, program.slots, take(program.slots)};
  --recursion_;
  for (size_t i = 0; i < count; ++i) taken.slots[i] = std::move(arguments[i]);
  return run(program, taken.slots);
}

IValue call(const ScriptFunction& function, std::vector<IValue> arguments,
            const std::vector<std::pair<std::string, IValue>>& by_name) {
  RAMET_CHECK(function.program, kRun, function.name,
              "(): got a function that has not been compiled, expected compile() before a call");
  const char* const name = function.name.c_str();
  const std::vector<FunctionParameter>& parameters = function.parameters;
  RAMET_CHECK(arguments.size() <= parameters.size(), name, "got ", arguments.size(),
              " arguments, expected at most ", parameters.size());
  const size_t positional = arguments.size();
  std::vector<IValue> values = std::move(arguments);
  values.resize(parameters.size());
  std::vector<bool> given(parameters.size(), false);
  std::fill_n(given.begin(), positional, true);
  for (const auto& [key, value] : by_name) {
    size_t i = 0;
    while (i < parameters.size() && parameters[i].name != key) ++i;
    RAMET_CHECK(i < parameters.size(), name, "got an argument '", key,
                "', expected a name of a parameter");
    RAMET_CHECK(!given[i], name, "got the argument '", key, "' twice, expected it once");
    values[i] = value;
    given[i] = true;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const FunctionParameter& parameter = parameters[i];
    RAMET_CHECK(given[i] || parameter.value, name, "got no argument '", parameter.name,
                "', expected ", parameter.type->text());
    if (!given[i]) values[i] = default_of(parameter);
    values[i] = held_as(values[i], parameter.type);
    RAMET_CHECK(has_type(values[i], parameter.type), name, "argument '", parameter.name, "': got ",
                values[i].tagKind(), ", expected ", parameter.type->text());
  }
  const SpansOfCall spans;
  return Machine(function.program->limits).call(function, values.data(), values.size());
}

IValue call_module(const std::shared_ptr<Object>& module, std::vector<IValue> arguments,
                   const std::vector<std::pair<std::string, IValue>>& by_name) {
  const ClassInfo& info = *module->info();
  const auto method = [&](const std::string& name) -> const ScriptFunction& {
    const ScriptFunction* found = info.method(name);
    RAMET_CHECK(found, kRun, info.name, ": got a call of ", name, "(), expected a method");
    return *found;
  };
  const IValue self = IValue::ObjectPtr(module);
  for (const std::string& hook : info.pre_hooks) {
    const IValue result = call(method(hook), {self, IValue::Tuple::create(arguments)});
    if (result.isTuple()) arguments = result.toTupleRef().elements();
    else if (!result.isNone()) arguments = {result};
  }
  std::vector<IValue> all{self};
  all.insert(all.end(), arguments.begin(), arguments.end());
  IValue output = call(method("forward"), std::move(all), by_name);
  for (const std::string& hook : info.hooks) {
    IValue result = call(method(hook), {self, IValue::Tuple::create(arguments), output});
    if (!result.isNone()) output = std::move(result);
  }
  return output;
}

}  // namespace ramet::script
