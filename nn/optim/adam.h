// Adam (Kingma and Ba 2014) and AdamW (Loshchilov and Hutter 2017).
#pragma once
#include <tuple>

#include "nn/module/arg.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

struct RAMET_API AdamOptions : public OptimizerCloneableOptions<AdamOptions> {
  AdamOptions(double lr = 1e-3) : lr_(lr) {}
  using betas_t = std::tuple<double, double>;
  RAMET_ARG(double, lr) = 1e-3;
  RAMET_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  RAMET_ARG(double, eps) = 1e-8;
  RAMET_ARG(double, weight_decay) = 0;
  RAMET_ARG(bool, amsgrad) = false;

 public:
  void serialize(serialize::InputArchive& archive) override;
  void serialize(serialize::OutputArchive& archive) const override;
  RAMET_API friend bool operator==(const AdamOptions& lhs, const AdamOptions& rhs);
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { lr_ = lr; }
  void inherit(const OptimizerOptions& defaults) override;
  void check() const override;
};

struct RAMET_API AdamWOptions : public OptimizerCloneableOptions<AdamWOptions> {
  AdamWOptions(double lr = 1e-3) : lr_(lr) {}
  using betas_t = std::tuple<double, double>;
  RAMET_ARG(double, lr) = 1e-3;
  RAMET_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  RAMET_ARG(double, eps) = 1e-8;
  RAMET_ARG(double, weight_decay) = 1e-2;
  RAMET_ARG(bool, amsgrad) = false;

 public:
  void serialize(serialize::InputArchive& archive) override;
  void serialize(serialize::OutputArchive& archive) const override;
  RAMET_API friend bool operator==(const AdamWOptions& lhs, const AdamWOptions& rhs);
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { lr_ = lr; }
  void inherit(const OptimizerOptions& defaults) override;
  void check() const override;
};

struct RAMET_API AdamParamState : public OptimizerCloneableParamState<AdamParamState> {
  RAMET_ARG(int64_t, step) = 0;
  RAMET_ARG(Tensor, exp_avg);
  RAMET_ARG(Tensor, exp_avg_sq);
  RAMET_ARG(Tensor, max_exp_avg_sq);

 public:
  void serialize(serialize::InputArchive& archive) override;
  void serialize(serialize::OutputArchive& archive) const override;
};
using AdamWParamState = AdamParamState;

namespace detail {
/// Both optimizers: they differ in how weight decay enters.
class RAMET_API AdamBase : public FusedOptimizer {
 protected:
  using FusedOptimizer::FusedOptimizer;
  struct Settings {
    double lr, beta1, beta2, eps, weight_decay;
    bool amsgrad, decoupled;
  };
  virtual Settings settings(const OptimizerOptions& options) const = 0;

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  size_t slots(const OptimizerOptions& options) const override;
  std::unique_ptr<OptimizerParamState> new_state() const override {
    return std::make_unique<AdamParamState>();
  }
  Slots state_tensors(OptimizerParamState& state) const override;
  int64_t age(const OptimizerParamState& state) const override {
    return static_cast<const AdamParamState&>(state).step();
  }
};
}  // namespace detail

/// g = grad + weight_decay p;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
/// p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps), with the largest v so far under
/// amsgrad.
class RAMET_API Adam : public detail::AdamBase {
 public:
  explicit Adam(const std::vector<OptimizerParamGroup>& param_groups, AdamOptions defaults = {})
      : AdamBase(param_groups, std::make_unique<AdamOptions>(defaults)) {}
  explicit Adam(std::vector<Tensor> params, AdamOptions defaults = {})
      : Adam({OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

 private:
  Settings settings(const OptimizerOptions& options) const override;
  const char* name() const override { return "Adam.step"; }
};

/// As Adam, but weight decay shrinks the parameter, p *= 1 - lr weight_decay, and does not enter m
/// and v.
class RAMET_API AdamW : public detail::AdamBase {
 public:
  explicit AdamW(const std::vector<OptimizerParamGroup>& param_groups, AdamWOptions defaults = {})
      : AdamBase(param_groups, std::make_unique<AdamWOptions>(defaults)) {}
  explicit AdamW(std::vector<Tensor> params, AdamWOptions defaults = {})
      : AdamW({OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

 private:
  Settings settings(const OptimizerOptions& options) const override;
  const char* name() const override { return "AdamW.step"; }
};

}  // namespace ramet::optim
