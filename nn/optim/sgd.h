// SGD: stochastic gradient descent, with momentum (Polyak 1964, Sutskever et al. 2013).
#pragma once
#include "nn/module/arg.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

struct RAMET_API SGDOptions : public detail::ListedOptions<SGDOptions> {
  SGDOptions(double lr) : lr_(lr) {}
  RAMET_ARG(double, lr);
  RAMET_ARG(double, momentum) = 0;
  RAMET_ARG(double, dampening) = 0;
  RAMET_ARG(double, weight_decay) = 0;
  RAMET_ARG(bool, nesterov) = false;

 public:
  void check() const override;

 private:
  detail::Fields fields() override;
};
extern template class detail::ListedOptions<SGDOptions>;

struct RAMET_API SGDParamState
    : public OptimizerCloneableParamState<SGDParamState, FusedParamState> {
  RAMET_ARG(Tensor, momentum_buffer);

 private:
  Members members() override { return {{{{"momentum_buffer", &momentum_buffer_}}}}; }
};

/// g = grad + weight_decay p;  with momentum: buffer = momentum buffer + (1 - dampening) g (the
/// first time: g), and g = nesterov ? g + momentum buffer : buffer;  p -= lr g
class RAMET_API SGD : public FusedOptimizer {
 public:
  explicit SGD(const std::vector<OptimizerParamGroup>& param_groups, SGDOptions defaults);
  explicit SGD(std::vector<Tensor> params, SGDOptions defaults);

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  unsigned uses(const OptimizerOptions& options) const override;
  const char* name() const override { return "SGD.step"; }
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace ramet::optim
