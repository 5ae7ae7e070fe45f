// Schedules that move the rates up and down, and the momentum in the opposite direction. They are
// those of Python's torch.optim.lr_scheduler: CyclicLR (Smith 2015) and OneCycleLR (Smith and Topin
// 2017). e is the number of the step, 0 for the optimizer's first one: the constructor sets that
// rate. The momentum is the option "momentum", or the first of two betas.
#pragma once
#include <optional>

#include "nn/module/arg.h"
#include "nn/optim/lr_scheduler.h"

namespace ramet::optim {
namespace detail {

class RAMET_API MomentumCycle : public RateSchedule {
 protected:
  MomentumCycle(Optimizer& optimizer, bool cycle_momentum)
      : RateSchedule(optimizer), cycle_momentum_(cycle_momentum) {}
  /// An Error if a group has no momentum.
  static void check_momentum(const char* op, Optimizer& optimizer);
  std::function<void()> undo() override;
  void set_momentum(double momentum) const;
  /// One number for all groups, or one each.
  static std::vector<double> for_groups(const char* op, const char* what,
                                        const Optimizer& optimizer,
                                        const std::vector<double>& given);
  const bool cycle_momentum_;
};

}  // namespace detail

struct CyclicLROptions {
  /// How f of the formula falls from cycle to cycle.
  enum Mode { triangular, triangular2, exp_range };
  /// What scale_fn is of: the cycle's number, or the step's.
  enum ScaleMode { cycle, iterations };
  /// f of the formula.
  using ScaleFunction = std::function<double(double)>;
  /// One number for all groups, or one each.
  CyclicLROptions(std::vector<double> base_lr, std::vector<double> max_lr)
      : base_lr_(std::move(base_lr)), max_lr_(std::move(max_lr)) {}
  CyclicLROptions(double base_lr, double max_lr)
      : CyclicLROptions(std::vector<double>{base_lr}, std::vector<double>{max_lr}) {}
  RAMET_ARG(std::vector<double>, base_lr);
  RAMET_ARG(std::vector<double>, max_lr);
  RAMET_ARG(int64_t, step_size_up) = 2000;
  /// None: as step_size_up.
  RAMET_ARG(std::optional<int64_t>, step_size_down) = std::nullopt;
  /// How f of the formula falls from cycle to cycle.
  RAMET_ARG(Mode, mode) = triangular;
  RAMET_ARG(double, gamma) = 1;
  /// In place of the mode's function; of what scale_mode says.
  RAMET_ARG(ScaleFunction, scale_fn);
  /// What scale_fn is of.
  RAMET_ARG(ScaleMode, scale_mode) = cycle;
  /// Whether the momentum moves, the other way round; an Error where the optimizer has none.
  RAMET_ARG(bool, cycle_momentum) = true;
  RAMET_ARG(double, base_momentum) = 0.8;
  RAMET_ARG(double, max_momentum) = 0.9;
};

/// The rate goes from base_lr up to max_lr in step_size_up steps and down in step_size_down, again
/// and again. The rate is base_lr + (max_lr - base_lr) s f. The momentum is max_momentum -
/// (max_momentum - base_momentum) s f. s goes from 0 to 1 and back. f is 1 (triangular), 2^(1 -
/// cycle) (triangular2), gamma^e (exp_range), scale_fn(cycle), or scale_fn(e) (iterations); cycle =
/// 1, 2, ...
class RAMET_API CyclicLR : public detail::MomentumCycle {
 public:
  /// An Error unless step_size_up > 0 and step_size_down >= 0.
  CyclicLR(Optimizer& optimizer, const CyclicLROptions& options);

 private:
  // The optimizer, with rates base_lr.
  static Optimizer& checked(Optimizer& optimizer, const CyclicLROptions& options);
  std::vector<double> get_lrs() override;
  const CyclicLROptions options_;
  const std::vector<double> base_, max_;
};

struct OneCycleLROptions {
  /// How the rate goes from one to the other: by half a cosine, or in a line.
  enum AnnealStrategy { cos, linear };
  /// One number for all groups, or one each.
  OneCycleLROptions(std::vector<double> max_lr, int64_t total_steps)
      : max_lr_(std::move(max_lr)), total_steps_(total_steps) {}
  OneCycleLROptions(double max_lr, int64_t total_steps)
      : OneCycleLROptions(std::vector<double>{max_lr}, total_steps) {}
  RAMET_ARG(std::vector<double>, max_lr);
  /// PyTorch's epochs * steps_per_epoch.
  RAMET_ARG(int64_t, total_steps);
  RAMET_ARG(double, pct_start) = 0.3;
  /// By half a cosine, or in a line.
  RAMET_ARG(AnnealStrategy, anneal_strategy) = cos;
  /// Whether the momentum moves, the other way round; an Error where the optimizer has none.
  RAMET_ARG(bool, cycle_momentum) = true;
  RAMET_ARG(double, base_momentum) = 0.85;
  RAMET_ARG(double, max_momentum) = 0.95;
  RAMET_ARG(double, div_factor) = 25;
  RAMET_ARG(double, final_div_factor) = 1e4;
  /// Whether it comes back to max_lr / div_factor before it goes below.
  RAMET_ARG(bool, three_phase) = false;
};

/// The rate goes from max_lr / div_factor up to max_lr, which it reaches in step number pct_start
/// total_steps - 1. Then it goes down to max_lr / div_factor / final_div_factor. With three phases
/// it first goes down to max_lr / div_factor, in as many steps as it went up. The momentum goes
/// from max_momentum to base_momentum and back. The constructor sets the groups' initial rates to
/// max_lr / div_factor.
class RAMET_API OneCycleLR : public detail::MomentumCycle {
 public:
  /// An Error unless total_steps > 0 and pct_start is in [0, 1]; step(), for more steps than
  /// total_steps, and where a phase that is reached has no length.
  OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options);

 private:
  // The optimizer, with its new initial rates.
  static Optimizer& checked(Optimizer& optimizer, const OneCycleLROptions& options);
  std::vector<double> get_lrs() override;
  const OneCycleLROptions options_;
  const std::vector<double> max_;
};

}  // namespace ramet::optim
