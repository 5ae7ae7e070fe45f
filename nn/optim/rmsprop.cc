#include "nn/optim/rmsprop.h"

#include "nn/optim/fields_internal.h"
#include "nn/optim/fused_internal.h"

namespace ramet::optim {

detail::Fields RMSpropOptions::fields() {
  return {"RMSprop",
          {{"lr", &lr_, "learning rate"},
           {"alpha", &alpha_, "alpha value"},
           {"eps", &eps_, "epsilon value"},
           {"weight_decay", &weight_decay_, "weight_decay value"},
           {"momentum", &momentum_, "momentum value"},
           {"centered", &centered_}}};
}

unsigned RMSprop::uses(const OptimizerOptions& options) const {
  const auto& o = static_cast<const RMSpropOptions&>(options);
  return 1u | (o.momentum() > 0 ? 2u : 0u) | (o.centered() ? 4u : 0u);
}

void RMSprop::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  run<kernels::RmspropArgs, RMSpropOptions>(
      kernels::rmsprop_step, options, updates,
      [](kernels::RmspropArgs& a, const RMSpropOptions& o, int64_t) {
        a.lr = o.lr(), a.alpha = o.alpha(), a.eps = o.eps();
        a.weight_decay = o.weight_decay(), a.momentum = o.momentum();
      });
}

RAMET_FUSED_OPTIMIZER(RMSprop, RMSpropParamState)

}  // namespace ramet::optim
