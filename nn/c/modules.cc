#include <algorithm>
#include <map>

#include "autograd/grad_mode.h"
#include "nn/c/layers_internal.h"
#include "nn/c/modules_internal.h"
#include "nn/serialize/safetensors.h"
#include "nn/utils/clip_grad.h"
#include "runtime/tensor/print.h"

namespace ramet::c {
namespace {

std::shared_ptr<ModuleObject> made(const char* op, const std::string& json) {
  return module_object(module_of_json(op, json), json);
}

Named state_of(const ModuleObject& object) {
  Named all = object.parameters;
  all.insert(all.end(), object.buffers.begin(), object.buffers.end());
  return all;
}

void copy_all(const Named& to, const std::vector<Tensor>& from) {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < to.size(); ++i) to[i].second.copy_(from[i]);
}

std::string described(const Tensor& t) {
  return ramet::detail::join(toString(t.scalar_type()), " ", t.sizes());
}

// Loads the values for each of `to` that `find` finds by name. All values that do not fit are
// listed in one Error.
void load(const char* op, const std::string& from, const Named& to,
          const std::map<std::string, Tensor>& given) {
  std::string wrong;
  std::vector<Tensor> values;
  size_t known = 0;
  for (const auto& [name, t] : to) {
    const auto found = given.find(name);
    if (found == given.end()) {
      wrong += "\n  missing: " + name + ", " + described(t);
      continue;
    }
    ++known;
    if (found->second.sizes() != t.sizes() || found->second.scalar_type() != t.scalar_type())
      wrong += "\n  " + name + ": expected " + described(t) + ", got " + described(found->second);
    values.push_back(found->second);
  }
  if (known < given.size())
    for (const auto& item : given)
      if (std::none_of(to.begin(), to.end(), [&](const auto& t) { return t.first == item.first; }))
        wrong += "\n  unexpected: " + item.first + ", " + described(item.second);
  RAMET_CHECK(wrong.empty(), op, from, " is of another module:", wrong);
  copy_all(to, values);
}

void load_file(const char* op, const ModuleObject& object, const std::string& path) {
  std::map<std::string, Tensor> given;
  for (auto& [name, t] : serialize::load_safetensors(path).tensors) given.emplace(name, t);
  load(op, "\"" + path + "\"", state_of(object), given);
}

}  // namespace

std::shared_ptr<ModuleObject> module_of(const ramet_module* handle, const char* op,
                                        const char* argument) {
  return object_of<ModuleObject>(handle, op, argument);
}
void list_tensors(ModuleObject& object) {
  const std::shared_ptr<nn::Module> module = object.module.ptr();
  Named parameters, buffers;
  for (const auto& item : module->named_parameters())
    parameters.emplace_back(item.key(), item.value());
  for (const auto& item : module->named_buffers()) buffers.emplace_back(item.key(), item.value());
  object.parameters = std::move(parameters);
  object.buffers = std::move(buffers);
}
std::shared_ptr<ModuleObject> module_object(nn::AnyModule module, std::string json) {
  auto object = std::make_shared<ModuleObject>();
  object->module = std::move(module);
  object->json = std::move(json);
  list_tensors(*object);
  return object;
}
Tensor forward_of(ModuleObject& object, Tensor x) {
  nn::AnyModule& module = object.module;
  return module.maps_tensor() ? module.map_tensor(std::move(x)) : module.forward(std::move(x));
}

}  // namespace ramet::c

using namespace ramet;
using namespace ramet::c;

