#include "nn/optim/nadam.h"

#include <cmath>

#include "nn/optim/fields_internal.h"
#include "nn/optim/fused_internal.h"

namespace ramet::optim {
namespace {

double momentum(const NAdamOptions& o, int64_t t) {
  return std::get<0>(o.betas()) *
         (1 - 0.5 * std::pow(0.96, static_cast<double>(t) * o.momentum_decay()));
}

}  // namespace

detail::Fields NAdamOptions::fields() {
  return {"NAdam",
          {{"lr", &lr_, "learning rate"},
           detail::beta1(betas_),
           detail::beta2(betas_),
           {"eps", &eps_, "epsilon value"},
           {"weight_decay", &weight_decay_, "weight_decay value"},
           {"momentum_decay", &momentum_decay_, "momentum_decay value"},
           {"decoupled_weight_decay", &decoupled_weight_decay_},
           {"maximize", &maximize_}}};
}

void NAdam::advance(const OptimizerOptions& options, int64_t number,
                    const StateMembers& state) const {
  *state.numbers[0].at *= momentum(static_cast<const NAdamOptions&>(options), number);
}

void NAdam::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  run<kernels::NAdamArgs, NAdamOptions>(
      kernels::nadam_step, options, updates,
      [](kernels::NAdamArgs& a, const NAdamOptions& o, int64_t number, double product) {
        std::tie(a.beta1, a.beta2) = o.betas();
        a.eps = o.eps(), a.weight_decay = o.weight_decay(), a.maximize = o.maximize();
        a.decoupled = o.decoupled_weight_decay(), a.shrink = 1 - o.lr() * o.weight_decay();
        a.bias2 = 1 - std::pow(a.beta2, static_cast<double>(number));
        const double next = momentum(o, number + 1);
        a.gradient_rate = o.lr() * (1 - momentum(o, number)) / (1 - product);
        a.moment_rate = o.lr() * next / (1 - product * next);
      });
}

RAMET_FUSED_OPTIMIZER(NAdam, NAdamParamState)

}  // namespace ramet::optim
