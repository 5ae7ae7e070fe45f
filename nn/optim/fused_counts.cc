// The number of steps, and steps that may be skipped: Note [Skipped steps] in grad_scaler.h.
#include "autograd/grad_mode.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "nn/optim/fused.h"
#include "runtime/capture/capture.h"

namespace ramet::optim {

void FusedOptimizer::count_up(std::vector<Counted>& all) const {
  for (Counted& c : all) {
    for (size_t k = 0; k < c.before.size(); ++k)
      if (c.state.numbers[k].at) c.before[k] = *c.state.numbers[k].at;
    advance(param_groups_[c.group].options(), ++*c.state.step, c.state);
  }
}
void FusedOptimizer::count_down(const std::vector<Counted>& all) {
  for (const Counted& c : all) {
    --*c.state.step;
    for (size_t k = 0; k < c.before.size(); ++k)
      if (c.state.numbers[k].at) *c.state.numbers[k].at = c.before[k];
  }
}

void FusedOptimizer::count_steps(std::vector<Tensor*> fresh) {
  std::vector<Counted> counted;
  size_t g = 0;
  for (size_t i = 0; i < updates_.size(); ++i) {
    const Update& u = updates_[i];
    while (i >= ends_[g]) ++g;
    if (!u.state.step) continue;
    if (RAMET_LIKELY(!capture::active() && skips_.empty())) {
      *u.state.step = u.number;
      advance(param_groups_[g].options(), u.number, u.state);
    } else {
      counted.push_back({g, u.state});
    }
  }
  if (RAMET_LIKELY(!capture::active() && skips_.empty())) return;
  const auto count = [this](std::vector<Counted> all, std::vector<Tensor*> made, bool may_skip) {
    count_up(all);
    if (may_skip)
      unsettled_ = std::make_unique<Unsettled>(Unsettled{std::move(all), std::move(made), {}, {}});
  };
  const bool may_skip = !skips_.empty();
  count(counted, std::move(fresh), may_skip);
  if (!capture::active() || (counted.empty() && !may_skip)) return;
  std::vector<Counted> done = counted;
  if (may_skip) done = unsettled_->counted;
  capture::effect(
      [this, count, counted, may_skip] {
        settle();
        count(counted, {}, may_skip);
      },
      [this, done] {
        count_down(done);
        unsettled_ = nullptr;
      });
}

namespace {

// A copy for the host, or the tensor itself. The host waits for it when it reads it.
Tensor for_the_host(const Tensor& t) {
  if (t.is_cpu()) return t;
  const Tensor copy = empty(t.sizes(), TensorOptions(kFloat).pinned_memory(true));
  copy.copy_(t, /*non_blocking=*/true);
  return copy;
}

}  // namespace

void FusedOptimizer::step_unless(const Tensor& found_inf) {
  settle();
  const Tensor found = found_inf.detach();
  if (found.is_cpu() && !capture::active()) {
    Optimizer::step_unless(found);
    return;
  }
  const struct Forget {
    std::vector<Tensor>& skips;
    ~Forget() { skips.clear(); }
  } at_end{skips_};
  skips_.push_back(found);
  step();
  const auto ask = [this, found] {
    if (unsettled_) unsettled_->skipped = for_the_host(found);
  };
  if (capture::active()) capture::host_work(ask);
  else ask();
}

Tensor FusedOptimizer::skip_on(Device device) {
  if (RAMET_LIKELY(skips_.empty())) return {};
  for (const Tensor& skip : skips_)
    if (skip.device() == device) return skip;
  skips_.push_back(skips_[0].to(device));
  return skips_.back();
}

void FusedOptimizer::settle() const {
  if (RAMET_LIKELY(!unsettled_)) return;
  // Undefined: a capture that is being made has not computed it, or a replay failed before it did.
  if (!unsettled_->skipped.defined())
    capture::refuse("GradScaler",
                    "a captured function makes two steps of one optimizer, or reads "
                    "its state after a step");
  const std::unique_ptr<Unsettled> was = std::move(unsettled_);
  if (was->skipped.defined() && *was->skipped.data_ptr<float>() != 0) {
    count_down(was->counted);
    for (Tensor* state : was->fresh) *state = Tensor();
    ++progress_.skipped;
  } else {
    ++progress_.made;
  }
  for (const auto& action : was->then) action();
}
void FusedOptimizer::when_settled(std::function<void()> action) const {
  if (unsettled_) unsettled_->then.push_back(std::move(action));
  else action();
}

}  // namespace ramet::optim
