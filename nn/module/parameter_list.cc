#include "nn/module/parameter_list.h"

#include <ostream>

#include "autograd/grad_mode.h"
#include "autograd/ops/make/copy.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

namespace {

Tensor copy_of(const Tensor& parameter, const std::optional<Device>& device) {
  if (!parameter.defined()) return parameter;
  const NoGradGuard off;
  const Tensor copy = parameter.detach().clone();
  const Tensor moved = device ? copy.to(*device) : copy;
  moved.set_requires_grad(parameter.requires_grad());
  return moved;
}

void print(std::ostream& stream, const char* name, const OrderedDict<std::string, Tensor>& all) {
  stream << detail::qualified(name) << "(\n";
  for (const auto& item : all) {
    stream << "(" << item.key() << "): Parameter containing: [";
    if (item.value().defined())
      stream << item.value().scalar_type() << " of size " << item.value().sizes();
    stream << "]\n";
  }
  stream << ")";
}

}  // namespace

std::shared_ptr<Module> ParameterListImpl::clone(const std::optional<Device>& device) const {
  auto made = std::make_shared<ParameterListImpl>();
  for (const auto& item : parameters_) made->append(copy_of(item.value(), device));
  made->copy_flags_from(*this);
  return made;
}
void ParameterListImpl::pretty_print(std::ostream& stream) const {
  print(stream, "nn::ParameterList", parameters_);
}
void ParameterListImpl::append(const Tensor& parameter) {
  register_parameter(std::to_string(size()), parameter,
                     parameter.defined() && parameter.requires_grad());
}
std::string ParameterListImpl::key(size_t index) const {
  RAMET_CHECK(index < size(), "ParameterList", "Index out of range: got ", index,
              ", expected less than ", size());
  return std::to_string(index);
}

std::shared_ptr<Module> ParameterDictImpl::clone(const std::optional<Device>& device) const {
  auto made = std::make_shared<ParameterDictImpl>();
  for (const auto& item : parameters_) made->insert(item.key(), copy_of(item.value(), device));
  made->copy_flags_from(*this);
  return made;
}
void ParameterDictImpl::pretty_print(std::ostream& stream) const {
  print(stream, "nn::ParameterDict", parameters_);
}
Tensor ParameterDictImpl::pop(const std::string& key) {
  Tensor parameter = parameters_[key];
  parameters_.erase(key);
  return parameter;
}
void ParameterDictImpl::put(const std::string& key, const Tensor& parameter) {
  if (contains(key)) parameters_[key] = parameter;
  else insert(key, parameter);
}

template class Cloneable<ParameterListImpl>;
template class Cloneable<ParameterDictImpl>;

}  // namespace ramet::nn
