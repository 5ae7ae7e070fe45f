// Loss scaling: numbers of PyTorch 2.15's GradScaler, and steps that are skipped.
#include "nn/optim/grad_scaler.h"

#include "autograd/graph/captured.h"
#include "nn/optim/lr_factors.h"
#include "nn/utils/clip_grad.h"
#include "tests/nn/optim/prescribed_steps.h"
#include "tests/optimizers.h"

namespace ramet::optim {
namespace {

using testing::AnyOptimizer;
using testing::pass_on;

GradScalerOptions small() { return GradScalerOptions().init_scale(8).growth_interval(2); }

/// Gradients of step `n` times `scale`; some of the last parameter's are `bad` if that is not 0.
void give(const std::vector<Tensor>& p, int n, double scale, double bad = 0) {
  for (size_t i = 0; i < p.size(); ++i)
    p[i].mutable_grad() = (sines(p[i].numel(), 0.9, n + 0.5 * static_cast<double>(i)) * scale)
                              .view(p[i].sizes())
                              .to(p[i].scalar_type());
  if (bad != 0) p.back().grad().view({-1}).slice(0, 1, 2).fill_(bad);
}
std::vector<Tensor> parameters(ScalarType t = kFloat) {
  std::vector<Tensor> p;
  for (const auto& sizes : {std::vector<int64_t>{5, 3}, {2, 6}})
    p.push_back(sines(sizes[0] * sizes[1]).view(sizes).to(t).requires_grad_());
  return p;
}
/// A scaler with its scale on the host.
GradScaler started(GradScalerOptions options = small()) {
  GradScaler scaler(std::move(options));
  scaler.scale(ones({}));
  return scaler;
}

// Infinite gradients in the steps 3, 4 and 9; an interval of 2.
TEST(GradScaler, TheScaleOverSteps) {
  const std::vector<Tensor> p = parameters();
  SGD sgd(p, SGDOptions(0.1));
  GradScaler scaler = started();
  std::vector<double> scales;
  std::vector<int64_t> trackers;
  for (int n = 1; n <= 10; ++n) {
    give(p, n, scaler.get_scale(), n == 3 || n == 4 ? INFINITY : n == 9 ? NAN : 0);
    scaler.step(sgd), scaler.update();
    scales.push_back(scaler.get_scale()), trackers.push_back(scaler.get_growth_tracker());
  }
  EXPECT_EQ(scales, (std::vector<double>{8, 16, 8, 4, 4, 8, 8, 16, 8, 8}));
  EXPECT_EQ(trackers, (std::vector<int64_t>{1, 0, 0, 0, 1, 0, 1, 0, 0, 1}));
  scaler.update(3);
  EXPECT_EQ(scaler.get_scale(), 3);
}

TEST(GradScaler, AnInfiniteScaleIsNotTaken) {
  const std::vector<Tensor> p = parameters();
  SGD sgd(p, SGDOptions(0.1));
  GradScaler scaler = started(GradScalerOptions().init_scale(3e38).growth_interval(1));
  give(p, 1, 1);
  scaler.step(sgd), scaler.update();
  EXPECT_EQ(scaler.get_scale(), static_cast<double>(3e38f));
  EXPECT_EQ(scaler.get_growth_tracker(), 0);
}

// Steps with skipped ones between them are the steps without them, whatever an optimizer keeps.
TEST(GradScaler, ASkippedStepChangesNothing) {
  for (const ScalarType t : {kFloat, kBFloat16, kHalf})
    for (const AnyOptimizer& any : testing::optimizers_of_matrices()) {
      const std::vector<Tensor> p = parameters(t), q = parameters(t);
      const auto plain = any(p), scaled = any(q);
      GradScaler scaler = started();
      for (int n = 0; n < 8; ++n) {
        const bool skips = n == 0 || n == 3 || n == 4;
        give(q, n, scaler.get_scale(), skips ? INFINITY : 0);
        scaler.step(*scaled), scaler.update();
        if (skips) continue;
        give(p, n, 1), plain->step();
        for (size_t i = 0; i < p.size(); ++i) ASSERT_TRUE(same_bits(p[i], q[i])) << any.name << n;
      }
    }
}

// The same in a captured step, which no skipped step captures anew.
TEST(GradScaler, InACapturedStep) {
  for (const AnyOptimizer& any : testing::optimizers_of_matrices()) {
    const std::vector<Tensor> p = parameters(kBFloat16), q = parameters(kBFloat16);
    const auto plain = any(p), scaled = any(q);
    StepLR plain_schedule(*plain, 2, 0.5), schedule(*scaled, 2, 0.5);
    GradScaler scaler(small());
    const auto loss_of = [](const std::vector<Tensor>& of, const Tensor& x) {
      return (of[0].to(kFloat) * x).sum() + of[1].to(kFloat).square().sum() * x.sum();
    };
    const auto body = [&](const Tensor& x) {
      scaled->zero_grad();
      const Tensor loss = loss_of(q, x);
      scaler.scale(loss).backward();
      scaler.step(*scaled), scaler.update();
      schedule.step();
      return loss.detach();
    };
    Captured captured(body);
    for (int n = 0; n < 10; ++n) {
      const bool skips = n == 0 || n == 4 || n == 5;
      Tensor x = sines(15, 0.7, n).view({5, 3}).to(kFloat);
      if (skips) x[2][1].fill_(INFINITY);
      captured(x);
      if (!skips) {
        plain->zero_grad();
        (loss_of(p, x) * scaler.get_scale()).backward();
        for (const Tensor& one : p) one.mutable_grad() = one.grad() / scaler.get_scale();
        plain->step(), plain_schedule.step();
      }
      for (size_t i = 0; i < p.size(); ++i)
        ASSERT_TRUE(same_bits(p[i], q[i])) << any.name << ", step " << n;
      // This asks whether the last step was skipped. Other steps find it out by themselves.
      if (n % 3 == 2) { ASSERT_EQ(schedule.step_count(), plain_schedule.step_count()) << n; }
    }
    EXPECT_EQ(schedule.step_count(), plain_schedule.step_count());
    EXPECT_LE(captured.counters().captures, 3u) << any.name;  // two make the scale and the states
    EXPECT_EQ(scaled->state().size(), plain->state().size());
  }
}

// A failed capture takes the step back, also the numbers of its state; and a captured step reads
// another scale after a load.
TEST(GradScaler, CapturesThatFailAndScalesThatAreLoaded) {
  const std::vector<Tensor> p = parameters();
  NAdam nadam(p, NAdamOptions(.1));
  give(p, 1, 1), nadam.step();
  const auto& state = static_cast<const NAdamParamState&>(*nadam.state().at(p[0].impl()));
  const double product = state.mu_product();
  Captured fails([&](const Tensor& x) {
    nadam.step();
    return x.mul(x.item<float>());
  });
  EXPECT_ERROR_TEXT(fails(ones({})), "not capturable");
  EXPECT_EQ(state.mu_product(), product);
  EXPECT_EQ(state.step(), 1);

  GradScaler scaler = started(), other = started(GradScalerOptions().init_scale(2));
  Captured scales([&](const Tensor& x) { return scaler.scale(x); });
  for (int n = 0; n < 3; ++n) expect_values(scales(ones({})), {8});
  pass_on(other, scaler);
  for (int n = 0; n < 3; ++n) expect_values(scales(ones({})), {2});
}

// The gradients are divided once, whatever fails after that.
TEST(GradScaler, AStepThatFailsCanBeRepeated) {
  const std::vector<Tensor> p = parameters();
  SGD sgd(p, SGDOptions(1));
  GradScaler scaler = started();
  bool fails = true;
  scaler.add_found_inf_reduction([&](const Tensor&) {
    if (fails) throw std::runtime_error("a peer died");
  });
  give(p, 1, 8);
  EXPECT_THROW(scaler.step(sgd), std::runtime_error);
  fails = false;
  scaler.step(sgd), scaler.update();
  const std::vector<Tensor> q = parameters();
  give(q, 1, 1);
  SGD(q, SGDOptions(1)).step();
  for (size_t i = 0; i < p.size(); ++i) EXPECT_TRUE(same_bits(p[i], q[i]));
}

// A double gradient of a 16-bit parameter reaches the master in float32.
TEST(GradScaler, DoubleGradientsOfSixteenBitParameters) {
  const Tensor p = zeros({2}, kHalf).requires_grad_();
  SGD sgd({p}, SGDOptions(1));
  p.mutable_grad() = tensor({1e-9, 1e5}, kDouble);
  sgd.step();
  const auto& state = static_cast<const SGDParamState&>(*sgd.state().at(p.impl()));
  expect_values(state.master_param(), {-1e-9, -1e5}, 1e-12);
}

TEST(GradScaler, SchedulesSeeNoSkippedStep) {
  const std::vector<Tensor> p = parameters();
  SGD sgd(p, SGDOptions(1));
  GradScaler scaler = started();
  StepLR each(sgd, 1, 0.5);
  std::vector<double> rates;
  for (const bool skips : {false, true, false, true, true, false}) {
    give(p, 1, 1, skips ? NAN : 0);
    scaler.step(sgd), scaler.update();
    each.step();
    rates.push_back(sgd.param_groups()[0].options().get_lr());
  }
  EXPECT_EQ(rates, (std::vector<double>{1, 1, 0.5, 0.5, 0.5, 0.25}));
  // A schedule of epochs: only the last step was skipped.
  StepLR epochs(sgd, 1, 0.5);
  for (const bool skips : {false, true}) {
    give(p, 1, 1, skips ? NAN : 0);
    scaler.step(sgd), scaler.update();
  }
  epochs.step();
  EXPECT_EQ(epochs.step_count(), 1u);
  epochs.step();  // without a step of the optimizer, as ever
  EXPECT_EQ(epochs.step_count(), 2u);
}

TEST(GradScaler, ClipsWhatIsUnscaled) {
  const std::vector<Tensor> p = parameters();
  SGD sgd(p, SGDOptions(1));
  GradScaler scaler = started();
  give(p, 1, 8);
  scaler.unscale_(sgd);
  const std::vector<Tensor> q = parameters();
  give(q, 1, 1);
  for (size_t i = 0; i < p.size(); ++i) EXPECT_TRUE(same_bits(p[i].grad(), q[i].grad()));
  nn::utils::clip_grad_norm_(p, 0.5), nn::utils::clip_grad_norm_(q, 0.5);
  SGD other(q, SGDOptions(1));
  scaler.step(sgd), other.step();
  for (size_t i = 0; i < p.size(); ++i) EXPECT_TRUE(same_bits(p[i], q[i]));
}

// Gradients below the smallest float16 remain.
TEST(GradScaler, Float16GradientsBecomeFloat32) {
  const Tensor p = zeros({3}, kHalf).requires_grad_();
  SGD sgd({p}, SGDOptions(1));
  GradScaler scaler(GradScalerOptions().init_scale(65536));
  const Tensor x = tensor({1e-8, 3e-8, 0.25}, kDouble);
  for (int n = 0; n < 2; ++n) {  // the sum of two backward passes
    const Tensor loss = (p.to(kDouble) * x).sum();
    scaler.scale(loss).backward();
  }
  EXPECT_EQ(p.grad().scalar_type(), kHalf);
  scaler.unscale_(sgd);
  EXPECT_EQ(p.grad().scalar_type(), kFloat);
  expect_values(p.grad(), {2e-8, 6e-8, 0.5}, 1e-10);
  scaler.step(sgd), scaler.update();
  const auto& state = static_cast<const SGDParamState&>(*sgd.state().at(p.impl()));
  expect_values(state.master_param(), {-2e-8, -6e-8, -0.5}, 1e-10);
}

TEST(GradScaler, SeveralLossesAndOptimizers) {
  const Tensor a = ones({2}).requires_grad_(), b = ones({2}).requires_grad_();
  SGD first({a}, SGDOptions(1)), second({b}, SGDOptions(1));
  GradScaler scaler(small());
  const auto losses = scaler.scale({(a * 2).sum(), (b * INFINITY).sum(), (a * a).sum()});
  for (const Tensor& loss : losses) loss.backward();
  scaler.step(first), scaler.step(second);
  expect_values(a, {-3, -3});
  expect_values(b, {1, 1});
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 4);
}

TEST(GradScaler, GradientsOfEveryKind) {
  std::vector<Tensor> p;
  for (const ScalarType t : {kFloat, kDouble, kBFloat16})
    p.push_back(ones({4, 3}, t).requires_grad_());
  p.push_back(ones({0, 3}).requires_grad_()), p.push_back(ones({3, 4}).requires_grad_());
  p.push_back(ones({2}).requires_grad_());
  SGD sgd(p, SGDOptions(1));
  GradScaler scaler = started();
  for (size_t i = 0; i + 1 < p.size(); ++i)  // the last one has none
    p[i].mutable_grad() = full(p[i].sizes(), 4.0, p[i].scalar_type());
  p[4].mutable_grad() = full({4, 3}, 4.0).t();
  scaler.unscale_(sgd);
  for (size_t i = 0; i + 1 < p.size(); ++i)
    EXPECT_TRUE(p[i].grad().eq(0.5).all().item<bool>()) << i;
  scaler.step(sgd);
  EXPECT_TRUE(p[4].eq(0.5).all().item<bool>());
  EXPECT_TRUE(p[5].eq(1).all().item<bool>());
}

TEST(GradScaler, Refusals) {
  const std::vector<Tensor> p = parameters();
  SGD sgd(p, SGDOptions(1));
  GradScaler scaler(small());
  EXPECT_ERROR_TEXT(scaler.step(sgd), "got no scaled loss before them");
  EXPECT_ERROR_TEXT(scaler.scale(ones({2}, kLong)), "[GradScaler] outputs: got ");
  scaler.scale(ones({}));
  EXPECT_ERROR_TEXT(scaler.update(), "No inf checks were recorded prior to update()");
  EXPECT_ERROR_TEXT(scaler.step(sgd), "No inf checks were recorded for this optimizer");
  give(p, 1, 8);
  scaler.unscale_(sgd);
  EXPECT_ERROR_TEXT(scaler.unscale_(sgd), "unscale_() has already been called on this optimizer");
  scaler.step(sgd);
  EXPECT_ERROR_TEXT(scaler.step(sgd), "step() has already been called since the last update()");
  EXPECT_ERROR_TEXT(scaler.unscale_(sgd), "unscale_() is being called after step()");
  scaler.update();
  EXPECT_ERROR_TEXT(scaler.update(), "No inf checks were recorded");
  EXPECT_ERROR_TEXT(GradScaler(small().growth_factor(1)),
                    "[GradScaler] growth_factor: got 1, expected a number > 1");
  EXPECT_ERROR_TEXT(scaler.set_backoff_factor(1), "backoff_factor: got 1, expected");
  EXPECT_ERROR_TEXT(scaler.set_growth_interval(0), "growth_interval: got 0, expected");
  EXPECT_ERROR_TEXT(scaler.update(0), "new_scale: got 0, expected a number > 0");
}

TEST(GradScaler, GoesOnFromAFile) {
  const std::vector<Tensor> p = parameters();
  SGD sgd(p, SGDOptions(1));
  GradScaler from = started(), to, off(GradScalerOptions().enabled(false));
  give(p, 1, 1), from.step(sgd), from.update();
  pass_on(from, to);
  EXPECT_EQ(to.get_scale(), 8);
  EXPECT_EQ(to.get_growth_interval(), 2);
  give(p, 1, 1), to.scale(ones({})), to.step(sgd), to.update();
  EXPECT_EQ(to.get_scale(), 16);
  EXPECT_ERROR_TEXT(pass_on(off, to), "the source state dict is empty");
  pass_on(from, off);
}

TEST(GradScaler, Off) {
  const std::vector<Tensor> p = parameters();
  SGD sgd(p, SGDOptions(1));
  GradScaler off(GradScalerOptions().enabled(false));
  give(p, 1, 1, INFINITY);
  const Tensor loss = ones({});
  EXPECT_EQ(off.scale(loss).impl(), loss.impl());
  off.unscale_(sgd), off.step(sgd), off.update();
  EXPECT_TRUE(std::isinf(p[1].abs().max().item<float>()));
  EXPECT_EQ(off.get_scale(), 1);
}

// LBFGS and programs' own optimizers: the host asks before the step.
TEST(GradScaler, AnOptimizerOfAProgram) {
  class Mine : public Optimizer {
   public:
    explicit Mine(std::vector<Tensor> p)
        : Optimizer(std::move(p), std::make_unique<SGDOptions>(1)) {}
    Tensor step(LossClosure) override {
      ++steps;
      return {};
    }
    int steps = 0;
  };
  const std::vector<Tensor> p = parameters();
  Mine mine(p);
  GradScaler scaler = started();
  for (const double bad : {0.0, double{INFINITY}, 0.0}) {
    give(p, 1, 1, bad);
    scaler.step(mine), scaler.update();
  }
  EXPECT_EQ(mine.steps, 2);
  bool asked = false;
  scaler.add_found_inf_reduction([&](const Tensor& found) {
    asked = true;
    found.fill_(1);  // another process found one
  });
  give(p, 1, 1), scaler.step(mine);
  EXPECT_TRUE(asked);
  EXPECT_EQ(mine.steps, 2);
}

}  // namespace
}  // namespace ramet::optim
