#include "nn/optim/adamax.h"

#include <cmath>

#include "nn/optim/fields_internal.h"
#include "nn/optim/fused_internal.h"

namespace ramet::optim {

detail::Fields AdamaxOptions::fields() {
  return {"Adamax",
          {{"lr", &lr_, "learning rate"},
           detail::beta1(betas_),
           detail::beta2(betas_),
           {"eps", &eps_, "epsilon value"},
           {"weight_decay", &weight_decay_, "weight_decay value"},
           {"maximize", &maximize_}}};
}

void Adamax::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  run<kernels::AdamaxArgs, AdamaxOptions>(
      kernels::adamax_step, options, updates,
      [](kernels::AdamaxArgs& a, const AdamaxOptions& o, int64_t number) {
        std::tie(a.beta1, a.beta2) = o.betas();
        a.rate = o.lr() / (1 - std::pow(a.beta1, static_cast<double>(number)));
        a.eps = o.eps(), a.weight_decay = o.weight_decay(), a.maximize = o.maximize();
      });
}

RAMET_FUSED_OPTIMIZER(Adamax, AdamaxParamState)

}  // namespace ramet::optim
