// Devices and tensors of the code: they follow the module.
//
// Note [Places in translations]
// A device of the code that was the module's is written as the device of one of its tensors. So it
// follows to(), clones and replicas, as in the interpreter (Note [Moved modules]). A struct without
// a tensor in it or below it gets an empty buffer for that. Functions outside of classes have no
// tensors: one that names such a device, or a tensor, is a method of each struct that calls it. In
// a method of a plain class the device is the one of the file.
#include "autograd/ops/make/factory.h"
#include "nn/script/translation/translation_internal.h"

namespace ramet::script {
namespace {

// Does the code itself name a tensor, or a device that may be the module's?
bool names_place(const Program& program, Device home) {
  for (const IValue& constant : program.constants) {
    if (constant.isTensor() ? constant.toTensor().defined() : constant.isTensorList()) return true;
    if (constant.isDevice() && means(constant.toDevice(), home)) return true;
  }
  return false;
}

}  // namespace

// The function, or one outside of classes that it calls.
bool ModuleWriter::needs_module(const ScriptFunction& function) {
  if (const auto known = needy_.find(&function); known != needy_.end()) return known->second;
  std::vector<const ScriptFunction*> waiting{&function};
  std::set<const ScriptFunction*> seen{&function};
  bool needs = false;
  while (!needs && !waiting.empty()) {
    auto& next = const_cast<ScriptFunction&>(*waiting.back());
    waiting.pop_back();
    const Program& program = *listing(next).program;
    needs = names_place(program, unit.home);
    for (const ScriptFunction* called : program.functions)
      if (!called->owner && seen.insert(called).second) waiting.push_back(called);
  }
  return needy_[&function] = needs;
}

std::string ModuleWriter::adopted_name(StructMembers& members, ScriptFunction& function) {
  members.adopted.insert(&function);
  return method_name(members, function);
}

// The path of a tensor that is always there: the object's own, or that of a module in it.
std::string ModuleWriter::tensor_path(const Object& object, std::set<const Object*>& seen) {
  if (!seen.insert(&object).second) return "";
  const auto& attributes = object.info()->attributes;
  StructMembers& members = *members_.at(&object);
  for (size_t i = 0; i < attributes.size(); ++i) {
    const IValue& value = object.slots[i];
    if (value.isTensor() && value.toTensor().defined() &&
        means(value.toTensor().device(), unit.home) &&
        !is_assigned(object.info(), attributes[i].name))
      return member_name(members, attributes[i].name);
  }
  for (size_t i = 0; i < attributes.size(); ++i)
    if (const auto child = module_in(object.slots[i]))
      if (const std::string path = tensor_path(*child, seen); !path.empty())
        return member_name(members, attributes[i].name) + "->" + path;
  return "";
}

std::string ModuleWriter::device_of(StructMembers& members) {
  std::set<const Object*> seen;
  if (members.place.empty()) members.place = tensor_path(*members.object, seen);
  if (members.place.empty()) {
    members.place = cpp_name("place", members.taken);
    members.constants.emplace_back(members.place, empty({0}, TensorOptions(unit.home)));
  }
  return members.place + ".device()";
}

}  // namespace ramet::script
