// The modules that hold an exported program's tensors: "features.0.weight" is the attribute
// `weight` of the module `0` in the module `features`.
#include <algorithm>

#include "nn/script/exported/exported_internal.h"

namespace ramet::script {
namespace {

std::vector<std::string> split(const std::string& target) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t dot = target.find('.'); dot != std::string::npos; dot = target.find('.', from)) {
    parts.push_back(target.substr(from, dot - from));
    from = dot + 1;
  }
  parts.push_back(target.substr(from));
  return parts;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text = "[";
  for (const std::string& name : names) text.append(quoted(name)).append(", ");
  if (!names.empty()) text.pop_back();
  return text + "]";
}

std::string declared(const std::string& name, const std::string& type) {
  return Namer::is_identifier(name) ? name + " : " + type
                                    : "__annotations__[" + quoted(name) + "] = " + type;
}

constexpr const char* kFolder = "__torch__.exported.";

}  // namespace

ExportedModules::ExportedModules(const std::vector<Attached>& state) {
  Namer names;
  std::map<std::string, size_t> by_path;
  parts_.push_back({names.unique("Module"), {}, {}});
  by_path[""] = 0;
  for (const Attached& attached : state) {
    const std::vector<std::string> path = split(attached.target);
    size_t at = 0;
    std::string whole;
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      whole.append(".").append(path[i]);
      const auto [known, is_new] = by_path.emplace(whole, parts_.size());
      if (is_new) {
        parts_[at].parts.emplace_back(path[i], parts_.size());
        parts_.push_back({names.unique("Module" + whole), {}, {}});
      }
      at = known->second;
    }
    parts_[at].tensors.emplace_back(path.back(), &attached);
  }
}

std::string ExportedModules::expression(const std::string& target) {
  std::string text = "self";
  for (const std::string& name : split(target))
    text = Namer::is_identifier(name) ? text + "." + name
                                      : "getattr(" + text + ", " + quoted(name) + ")";
  return text;
}

void ExportedModules::print(PrintedLines& into, const PrintedLines& methods) const {
  for (const Part& part : parts_) {
    into.add(0, "class " + part.name + "(Module):");
    std::vector<std::string> parameters, buffers;
    for (const auto& [name, attached] : part.tensors)
      (attached->parameter ? parameters : buffers).push_back(name);
    into.add(1, "__parameters__ = " + list_of(parameters));
    into.add(1, "__buffers__ = " + list_of(buffers));
    for (const auto& [name, attached] : part.tensors) into.add(1, declared(name, "Tensor"));
    into.add(1, "training : bool");
    for (const auto& [name, number] : part.parts)
      into.add(1, declared(name, kFolder + parts_[number].name));
    if (&part == &parts_.front()) into.add(methods);
  }
}

std::shared_ptr<Object> ExportedModules::make(const std::shared_ptr<CompilationUnit>& unit) const {
  return make(unit, 0);
}

std::shared_ptr<Object> ExportedModules::make(const std::shared_ptr<CompilationUnit>& unit,
                                              size_t number) const {
  const Part& part = parts_[number];
  ClassInfo* const info = unit->class_named(kFolder + part.name);
  const auto made = std::make_shared<Object>(unit, info);
  const auto set = [&](const std::string& name, IValue value) {
    made->slots.at(static_cast<size_t>(info->slot(name))) = std::move(value);
  };
  for (const auto& [name, attached] : part.tensors) set(name, attached->tensor);
  for (const auto& [name, below] : part.parts)
    set(name, IValue(IValue::ObjectPtr(make(unit, below))));
  set("training", true);
  return made;
}

}  // namespace ramet::script
