// Schedules of two groups' rates, against numbers from PyTorch 2.15.
#pragma once
#include "autograd/ops/make/factory.h"
#include "nn/optim/adam.h"
#include "nn/optim/lr_cycles.h"
#include "nn/optim/lr_factors.h"
#include "nn/optim/lr_sequences.h"
#include "nn/optim/sgd.h"
#include "tests/nn/support.h"

namespace ramet::optim {

using Schedule = std::shared_ptr<LRScheduler>;
using MakeSchedule = std::function<Schedule(Optimizer&)>;
using Numbers = std::vector<double>;

/// Two groups, with rates 0.5 and 2.
template <class O, class Options> std::unique_ptr<O> two_groups(Options options) {
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<Tensor>{ones({1}).requires_grad_()});
  groups.emplace_back(std::vector<Tensor>{ones({1}).requires_grad_()},
                      std::make_unique<Options>(Options(2)));
  return std::make_unique<O>(groups, options);
}
inline std::unique_ptr<SGD> sgd() { return two_groups<SGD>(SGDOptions(0.5).momentum(0.5)); }
inline double rate(Optimizer& o, size_t group) {
  return o.param_groups()[group].options().get_lr();
}
inline double momentum(Optimizer& o) { return *o.param_groups()[0].options().momentum_place(); }

/// Rates of the first group and of the second, in turn.
struct Pairs {
  Numbers rates;
};
template <class... T> Pairs pairs(T... rates) { return {{static_cast<double>(rates)...}}; }

inline void expect_rates(const MakeSchedule& make, const Pairs& expected) {
  const auto optimizer = sgd();
  const Schedule schedule = make(*optimizer);
  for (size_t i = 0; i < expected.rates.size(); ++i) {
    ASSERT_NEAR(rate(*optimizer, i % 2), expected.rates[i], 1e-12) << "at " << i;
    if (i % 2) schedule->step();
  }
}
/// The first group's rates; the second's are four times those.
inline void expect_rates(const MakeSchedule& make, const Numbers& expected) {
  Pairs both;
  for (const double rate : expected) both.rates.insert(both.rates.end(), {rate, 4 * rate});
  expect_rates(make, both);
}
inline void expect_first_rates(const MakeSchedule& make, const Numbers& expected) {
  const auto optimizer = sgd();
  const Schedule schedule = make(*optimizer);
  for (const double want : expected) {
    ASSERT_NEAR(rate(*optimizer, 0), want, 1e-12);
    schedule->step();
  }
}
/// The first group's rates and momenta.
inline void expect_cycle(Optimizer& optimizer, const MakeSchedule& make, const Numbers& rates,
                         const Numbers& momenta) {
  const Schedule schedule = make(optimizer);
  for (size_t i = 0; i < rates.size(); ++i) {
    ASSERT_NEAR(rate(optimizer, 0), rates[i], 1e-12) << "at " << i;
    ASSERT_NEAR(momentum(optimizer), momenta[i], 1e-12) << "at " << i;
    if (i + 1 < rates.size()) schedule->step();
  }
}
template <class S, class... Args> MakeSchedule of(Args... args) {
  return [=](Optimizer& o) { return std::make_shared<S>(o, args...); };
}
inline MakeSchedule sequence(std::vector<MakeSchedule> parts, std::vector<int64_t> milestones) {
  return [=](Optimizer& o) {
    std::vector<Schedule> made;
    for (const MakeSchedule& make : parts) made.push_back(make(o));
    return std::make_shared<SequentialLR>(o, made, milestones);
  };
}
inline MakeSchedule chain(std::vector<MakeSchedule> parts) {
  return [=](Optimizer& o) {
    std::vector<Schedule> made;
    for (const MakeSchedule& make : parts) made.push_back(make(o));
    return std::make_shared<ChainedScheduler>(made);
  };
}
using Milestones = std::vector<int64_t>;
using Function = std::function<double(int64_t)>;

inline OneCycleLROptions one_cycle() { return OneCycleLROptions(std::vector<double>{1, 3}, 15); }
inline CyclicLROptions cyclic() { return CyclicLROptions(0.1, 1).step_size_up(3); }

}  // namespace ramet::optim
