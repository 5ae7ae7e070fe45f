// Lion (Chen et al. 2023: Symbolic Discovery of Optimization Algorithms).
#pragma once
#include <tuple>

#include "nn/module/arg.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

struct RAMET_API LionOptions : public detail::ListedOptions<LionOptions> {
  LionOptions(double lr = 1e-4) : lr_(lr) {}
  using betas_t = std::tuple<double, double>;
  RAMET_ARG(double, lr) = 1e-4;
  RAMET_ARG(betas_t, betas) = std::make_tuple(0.9, 0.99);
  RAMET_ARG(double, weight_decay) = 0;
  RAMET_ARG(bool, maximize) = false;

 private:
  detail::Fields fields() override;
};
extern template class detail::ListedOptions<LionOptions>;

struct RAMET_API LionParamState
    : public OptimizerCloneableParamState<LionParamState, FusedParamState> {
  RAMET_ARG(Tensor, exp_avg);

 private:
  Members members() override { return {{{{"exp_avg", &exp_avg_}}}, /*always=*/1}; }
};

/// p *= 1 - lr weight_decay;  p -= lr sign(beta1 m + (1 - beta1) grad);
/// m = beta2 m + (1 - beta2) grad (maximize: -grad in place of grad).
class RAMET_API Lion : public FusedOptimizer {
 public:
  explicit Lion(const std::vector<OptimizerParamGroup>& param_groups, LionOptions defaults = {});
  explicit Lion(std::vector<Tensor> params, LionOptions defaults = {});

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  unsigned uses(const OptimizerOptions&) const override { return 1; }
  const char* name() const override { return "Lion.step"; }
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace ramet::optim
