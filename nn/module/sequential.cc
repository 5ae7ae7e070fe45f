#include "nn/module/sequential.h"

#include <ostream>

#include "nn/module/class_name.h"

namespace ramet::nn {

SequentialImpl::SequentialImpl(OrderedDict<std::string, AnyModule>&& ordered_dict) {
  modules_.reserve(ordered_dict.size());
  for (auto& item : ordered_dict) push_back(item.key(), std::move(item.value()));
}
SequentialImpl::SequentialImpl(std::initializer_list<NamedAnyModule> named_modules) {
  modules_.reserve(named_modules.size());
  for (const NamedAnyModule& item : named_modules) push_back(item.name(), item.module());
}

void SequentialImpl::push_back(std::string name, AnyModule any_module) {
  register_module(std::move(name), any_module.ptr());
  modules_.push_back(std::move(any_module));
}

std::shared_ptr<Module> SequentialImpl::clone(const std::optional<Device>& device) const {
  auto made = std::make_shared<SequentialImpl>();
  const std::vector<std::string> names = own_children().keys();
  RAMET_CHECK(names.size() == modules_.size(), "clone", "Sequential runs ", modules_.size(),
              " modules, but ", names.size(), " are registered: unregister_module() took one away");
  for (size_t i = 0; i < modules_.size(); ++i) made->push_back(names[i], modules_[i].clone(device));
  made->copy_flags_from(*this);
  return made;
}

void SequentialImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::Sequential");
}

void SequentialImpl::check_not_empty() const {
  RAMET_CHECK(!is_empty(), "Sequential", "Cannot call forward() on an empty Sequential");
}

bool SequentialImpl::maps_tensor() const {
  for (const AnyModule& module : modules_)
    if (!module.maps_tensor()) return false;
  return true;
}

AnyValue SequentialImpl::forward_values(std::vector<AnyValue>&& inputs) {
  check_not_empty();
  AnyValue value = modules_.front().forward_values(std::move(inputs));
  for (size_t i = 1; i < modules_.size(); ++i) value = modules_[i].any_forward(std::move(value));
  return value;
}

Tensor SequentialImpl::forward_tensor(Tensor x) {
  check_not_empty();
  size_t i = 0;
  for (; i < modules_.size() && modules_[i].maps_tensor(); ++i)
    x = modules_[i].map_tensor(std::move(x));
  if (i == modules_.size()) return x;
  AnyValue value(std::move(x));
  for (; i < modules_.size(); ++i) value = modules_[i].any_forward(std::move(value));
  if (Tensor* result = value.try_get<Tensor>()) return std::move(*result);
  wrong_result(value.type_info(), typeid(Tensor));
}

void SequentialImpl::wrong_result(const std::type_info& got, const std::type_info& asked) {
  fail("Sequential", "The type of the return value is ", detail::type_name(got),
       ", but you asked for type ", detail::type_name(asked));
}

Sequential::Sequential(std::initializer_list<NamedAnyModule> named_modules)
    : ModuleHolder(std::make_shared<SequentialImpl>(named_modules)) {}

template class Cloneable<SequentialImpl>;

}  // namespace ramet::nn
