// Modules of the C interface, for its functions of several files.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/c/handles_internal.h"

namespace ramet::c {

using Named = std::vector<std::pair<std::string, Tensor>>;

std::shared_ptr<ModuleObject> module_of(const ramet_module* handle, const char* op,
                                        const char* argument = "module");
/// Lists the module's parameters and buffers anew.
RAMET_API void list_tensors(ModuleObject& object);
/// A module as an object, with its tensors listed. `json`: of which it was made; empty for scripts.
RAMET_API std::shared_ptr<ModuleObject> module_object(nn::AnyModule module, std::string json = {});
/// What the module makes of `x`.
Tensor forward_of(ModuleObject& object, Tensor x);
/// Adds branches to `to`, a module of the same description, where `from` has LoRA branches.
void copy_branches(ModuleObject& to, const ModuleObject& from);

}  // namespace ramet::c
