#include "nn/optim/radam.h"

#include <cmath>

#include "nn/optim/fields_internal.h"
#include "nn/optim/fused_internal.h"

namespace ramet::optim {

detail::Fields RAdamOptions::fields() {
  return {"RAdam",
          {{"lr", &lr_, "learning rate"},
           detail::beta1(betas_),
           detail::beta2(betas_),
           {"eps", &eps_, "epsilon value"},
           {"weight_decay", &weight_decay_, "weight_decay value"},
           {"decoupled_weight_decay", &decoupled_weight_decay_},
           {"maximize", &maximize_}}};
}

void RAdam::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  run<kernels::RAdamArgs, RAdamOptions>(
      kernels::radam_step, options, updates,
      [](kernels::RAdamArgs& a, const RAdamOptions& o, int64_t number) {
        std::tie(a.beta1, a.beta2) = o.betas();
        a.eps = o.eps(), a.weight_decay = o.weight_decay(), a.maximize = o.maximize();
        a.decoupled = o.decoupled_weight_decay(), a.shrink = 1 - o.lr() * o.weight_decay();
        const double t = static_cast<double>(number), power = std::pow(a.beta2, t),
                     bias2 = 1 - power, rho = 2 / (1 - a.beta2) - 1,
                     r = rho - 2 * t * power / bias2;
        a.rate = o.lr() / (1 - std::pow(a.beta1, t)), a.adaptive = r > 5;
        if (a.adaptive)
          a.rate *= std::sqrt(bias2 * (r - 4) * (r - 2) * rho / ((rho - 4) * (rho - 2) * r));
      });
}

RAMET_FUSED_OPTIMIZER(RAdam, RAdamParamState)

}  // namespace ramet::optim
