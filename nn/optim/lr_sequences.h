// Schedules of schedules, as torch.optim.lr_scheduler has them in Python.
#pragma once
#include <memory>

#include "nn/optim/lr_scheduler.h"

namespace ramet::optim {
namespace detail {

class RAMET_API Schedules : public LRScheduler {
 public:
  using List = std::vector<std::shared_ptr<LRScheduler>>;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 protected:
  /// An Error unless there are schedules, all of them this optimizer's.
  Schedules(const char* op, Optimizer& optimizer, List schedulers);
  static Optimizer& optimizer_of(const char* op, const List& schedulers);
  /// get_lrs() by steps of schedules, all or none.
  template <class F> std::vector<double> rates_after(const F& steps);
  std::function<void()> undo() override;
  void advance_one(size_t i) { schedulers_[i]->advance(); }
  void begin_one(size_t i, const std::vector<double>& rates) { schedulers_[i]->begin(rates); }
  void restart_one(size_t i) { schedulers_[i]->restart(); }
  const List schedulers_;
};

}  // namespace detail

/// Runs one schedule after the other. schedulers[i] runs from step number milestones[i - 1] on (the
/// first from the beginning), as if it had just been made. A later schedule goes on from the rates
/// of the one before it. The schedules given must be new:
///
///   SequentialLR warmed(optimizer,
///                       {std::make_shared<LinearLR>(optimizer, 0.1, 1.0, 5),
///                        std::make_shared<ExponentialLR>(optimizer, 0.9)}, {5});
///
/// Where a schedule begins, it starts from the groups' initial rates (MultiplicativeLR: from the
/// present rates times lr_lambda(0)).
class RAMET_API SequentialLR : public detail::Schedules {
 public:
  /// An Error unless there is one milestone less than there are schedules, in ascending order.
  SequentialLR(Optimizer& optimizer, List schedulers, std::vector<int64_t> milestones);

 private:
  std::vector<double> get_lrs() override;
  void begin(const std::vector<double>& rates) override;
  void restart() override;
  /// Which one has step number e.
  size_t at(int64_t e) const;
  const std::vector<int64_t> milestones_;
};

/// All of them at each step, one after the other: factors of the same rates.
class RAMET_API ChainedScheduler : public detail::Schedules {
 public:
  explicit ChainedScheduler(List schedulers)
      : Schedules("ChainedScheduler", optimizer_of("ChainedScheduler", schedulers), schedulers) {}

 private:
  std::vector<double> get_lrs() override;
  void begin(const std::vector<double>& rates) override;
  void restart() override;
};

}  // namespace ramet::optim
