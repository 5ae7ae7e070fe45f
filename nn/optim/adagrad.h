// Adagrad (Duchi, Hazan and Singer 2011).
#pragma once
#include "nn/module/arg.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

struct RAMET_API AdagradOptions : public detail::ListedOptions<AdagradOptions> {
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}
  RAMET_ARG(double, lr) = 1e-2;
  RAMET_ARG(double, lr_decay) = 0;
  RAMET_ARG(double, weight_decay) = 0;
  RAMET_ARG(double, initial_accumulator_value) = 0;
  RAMET_ARG(double, eps) = 1e-10;
  RAMET_ARG(bool, maximize) = false;

 private:
  detail::Fields fields() override;
};
extern template class detail::ListedOptions<AdagradOptions>;

struct RAMET_API AdagradParamState
    : public OptimizerCloneableParamState<AdagradParamState, FusedParamState> {
  /// The sum of squared gradients.
  RAMET_ARG(Tensor, sum);
  RAMET_ARG(int64_t, step) = 0;

 private:
  Members members() override { return {{{{"sum", &sum_}}}, /*always=*/1, &step_}; }
};

/// g = grad + weight_decay p (maximize: -grad in place of grad);  sum += g^2;
/// p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(sum) + eps).
/// The sum of each parameter begins with the optimizer's initial_accumulator_value, whatever its
/// group's; it is made by the first step.
class RAMET_API Adagrad : public FusedOptimizer {
 public:
  explicit Adagrad(const std::vector<OptimizerParamGroup>& param_groups,
                   AdagradOptions defaults = {});
  explicit Adagrad(std::vector<Tensor> params, AdagradOptions defaults = {});

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  unsigned uses(const OptimizerOptions&) const override { return 1; }
  double first_value(const OptimizerOptions& options, size_t slot) const override;
  const char* name() const override { return "Adagrad.step"; }
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace ramet::optim
