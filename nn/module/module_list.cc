#include "nn/module/module_list.h"

#include <ostream>

#include "nn/module/class_name.h"

namespace ramet::nn {

std::shared_ptr<Module> ModuleListImpl::clone(const std::optional<Device>& device) const {
  auto made = std::make_shared<ModuleListImpl>();
  for (const auto& module : modules_) made->push_back(module->clone(device));
  made->copy_flags_from(*this);
  return made;
}
void ModuleListImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::ModuleList");
}

void ModuleListImpl::push_back(std::shared_ptr<Module> module) {
  register_module(std::to_string(modules_.size()), module);
  modules_.push_back(std::move(module));
}

void ModuleListImpl::insert(size_t index, std::shared_ptr<Module> module) {
  RAMET_CHECK(index <= size(), "ModuleList", "Index out of range: got ", index,
              ", expected at most ", size());
  if (index == size()) return push_back(std::move(module));
  modules_.insert(modules_.begin() + static_cast<ptrdiff_t>(index), std::move(module));
  for (size_t i = index; i + 1 < size(); ++i) replace_module(std::to_string(i), modules_[i]);
  register_module(std::to_string(size() - 1), modules_.back());
}

std::shared_ptr<Module> ModuleDictImpl::clone(const std::optional<Device>& device) const {
  auto made = std::make_shared<ModuleDictImpl>();
  for (const auto& item : modules_) made->insert(item.key(), item.value()->clone(device));
  made->copy_flags_from(*this);
  return made;
}
void ModuleDictImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::ModuleDict");
}

void ModuleDictImpl::insert(const std::string& key, std::shared_ptr<Module> module) {
  if (contains(key)) {
    modules_[key] = module;
    replace_module(key, std::move(module));
  } else {
    register_module(key, module);
    modules_.insert(key, std::move(module));
  }
}
std::vector<std::pair<std::string, std::shared_ptr<Module>>> ModuleDictImpl::items() const {
  return modules_.pairs();
}
std::vector<std::string> ModuleDictImpl::keys() const { return modules_.keys(); }
std::vector<std::shared_ptr<Module>> ModuleDictImpl::values() const { return modules_.values(); }
bool ModuleDictImpl::contains(const std::string& key) const noexcept {
  return modules_.contains(key);
}
void ModuleDictImpl::clear() {
  for (const std::string& key : keys()) unregister_module(key);
  modules_.clear();
}
std::shared_ptr<Module> ModuleDictImpl::pop(const std::string& key) {
  std::shared_ptr<Module> module = modules_[key];
  unregister_module(key);
  modules_.erase(key);
  return module;
}

template class Cloneable<ModuleListImpl>;
template class Cloneable<ModuleDictImpl>;

}  // namespace ramet::nn