extern "C" {

ramet_module* ramet_module_new(const char* json, const char* weights) {
  return result_of(__func__, [&](const char* op) {
    const std::shared_ptr<ModuleObject> object = made(op, text(json, op, "json"));
    if (weights) load_file(op, *object, weights);
    return handle_of(object);
  });
}
ramet_module* ramet_module_clone(const ramet_module* module) {
  return result_of(__func__, [&](const char* op) {
    const std::shared_ptr<ModuleObject> from = module_of(module, op);
    if (from->json.empty()) return handle_of(module_object(from->module.clone()));  // a script's
    const std::shared_ptr<ModuleObject> to = made(op, from->json);
    copy_branches(*to, *from);
    std::vector<Tensor> values;
    for (const auto& item : state_of(*from)) values.push_back(item.second);
    copy_all(state_of(*to), values);
    for (size_t i = 0; i < to->parameters.size(); ++i)
      to->parameters[i].second.set_requires_grad(from->parameters[i].second.requires_grad());
    to->module.ptr()->train(from->module.ptr()->is_training());
    return handle_of(to);
  });
}
int ramet_module_free(ramet_module* module) {
  return status_of(__func__, [&](const char* op) { free_handle(Kind::kModule, module, op); });
}
ramet_tensor* ramet_module_forward(const ramet_module* module, const ramet_tensor* input) {
  return result_of(__func__, [&](const char* op) {
    const std::shared_ptr<ModuleObject> object = module_of(module, op);
    return handle_of(forward_of(*object, tensor_of(input, op, "input")));
  });
}
int ramet_module_train(ramet_module* module, int on) {
  return status_of(__func__,
                   [&](const char* op) { module_of(module, op)->module.ptr()->train(on != 0); });
}
int ramet_module_is_training(const ramet_module* module, int* on) {
  return status_of(__func__, [&](const char* op) {
    there(on, op, "on") = module_of(module, op)->module.ptr()->is_training();
  });
}
int ramet_module_zero_grad(ramet_module* module, int set_to_none) {
  return status_of(__func__, [&](const char* op) {
    module_of(module, op)->module.ptr()->zero_grad(set_to_none != 0);
  });
}

int ramet_module_parameter_count(const ramet_module* module, int64_t* count) {
  return status_of(__func__, [&](const char* op) {
    there(count, op, "count") = static_cast<int64_t>(module_of(module, op)->parameters.size());
  });
}
int ramet_module_parameter_numel(const ramet_module* module, int64_t* numel) {
  return status_of(__func__, [&](const char* op) {
    int64_t sum = 0;
    for (const auto& item : module_of(module, op)->parameters) sum += item.second.numel();
    there(numel, op, "numel") = sum;
  });
}
const char* ramet_module_parameter_name(const ramet_module* module, int64_t index) {
  return result_of(__func__, [&](const char* op) {
    const std::shared_ptr<ModuleObject> object = module_of(module, op);
    const auto count = static_cast<int64_t>(object->parameters.size());
    RAMET_CHECK(index >= 0 && index < count, op, "index: expected 0 to ", count - 1, ", got ",
                index);
    return object->parameters[static_cast<size_t>(index)].first.c_str();
  });
}
ramet_tensor* ramet_module_parameter(const ramet_module* module, const char* name) {
  return result_of(__func__, [&](const char* op) {
    const std::shared_ptr<ModuleObject> object = module_of(module, op);
    const std::string wanted = text(name, op, "name");
    std::string all;
    for (const Named* list : {&object->parameters, &object->buffers})
      for (const auto& [known, t] : *list) {
        if (known == wanted) return handle_of(t);
        if (all.size() < 1000) all += (all.empty() ? "" : ", ") + known;
        else if (all.back() != '.') all += ", ...";
      }
    fail(op, "no parameter \"", wanted, "\": got a module with ", all.empty() ? "none" : all);
  });
}
int ramet_module_assign(ramet_module* module, const ramet_module* from) {
  return status_of(__func__, [&](const char* op) {
    const std::shared_ptr<ModuleObject> to = module_of(module, op),
                                        source = module_of(from, op, "from");
    std::map<std::string, Tensor> given;
    for (const auto& item : state_of(*source)) given.insert(item);
    load(op, "from", state_of(*to), given);
  });
}
int ramet_module_clip_grad_norm(ramet_module* module, double max_norm, double* norm) {
  return status_of(__func__, [&](const char* op) {
    const double was =
        nn::utils::clip_grad_norm_(module_of(module, op)->module.ptr()->parameters(), max_norm);
    if (norm) *norm = was;
  });
}

int ramet_module_save(const ramet_module* module, const char* path) {
  return status_of(__func__, [&](const char* op) {
    serialize::Safetensors content;
    content.tensors = state_of(*module_of(module, op));
    const NoGradGuard no_grad;
    serialize::save_safetensors(text(path, op, "path"), content);
  });
}
int ramet_module_load(ramet_module* module, const char* path) {
  return status_of(__func__, [&](const char* op) {
    load_file(op, *module_of(module, op), text(path, op, "path"));
  });
}

}  // extern "C"
