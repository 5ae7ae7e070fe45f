// Averaged SGD (Polyak and Juditsky 1992), as torch.optim has it in Python.
#pragma once
#include "nn/module/arg.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

struct RAMET_API ASGDOptions : public detail::ListedOptions<ASGDOptions> {
  ASGDOptions(double lr = 1e-2) : lr_(lr) {}
  RAMET_ARG(double, lr) = 1e-2;
  RAMET_ARG(double, lambd) = 1e-4;
  RAMET_ARG(double, alpha) = 0.75;
  RAMET_ARG(double, t0) = 1e6;
  RAMET_ARG(double, weight_decay) = 0;
  RAMET_ARG(bool, maximize) = false;

 private:
  detail::Fields fields() override;
};
extern template class detail::ListedOptions<ASGDOptions>;

struct RAMET_API ASGDParamState
    : public OptimizerCloneableParamState<ASGDParamState, FusedParamState> {
  RAMET_ARG(int64_t, step) = 0;
  /// Of the next step.
  RAMET_ARG(double, eta) = 0;
  /// The average.
  RAMET_ARG(Tensor, ax);
  double used_ = 0;  // eta of the last step

 private:
  Members members() override {
    return {{{{"ax", &ax_}}}, /*always=*/1, &step_, {{{nullptr, &used_}, {"eta", &eta_}}}};
  }
};

/// g = grad + weight_decay p. With maximize, -grad replaces grad. p = (1 - lambd eta) p - eta g. ax
/// += mu (p - ax), where mu = 1 / max(1, t - 1 - t0), in the first step 1. eta is lr in the first
/// step. Each step sets the eta of the next one to lr / (1 + lambd lr t)^alpha.
class RAMET_API ASGD : public FusedOptimizer {
 public:
  explicit ASGD(const std::vector<OptimizerParamGroup>& param_groups, ASGDOptions defaults = {});
  explicit ASGD(std::vector<Tensor> params, ASGDOptions defaults = {});

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  unsigned uses(const OptimizerOptions&) const override { return 1; }
  void advance(const OptimizerOptions& options, int64_t number,
               const StateMembers& state) const override;
  const char* name() const override { return "ASGD.step"; }
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace ramet::optim
