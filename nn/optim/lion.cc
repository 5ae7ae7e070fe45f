#include "nn/optim/lion.h"

#include "nn/optim/fields_internal.h"
#include "nn/optim/fused_internal.h"

namespace ramet::optim {

detail::Fields LionOptions::fields() {
  return {"Lion",
          {{"lr", &lr_, "learning rate"},
           detail::beta1(betas_),
           detail::beta2(betas_),
           {"weight_decay", &weight_decay_, "weight_decay value"},
           {"maximize", &maximize_}}};
}

void Lion::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  run<kernels::LionArgs, LionOptions>(kernels::lion_step, options, updates,
                                      [](kernels::LionArgs& a, const LionOptions& o, int64_t) {
                                        std::tie(a.beta1, a.beta2) = o.betas();
                                        a.lr = o.lr(), a.shrink = 1 - o.lr() * o.weight_decay(),
                                        a.maximize = o.maximize();
                                      });
}

RAMET_FUSED_OPTIMIZER(Lion, LionParamState)

}  // namespace ramet::optim
