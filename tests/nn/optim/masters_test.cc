// Float32 masters of 16-bit parameters: a step has the bits of one of float32 parameters.
#include "autograd/graph/captured.h"
#include "autograd/ops/make/copy.h"
#include "kernels/kernel.h"
#include "nn/layers/basic/linear.h"
#include "nn/module/sequential.h"
#include "tests/nn/optim/prescribed_steps.h"
#include "tests/optimizers.h"

namespace ramet::optim {
namespace {

using testing::AnyOptimizer;
using testing::pass_on;

std::vector<Tensor> two_matrices(ScalarType t) {
  return {sines(77).view({7, 11}).to(kBFloat16).to(kHalf).to(t).requires_grad_(),
          sines(1200, 0.7).view({40, 30}).to(kBFloat16).to(kHalf).to(t).requires_grad_()};
}
/// Gradients with values that fit `t`, stored as `stored`.
void give_gradients(const std::vector<Tensor>& p, int step, ScalarType t, ScalarType stored) {
  for (size_t i = 0; i < p.size(); ++i)
    p[i].mutable_grad() =
        (sines(p[i].numel(), 0.9, step + 0.3 * static_cast<double>(i)).view(p[i].sizes()) * 0.1)
            .to(t)
            .to(stored);
}
const Tensor& master_of(const Optimizer& optimizer, const Tensor& p) {
  return static_cast<const FusedParamState&>(*optimizer.state().at(p.impl())).master_param();
}

TEST(Masters, StepsHaveTheBitsOfFloatParameters) {
  for (const ScalarType t : {kBFloat16, kHalf})
    for (const ScalarType gradients : {t, kFloat})
      for (const AnyOptimizer& any : testing::optimizers_of_matrices()) {
        const std::vector<Tensor> p = two_matrices(t), q = two_matrices(kFloat);
        const auto narrow = any(p), wide = any(q);
        for (int step = 1; step <= 4; ++step) {
          give_gradients(p, step, gradients, gradients);
          give_gradients(q, step, gradients, kFloat);
          narrow->step(), wide->step();
          for (size_t i = 0; i < p.size(); ++i) {
            ASSERT_TRUE(master_of(*narrow, p[i]).equal(q[i])) << any.name << ", " << t;
            ASSERT_TRUE(p[i].equal(q[i].to(t))) << any.name << ", " << t;
          }
        }
        EXPECT_FALSE(p[0].to(kFloat).equal(q[0])) << any.name << ": nothing was rounded";
      }
}

TEST(Masters, SmallUpdatesAddUp) {
  const Tensor p = ones({3}, kBFloat16).requires_grad_(), q = p.detach().clone().requires_grad_();
  SGD with({p}, SGDOptions(1)), without({q}, SGDOptions(1));
  without.use_masters(false);
  for (int step = 0; step < 64; ++step) {
    p.mutable_grad() = q.mutable_grad() = full({3}, 1.0 / 1024, kBFloat16);
    with.step(), without.step();
  }
  expect_values(p, {0.9375, 0.9375, 0.9375});
  expect_values(q, {1, 1, 1});
  EXPECT_TRUE(without.state().empty());
  EXPECT_TRUE(with.uses_masters());
}

// Without masters, states have the dtype of the parameter, as LibTorch's.
TEST(Masters, StatesWithoutThem) {
  const Tensor p = ones({3}, kBFloat16).requires_grad_();
  Adam adam({p});
  adam.use_masters(false);
  p.mutable_grad() = ones({3}, kBFloat16);
  adam.step();
  const auto& state = static_cast<const AdamParamState&>(*adam.state().at(p.impl()));
  EXPECT_EQ(state.exp_avg_sq().scalar_type(), kBFloat16);
  EXPECT_FALSE(state.master_param().defined());
  adam.use_masters(true);  // keeps the states' dtype
  adam.step();
  EXPECT_EQ(state.exp_avg_sq().scalar_type(), kBFloat16);
  EXPECT_EQ(state.master_param().scalar_type(), kFloat);
}

TEST(Masters, WrittenElementsBeginAnew) {
  const Tensor p = ones({4}, kBFloat16).requires_grad_();
  SGD sgd({p}, SGDOptions(1));
  const auto step = [&](double g) {
    p.mutable_grad() = full({4}, g, kBFloat16);
    sgd.step();
  };
  step(1.0 / 1024);
  {
    const NoGradGuard off;
    p[1].fill_(2);
    p[2].fill_(1);  // as it is: the master stays
    p[3].fill_(NAN);
  }
  step(1.0 / 1024);
  const float now = 1 - 2.0f / 1024;
  expect_first_values(master_of(sgd, p), {now, 2 - 1.0f / 1024, now});
  EXPECT_TRUE(std::isnan(master_of(sgd, p)[3].item<float>()));
  expect_first_values(p, {now, 2, now}, 4e-3);
  p.detach().copy_(full({4}, -0.0));
  step(0);
  expect_values(master_of(sgd, p), {0, 0, 0, 0});
}

// Infinite and huge masters, at the limit of the dtype.
TEST(Masters, BeyondTheRangeOfTheDtype) {
  const Tensor p = full({1}, 65504, kHalf).requires_grad_();
  SGD sgd({p}, SGDOptions(1));
  for (const double g : {-1000.0, 1001.0}) {
    p.mutable_grad() = full({1}, g, kFloat);
    sgd.step();
    EXPECT_EQ(p.item<float>(), g < 0 ? INFINITY : 65504);
  }
  expect_values(master_of(sgd, p), {65503});
}

int g_calls = 0;
void count_call(KernelCall& call) { g_calls += call.done; }

// All parameters in one call, with nothing copied before or after it.
TEST(Masters, AStepIsOneKernel) {
  std::vector<Tensor> p;
  for (int64_t i = 1; i < 40; ++i) p.push_back(sines(i).to(kBFloat16).requires_grad_());
  AdamW adam(p, AdamWOptions(0.01));
  const auto calls_of_step = [&] {
    g_calls = 0;
    const KernelObserver before = ramet::detail::kernel_observer.exchange(count_call);
    adam.step();
    ramet::detail::kernel_observer.store(before);
    return g_calls;
  };
  for (const ScalarType gradients : {kBFloat16, kFloat}) {
    give_gradients(p, 1, kBFloat16, gradients);
    calls_of_step();  // makes the states
    EXPECT_EQ(calls_of_step(), 1) << gradients;
  }
}

TEST(Masters, GoOnFromAFile) {
  for (const AnyOptimizer& any : testing::every_optimizer()) {
    const std::vector<Tensor> p = two_matrices(kBFloat16);
    const auto loss = [&](const std::vector<Tensor>& of) {
      return (of[0] * of[0]).sum() + (of[1] - 1).square().sum();
    };
    const auto steps = [&](Optimizer& optimizer, const std::vector<Tensor>& of, int count) {
      for (int i = 0; i < count; ++i)
        optimizer.step([&] {
          optimizer.zero_grad();
          Tensor l = loss(of);
          l.backward();
          return l;
        });
    };
    const auto whole = any(p);
    steps(*whole, p, 3);
    std::vector<Tensor> q;
    for (const Tensor& one : p) q.push_back(one.detach().clone().requires_grad_());
    const auto resumed = any(q);
    pass_on(*whole, *resumed);
    steps(*whole, p, 3), steps(*resumed, q, 3);
    for (size_t i = 0; i < p.size(); ++i) EXPECT_TRUE(q[i].equal(p[i])) << any.name;
  }
}

TEST(Masters, FilesThatDoNotFit) {
  const Tensor p = ones({3}, kBFloat16).requires_grad_(), q = ones({3}).requires_grad_();
  Adam from({p}), to({q});
  p.mutable_grad() = ones({3}, kBFloat16), q.mutable_grad() = ones({3});
  from.step(), to.step();
  EXPECT_ERROR_TEXT(pass_on(from, to),
                    "[optim] loaded master_param: got one for float32[3] on cpu, expected a 16-bit "
                    "parameter. Convert the module with to() before the load");
  EXPECT_EQ(static_cast<const AdamParamState&>(*to.state().at(q.impl())).step(), 1);
  // Without masters the file has 16-bit states, as LibTorch's. They become float32.
  const Tensor r = ones({3}, kBFloat16).requires_grad_();
  Adam narrow({r}), wide({p});
  narrow.use_masters(false);
  r.mutable_grad() = ones({3}, kBFloat16);
  narrow.step();
  pass_on(narrow, wide);
  const auto& state = static_cast<const AdamParamState&>(*wide.state().at(p.impl()));
  EXPECT_EQ(state.exp_avg().scalar_type(), kFloat);
  wide.step();
  EXPECT_EQ(state.step(), 2);
}

// The optimizer is made before to(): states go on in float32, and masters begin then.
TEST(Masters, AModuleThatIsCastLater) {
  const auto train = [](ScalarType t) {
    nn::Sequential net(nn::Linear(4, 3), nn::Linear(3, 2));
    int start = 1;
    for (const Tensor& p : net->parameters())
      p.detach().copy_(sines(p.numel(), 0.7, start++).view(p.sizes()));
    Adam adam(net->parameters(), AdamOptions(0.01));
    const auto step = [&](int n, ScalarType gradients) {
      give_gradients(net->parameters(), n, kBFloat16, gradients);
      adam.step();
    };
    step(1, kFloat);
    for (const Tensor& p : net->parameters()) p.detach().copy_(p.detach().to(kBFloat16));
    net->to(t);
    step(2, t), step(3, t);
    std::vector<Tensor> all;
    for (const Tensor& p : net->parameters()) {
      const auto& state = static_cast<const AdamParamState&>(*adam.state().at(p.impl()));
      EXPECT_EQ(state.step(), 3);
      EXPECT_EQ(state.exp_avg().scalar_type(), kFloat);
      all.push_back(t == kFloat ? p.detach().clone() : state.master_param());
    }
    net->to(kFloat);  // and back
    step(4, kFloat);
    for (const Tensor& p : net->parameters()) EXPECT_FALSE(master_of(adam, p).defined());
    return all;
  };
  const std::vector<Tensor> narrow = train(kBFloat16), wide = train(kFloat);
  for (size_t i = 0; i < wide.size(); ++i) EXPECT_TRUE(narrow[i].equal(wide[i])) << i;
}

// A replay sees what a program wrote to a parameter after the capture.
TEST(Masters, InACapturedStep) {
  const auto train = [](bool captured) {
    const Tensor p = sines(50).to(kBFloat16).requires_grad_();
    AdamW adam({p}, AdamWOptions(0.01));
    const auto body = [&](const Tensor& x) {
      adam.zero_grad();
      Tensor loss = (p * x).sum();
      loss.backward();
      adam.step();
      return loss.detach();
    };
    Captured step(body);
    for (int i = 0; i < 8; ++i) {
      const Tensor x = sines(50, 0.3, i).to(kBFloat16);
      if (i == 5) p.detach().slice(0, 10, 20).fill_(0.25);
      if (captured) step(x);
      else body(x);
    }
    return std::pair(p.detach().clone(), master_of(adam, p).clone());
  };
  const auto captured = train(true), eager = train(false);
  EXPECT_TRUE(captured.first.equal(eager.first));
  EXPECT_TRUE(captured.second.equal(eager.second));
}

// The vector of LBFGS is in float32: the bits of float32 parameters, if the loss is of the rounded
// ones.
TEST(Masters, OfLbfgs) {
  const auto fit = [](ScalarType t, const char* search) {
    const Tensor p = sines(12).to(kBFloat16).to(t).requires_grad_();
    const Tensor goal = sines(12, 0.9);
    auto options = LBFGSOptions(.3).max_iter(5);
    if (*search) options.line_search_fn(search);
    LBFGS lbfgs({p}, options);
    for (int step = 0; step < 3; ++step)
      lbfgs.step([&] {
        const Tensor x = p.detach().to(kBFloat16).to(kDouble).requires_grad_();
        const Tensor loss = ((x - goal).square() * goal.add(2)).sum();
        loss.backward();
        p.mutable_grad() = x.grad().to(kFloat);
        return loss;
      });
    const auto& state = static_cast<const LBFGSParamState&>(*lbfgs.state().at(p.impl()));
    EXPECT_EQ(state.master_params().defined(), t != kFloat);
    return t == kFloat ? p.detach() : state.master_params();
  };
  for (const char* search : {"", "strong_wolfe"})
    EXPECT_TRUE(fit(kBFloat16, search).equal(fit(kFloat, search))) << search;
}

}  // namespace
}  // namespace ramet::optim
