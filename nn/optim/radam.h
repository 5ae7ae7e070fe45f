// RAdam (Liu et al. 2019), as torch.optim has it in Python.
#pragma once
#include <tuple>

#include "nn/module/arg.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

struct RAMET_API RAdamOptions : public detail::ListedOptions<RAdamOptions> {
  RAdamOptions(double lr = 1e-3) : lr_(lr) {}
  using betas_t = std::tuple<double, double>;
  RAMET_ARG(double, lr) = 1e-3;
  RAMET_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  RAMET_ARG(double, eps) = 1e-8;
  RAMET_ARG(double, weight_decay) = 0;
  RAMET_ARG(bool, decoupled_weight_decay) = false;
  RAMET_ARG(bool, maximize) = false;

 private:
  detail::Fields fields() override;
};
extern template class detail::ListedOptions<RAdamOptions>;

struct RAMET_API RAdamParamState
    : public OptimizerCloneableParamState<RAdamParamState, FusedParamState> {
  RAMET_ARG(int64_t, step) = 0;
  RAMET_ARG(Tensor, exp_avg);
  RAMET_ARG(Tensor, exp_avg_sq);

 private:
  Members members() override {
    return {{{{"exp_avg", &exp_avg_}, {"exp_avg_sq", &exp_avg_sq_}}}, /*always=*/2, &step_};
  }
};

/// g = grad + weight_decay p. With decoupled, p *= 1 - lr weight_decay replaces that term. With
/// maximize, -grad replaces grad. m = beta1 m + (1 - beta1) g. v = beta2 v + (1 - beta2) g^2. b1 =
/// 1 - beta1^t. b2 = 1 - beta2^t. rho = 2 / (1 - beta2) - 1. r = rho - 2 t beta2^t / b2. p -= lr m
/// / b1. Where r > 5, this step is also multiplied by
///   sqrt(b2) / (sqrt(v) + eps) sqrt((r - 4) (r - 2) rho / ((rho - 4) (rho - 2) r)).
class RAMET_API RAdam : public FusedOptimizer {
 public:
  explicit RAdam(const std::vector<OptimizerParamGroup>& param_groups, RAdamOptions defaults = {});
  explicit RAdam(std::vector<Tensor> params, RAdamOptions defaults = {});

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  unsigned uses(const OptimizerOptions&) const override { return 0b11; }
  const char* name() const override { return "RAdam.step"; }
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace ramet::optim
