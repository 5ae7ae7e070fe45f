// Cloning a module, and what a replica takes from its source.
#include "autograd/grad_mode.h"
#include "nn/module/class_name.h"
#include "nn/module/computed_parameter.h"
#include "nn/module/module.h"

namespace ramet::nn {

std::shared_ptr<Module> Module::clone(const std::optional<Device>&) const {
  fail("clone", "clone() has not been implemented for ", name(), ". Subclass ",
       detail::qualified("nn::Cloneable<"), name(), "> instead of ",
       detail::qualified("nn::Module to inherit the ability to clone."));
}

void Module::clone_(Module& other, const std::optional<Device>&) {
  fail("clone", "clone() has not been implemented for ", other.name(),
       ": it cannot be cloned into ", name());
}

void Module::merge_replicas(ArrayRef<Module*>) {}
void Module::discard_deposits() {}

void Module::rebind(ArrayRef<Tensor>) {
  throw NotImplementedError("[rebind] " + name() +
                            " is sealed and does not say how to take over other parameters");
}

void Module::copy_flags_from(const Module& source) {
  is_training_ = source.is_training_;
  hooks_ = source.hooks_;
  name_ = source.name_;
}

void Module::forget_registries() {
  parameters_.clear();
  buffers_.clear();
  children_.clear();
  policies_.clear();
  is_replica_ = holds_shards_ = false;
}

namespace {

void check_count(const char* what, const char* call, size_t got, size_t expected) {
  RAMET_CHECK(got == expected, "clone", "The cloned module does not have the same number of ", what,
              " as the original module after calling reset(): got ", got, ", expected ", expected,
              ". Are you sure you called ", call, " inside reset() and not the constructor?");
}

void copy_values(const char* kind, OrderedDict<std::string, Tensor>& to,
                 const OrderedDict<std::string, Tensor>& from,
                 const std::optional<Device>& device) {
  for (const auto& item : from) {
    Tensor* made = to.find(item.key());
    RAMET_CHECK(made, "clone", kind, " '", item.key(), "' is missing after calling reset()");
    const Tensor& source = item.value();
    if (!source.defined()) {
      *made = Tensor();
      continue;
    }
    RAMET_CHECK(made->defined(), "clone", kind, " '", item.key(),
                "' is undefined after calling reset(), expected ", describe(source));
    RAMET_CHECK(!made->is_same(source), "clone", kind, " '", item.key(),
                "': reset() registered the original module's own tensor, expected a new one");
    // A copy even where the device is the same one, whatever to() would do there.
    made->set_data(device ? source.detach().to(*device, /*non_blocking=*/false, /*copy=*/true)
                          : source.detach().clone());
    // From the source and not from reset(): a frozen parameter stays frozen. Of the tensor itself
    // and not of what it is a view of: a buffer that is one does not become a parameter.
    const bool trainable = source->is(TensorImpl::kRequiresGrad);
    if (made->is_leaf() && (*made)->is(TensorImpl::kRequiresGrad) != trainable)
      made->set_requires_grad(trainable);
  }
}

}  // namespace

void Module::copy_tensors_from(const Module& source, const std::optional<Device>& device) {
  RAMET_CHECK(!source.holds_shards_, "clone",
              "FSDP does not support deepcopy. Please use state dict for serialization. Got ",
              source.name(), ", whose parameters are sharded");
  if (hooks_)
    for (const auto& parameter : hooks_->computed) parameter->renew(*this);
  check_count("parameters", "register_parameter()", parameters_.size(), source.parameters_.size());
  check_count("buffers", "register_buffer()", buffers_.size(), source.buffers_.size());
  check_count("child modules", "register_module()", children_.size(), source.children_.size());
  const NoGradGuard off;
  copy_values("Parameter", parameters_, source.parameters_, device);
  copy_values("Buffer", buffers_, source.buffers_, device);
  policies_ = source.policies_;
}

void Module::clone_children_from(const Module& source, const std::optional<Device>& device) {
  for (const auto& item : source.children_) {
    std::shared_ptr<Module>* made = children_.find(item.key());
    RAMET_CHECK(made, "clone", "Submodule '", item.key(), "' is missing after calling reset()");
    if (!item.value()) {
      *made = nullptr;
      continue;
    }
    RAMET_CHECK(*made, "clone", "Submodule '", item.key(),
                "' is null after calling reset(), expected ", item.value()->name());
    (*made)->clone_(*item.value(), device);
  }
}

}  // namespace ramet::nn
