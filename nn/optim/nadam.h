// NAdam (Dozat 2016), as torch.optim has it in Python.
#pragma once
#include <tuple>

#include "nn/module/arg.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

struct RAMET_API NAdamOptions : public detail::ListedOptions<NAdamOptions> {
  NAdamOptions(double lr = 2e-3) : lr_(lr) {}
  using betas_t = std::tuple<double, double>;
  RAMET_ARG(double, lr) = 2e-3;
  RAMET_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  RAMET_ARG(double, eps) = 1e-8;
  RAMET_ARG(double, weight_decay) = 0;
  RAMET_ARG(double, momentum_decay) = 4e-3;
  RAMET_ARG(bool, decoupled_weight_decay) = false;
  RAMET_ARG(bool, maximize) = false;

 private:
  detail::Fields fields() override;
};
extern template class detail::ListedOptions<NAdamOptions>;

struct RAMET_API NAdamParamState
    : public OptimizerCloneableParamState<NAdamParamState, FusedParamState> {
  RAMET_ARG(int64_t, step) = 0;
  /// The product of the mu of all steps.
  RAMET_ARG(double, mu_product) = 1;
  RAMET_ARG(Tensor, exp_avg);
  RAMET_ARG(Tensor, exp_avg_sq);

 private:
  Members members() override {
    return {{{{"exp_avg", &exp_avg_}, {"exp_avg_sq", &exp_avg_sq_}}},
            /*always=*/2,
            &step_,
            {{{"mu_product", &mu_product_}}}};
  }
};

/// g = grad + weight_decay p. With decoupled, p *= 1 - lr weight_decay replaces that term. With
/// maximize, -grad replaces grad. m = beta1 m + (1 - beta1) g. v = beta2 v + (1 - beta2) g^2. mu(t)
/// = beta1 (1 - 0.96^(t momentum_decay) / 2). M(t) = mu(1) ... mu(t).
/// p -= lr ((1 - mu(t)) / (1 - M(t)) g + mu(t + 1) / (1 - M(t) mu(t + 1)) m)
///   / (sqrt(v / (1 - beta2^t)) + eps).
class RAMET_API NAdam : public FusedOptimizer {
 public:
  explicit NAdam(const std::vector<OptimizerParamGroup>& param_groups, NAdamOptions defaults = {});
  explicit NAdam(std::vector<Tensor> params, NAdamOptions defaults = {});

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  unsigned uses(const OptimizerOptions&) const override { return 0b11; }
  void advance(const OptimizerOptions& options, int64_t number,
               const StateMembers& state) const override;
  const char* name() const override { return "NAdam.step"; }
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace ramet::optim
