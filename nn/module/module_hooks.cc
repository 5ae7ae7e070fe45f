// Hooks of a module: kept in a list that is replaced, never changed, so that modules may share it.
#include "nn/module/module_hooks.h"

#include <algorithm>

#include "nn/module/computed_parameter.h"
#include "runtime/capture/capture.h"

namespace ramet::nn {

namespace {
std::shared_ptr<ModuleHooks> copy_of(const std::shared_ptr<const ModuleHooks>& hooks) {
  return hooks ? std::make_shared<ModuleHooks>(*hooks) : std::make_shared<ModuleHooks>();
}

template <class Hook>
unsigned add(std::shared_ptr<const ModuleHooks>& hooks,
             std::vector<std::pair<unsigned, Hook>> ModuleHooks::*list, Hook hook) {
  auto made = copy_of(hooks);
  const unsigned id = made->next_id++;
  ((*made).*list).emplace_back(id, std::move(hook));
  hooks = std::move(made);
  return id;
}
}  // namespace

unsigned Module::register_forward_pre_hook(ForwardPreHook hook) {
  return add(hooks_, &ModuleHooks::pre, std::move(hook));
}
unsigned Module::register_forward_hook(ForwardHook hook) {
  return add(hooks_, &ModuleHooks::post, std::move(hook));
}
unsigned Module::register_forward_scope(ForwardScope scope) {
  return add(hooks_, &ModuleHooks::scopes, std::move(scope));
}
void Module::remove_forward_hook(unsigned handle) {
  auto made = copy_of(hooks_);
  const auto count = [&] { return made->pre.size() + made->post.size() + made->scopes.size(); };
  const size_t before = count();
  const auto is_it = [handle](const auto& hook) { return hook.first == handle; };
  made->pre.erase(std::remove_if(made->pre.begin(), made->pre.end(), is_it), made->pre.end());
  made->post.erase(std::remove_if(made->post.begin(), made->post.end(), is_it), made->post.end());
  made->scopes.erase(std::remove_if(made->scopes.begin(), made->scopes.end(), is_it),
                     made->scopes.end());
  RAMET_CHECK(count() < before, "remove_forward_hook", "no hook with handle ", handle, " in ",
              name());
  hooks_ = std::move(made);
}

std::vector<std::shared_ptr<void>> ModuleHooks::enter(Module& module) const {
  std::vector<std::shared_ptr<void>> entered;
  for (const auto& [id, scope] : scopes) {
    capture::refuse("register_forward_scope", "a module's hook runs on the host");
    entered.push_back(scope(module));
  }
  for (const auto& parameter : computed) entered.push_back(parameter->enter(module));
  return entered;
}
void ModuleHooks::run_pre(Module& module, std::vector<Tensor>& inputs) const {
  const size_t count = inputs.size();
  for (const auto& [id, hook] : pre) {
    capture::refuse("register_forward_pre_hook", "a module's hook runs on the host");
    hook(module, inputs);
    RAMET_CHECK(inputs.size() == count, "forward_pre_hook", "number of inputs after a hook of ",
                module.name(), ": got ", inputs.size(), ", expected ", count);
  }
}
void ModuleHooks::run_post(Module& module, const std::vector<Tensor>& inputs,
                           std::vector<Tensor>& outputs) const {
  const size_t count = outputs.size();
  for (const auto& [id, hook] : post) {
    capture::refuse("register_forward_hook", "a module's hook runs on the host");
    hook(module, inputs, outputs);
    RAMET_CHECK(outputs.size() == count, "forward_hook", "number of outputs after a hook of ",
                module.name(), ": got ", outputs.size(), ", expected ", count);
  }
}

}  // namespace ramet::nn
