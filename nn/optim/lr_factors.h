// Schedules that follow a factor or a curve, as torch.optim.lr_scheduler has them in Python. e is
// the number of the step, 0 for the optimizer's first one: the constructor sets that rate. Each
// multiplies the rates of now, so that schedules can be chained, but where it says "from the
// initial rates".
#pragma once
#include <string>

#include "nn/optim/lr_scheduler.h"

namespace ramet::optim {

/// Multiplies the rates by gamma at each milestone, twice at one that is there twice.
class RAMET_API MultiStepLR : public detail::RateSchedule {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 private:
  std::vector<double> get_lrs() override;
  const std::vector<int64_t> milestones_;
  const double gamma_;
};

/// Multiplies the rates by gamma at every step.
class RAMET_API ExponentialLR : public detail::RateSchedule {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  std::vector<double> get_lrs() override;
  const double gamma_;
};

/// Multiplies the rates by `factor`, until step number total_iters divides them by it again.
class RAMET_API ConstantLR : public detail::RateSchedule {
 public:
  /// An Error unless factor is in [0, 1].
  explicit ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);

 private:
  std::vector<double> get_lrs() override;
  const double factor_;
  const int64_t total_iters_;
};

/// A factor that goes from start_factor to end_factor in equal steps, total_iters of them.
class RAMET_API LinearLR : public detail::RateSchedule {
 public:
  /// An Error unless start_factor is in (0, 1] and end_factor in [0, 1].
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1.0,
                    int64_t total_iters = 5);

 private:
  std::vector<double> get_lrs() override;
  const double start_, end_;
  const int64_t total_iters_;
};

/// A factor (1 - e / total_iters)^power, 0 from total_iters on.
class RAMET_API PolynomialLR : public detail::RateSchedule {
 public:
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1.0);

 private:
  std::vector<double> get_lrs() override;
  const int64_t total_iters_;
  const double power_;
};

/// The rates from the initial rates: times lr_lambda(e). One function for all groups, or one each.
class RAMET_API LambdaLR : public detail::RateSchedule {
 public:
  /// The factor of step e.
  using Function = std::function<double(int64_t)>;
  LambdaLR(Optimizer& optimizer, Function lr_lambda);
  /// An Error unless there is one for each group.
  LambdaLR(Optimizer& optimizer, std::vector<Function> lr_lambdas);

 private:
  std::vector<double> get_lrs() override;
  const std::vector<Function> lambdas_;
};

/// Multiplies the rates by lr_lambda(e), from e = 1 on. One function for all groups, or one each.
class RAMET_API MultiplicativeLR : public detail::RateSchedule {
 public:
  /// The factor of step e.
  using Function = std::function<double(int64_t)>;
  MultiplicativeLR(Optimizer& optimizer, Function lr_lambda);
  /// An Error unless there is one for each group.
  MultiplicativeLR(Optimizer& optimizer, std::vector<Function> lr_lambdas);

 private:
  std::vector<double> get_lrs() override;
  /// As in PyTorch, the rates of now times lr_lambda(0).
  void restart() override;
  std::vector<double> multiplied() const;
  const std::vector<Function> lambdas_;
};

/// The rate goes from the initial rate down a half cosine to eta_min, again and again (SGDR,
/// Loshchilov and Hutter 2016). It is eta_min + (rate - eta_min) (1 + cos(pi t / T)) / 2, with t =
/// 0, ..., T - 1. T is T_0 at first, and T_mult times as large each time.
class RAMET_API CosineAnnealingWarmRestarts : public detail::RateSchedule {
 public:
  /// An Error unless T_0 > 0 and T_mult >= 1.
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1,
                              double eta_min = 0);

 private:
  std::vector<double> get_lrs() override;
  const int64_t t_0_, t_mult_;
  const double eta_min_;
};

/// The rate goes from the present rates to swa_lr in anneal_epochs steps, along a half cosine
/// ("cos") or in equal steps ("linear"). After that it stays at swa_lr. It is Python's
/// torch.optim.swa_utils.SWALR. One rate for all groups, or one each.
class RAMET_API SWALR : public detail::RateSchedule {
 public:
  /// An Error unless anneal_epochs >= 0 and anneal_strategy is one of the two.
  SWALR(Optimizer& optimizer, double swa_lr, int64_t anneal_epochs = 10,
        const std::string& anneal_strategy = "cos");
  /// An Error unless there is a rate for each group.
  SWALR(Optimizer& optimizer, std::vector<double> swa_lrs, int64_t anneal_epochs = 10,
        const std::string& anneal_strategy = "cos");

 private:
  std::vector<double> get_lrs() override;
  const std::vector<double> swa_lrs_;
  const int64_t anneal_epochs_;
  const bool linear_;
};

}  // namespace ramet::optim
