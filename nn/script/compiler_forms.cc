// Compiling the words of the language: annotate, isinstance, getattr, fork, casts.
#include <algorithm>

#include "nn/script/compiler_internal.h"

namespace ramet::script {

using TypeKind = Type::Kind;
using MeaningKind = Meaning::Kind;

namespace {

void names_in(const Expression* e, std::set<std::string>& names) {
  if (!e) return;
  if (e->kind == Expression::Kind::kName) names.insert(e->text);
  for (const ExpressionPtr& item : e->items) names_in(item.get(), names);
  for (const Named& named : e->named) {
    names_in(named.key.get(), names);
    names_in(named.value.get(), names);
  }
}

/// All names in a block: those that it reads are among them.
void names_in(const Block& block, std::set<std::string>& names) {
  for (const Statement& s : block) {
    for (const ExpressionPtr& target : s.targets) names_in(target.get(), names);
    names_in(s.value.get(), names);
    names_in(s.message.get(), names);
    names_in(s.body, names);
    names_in(s.other, names);
    if (s.function) names_in(s.function->body, names);
  }
}

}  // namespace

Value FunctionCompiler::call_form(const std::string& form, const Expression& call,
                                  const TypePtr& hint) {
  const size_t count = call.items.size() - 1;
  const auto expect = [&](size_t least, size_t most) {
    if (count >= least && count <= most && call.named.empty()) return true;
    problem(call.offset, form + ": got " + std::to_string(count + call.named.size()) +
                             " arguments, expected " + std::to_string(least));
    return false;
  };
  if (form == "annotate" || form == "unchecked_cast") {
    if (!expect(2, 2)) return {};
    TypePtr type = type_argument(*call.items[1]);
    Value value = compile_expression(*call.items[2], type);
    if (form == "annotate") value = fit(value, type, "annotate", call.offset);
    if (value) value.type = std::move(type);
    return value;
  }
  if (form == "uninitialized") {  // read by no correct program
    if (!expect(1, 1)) return {};
    return constant(IValue(), type_argument(*call.items[1]));
  }
  if (form == "fork") return call_fork(call);
  if (form == "isinstance") return expect(2, 2) ? call_isinstance(call) : Value();
  if (form == "getattr" || form == "hasattr")
    return expect(2, form == "getattr" ? 3 : 2) ? call_getattr(form, call) : Value();
  static_cast<void>(hint);
  return expect(1, 1) ? call_cast(form, call) : Value();
}

// int(x), float(x), bool(x), str(x): nothing where x has the type.
Value FunctionCompiler::call_cast(const std::string& form, const Expression& call) {
  struct Cast {
    const char* form;
    TypeKind type;
    const char* name;
  };
  constexpr Cast kCasts[] = {{"int", TypeKind::kInt, "aten::Int"},
                             {"float", TypeKind::kFloat, "aten::Float"},
                             {"bool", TypeKind::kBool, "aten::Bool"},
                             {"str", TypeKind::kString, "aten::str"}};
  const Value value = compile_expression(*call.items[1]);
  if (!value) return {};
  const Cast& cast = *std::find_if(std::begin(kCasts), std::end(kCasts),
                                   [&](const Cast& c) { return form == c.form; });
  if (value.type->kind() == cast.type) return value;
  return call_operator(cast.name, {value}, call.offset);
}

Value FunctionCompiler::call_getattr(const std::string& form, const Expression& call) {
  const Value object = compile_expression(*call.items[1]);
  if (!object) return {};
  const Expression& name = *call.items[2];
  if (name.kind != Kind::kString)
    return problem(name.offset, form + ": expected the name as a text");
  const ClassInfo* const info = object.type->info();
  const bool there = !info || info->slot(name.text) >= 0 || info->method(name.text) ||
                     info->constants.count(name.text) != 0;
  if (form == "hasattr") {
    if (!info) return problem(call.offset, "hasattr: expected an object");
    return constant(there, Type::of(TypeKind::kBool));
  }
  if (!there && call.items.size() == 4) return compile_expression(*call.items[3]);
  return value_of(member_of_value(object, name.text, call.offset), call.offset);
}

Value FunctionCompiler::call_isinstance(const Expression& call) {
  const Value value = compile_expression(*call.items[1]);
  const Expression& asked = *call.items[2];
  const bool several = asked.kind == Kind::kList || asked.kind == Kind::kTuple;
  std::vector<TypePtr> types;
  if (several)
    for (const ExpressionPtr& item : asked.items) types.push_back(type_argument(*item));
  else types.push_back(type_argument(asked));
  if (!value) return {};
  return emit_value(Code::kIsInstance, {value.place}, type_number(Type::tuple(types)),
                    Type::of(TypeKind::kBool), call.offset);
}

Value FunctionCompiler::call_tolist(const Value& tensor, const TypePtr& type, size_t offset) {
  const Type* item = type.get();
  while (item->kind() == TypeKind::kList) item = item->element().get();
  const bool number = item->kind() == TypeKind::kInt || item->kind() == TypeKind::kFloat ||
                      item->kind() == TypeKind::kBool;
  if (!number || tensor.type->kind() != TypeKind::kTensor)
    return problem(offset, "tolist: got " + tensor.type->text() + " as " + type->text() +
                               ", expected a tensor as lists of numbers");
  return emit_value(Code::kToList, {tensor.place}, type_number(type), type, offset);
}

// What fork() starts runs at once, in this thread: the results are those of any order.
Value FunctionCompiler::call_fork(const Expression& call) {
  if (call.items.size() < 2) return problem(call.offset, "fork: expected a function");
  const Meaning forked = meaning_of(*call.items[1]);
  if (forked.kind == MeaningKind::kClosure) {
    if (call.items.size() > 2 || !call.named.empty())
      return problem(call.offset, "fork: got arguments of a function that is defined here");
    return fork_closure(forked.closure, call.offset);
  }
  const bool method = forked.kind == MeaningKind::kMethod && forked.value.type->info();
  if (forked.kind != MeaningKind::kFunction && !method) {
    if (forked.kind == MeaningKind::kBad) return {};
    return problem(call.offset, "fork: expected a function or method of the archive");
  }
  ScriptFunction* const function =
      method ? forked.value.type->info()->method(forked.text) : forked.function;
  std::vector<Operand> operands;
  const bool fine =
      function_arguments(*function, method ? &forked.value : nullptr, call, 2, operands);
  const TypePtr result = result_of(*function, call.offset);
  if (!fine || !result) return {};
  return emit_value(Code::kFork, operands, function_number(*function), Type::future(result),
                    call.offset);
}

Value FunctionCompiler::fork_closure(const FunctionSyntaxPtr& closure, size_t offset) {
  if (!closure->parameters.empty())
    return problem(offset, "fork: got a function with parameters, expected none");
  // Forks inside each other: their number may double with each level.
  if (const int64_t most = unit_.limits().expressions / 100; unit_.work.forked > most)
    return problem(offset, "fork: got more than " + std::to_string(most) +
                               " statements and expressions in functions that are forked");
  auto nested = std::make_unique<ScriptFunction>();
  nested->name = function_.name + "." + closure->name;
  nested->source = function_.source;
  nested->syntax = closure;
  FunctionCompiler compiler(unit_, *nested, needs_, interface_calls_, problems_);
  compiler.forked_ = true;
  std::set<std::string> names;
  names_in(closure->body, names);
  std::vector<Operand> operands;
  for (const std::string& name : names) {
    const Meaning* known = scope_.find(name);
    if (!known) continue;
    if (known->kind == MeaningKind::kBad) return {};
    if (known->kind == MeaningKind::kValue) {
      nested->parameters.push_back({name, known->value.type, std::nullopt});
      operands.push_back(known->value.place);
    } else {
      compiler.scope_.set(name, *known);
    }
  }
  nested->program = compiler.compile();
  if (!nested->program) return {};
  TypePtr result = Type::future(nested->result);
  program_->functions.push_back(nested.get());
  program_->nested.push_back(std::move(nested));
  return emit_value(Code::kFork, operands, static_cast<uint32_t>(program_->functions.size() - 1),
                    std::move(result), offset);
}

Value FunctionCompiler::call_wait(const Value& future, size_t offset) {
  if (future.type->kind() != TypeKind::kFuture)
    return problem(offset, "wait: got " + future.type->text() + ", expected a Future");
  return emit_value(Code::kWait, {future.place}, 0, future.type->element(), offset);
}

}  // namespace ramet::script
