// Backwards inside backwards, on the workers of other devices: second derivatives through functions
// that have them by recording, functions that differentiate themselves, replicas that do.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/graph/function.h"
#include "runtime/devices/devices.h"
#include "tests/parallel/models.h"

namespace ramet::testing {
namespace {

using autograd::AutogradContext;
using autograd::variable_list;

// exp; its derivative comes from a backward of exp. On the way there and back it goes over `via`.
struct ExpBy : autograd::Function<ExpBy> {
  static Tensor forward(AutogradContext* c, Tensor x, Device via) {
    c->save_for_backward({x});
    c->saved_data["via"] = static_cast<int64_t>(via.ordinal());
    return x.detach().exp();
  }
  static variable_list backward(AutogradContext* c, variable_list g) {
    const Device via = Device::from_ordinal(static_cast<int>(c->saved_data["via"].toInt()));
    const Tensor x = c->get_saved_variables()[0].detach().requires_grad_();
    const AutoGradMode on(true);
    const Tensor y = x.to(via).exp().to(x.device());
    return {autograd::grad({y}, {x}, {g[0]})[0], Tensor()};
  }
};

// The gradient of the squared gradient.
Values penalty(const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  const Tensor g = autograd::grad({f(x)}, {x}, {}, true, true)[0];
  return values(autograd::grad({g.square().sum()}, {x})[0]);
}

TEST(NestedBackward, SecondDerivatives) {
  const Tensor here = varied({4, 6}, 1, kDouble).requires_grad_(),
               there = varied({4, 6}, 1, kDouble, d(0)).requires_grad_();
  const std::vector<std::function<Tensor(const Tensor&)>> functions = {
      [](const Tensor& x) { return layer_norm(x, {6}).pow(3).sum(); },
      [](const Tensor& x) {
        return batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false).pow(3).sum();
      },
      [](const Tensor& x) {
        return cross_entropy_loss(x, make({0, 1, 2, 3}, kLong).to(x.device()));
      },
      [](const Tensor& x) { return x.softmax(1).square().sum(); },
      [](const Tensor& x) {
        const Tensor q = x.view({1, 2, 2, 6});
        return scaled_dot_product_attention(q, q, q).pow(3).sum();
      }};
  for (size_t i = 0; i < functions.size(); ++i) {
    SCOPED_TRACE(i);
    expect_close(penalty(there, functions[i]), penalty(here, functions[i]), 1e-8);
    // From the host and back.
    const auto moved = [&](const Tensor& x) { return functions[i](x.to(d(1))).to(kHost); };
    expect_close(penalty(here, moved), penalty(here, functions[i]), 1e-8);
  }
}

TEST(NestedBackward, AFunctionThatDifferentiates) {
  const Values expected = values(varied({5}, 2).exp());
  for (const Device device : {kHost, d(0)})
    for (const Device via : {kHost, d(0), d(1)}) {
      const Tensor x = varied({5}, 2).requires_grad_();
      const auto y = [&] { return ExpBy::apply(x.to(device), via).sum(); };
      expect_close(values(autograd::grad({y()}, {x})[0]), expected, 1e-5);
      y().backward();
      expect_close(values(x.grad()), expected, 1e-5);
    }
}

// Each device's worker is inside a node, and the backward inside that node needs the other worker.
TEST(NestedBackward, TwoWorkersNeedEachOther) {
  for (int round = 0; round < 20; ++round) {
    const Tensor x = varied({5}, 3).requires_grad_();
    const Tensor a = ExpBy::apply(x.to(d(0)), d(1)), b = ExpBy::apply(x.to(d(1)), d(0));
    (a.to(kHost) + b.to(kHost)).sum().backward();
    expect_close(values(x.grad()), values(varied({5}, 3).exp() * 2), 1e-5);
  }
}

// The worker's current device is not the worker's own device.
TEST(NestedBackward, UnderAGuardForAnotherDevice) {
  const Tensor x = varied({5}, 4).requires_grad_();
  Values inner;
  const Tensor h = x.to(d(0)).exp();
  h.register_hook([&](const Tensor&) {
    const DeviceGuard other(d(1));
    const Tensor z = varied({5}, 5, kFloat, d(0)).requires_grad_();
    const AutoGradMode on(true);
    inner = values(autograd::grad({z.to(d(1)).square().sum()}, {z})[0]);
  });
  h.to(kHost).sum().backward();
  expect_close(inner, values(varied({5}, 5) * 2), 1e-6);
}

TEST(NestedBackward, InsideReplicas) {
  Call slopes([](const Tensor& x) {
    const Tensor at = x.detach().requires_grad_();
    return autograd::grad({at.pow(3).sum()}, {at})[0];
  });
  slopes->to(d(0));
  nn::parallel::DataParallelOptions options(many(4));
  options.output_device = kHost;
  nn::parallel::DataParallel<Call> dp(slopes, options);
  expect_close(values(dp(varied({10, 3}, 6))), values(varied({10, 3}, 6).square() * 3), 1e-5);
}

}  // namespace
}  // namespace ramet::testing
