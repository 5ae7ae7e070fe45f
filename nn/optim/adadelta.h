// Adadelta (Zeiler 2012), as torch.optim has it in Python.
#pragma once
#include "nn/module/arg.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

struct RAMET_API AdadeltaOptions : public detail::ListedOptions<AdadeltaOptions> {
  AdadeltaOptions(double lr = 1.0) : lr_(lr) {}
  RAMET_ARG(double, lr) = 1;
  RAMET_ARG(double, rho) = 0.9;
  RAMET_ARG(double, eps) = 1e-6;
  RAMET_ARG(double, weight_decay) = 0;
  RAMET_ARG(bool, maximize) = false;

 public:
  void check() const override;

 private:
  detail::Fields fields() override;
};
extern template class detail::ListedOptions<AdadeltaOptions>;

struct RAMET_API AdadeltaParamState
    : public OptimizerCloneableParamState<AdadeltaParamState, FusedParamState> {
  RAMET_ARG(int64_t, step) = 0;
  RAMET_ARG(Tensor, square_avg);
  /// The running mean of squared steps.
  RAMET_ARG(Tensor, acc_delta);

 private:
  Members members() override {
    return {{{{"square_avg", &square_avg_}, {"acc_delta", &acc_delta_}}}, /*always=*/2, &step_};
  }
};

/// g = grad + weight_decay p. With maximize, -grad replaces grad. v = rho v + (1 - rho) g^2. step =
/// sqrt(u + eps) / sqrt(v + eps) g. u = rho u + (1 - rho) step^2. p -= lr step.
class RAMET_API Adadelta : public FusedOptimizer {
 public:
  explicit Adadelta(const std::vector<OptimizerParamGroup>& param_groups,
                    AdadeltaOptions defaults = {});
  explicit Adadelta(std::vector<Tensor> params, AdadeltaOptions defaults = {});

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  unsigned uses(const OptimizerOptions&) const override { return 0b11; }
  const char* name() const override { return "Adadelta.step"; }
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace ramet::optim
