#include "nn/optim/lr_scheduler.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <utility>

#include "nn/serialize/archive.h"
#include "runtime/base/logging.h"
#include "runtime/capture/capture.h"

namespace ramet::optim {

LRScheduler::~LRScheduler() = default;

void LRScheduler::step() {
  if (RAMET_UNLIKELY(capture::active())) {
    capture::guard(this, "a schedule", [life = life_.token()] { return !life.expired(); });
    capture::effect([this] { follow(); }, undo());
  }
  follow();
}
unsigned LRScheduler::step_count() const {
  optimizer_.settle();
  return step_count_;
}
void LRScheduler::follow() {
  optimizer_.when_settled([this, life = life_.token()] {
    if (life.expired()) return;
    const auto [made, skipped] = std::exchange(seen_, optimizer_.progress_);
    if (seen_.made != made || seen_.skipped == skipped) advance();
  });
}
void LRScheduler::advance() {
  set_optimizer_lrs(get_lrs());
  ++step_count_;
}
std::function<void()> LRScheduler::undo() {
  return [this, rates = get_current_lrs(), count = step_count_] {
    set_optimizer_lrs(rates);
    step_count_ = count;
  };
}
void LRScheduler::begin(const std::vector<double>& rates) {
  set_optimizer_lrs(rates);
  step_count_ = 0;
  advance();
}
void LRScheduler::restart() { begin(initial_lrs()); }
std::vector<double> LRScheduler::initial_lrs() {
  std::vector<double> out;
  for (OptimizerParamGroup& group : optimizer_.param_groups()) {
    if (!group.initial_lr()) group.initial_lr() = group.options().get_lr();
    out.push_back(*group.initial_lr());
  }
  return out;
}
std::vector<double> LRScheduler::get_current_lrs() const {
  std::vector<double> out;
  for (const OptimizerParamGroup& group : optimizer_.param_groups())
    out.push_back(group.options().get_lr());
  return out;
}
void LRScheduler::set_optimizer_lrs(const std::vector<double>& learning_rates) {
  auto& groups = optimizer_.param_groups();
  RAMET_CHECK(learning_rates.size() == groups.size(), "LRScheduler",
              "the number of learning rates must be that of parameter groups: got ",
              learning_rates.size(), ", expected ", groups.size());
  for (size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(learning_rates[i]);
}
void LRScheduler::save(serialize::OutputArchive& archive) const {
  optimizer_.settle();
  archive.write("step_count", IValue(static_cast<int64_t>(step_count_)));
}
void LRScheduler::load(serialize::InputArchive& archive) {
  optimizer_.settle();
  IValue count;
  archive.read("step_count", count);
  const int64_t steps = count.toInt();
  RAMET_CHECK(steps >= 0 && steps <= UINT_MAX, "LRScheduler", "step_count in the archive: got ",
              steps, ", expected a number from 0 to ", UINT_MAX);
  step_count_ = static_cast<unsigned>(steps);
}

void LRScheduler::set_initial_lrs(const std::vector<double>& rates) {
  for (size_t i = 0; i < rates.size(); ++i) optimizer_.param_groups()[i].initial_lr() = rates[i];
}

void detail::RateSchedule::save(serialize::OutputArchive& archive) const {
  LRScheduler::save(archive);
  archive.write("initial", IValue(initial_));
  archive.write("rates", IValue(get_current_lrs()));
}
void detail::RateSchedule::load(serialize::InputArchive& archive) {
  IValue initial, rates;
  archive.read("initial", initial);
  // Older archives do not hold it.
  const bool has_rates = archive.try_read("rates", rates);
  for (const IValue* list : {&initial, has_rates ? &rates : &initial})
    RAMET_CHECK(list->toDoubleVector().size() == initial_.size(), "LRScheduler",
                "parameter groups in the archive: got ", list->toDoubleVector().size(),
                ", expected ", initial_.size());
  LRScheduler::load(archive);
  initial_ = initial.toDoubleVector();
  set_initial_lrs(initial_);
  if (has_rates) set_optimizer_lrs(rates.toDoubleVector());
}
std::function<void()> detail::RateSchedule::undo() {
  return [this, rates = LRScheduler::undo(), initial = initial_, all = initial_lrs()] {
    rates();
    initial_ = initial;
    set_initial_lrs(all);
  };
}
std::vector<double> detail::RateSchedule::times(double factor) const {
  std::vector<double> lrs = get_current_lrs();
  for (double& lr : lrs) lr *= factor;
  return lrs;
}

StepLR::StepLR(Optimizer& optimizer, const unsigned step_size, const double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  RAMET_CHECK(step_size > 0, "StepLR", "step_size: got 0, expected at least 1");
}
std::vector<double> StepLR::get_lrs() {
  std::vector<double> lrs = get_current_lrs();
  if (step_count_ == 0 || step_count_ % step_size_ != 0) return lrs;
  for (double& lr : lrs) lr *= gamma_;
  return lrs;
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const unsigned t_max,
                                     const double eta_min, const unsigned warmup)
    : RateSchedule(optimizer), t_max_(t_max), warmup_(warmup), eta_min_(eta_min) {
  RAMET_CHECK(warmup < t_max, "CosineAnnealingLR", "warmup: got ", warmup,
              ", expected less than t_max = ", t_max);
  step();
}
std::vector<double> CosineAnnealingLR::get_lrs() {
  std::vector<double> lrs = initial_;
  const double t = step_count_, warmup = warmup_;
  for (double& lr : lrs) {
    if (step_count_ < warmup_) lr *= (t + 1) / warmup;
    else if (step_count_ >= t_max_) lr = eta_min_;
    else
      lr = eta_min_ + (lr - eta_min_) * (1 + std::cos(M_PI * (t - warmup) / (t_max_ - warmup))) / 2;
  }
  return lrs;
}

ReduceLROnPlateauScheduler::ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode,
                                                       float factor, int patience, double threshold,
                                                       ThresholdMode threshold_mode, int cooldown,
                                                       const std::vector<float>& min_lr, double eps,
                                                       bool verbose)
    : optimizer_(optimizer),
      mode_(mode),
      factor_(factor),
      patience_(patience),
      threshold_(threshold),
      threshold_mode_(threshold_mode),
      cooldown_(cooldown),
      min_lrs_(min_lr),
      eps_(eps),
      verbose_(verbose),
      best_(mode == min ? std::numeric_limits<double>::infinity()
                        : -std::numeric_limits<double>::infinity()) {
  RAMET_CHECK(factor < 1, "ReduceLROnPlateau", "Factor should be < 1.0: got ", factor);
  const size_t groups = optimizer.param_groups().size();
  if (min_lrs_.empty()) min_lrs_.assign(groups, 0);
  RAMET_CHECK(min_lrs_.size() == groups, "ReduceLROnPlateau",
              "Number of learning rates not equal to the number of groups: got ", min_lrs_.size(),
              ", expected ", groups);
}
ReduceLROnPlateauScheduler::~ReduceLROnPlateauScheduler() = default;

bool ReduceLROnPlateauScheduler::is_better(double metric) const {
  if (mode_ == min)
    return metric < (threshold_mode_ == rel ? best_ * (1 - threshold_) : best_ - threshold_);
  return metric > (threshold_mode_ == rel ? best_ * (1 + threshold_) : best_ + threshold_);
}

void ReduceLROnPlateauScheduler::step(float metric) {
  capture::refuse("ReduceLROnPlateauScheduler", "the metric is a number of the host");
  RAMET_CHECK(optimizer_.param_groups().size() == min_lrs_.size(), "ReduceLROnPlateau",
              "the optimizer has other parameter groups now: got ",
              optimizer_.param_groups().size(), ", expected ", min_lrs_.size());
  ++count_;
  if (is_better(metric)) {
    best_ = metric;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_steps_ = 0;
  }
  if (bad_steps_ > patience_) {
    reduce_lr();
    cooldown_left_ = cooldown_;
    bad_steps_ = 0;
  }
}

void ReduceLROnPlateauScheduler::reduce_lr() {
  auto& groups = optimizer_.param_groups();
  for (size_t i = 0; i < groups.size(); ++i) {
    const double old_lr = groups[i].options().get_lr();
    const double new_lr = std::max(old_lr * factor_, static_cast<double>(min_lrs_[i]));
    if (old_lr - new_lr <= eps_) continue;
    groups[i].options().set_lr(new_lr);
    if (verbose_)
      log(LogLevel::Info, "[ReduceLROnPlateau] step ", count_, ": learning rate of group ", i,
          " reduced to ", new_lr);
  }
}

}  // namespace ramet::optim
