#include "nn/utils/lora.h"

#include <nlohmann/json.hpp>
#include <set>

#include "nn/c/modules_internal.h"
#include "nn/c/reader_internal.h"
#include "nn/layers/basic/linear.h"
#include "nn/serialize/safetensors.h"

namespace ramet::c {
namespace {

// "layers": the names of the Linear layers, by default all of them.
std::set<std::string> layers_of(Reader& r, nn::Module& module) {
  std::set<std::string> known, chosen;
  for (const auto& item : module.named_modules())
    if (item.value()->as<nn::LinearImpl>()) known.insert(item.key());
  const Json* const list = r.entry("layers");
  if (!list) return known;
  if (!list->is_array() || list->empty()) r.refuse("layers", "a list of names", *list);
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& name = (*list)[i];
    const bool fits = name.is_string() && known.count(name.get<std::string>()) != 0;
    if (!fits)
      r.refuse("layers[" + std::to_string(i) + "]", "the name of a Linear layer of the module",
               name);
    chosen.insert(name.get<std::string>());
  }
  return chosen;
}

}  // namespace

void copy_branches(ModuleObject& to, const ModuleObject& from) {
  bool any = false;
  for (const auto& item : from.module.ptr()->named_modules()) {
    const auto* const linear = item.value()->as<nn::LinearImpl>();
    if (!linear || !linear->lora()) continue;
    nn::apply_lora(to.module.ptr(), *linear->lora(),
                   [&](const std::string& name) { return name == item.key(); });
    any = true;
  }
  if (any) list_tensors(to);
}

}  // namespace ramet::c

using namespace ramet;
using namespace ramet::c;

extern "C" {

int ramet_module_apply_lora(ramet_module* module, const char* options) {
  return status_of(__func__, [&](const char* op) {
    const std::shared_ptr<ModuleObject> object = module_of(module, op);
    const auto json = parse_json(op, text(options, op, "options"));
    Reader r(op, *json, "", "LoRA");
    r.need("rank"), r.need("alpha");
    nn::LoRAOptions branch(0, 0);
    r.read({{"rank", &branch.rank()}, {"alpha", &branch.alpha()}, {"dropout", &branch.dropout()}});
    const std::set<std::string> layers = layers_of(r, *object->module.ptr());
    r.finish();
    nn::apply_lora(object->module.ptr(), branch,
                   [&](const std::string& name) { return layers.count(name) != 0; });
    list_tensors(*object);
  });
}
int ramet_module_merge_lora(ramet_module* module) {
  return status_of(__func__, [&](const char* op) {
    const std::shared_ptr<ModuleObject> object = module_of(module, op);
    nn::merge_lora(object->module.ptr());
    list_tensors(*object);
  });
}
int ramet_module_save_lora(const ramet_module* module, const char* path) {
  return status_of(__func__, [&](const char* op) {
    serialize::Safetensors content;
    content.tensors = nn::lora_state_dict(module_of(module, op)->module.ptr());
    RAMET_CHECK(!content.tensors.empty(), op,
                "the module has no LoRA branch: expected ramet_module_apply_lora before");
    serialize::save_safetensors(text(path, op, "path"), content);
  });
}
int ramet_module_load_lora(ramet_module* module, const char* path) {
  return status_of(__func__, [&](const char* op) {
    const std::shared_ptr<ModuleObject> object = module_of(module, op);
    nn::load_lora_state_dict(object->module.ptr(),
                             serialize::load_safetensors(text(path, op, "path")).tensors);
  });
}

}  // extern "C"
