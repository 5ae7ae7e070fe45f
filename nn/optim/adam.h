// Adam (Kingma and Ba 2014) and AdamW (Loshchilov and Hutter 2017).
#pragma once
#include <tuple>

#include "nn/module/arg.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

struct RAMET_API AdamOptions : public detail::ListedOptions<AdamOptions> {
  AdamOptions(double lr = 1e-3) : lr_(lr) {}
  using betas_t = std::tuple<double, double>;
  RAMET_ARG(double, lr) = 1e-3;
  RAMET_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  RAMET_ARG(double, eps) = 1e-8;
  RAMET_ARG(double, weight_decay) = 0;
  RAMET_ARG(bool, amsgrad) = false;

 private:
  detail::Fields fields() override;
};

struct RAMET_API AdamWOptions : public detail::ListedOptions<AdamWOptions> {
  AdamWOptions(double lr = 1e-3) : lr_(lr) {}
  using betas_t = std::tuple<double, double>;
  RAMET_ARG(double, lr) = 1e-3;
  RAMET_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  RAMET_ARG(double, eps) = 1e-8;
  RAMET_ARG(double, weight_decay) = 1e-2;
  RAMET_ARG(bool, amsgrad) = false;

 private:
  detail::Fields fields() override;
};
extern template class detail::ListedOptions<AdamOptions>;
extern template class detail::ListedOptions<AdamWOptions>;

struct RAMET_API AdamParamState
    : public OptimizerCloneableParamState<AdamParamState, FusedParamState> {
  RAMET_ARG(int64_t, step) = 0;
  RAMET_ARG(Tensor, exp_avg);
  RAMET_ARG(Tensor, exp_avg_sq);
  RAMET_ARG(Tensor, max_exp_avg_sq);

 private:
  Members members() override {
    return {{{{"exp_avg", &exp_avg_},
              {"exp_avg_sq", &exp_avg_sq_},
              {"max_exp_avg_sq", &max_exp_avg_sq_}}},
            /*always=*/2,
            &step_};
  }
};
using AdamWParamState = AdamParamState;

/// g = grad + weight_decay p. m = beta1 m + (1 - beta1) g. v = beta2 v + (1 - beta2) g^2. p -= lr /
/// (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps). Under amsgrad the largest v so far
/// replaces v.
class RAMET_API Adam : public FusedOptimizer {
 public:
  explicit Adam(const std::vector<OptimizerParamGroup>& param_groups, AdamOptions defaults = {});
  explicit Adam(std::vector<Tensor> params, AdamOptions defaults = {});

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  unsigned uses(const OptimizerOptions& options) const override;
  const char* name() const override { return "Adam.step"; }
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

/// As Adam, but weight decay shrinks the parameter, p *= 1 - lr weight_decay, and does not enter m
/// and v.
class RAMET_API AdamW : public FusedOptimizer {
 public:
  explicit AdamW(const std::vector<OptimizerParamGroup>& param_groups, AdamWOptions defaults = {});
  explicit AdamW(std::vector<Tensor> params, AdamWOptions defaults = {});

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  unsigned uses(const OptimizerOptions& options) const override;
  const char* name() const override { return "AdamW.step"; }
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace ramet::optim
