// Compiling an archive's functions: which ones, and what is wrong with them.
#include <algorithm>
#include <sstream>

#include "nn/script/compiler_internal.h"

namespace ramet::script {
namespace {

constexpr const char* kLoad = "torch::jit::load";
/// Places that are listed of one problem, and problems of one report.
constexpr size_t kPlaces = 3, kProblems = 100;
/// Limits::depth bounds each function. Functions that are compiled inside each other add up, to at
/// most so many times the limit: each level takes memory of the stack.
constexpr int64_t kDepths = 5;

}  // namespace

const Meaning* Scope::find(const std::string& name) const {
  const auto at = names_.find(name);
  return at == names_.end() ? nullptr : &at->second;
}

void Scope::set(const std::string& name, Meaning meaning) {
  const auto at = names_.find(name);
  if (at == names_.end()) {
    journal_.emplace_back(name, std::nullopt);
    names_.emplace(name, std::move(meaning));
    return;
  }
  journal_.emplace_back(name, std::move(at->second));
  at->second = std::move(meaning);
}

void Scope::erase(const std::string& name) {
  const auto at = names_.find(name);
  if (at == names_.end()) return;
  journal_.emplace_back(name, std::move(at->second));
  names_.erase(at);
}

Scope::Changes Scope::since(size_t mark) const {
  Changes changes;
  for (size_t i = mark; i < journal_.size(); ++i) {
    const std::string& name = journal_[i].first;
    const Meaning* now = find(name);
    Meaning missing;
    missing.kind = Meaning::Kind::kMissing;
    changes[name] = now ? *now : missing;
  }
  return changes;
}

Scope::Changes Scope::before(size_t mark) const {
  Changes changes;
  Meaning missing;
  missing.kind = Meaning::Kind::kMissing;
  for (size_t i = mark; i < journal_.size(); ++i)
    changes.emplace(journal_[i].first, journal_[i].second.value_or(missing));
  return changes;
}

void Scope::undo(size_t mark) {
  while (journal_.size() > mark) {
    auto& [name, before] = journal_.back();
    if (before) names_[name] = std::move(*before);
    else names_.erase(name);
    journal_.pop_back();
  }
}

FunctionCompiler::FunctionCompiler(CompilationUnit& unit, ScriptFunction& function,
                                   std::vector<ScriptFunction*>& needs,
                                   std::set<std::string>& interface_calls,
                                   std::vector<Problem>& problems)
    : unit_(unit),
      function_(function),
      needs_(needs),
      interface_calls_(interface_calls),
      problems_(problems),
      program_(std::make_shared<Program>()) {}

std::shared_ptr<const Program> FunctionCompiler::compile() {
  const size_t problems = problems_.size();
  compile_body();
  if (problems_.size() != problems) return nullptr;
  place_values(*program_);
  return program_;
}

void FunctionCompiler::compile_body() {
  program_->function = &function_;
  program_->limits = unit_.limits();
  result_stated_ = function_.result != nullptr;
  for (const FunctionParameter& parameter : function_.parameters) {
    Meaning meaning;
    meaning.kind = Meaning::Kind::kValue;
    meaning.value = {Operand::slot(slot_of(parameter.name)), parameter.type};
    note_type(meaning.value.place.index(), parameter.type);
    scope_.set(parameter.name, meaning);
  }
  compile_block(function_.syntax->body);
  if (reachable_) {  // a function without `return` returns None
    Statement none{};
    none.kind = Statement::Kind::kReturn;
    none.offset = function_.syntax->offset;
    compile_return(none);
  }
  if (!function_.result) function_.result = Type::of(Type::Kind::kNone);
}

Value FunctionCompiler::problem(size_t offset, const std::string& what) {
  problems_.push_back({what, function_.source, offset, function_.name});
  return {};
}

FunctionCompiler::Deeper::Deeper(FunctionCompiler& compiler)
    : work_(compiler.unit_.work), most_(kDepths * compiler.unit_.limits().depth) {
  ++work_.depth;
  if (compiler.forked_) ++work_.forked;
}

std::string Problem::place() const { return source->place(offset) + ", in " + function; }

void CompilationUnit::compile(ScriptFunction& function) {
  std::vector<ScriptFunction*> waiting{&function};
  ++compiling_;
  while (!waiting.empty()) {
    while (!waiting.empty()) {
      ScriptFunction& next = *waiting.back();
      waiting.pop_back();
      if (next.owner && next.owner->kind == ClassInfo::Kind::kInterface) continue;  // has no body
      if (!started_.insert(&next).second) continue;
      unreported_.push_back(&next);
      if (compiling_ > limits_.depth) {
        problems_.push_back({next.name +
                                 ": functions without stated results call each other: got " +
                                 std::to_string(compiling_) + " deep, expected at most " +
                                 std::to_string(limits_.depth),
                             next.source, next.syntax->offset, next.name});
        continue;
      }
      try {
        next.program =
            FunctionCompiler(*this, next, waiting, interface_calls_, problems_).compile();
      } catch (const Error& e) {  // of a text that is read on demand
        problems_.push_back({e.what(), next.source, next.syntax->offset, next.name});
      }
    }
    // A value of an interface's type may be of any class that has the methods.
    for (size_t i = 0; i < classes_.size(); ++i)
      if (classes_[i]->kind != ClassInfo::Kind::kInterface)
        for (const std::string& name : interface_calls_)
          if (ScriptFunction* method = classes_[i]->method(name))
            if (started_.count(method) == 0) waiting.push_back(method);
  }
  --compiling_;
}

void CompilationUnit::report_problems() {
  const std::vector<ScriptFunction*> compiled = std::move(unreported_);
  const std::vector<Problem> problems = std::move(problems_);
  unreported_.clear();
  problems_.clear();
  work.forked = 0;
  if (problems.empty()) {
    reported_calls_ = interface_calls_;
    return;
  }
  // What failed may be tried again, and so may what calls it.
  interface_calls_ = reported_calls_;
  for (ScriptFunction* function : compiled) {
    started_.erase(function);
    function->program = nullptr;
    if (!function->syntax->result) function->result = nullptr;
  }
  std::vector<std::pair<std::string, std::vector<const Problem*>>> kinds;  // in order of appearance
  std::map<std::string, size_t> known;
  for (const Problem& problem : problems) {
    const auto [at, is_new] = known.emplace(problem.what, kinds.size());
    if (is_new) kinds.push_back({problem.what, {}});
    kinds[at->second].second.push_back(&problem);
  }
  auto text = detail::classic<std::ostringstream>();
  text << "the code does not fit: got " << kinds.size()
       << (kinds.size() == 1 ? " problem" : " problems") << ", expected none";
  for (size_t i = 0; i < std::min(kinds.size(), kProblems); ++i) {
    const auto& [what, places] = kinds[i];
    text << "\n  " << what;
    for (size_t j = 0; j < std::min(places.size(), kPlaces); ++j)
      text << "\n    at " << places[j]->place();
    if (places.size() > kPlaces) text << "\n    and " << places.size() - kPlaces << " more places";
  }
  if (kinds.size() > kProblems) text << "\n  and " << kinds.size() - kProblems << " more problems";
  fail(kLoad, text.str());
}

}  // namespace ramet::script
