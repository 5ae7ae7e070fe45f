#include "nn/optim/sgd.h"

#include "nn/optim/fields_internal.h"
#include "nn/optim/fused_internal.h"

namespace ramet::optim {

detail::Fields SGDOptions::fields() {
  return {"SGD",
          {{"lr", &lr_, "learning rate"},
           {"momentum", &momentum_, "momentum value"},
           {"dampening", &dampening_},
           {"weight_decay", &weight_decay_, "weight_decay value"},
           {"nesterov", &nesterov_}}};
}
void SGDOptions::check() const {
  ListedOptions::check();
  RAMET_CHECK(!nesterov() || (momentum() > 0 && dampening() == 0), "SGD",
              "Nesterov momentum requires a momentum and zero dampening: got momentum ", momentum(),
              ", dampening ", dampening());
}

unsigned SGD::uses(const OptimizerOptions& options) const {
  return static_cast<const SGDOptions&>(options).momentum() != 0 ? 1 : 0;
}

void SGD::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  run<kernels::SgdArgs, SGDOptions>(
      kernels::sgd_step, options, updates,
      [](kernels::SgdArgs& a, const SGDOptions& o, int64_t number) {
        a.lr = o.lr(), a.momentum = o.momentum(), a.dampening = o.dampening();
        a.weight_decay = o.weight_decay(), a.nesterov = o.nesterov(), a.first = number == 1;
      });
}

RAMET_FUSED_OPTIMIZER(SGD, SGDParamState)

}  // namespace ramet::optim
