#include "nn/optim/adam.h"

#include <cmath>

#include "nn/optim/fields_internal.h"
#include "nn/optim/fused_internal.h"

namespace ramet::optim {
namespace {

template <class Options> detail::Fields adam_fields(const char* optimizer, Options& o) {
  return {optimizer,
          {{"lr", &o.lr(), "learning rate"},
           detail::beta1(o.betas()),
           detail::beta2(o.betas()),
           {"eps", &o.eps(), "epsilon value"},
           {"weight_decay", &o.weight_decay(), "weight_decay value"},
           {"amsgrad", &o.amsgrad()}}};
}

template <class Options> unsigned uses_of(const OptimizerOptions& options) {
  return static_cast<const Options&>(options).amsgrad() ? 0b111 : 0b011;
}

template <class Options, bool kDecoupled>
void numbers(kernels::AdamArgs& a, const Options& o, int64_t number) {
  const auto bias = [number](double beta) {
    return 1 - std::pow(beta, static_cast<double>(number));
  };
  a.lr = o.lr(), a.eps = o.eps(), a.weight_decay = o.weight_decay(), a.decoupled = kDecoupled;
  std::tie(a.beta1, a.beta2) = o.betas();
  a.bias1 = bias(a.beta1), a.bias2 = bias(a.beta2);
}

}  // namespace

detail::Fields AdamOptions::fields() { return adam_fields("Adam", *this); }
detail::Fields AdamWOptions::fields() { return adam_fields("AdamW", *this); }

unsigned Adam::uses(const OptimizerOptions& options) const { return uses_of<AdamOptions>(options); }
unsigned AdamW::uses(const OptimizerOptions& options) const {
  return uses_of<AdamWOptions>(options);
}

void Adam::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  run(kernels::adam_step, options, updates, numbers<AdamOptions, false>);
}
void AdamW::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  run(kernels::adam_step, options, updates, numbers<AdamWOptions, true>);
}

RAMET_FUSED_OPTIMIZER(Adam, AdamParamState)
RAMET_FUSED_OPTIMIZER(AdamW, AdamParamState)

}  // namespace ramet::optim
