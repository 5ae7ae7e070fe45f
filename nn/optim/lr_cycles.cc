#include "nn/optim/lr_cycles.h"

#include <cmath>

namespace ramet::optim {
namespace detail {

void MomentumCycle::check_momentum(const char* op, Optimizer& optimizer) {
  for (OptimizerParamGroup& group : optimizer.param_groups())
    RAMET_CHECK(group.options().momentum_place(), op,
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled");
}
std::function<void()> MomentumCycle::undo() {
  std::vector<double> momenta;
  if (cycle_momentum_)
    for (OptimizerParamGroup& group : optimizer().param_groups())
      momenta.push_back(*group.options().momentum_place());
  return [this, rates = RateSchedule::undo(), momenta = std::move(momenta)] {
    rates();
    for (size_t i = 0; i < momenta.size(); ++i)
      *optimizer().param_groups()[i].options().momentum_place() = momenta[i];
  };
}
void MomentumCycle::set_momentum(double momentum) const {
  for (OptimizerParamGroup& group : optimizer().param_groups())
    *group.options().momentum_place() = momentum;
}
std::vector<double> MomentumCycle::for_groups(const char* op, const char* what,
                                              const Optimizer& optimizer,
                                              const std::vector<double>& given) {
  const size_t groups = optimizer.param_groups().size();
  if (given.size() == 1) return std::vector<double>(groups, given[0]);
  RAMET_CHECK(given.size() == groups, op, what,
              " must have the same length as optimizer.param_groups: got ", given.size(),
              ", expected ", groups);
  return given;
}

}  // namespace detail

Optimizer& CyclicLR::checked(Optimizer& optimizer, const CyclicLROptions& options) {
  const auto base = for_groups("CyclicLR", "base_lr", optimizer, options.base_lr());
  for_groups("CyclicLR", "max_lr", optimizer, options.max_lr());
  RAMET_CHECK(options.step_size_up() > 0, "CyclicLR", "step_size_up: got ", options.step_size_up(),
              ", expected at least 1");
  RAMET_CHECK(options.step_size_down().value_or(0) >= 0, "CyclicLR", "step_size_down: got ",
              *options.step_size_down(), ", expected at least 0");
  if (options.cycle_momentum()) check_momentum("CyclicLR", optimizer);
  for (size_t i = 0; i < base.size(); ++i) optimizer.param_groups()[i].options().set_lr(base[i]);
  return optimizer;
}
CyclicLR::CyclicLR(Optimizer& optimizer, const CyclicLROptions& options)
    : MomentumCycle(checked(optimizer, options), options.cycle_momentum()),
      options_(options),
      base_(for_groups("CyclicLR", "base_lr", optimizer, options.base_lr())),
      max_(for_groups("CyclicLR", "max_lr", optimizer, options.max_lr())) {
  step();
}
std::vector<double> CyclicLR::get_lrs() {
  const CyclicLROptions& o = options_;
  const double e = step_count_, up = static_cast<double>(o.step_size_up()),
               total = up + static_cast<double>(o.step_size_down().value_or(o.step_size_up())),
               ratio = up / total, cycle = std::floor(1 + e / total), x = 1 + e / total - cycle;
  const auto f = [&] {
    if (o.scale_fn()) return o.scale_fn()(o.scale_mode() == o.cycle ? cycle : e);
    if (o.mode() == o.triangular2) return std::pow(2.0, 1 - cycle);
    return o.mode() == o.exp_range ? std::pow(o.gamma(), e) : 1.0;
  };
  const double scale = (x <= ratio ? x / ratio : (x - 1) / (ratio - 1)) * f();
  std::vector<double> lrs = base_;
  for (size_t i = 0; i < lrs.size(); ++i) lrs[i] += (max_[i] - base_[i]) * scale;
  if (cycle_momentum_)
    set_momentum(o.max_momentum() - (o.max_momentum() - o.base_momentum()) * scale);
  return lrs;
}

Optimizer& OneCycleLR::checked(Optimizer& optimizer, const OneCycleLROptions& options) {
  const auto max = for_groups("OneCycleLR", "max_lr", optimizer, options.max_lr());
  RAMET_CHECK(options.total_steps() > 0, "OneCycleLR",
              "Expected positive integer total_steps: got ", options.total_steps());
  RAMET_CHECK(options.pct_start() >= 0 && options.pct_start() <= 1, "OneCycleLR",
              "Expected float between 0 and 1 pct_start: got ", options.pct_start());
  if (options.cycle_momentum()) check_momentum("OneCycleLR", optimizer);
  for (size_t i = 0; i < max.size(); ++i)
    optimizer.param_groups()[i].initial_lr() = max[i] / options.div_factor();
  return optimizer;
}
OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options)
    : MomentumCycle(checked(optimizer, options), options.cycle_momentum()),
      options_(options),
      max_(for_groups("OneCycleLR", "max_lr", optimizer, options.max_lr())) {
  step();
}
std::vector<double> OneCycleLR::get_lrs() {
  const OneCycleLROptions& o = options_;
  const double e = step_count_, total = static_cast<double>(o.total_steps());
  RAMET_CHECK(e <= total, "OneCycleLR", "Tried to step ", step_count_,
              " times. The specified number of total steps is ", o.total_steps());
  // Where the phases end, and which of the rates and momenta they go to.
  enum Where { kInitial, kMax, kMin };
  const struct Phase {
    double end;
    Where to;
  } three[] = {{o.pct_start() * total - 1, kMax},
               {2 * o.pct_start() * total - 2, kInitial},
               {total - 1, kMin}},
    two[] = {three[0], three[2]};
  const Phase* phase = o.three_phase() ? three : two;
  double begin = 0;
  Where from = kInitial;
  for (; phase->to != kMin && e > phase->end; ++phase) begin = phase->end, from = phase->to;
  RAMET_CHECK(phase->end != begin, "OneCycleLR", "a phase without length: step ", step_count_,
              " of ", o.total_steps(), ", pct_start ", o.pct_start());
  const double part = (e - begin) / (phase->end - begin);
  const auto between = [&](double start, double end) {
    if (o.anneal_strategy() == o.linear) return (end - start) * part + start;
    return end + (start - end) / 2 * (std::cos(M_PI * part) + 1);
  };
  std::vector<double> lrs = max_;
  for (double& lr : lrs) {
    const double initial = lr / o.div_factor(),
                 at[] = {initial, lr, initial / o.final_div_factor()};
    lr = between(at[from], at[phase->to]);
  }
  const auto momentum = [&](Where w) { return w == kMax ? o.base_momentum() : o.max_momentum(); };
  if (cycle_momentum_) set_momentum(between(momentum(from), momentum(phase->to)));
  return lrs;
}

}  // namespace ramet::optim
