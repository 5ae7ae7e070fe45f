#include "nn/optim/adagrad.h"

#include "nn/optim/fields_internal.h"
#include "nn/optim/fused_internal.h"

namespace ramet::optim {

detail::Fields AdagradOptions::fields() {
  return {"Adagrad",
          {{"lr", &lr_, "learning rate"},
           {"lr_decay", &lr_decay_, "lr_decay value"},
           {"weight_decay", &weight_decay_, "weight_decay value"},
           {"initial_accumulator_value", &initial_accumulator_value_,
            "initial_accumulator_value value"},
           {"eps", &eps_, "epsilon value"},
           {"maximize", &maximize_}}};
}

double Adagrad::first_value(const OptimizerOptions&, size_t) const {
  return static_cast<const AdagradOptions&>(defaults()).initial_accumulator_value();
}

void Adagrad::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  run<kernels::AdagradArgs, AdagradOptions>(
      kernels::adagrad_step, options, updates,
      [](kernels::AdagradArgs& a, const AdagradOptions& o, int64_t number) {
        a.rate = o.lr() / (1 + static_cast<double>(number - 1) * o.lr_decay());
        a.eps = o.eps(), a.weight_decay = o.weight_decay(), a.maximize = o.maximize();
      });
}

RAMET_FUSED_OPTIMIZER(Adagrad, AdagradParamState)

}  // namespace ramet::optim
