#include "nn/optim/lr_factors.h"

#include <algorithm>
#include <cmath>

namespace ramet::optim {
namespace {

using Functions = std::vector<std::function<double(int64_t)>>;

Functions for_groups(const char* op, const Optimizer& optimizer, Functions given) {
  RAMET_CHECK(given.size() == optimizer.param_groups().size(), op, "lr_lambdas: got ", given.size(),
              ", expected ", optimizer.param_groups().size());
  for (const auto& f : given) RAMET_CHECK(f, op, "lr_lambda should be a function: got none");
  return given;
}
Functions for_all(const char* op, const Optimizer& optimizer,
                  const std::function<double(int64_t)>& f) {
  return for_groups(op, optimizer, Functions(optimizer.param_groups().size(), f));
}

}  // namespace

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : RateSchedule(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  step();
}
std::vector<double> MultiStepLR::get_lrs() {
  const auto here = std::count(milestones_.begin(), milestones_.end(), int64_t{step_count_});
  return here ? times(std::pow(gamma_, static_cast<double>(here))) : get_current_lrs();
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma)
    : RateSchedule(optimizer), gamma_(gamma) {
  step();
}
std::vector<double> ExponentialLR::get_lrs() {
  return step_count_ == 0 ? get_current_lrs() : times(gamma_);
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : RateSchedule(optimizer), factor_(factor), total_iters_(total_iters) {
  RAMET_CHECK(factor >= 0 && factor <= 1, "ConstantLR",
              "Constant multiplicative factor expected to be between 0 and 1: got ", factor);
  step();
}
std::vector<double> ConstantLR::get_lrs() {
  if (step_count_ == 0) return times(factor_);
  if (step_count_ != total_iters_) return get_current_lrs();
  return factor_ == 0 ? initial_ : times(1 / factor_);
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor,
                   int64_t total_iters)
    : RateSchedule(optimizer), start_(start_factor), end_(end_factor), total_iters_(total_iters) {
  RAMET_CHECK(
      start_factor > 0 && start_factor <= 1, "LinearLR",
      "Starting multiplicative factor expected to be greater than 0 and less or equal to 1: "
      "got ",
      start_factor);
  RAMET_CHECK(end_factor >= 0 && end_factor <= 1, "LinearLR",
              "Ending multiplicative factor expected to be between 0 and 1: got ", end_factor);
  step();
}
std::vector<double> LinearLR::get_lrs() {
  if (step_count_ == 0) return times(start_);
  if (step_count_ > total_iters_) return get_current_lrs();
  const double rise = end_ - start_;
  const double before = static_cast<double>(total_iters_) * start_ + (step_count_ - 1.0) * rise;
  return times(1 + rise / before);
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : RateSchedule(optimizer), total_iters_(total_iters), power_(power) {
  step();
}
std::vector<double> PolynomialLR::get_lrs() {
  if (step_count_ == 0 || step_count_ > total_iters_) return get_current_lrs();
  const double e = step_count_, total = static_cast<double>(total_iters_);
  return times(std::pow((1 - e / total) / (1 - (e - 1) / total), power_));
}

LambdaLR::LambdaLR(Optimizer& optimizer, Function lr_lambda)
    : RateSchedule(optimizer), lambdas_(for_all("LambdaLR", optimizer, lr_lambda)) {
  step();
}
LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Function> lr_lambdas)
    : RateSchedule(optimizer), lambdas_(for_groups("LambdaLR", optimizer, std::move(lr_lambdas))) {
  step();
}
std::vector<double> LambdaLR::get_lrs() {
  std::vector<double> lrs = initial_;
  for (size_t i = 0; i < lrs.size(); ++i) lrs[i] *= lambdas_[i](step_count_);
  return lrs;
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, Function lr_lambda)
    : RateSchedule(optimizer), lambdas_(for_all("MultiplicativeLR", optimizer, lr_lambda)) {
  step();
}
MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::vector<Function> lr_lambdas)
    : RateSchedule(optimizer),
      lambdas_(for_groups("MultiplicativeLR", optimizer, std::move(lr_lambdas))) {
  step();
}
std::vector<double> MultiplicativeLR::multiplied() const {
  std::vector<double> lrs = get_current_lrs();
  RAMET_CHECK(lrs.size() == lambdas_.size(), "MultiplicativeLR",
              "the optimizer has other parameter groups now: got ", lrs.size(), ", expected ",
              lambdas_.size());
  for (size_t i = 0; i < lrs.size(); ++i) lrs[i] *= lambdas_[i](step_count_);
  return lrs;
}
std::vector<double> MultiplicativeLR::get_lrs() {
  return step_count_ == 0 ? get_current_lrs() : multiplied();
}
void MultiplicativeLR::restart() {
  step_count_ = 0;
  set_optimizer_lrs(multiplied());
  step_count_ = 1;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0,
                                                         int64_t T_mult, double eta_min)
    : RateSchedule(optimizer), t_0_(T_0), t_mult_(T_mult), eta_min_(eta_min) {
  RAMET_CHECK(T_0 > 0, "CosineAnnealingWarmRestarts", "Expected positive integer T_0: got ", T_0);
  RAMET_CHECK(T_mult >= 1, "CosineAnnealingWarmRestarts", "Expected integer T_mult >= 1: got ",
              T_mult);
  step();
}
std::vector<double> CosineAnnealingWarmRestarts::get_lrs() {
  double length = static_cast<double>(t_0_), t = step_count_;
  if (t_mult_ == 1) t = std::fmod(t, length);
  else
    for (; t >= length; length *= static_cast<double>(t_mult_)) t -= length;
  std::vector<double> lrs = initial_;
  for (double& lr : lrs) lr = eta_min_ + (lr - eta_min_) * (1 + std::cos(M_PI * t / length)) / 2;
  return lrs;
}

SWALR::SWALR(Optimizer& optimizer, double swa_lr, int64_t anneal_epochs,
             const std::string& anneal_strategy)
    : SWALR(optimizer, std::vector<double>(optimizer.param_groups().size(), swa_lr), anneal_epochs,
            anneal_strategy) {}
SWALR::SWALR(Optimizer& optimizer, std::vector<double> swa_lrs, int64_t anneal_epochs,
             const std::string& anneal_strategy)
    : RateSchedule(optimizer),
      swa_lrs_(std::move(swa_lrs)),
      anneal_epochs_(anneal_epochs),
      linear_(anneal_strategy == "linear") {
  RAMET_CHECK(swa_lrs_.size() == initial_.size(), "SWALR", "swa_lr: got ", swa_lrs_.size(),
              " rates, expected ", initial_.size());
  RAMET_CHECK(linear_ || anneal_strategy == "cos", "SWALR",
              "anneal_strategy must be one of 'cos' or 'linear': got ", anneal_strategy);
  RAMET_CHECK(anneal_epochs >= 0, "SWALR", "anneal_epochs must be equal or greater than 0: got ",
              anneal_epochs);
  step();
}
// Computes from the present rates those without the earlier steps, and applies this step to them.
// So a change of the rates by other code stays.
std::vector<double> SWALR::get_lrs() {
  const double length = static_cast<double>(std::max(int64_t{1}, anneal_epochs_));
  const double e = anneal_epochs_ == 0 ? std::max(1u, step_count_) : step_count_;
  const auto way = [&](double step) {
    const double t = std::min(std::max(step / length, 0.0), 1.0);
    return linear_ ? t : (1 - std::cos(M_PI * t)) / 2;
  };
  const double before = way(e - 1), now = way(e);
  std::vector<double> lrs = get_current_lrs();
  RAMET_CHECK(lrs.size() == swa_lrs_.size(), "SWALR",
              "the optimizer has other parameter groups now: got ", lrs.size(), ", expected ",
              swa_lrs_.size());
  for (size_t i = 0; i < lrs.size(); ++i) {
    const double start = before == 1 ? swa_lrs_[i] : (lrs[i] - before * swa_lrs_[i]) / (1 - before);
    lrs[i] = swa_lrs_[i] * now + start * (1 - now);
  }
  return lrs;
}

}  // namespace ramet::optim
