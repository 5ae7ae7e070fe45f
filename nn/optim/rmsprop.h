// RMSprop (Tieleman and Hinton 2012), centered as by Graves 2013.
#pragma once
#include "nn/module/arg.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

struct RAMET_API RMSpropOptions : public detail::ListedOptions<RMSpropOptions> {
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}
  RAMET_ARG(double, lr) = 1e-2;
  RAMET_ARG(double, alpha) = 0.99;
  RAMET_ARG(double, eps) = 1e-8;
  RAMET_ARG(double, weight_decay) = 0;
  RAMET_ARG(double, momentum) = 0;
  RAMET_ARG(bool, centered) = false;

 private:
  detail::Fields fields() override;
};
extern template class detail::ListedOptions<RMSpropOptions>;

struct RAMET_API RMSpropParamState
    : public OptimizerCloneableParamState<RMSpropParamState, FusedParamState> {
  RAMET_ARG(int64_t, step) = 0;
  RAMET_ARG(Tensor, square_avg);
  RAMET_ARG(Tensor, momentum_buffer);
  /// The running mean of gradients; undefined unless centered.
  RAMET_ARG(Tensor, grad_avg);

 private:
  Members members() override {
    return {{{{"square_avg", &square_avg_},
              {"momentum_buffer", &momentum_buffer_},
              {"grad_avg", &grad_avg_}}},
            /*always=*/1,
            &step_};
  }
};

/// g = grad + weight_decay p. v = alpha v + (1 - alpha) g^2. step = g / (sqrt(v) + eps). With
/// centered, v - m^2 replaces v, and m = alpha m + (1 - alpha) g. p -= lr step. With momentum:
/// buffer = momentum buffer + step, p -= lr buffer.
class RAMET_API RMSprop : public FusedOptimizer {
 public:
  explicit RMSprop(const std::vector<OptimizerParamGroup>& param_groups,
                   RMSpropOptions defaults = {});
  explicit RMSprop(std::vector<Tensor> params, RMSpropOptions defaults = {});

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  unsigned uses(const OptimizerOptions& options) const override;
  const char* name() const override { return "RMSprop.step"; }
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace ramet::optim
