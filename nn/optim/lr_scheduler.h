// Learning-rate schedules. Call step() after the optimizer's step. More of them: lr_factors.h,
// lr_cycles.h, lr_sequences.h.
#pragma once
#include <functional>
#include <vector>

#include "nn/optim/optimizer.h"
#include "runtime/capture/capture.h"

namespace ramet::optim {
namespace detail {
class Schedules;
}

/// Sets the learning rate of each parameter group. The optimizer must outlive it.
class RAMET_API LRScheduler {
 public:
  LRScheduler(Optimizer& optimizer) : optimizer_(optimizer), seen_(optimizer.progress_) {}
  virtual ~LRScheduler();
  /// Counts a step and sets the rates of the next one: call it after the optimizer's. Does nothing
  /// if a GradScaler skipped all of the optimizer's steps since the last call.
  void step();
  /// How many steps it counted.
  unsigned step_count() const;
  /// Writes where it is, and reads it:
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);

 protected:
  /// The rates for the step number step_count_, one a group.
  virtual std::vector<double> get_lrs() = 0;
  std::vector<double> get_current_lrs() const;
  void set_optimizer_lrs(const std::vector<double>& learning_rates);
  /// OptimizerParamGroup::initial_lr() of the groups. Where it is not set, it becomes the present
  /// rate.
  std::vector<double> initial_lrs();
  void set_initial_lrs(const std::vector<double>& rates);
  Optimizer& optimizer() const noexcept { return optimizer_; }
  /// What makes a step undone that has not been made yet. Must not throw when it is called.
  virtual std::function<void()> undo();
  /// Begins again: step number 0, with `rates` as those of before.
  virtual void begin(const std::vector<double>& rates);
  /// begin() in the middle of a sequence.
  virtual void restart();
  unsigned step_count_ = 0;

 private:
  friend class detail::Schedules;
  /// step(), which a capture need not know of.
  void advance();
  /// advance(), when and if the optimizer made a step.
  void follow();
  Optimizer& optimizer_;
  Optimizer::Progress seen_;  // at the last call of step()
  capture::Life life_;
};

namespace detail {

/// What counts from the initial rates, which are in its files. As in PyTorch, the constructor makes
/// step number 0, and steps that multiply the rates of now by a factor can be chained. load() gives
/// the optimizer the rates that it had, and the groups' initial ones.
class RAMET_API RateSchedule : public LRScheduler {
 public:
  explicit RateSchedule(Optimizer& optimizer) : LRScheduler(optimizer), initial_(initial_lrs()) {}
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 protected:
  std::function<void()> undo() override;
  void restart() override { begin(initial_); }
  /// The rates of now, times `factor`.
  std::vector<double> times(double factor) const;
  std::vector<double> initial_;
};

}  // namespace detail

/// Multiplies the rates by gamma at every step_size-th step. As in LibTorch, the first call of
/// step() is number 0.
class RAMET_API StepLR : public LRScheduler {
 public:
  /// An Error if step_size is 0.
  StepLR(Optimizer& optimizer, const unsigned step_size, const double gamma = 0.1);

 private:
  std::vector<double> get_lrs() override;
  const unsigned step_size_;
  const double gamma_;
};

/// A linear warm-up, then a half cosine (Loshchilov and Hutter 2016) from each group's initial rate
/// down to eta_min:
///   t < warmup:  rate (t + 1) / warmup.
///   else:        eta_min + (rate - eta_min) (1 + cos(pi (t - warmup) / (t_max - warmup))) / 2, and
///                eta_min from t_max on.
/// t = 0 for the optimizer's first step: the constructor sets that rate. Without warm-up it is
/// PyTorch's CosineAnnealingLR up to t_max (after t_max PyTorch's rate rises again).
class RAMET_API CosineAnnealingLR : public detail::RateSchedule {
 public:
  /// An Error unless warmup < t_max.
  CosineAnnealingLR(Optimizer& optimizer, const unsigned t_max, const double eta_min = 0,
                    const unsigned warmup = 0);

 private:
  std::vector<double> get_lrs() override;
  const unsigned t_max_, warmup_;
  const double eta_min_;
};

/// Multiplies the rates by `factor` when `metric` has not improved for more than `patience` steps.
class RAMET_API ReduceLROnPlateauScheduler {
 public:
  /// Whether smaller or larger metrics are better.
  enum SchedulerMode { min, max };
  /// Whether the threshold is a share of the best metric or a number. By LibTorch's rule of rel a
  /// metric is better below best * (1 - threshold), with max above best * (1 + threshold). Of a
  /// best metric below 0 that takes worse ones for better: use abs where metrics may be negative.
  enum ThresholdMode { rel, abs };
  ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min, float factor = 0.1f,
                             int patience = 10, double threshold = 1e-4,
                             ThresholdMode threshold_mode = rel, int cooldown = 0,
                             const std::vector<float>& min_lr = std::vector<float>(),
                             double eps = 1e-8, bool verbose = false);
  virtual ~ReduceLROnPlateauScheduler();
  /// Takes one metric in.
  void step(float metric);

 private:
  bool is_better(double metric) const;
  void reduce_lr();

  Optimizer& optimizer_;
  SchedulerMode mode_;
  double factor_;
  int patience_;
  double threshold_;
  ThresholdMode threshold_mode_;
  int cooldown_;
  std::vector<float> min_lrs_;
  double eps_;
  bool verbose_;
  double best_;
  int bad_steps_ = 0, cooldown_left_ = 0, count_ = 0;
};

}  // namespace ramet::optim
