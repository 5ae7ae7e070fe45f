#include "nn/optim/adadelta.h"

#include "nn/optim/fields_internal.h"
#include "nn/optim/fused_internal.h"

namespace ramet::optim {

detail::Fields AdadeltaOptions::fields() {
  return {"Adadelta",
          {{"lr", &lr_, "learning rate"},
           {"rho", &rho_},
           {"eps", &eps_, "epsilon value"},
           {"weight_decay", &weight_decay_, "weight_decay value"},
           {"maximize", &maximize_}}};
}
void AdadeltaOptions::check() const {
  ListedOptions::check();
  RAMET_CHECK(rho() >= 0 && rho() <= 1, "Adadelta", "Invalid rho value: ", rho());
}

void Adadelta::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  run<kernels::AdadeltaArgs, AdadeltaOptions>(
      kernels::adadelta_step, options, updates,
      [](kernels::AdadeltaArgs& a, const AdadeltaOptions& o, int64_t) {
        a.lr = o.lr(), a.rho = o.rho(), a.eps = o.eps();
        a.weight_decay = o.weight_decay(), a.maximize = o.maximize();
      });
}

RAMET_FUSED_OPTIMIZER(Adadelta, AdadeltaParamState)

}  // namespace ramet::optim
