// Rprop (Riedmiller and Braun 1993), as torch.optim has it in Python.
#pragma once
#include <tuple>

#include "nn/module/arg.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

struct RAMET_API RpropOptions : public detail::ListedOptions<RpropOptions> {
  RpropOptions(double lr = 1e-2) : lr_(lr) {}
  /// The smaller one and the larger one.
  using pair_t = std::tuple<double, double>;
  RAMET_ARG(double, lr) = 1e-2;
  RAMET_ARG(pair_t, etas) = std::make_tuple(0.5, 1.2);
  RAMET_ARG(pair_t, step_sizes) = std::make_tuple(1e-6, 50.0);
  RAMET_ARG(bool, maximize) = false;

 public:
  void check() const override;

 private:
  detail::Fields fields() override;
};
extern template class detail::ListedOptions<RpropOptions>;

struct RAMET_API RpropParamState
    : public OptimizerCloneableParamState<RpropParamState, FusedParamState> {
  RAMET_ARG(int64_t, step) = 0;
  /// The gradient of the step before.
  RAMET_ARG(Tensor, prev);
  /// How far each element goes.
  RAMET_ARG(Tensor, step_size);

 private:
  Members members() override {
    return {{{{"prev", &prev_}, {"step_size", &step_size_}}}, /*always=*/2, &step_};
  }
};

/// Each element has a step size: the rate in the first step. Later it is multiplied by etas[1]
/// where two gradients have the same sign, otherwise by etas[0] (this gradient then counts as 0).
/// It stays within step_sizes. p -= sign(grad) size (maximize: +). The sign of a NaN is 0, as in
/// PyTorch.
class RAMET_API Rprop : public FusedOptimizer {
 public:
  explicit Rprop(const std::vector<OptimizerParamGroup>& param_groups, RpropOptions defaults = {});
  explicit Rprop(std::vector<Tensor> params, RpropOptions defaults = {});

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  unsigned uses(const OptimizerOptions&) const override { return 0b11; }
  double first_value(const OptimizerOptions& options, size_t slot) const override {
    return slot == 1 ? options.get_lr() : 0;
  }
  const char* name() const override { return "Rprop.step"; }
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace ramet::optim
