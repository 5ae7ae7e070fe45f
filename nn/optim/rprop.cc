#include "nn/optim/rprop.h"

#include "nn/optim/fields_internal.h"
#include "nn/optim/fused_internal.h"

namespace ramet::optim {

detail::Fields RpropOptions::fields() {
  return {"Rprop",
          {{"lr", &lr_, "learning rate"},
           {"etaminus", &std::get<0>(etas_), nullptr, false, "etas"},
           {"etaplus", &std::get<1>(etas_), nullptr, false, "etas"},
           {"step_size_min", &std::get<0>(step_sizes_), nullptr, false, "step_sizes"},
           {"step_size_max", &std::get<1>(step_sizes_), nullptr, false, "step_sizes"},
           {"maximize", &maximize_}}};
}
void RpropOptions::check() const {
  ListedOptions::check();
  const auto& [minus, plus] = etas();
  RAMET_CHECK(minus > 0 && minus < 1 && plus > 1, "Rprop", "Invalid eta values: ", minus, ", ",
              plus);
}

void Rprop::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  run<kernels::RpropArgs, RpropOptions>(kernels::rprop_step, options, updates,
                                        [](kernels::RpropArgs& a, const RpropOptions& o, int64_t) {
                                          std::tie(a.minus, a.plus) = o.etas();
                                          std::tie(a.low, a.high) = o.step_sizes();
                                          a.maximize = o.maximize();
                                        });
}

RAMET_FUSED_OPTIMIZER(Rprop, RpropParamState)

}  // namespace ramet::optim
