// Programs of TorchScript as texts: no archive is needed to compile and run them.
#pragma once
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "nn/script/unit_internal.h"

namespace ramet::script {

/// A unit of these modules: "__torch__" is code/__torch__.py.
inline std::shared_ptr<CompilationUnit> unit_of(std::map<std::string, std::string> texts,
                                                Limits limits = {},
                                                std::vector<IValue> constants = {}) {
  auto lookup = [texts = std::move(texts)](const std::string& module) -> SourcePtr {
    const auto at = texts.find(module);
    if (at == texts.end()) return nullptr;
    auto source = std::make_shared<Source>();
    source->name = "code/" + module + ".py";
    source->text = at->second;
    // As if every text had been written in one Python file, from line 100 on.
    source->origins.push_back({0, "model.py", 100});
    return source;
  };
  return std::make_shared<CompilationUnit>(std::move(lookup), std::move(constants), 10, limits);
}
inline std::shared_ptr<CompilationUnit> unit_of(const std::string& text, Limits limits = {},
                                                std::vector<IValue> constants = {}) {
  return unit_of(std::map<std::string, std::string>{{"__torch__", text}}, limits,
                 std::move(constants));
}

/// The function "__torch__.<name>", compiled without problems.
inline const ScriptFunction& compiled(CompilationUnit& unit, const std::string& name) {
  ScriptFunction* const function = unit.function_named("__torch__." + name);
  unit.compile(*function);
  unit.report_problems();
  return *function;
}

/// Calls the function f of a text.
inline IValue run_text(const std::string& text, std::vector<IValue> arguments = {}) {
  const auto unit = unit_of(text);
  return call(compiled(*unit, "f"), std::move(arguments));
}

/// As an IValue prints.
inline std::string printed(const IValue& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

/// [[-2, -1, 0], [1, 2, 3]].
inline Tensor six() { return arange(6, kDouble).view({2, 3}) - 2; }

/// An object with all its methods compiled; its slots are None.
inline std::shared_ptr<Object> object_of(const std::shared_ptr<CompilationUnit>& unit,
                                         const std::string& name) {
  ClassInfo* const info = unit->class_named("__torch__." + name);
  for (const auto& method : info->methods) unit->compile(*method);
  return std::make_shared<Object>(unit, info);
}

}  // namespace ramet::script
