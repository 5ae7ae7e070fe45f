// The number of steps, and steps that may be skipped: Note [Skipped steps] in grad_scaler.h.
#include <exception>

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

void FusedOptimizer::count_steps(Fresh fresh) {
  const bool may_skip = !skips_.empty(), plain = !may_skip && !capture::active();
  std::vector<Counted> counted;
  size_t g = 0;
  for (size_t i = 0; i < updates_.size(); ++i) {
    const Update& u = updates_[i];
    while (i >= ends_[g]) ++g;
    if (!u.state.step) continue;
    if (RAMET_LIKELY(plain)) {
      *u.state.step = u.number;
      advance(param_groups_[g].options(), u.number, u.state);
    } else {
      counted.push_back({g, u.state});
    }
  }
  if (RAMET_LIKELY(plain)) {
    ++progress_.made;
    return;
  }
  count_up(counted);
  if (may_skip) unsettled_ = std::make_unique<Unsettled>(Unsettled{counted, std::move(fresh)});
  if (!capture::active() || (counted.empty() && !may_skip)) return;
  capture::effect(
      [this, counted, may_skip]() mutable {
        settle();
        count_up(counted);
        if (may_skip) unsettled_ = std::make_unique<Unsettled>(Unsettled{counted});
      },
      [this, counted] {
        count_down(counted);
        unsettled_ = nullptr;
      });
}

namespace {

// A copy in the host's memory. The host waits for it when it reads it. (A replay writes `t` again
// before it asks for the last answer.)
Tensor for_the_host(const Tensor& t) {
  const NoGradGuard off;
  const Tensor copy = empty(t.sizes(), TensorOptions(kFloat).pinned_memory(t.is_cuda()));
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

const float* FusedOptimizer::skip_pointer(Device device) {
  const Tensor skip = skip_on(device);
  return skip.defined() ? static_cast<const float*>(skip.ptr()) : nullptr;
}

void FusedOptimizer::settle() const {
  if (RAMET_LIKELY(!unsettled_)) return;
  // Undefined: a capture that is being made has not computed it, or a replay failed before it did.
  if (!unsettled_->skipped.defined())
    capture::refuse("GradScaler",
                    "a captured function makes two steps of one optimizer, or reads "
                    "its state after a step");
  // By ptr(): a capture that is being made may read what was computed before it.
  const bool skipped =
      unsettled_->skipped.defined() && *static_cast<const float*>(unsettled_->skipped.ptr()) != 0;
  const std::unique_ptr<Unsettled> was = std::move(unsettled_);
  ++(skipped ? progress_.skipped : progress_.made);
  if (skipped) {
    count_down(was->counted);
    const_cast<FusedOptimizer*>(this)->drop(was->fresh);  // readers must not see the step
  }
  std::exception_ptr error;
  for (const auto& action : was->then) {
    try {
      action();
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}
void FusedOptimizer::when_settled(std::function<void()> action) const {
  if (unsettled_) unsettled_->then.push_back(std::move(action));
  else action();
}

}  // namespace ramet::optim
