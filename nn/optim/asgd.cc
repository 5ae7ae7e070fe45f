#include "nn/optim/asgd.h"

#include <algorithm>
#include <cmath>

#include "nn/optim/fields_internal.h"
#include "nn/optim/fused_internal.h"

namespace ramet::optim {

detail::Fields ASGDOptions::fields() {
  return {"ASGD",
          {{"lr", &lr_, "learning rate"},
           {"lambd", &lambd_, "lambd value"},
           {"alpha", &alpha_, "alpha value"},
           {"t0", &t0_},
           {"weight_decay", &weight_decay_, "weight_decay value"},
           {"maximize", &maximize_}}};
}

void ASGD::advance(const OptimizerOptions& options, int64_t number,
                   const StateMembers& state) const {
  const auto& o = static_cast<const ASGDOptions&>(options);
  double &used = *state.numbers[0].at, &eta = *state.numbers[1].at;
  used = number == 1 ? o.lr() : eta;
  eta = o.lr() / std::pow(1 + o.lambd() * o.lr() * static_cast<double>(number), o.alpha());
}

void ASGD::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  run<kernels::AsgdArgs, ASGDOptions>(
      kernels::asgd_step, options, updates,
      [](kernels::AsgdArgs& a, const ASGDOptions& o, int64_t number, double eta) {
        const double t = static_cast<double>(number);
        a.eta = eta, a.shrink = 1 - o.lambd() * eta;
        a.mu = number == 1 ? 1 : 1 / std::max(1.0, t - 1 - o.t0());
        a.weight_decay = o.weight_decay(), a.maximize = o.maximize();
      });
}

RAMET_FUSED_OPTIMIZER(ASGD, ASGDParamState)

}  // namespace ramet::optim
