#include "nn/layers/basic/lora.h"

#include <algorithm>
#include <cmath>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/module/listed_module_internal.h"
#include "runtime/capture/capture.h"

namespace ramet::nn {
namespace {

const char *const kA = "lora_A", *const kB = "lora_B";

// A matrix of the branch as a layer: calls of it run its hooks.
LinearImpl& factor(const LinearImpl& of, const char* name) {
  const std::shared_ptr<Module>* const found = of.own_children().find(name);
  LinearImpl* const made = found && *found ? (*found)->as<LinearImpl>() : nullptr;
  RAMET_CHECK(made, "Linear", "the LoRA branch of ", of.name(), " has no Linear '", name,
              "' any more: got another child or none");
  return *made;
}

ScalarType wide(ScalarType dtype) { return promoteTypes(dtype, kFloat); }

}  // namespace

void LinearImpl::check_lora(const LoRAOptions& branch) const {
  const char* const op = "add_lora";
  const int64_t most = std::min(options.in_features(), options.out_features());
  RAMET_CHECK(branch.rank() >= 1 && branch.rank() <= most, op, "rank: got ", branch.rank(),
              ", expected 1 to ", most, ", the smaller one of in_features and out_features");
  RAMET_CHECK(std::isfinite(branch.alpha()), op, "alpha: got ", branch.alpha(),
              ", expected a finite number");
  RAMET_CHECK(branch.dropout() >= 0 && branch.dropout() <= 1, op,
              "dropout probability has to be between 0 and 1, but got ", branch.dropout());
  RAMET_CHECK(!lora_, op, "got a Linear that has a LoRA branch, expected one without: call ",
              "merge_lora first");
  const Tensor* const own = own_parameters().find("weight");
  RAMET_CHECK(own && own->is_same(weight) && weight.is_floating_point() && !holds_shards(), op,
              "got a Linear whose weight is sharded or computed from other parameters, ",
              "expected a floating point parameter");
  for (const char* name : {kA, kB})
    RAMET_CHECK(!own_children().contains(name), op, "the Linear already has a child '", name, "'");
}

void LinearImpl::add_lora(const LoRAOptions& branch) {
  check_lora(branch);
  capture::refuse("add_lora", "a module changes");
  lora_ = std::make_shared<LoRAOptions>(branch);
  register_lora();
}

void LinearImpl::register_lora() {
  const auto add = [this](const char* name, int64_t in, int64_t out) {
    Linear made(LinearOptions(in, out).bias(false));
    made->to(weight.device(), wide(weight.scalar_type()));
    made->train(is_training());
    return register_module(name, made)->weight;
  };
  add(kA, options.in_features(), lora_->rank());
  init::zeros_(add(kB, lora_->rank(), options.out_features()));
}

// `y` has the layer's dtype, also under autocast.
Tensor LinearImpl::with_lora(const Tensor& input, const Tensor& y) const {
  LinearImpl &a = factor(*this, kA), &b = factor(*this, kB);
  Tensor x = input.to(a.weight.scalar_type());
  if (lora_->dropout() > 0) x = dropout(x, lora_->dropout(), is_training());
  return add(y, call(b, call(a, x)), lora_->scaling()).to(y.scalar_type());
}

Tensor LinearImpl::merged_weight() const {
  if (RAMET_UNLIKELY(ramet::detail::tls.capturing != 0)) guard_lora();
  if (!lora_) return weight;
  const Tensor &a = factor(*this, kA).weight, &b = factor(*this, kB).weight;
  const AutocastGuard off(weight.device().type(), std::nullopt, /*enabled=*/false);
  const ScalarType dtype = promoteTypes(wide(weight.scalar_type()), a.scalar_type());
  const Tensor product = matmul(b.to(dtype), a.to(dtype));
  return add(weight.to(dtype), product, lora_->scaling()).to(weight.scalar_type());
}

void LinearImpl::merge_lora(bool own_memory) {
  RAMET_CHECK(lora_, "merge_lora", "got a Linear without a LoRA branch");
  RAMET_CHECK(!holds_shards(), "merge_lora", "got shards of a weight, expected whole tensors");
  capture::refuse("merge_lora", "a module changes");
  const NoGradGuard off;
  const Tensor merged = merged_weight();
  if (own_memory) {
    weight = merged.detach().set_requires_grad(weight.requires_grad());
    set_own_parameter("weight", weight);
  } else {
    weight.copy_(merged);
  }
  unregister_module(kA);
  unregister_module(kB);
  lora_ = nullptr;
}

// A captured step has the branch or has it not. A replica follows its module.
void LinearImpl::guard_lora() const {
  if (is_replica()) return;
  const bool owned = !weak_from_this().expired();
  capture::guard(&lora_, "the LoRA branch of a Linear",
                 [this, life = weak_from_this(), owned, branch = lora_] {
                   return (!owned || !life.expired()) && lora_ == branch;
                 });
}

void LinearImpl::pretty_print(std::ostream& stream) const {
  if (!lora_) return ListedModule::pretty_print(stream);
  LinearOptions o = options;
  LoRAOptions branch = *lora_;
  detail::print_module(stream, typeid(LoRALinearImpl),
                       {{"in_features", &o.in_features()},
                        {"out_features", &o.out_features()},
                        {"bias", &o.bias()},
                        {"rank", &branch.rank()},
                        {"alpha", &branch.alpha()},
                        {"dropout", &branch.dropout()}},
                       {});
}

LoRALinearImpl::LoRALinearImpl(const LoRALinearOptions& o)
    : LinearImpl(LinearOptions(o.in_features(), o.out_features()).bias(o.bias())) {
  add_lora(LoRAOptions(o.rank(), o.alpha()).dropout(o.dropout()));
  weight.set_requires_grad(false);
  if (bias.defined()) bias.set_requires_grad(false);
}

// Its members are those of a Linear, so a Linear's clone has all that a copy of this class needs.
std::shared_ptr<Module> LoRALinearImpl::clone(const std::optional<Device>& device) const {
  const auto copied = std::dynamic_pointer_cast<LinearImpl>(LinearImpl::clone(device));
  auto made = std::make_shared<LoRALinearImpl>(*this);
  static_cast<LinearImpl&>(*made) = *copied;
  return made;
}
std::unique_ptr<Module> LoRALinearImpl::plain_copy() const {
  return std::make_unique<LoRALinearImpl>(*this);
}

}  // namespace ramet::nn
