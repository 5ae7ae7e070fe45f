// Learning-rate schedules. Call step() after the optimizer's step.
#pragma once
#include <vector>

#include "nn/optim/optimizer.h"
#include "runtime/capture.h"

namespace ramet::optim {

/// Sets the learning rate of each parameter group. The optimizer must outlive it.
class RAMET_API LRScheduler {
 public:
  LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}
  virtual ~LRScheduler();
  void step();
  /// How often step() ran.
  unsigned step_count() const noexcept { return step_count_; }
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);

 protected:
  /// The rates for the step number step_count_, one a group.
  virtual std::vector<double> get_lrs() = 0;
  std::vector<double> get_current_lrs() const;
  unsigned step_count_ = 0;

 private:
  void set_optimizer_lrs(const std::vector<double>& learning_rates);
  Optimizer& optimizer_;
  capture::Life life_;
};

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

/// Linear warm-up, then a half cosine (Loshchilov and Hutter 2016) from each group's initial rate
/// down to eta_min:
///   t < warmup:  rate (t + 1) / warmup
///   else:        eta_min + (rate - eta_min) (1 + cos(pi (t - warmup) / (t_max - warmup))) / 2, and
///                eta_min from t_max on,
/// t = 0 for the optimizer's first step: the constructor sets that rate. Without warm-up it is
/// PyTorch's CosineAnnealingLR up to t_max (whose rate rises again behind it).
class RAMET_API CosineAnnealingLR : public LRScheduler {
 public:
  /// An Error unless warmup < t_max.
  CosineAnnealingLR(Optimizer& optimizer, const unsigned t_max, const double eta_min = 0,
                    const unsigned warmup = 0);
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 private:
  std::vector<double> get_lrs() override;
  const unsigned t_max_, warmup_;
  const double eta_min_;
  std::vector<double> initial_;
};

/// Multiplies the rates by `factor` when `metric` has not improved for more than `patience` steps.
class RAMET_API ReduceLROnPlateauScheduler {
 public:
  enum SchedulerMode { min, max };
  enum ThresholdMode { rel, abs };
  ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min, float factor = 0.1,
                             int patience = 10, double threshold = 1e-4,
                             ThresholdMode threshold_mode = rel, int cooldown = 0,
                             const std::vector<float>& min_lr = std::vector<float>(),
                             double eps = 1e-8, bool verbose = false);
  virtual ~ReduceLROnPlateauScheduler();
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
