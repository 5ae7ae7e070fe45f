// Adamax (Kingma and Ba 2014), as torch.optim has it in Python.
#pragma once
#include <tuple>

#include "nn/module/arg.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

struct RAMET_API AdamaxOptions : public detail::ListedOptions<AdamaxOptions> {
  AdamaxOptions(double lr = 2e-3) : lr_(lr) {}
  using betas_t = std::tuple<double, double>;
  RAMET_ARG(double, lr) = 2e-3;
  RAMET_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  RAMET_ARG(double, eps) = 1e-8;
  RAMET_ARG(double, weight_decay) = 0;
  RAMET_ARG(bool, maximize) = false;

 private:
  detail::Fields fields() override;
};
extern template class detail::ListedOptions<AdamaxOptions>;

struct RAMET_API AdamaxParamState
    : public OptimizerCloneableParamState<AdamaxParamState, FusedParamState> {
  RAMET_ARG(int64_t, step) = 0;
  RAMET_ARG(Tensor, exp_avg);
  /// The decaying maximum of gradients (u).
  RAMET_ARG(Tensor, exp_inf);

 private:
  Members members() override {
    return {{{{"exp_avg", &exp_avg_}, {"exp_inf", &exp_inf_}}}, /*always=*/2, &step_};
  }
};

/// g = grad + weight_decay p. With maximize, -grad replaces grad. m = beta1 m + (1 - beta1) g. u =
/// max(beta2 u, |g| + eps). p -= lr / (1 - beta1^t) m / u.
class RAMET_API Adamax : public FusedOptimizer {
 public:
  explicit Adamax(const std::vector<OptimizerParamGroup>& param_groups,
                  AdamaxOptions defaults = {});
  explicit Adamax(std::vector<Tensor> params, AdamaxOptions defaults = {});

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  unsigned uses(const OptimizerOptions&) const override { return 0b11; }
  const char* name() const override { return "Adamax.step"; }
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace ramet::optim
