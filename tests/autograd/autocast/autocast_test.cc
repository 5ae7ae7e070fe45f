#include "autograd/autocast.h"

#include "autograd/autograd.h"
#include "autograd/graph/function.h"
#include "autograd/ops.h"
#include "tests/autograd/autocast/calls.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

Tensor floats(IntArrayRef sizes, int seed = 0) { return varied(sizes, seed).to(kFloat); }
Tensor parameter(IntArrayRef sizes, int seed = 0) { return floats(sizes, seed).requires_grad_(); }

TEST(Autocast, StateOfTheThread) {
  using namespace autocast;
  EXPECT_FALSE(is_autocast_enabled(kCPU));
  EXPECT_EQ(get_autocast_dtype(kCPU), kBFloat16);
  EXPECT_EQ(get_autocast_dtype(kCUDA), kHalf);
  EXPECT_TRUE(is_autocast_cache_enabled());
  set_autocast_enabled(kCPU, true);
  EXPECT_TRUE(is_cpu_enabled());
  EXPECT_FALSE(is_enabled());
  set_autocast_dtype(kCPU, kHalf);
  set_autocast_gpu_dtype(kBFloat16);
  EXPECT_EQ(get_autocast_cpu_dtype(), kHalf);
  EXPECT_EQ(get_autocast_gpu_dtype(), kBFloat16);
  EXPECT_EQ(mm(ones({2, 2}), ones({2, 2})).scalar_type(), kHalf);
  set_cpu_enabled(false);
  set_autocast_cpu_dtype(kBFloat16);
  set_autocast_gpu_dtype(kHalf);
  EXPECT_EQ(mm(ones({2, 2}), ones({2, 2})).scalar_type(), kFloat);
  EXPECT_EQ(increment_nesting(), 1);
  EXPECT_EQ(increment_nesting(), 2);
  EXPECT_EQ(decrement_nesting(), 1);
  EXPECT_EQ(decrement_nesting(), 0);
  EXPECT_FALSE(is_autocast_available(kMPS));
  EXPECT_FALSE(is_autocast_enabled(kMPS));
}

TEST(Autocast, GuardsNest) {
  using namespace autocast;
  const Tensor x = ones({2, 2});
  {
    const AutocastGuard outer(kCPU);
    EXPECT_EQ(mm(x, x).scalar_type(), kBFloat16);
    {
      const AutocastGuard off(kCPU, std::nullopt, false);
      EXPECT_EQ(mm(x, x).scalar_type(), kFloat);
      const AutocastGuard again(kCPU, kHalf, true, false);
      EXPECT_EQ(mm(x, x).scalar_type(), kHalf);
      EXPECT_FALSE(is_autocast_cache_enabled());
    }
    EXPECT_EQ(mm(x, x).scalar_type(), kBFloat16);
    EXPECT_TRUE(is_autocast_cache_enabled());
    // What Python programs write to switch it off.
    const AutocastGuard off(kCPU, kFloat, false);
    EXPECT_EQ(mm(x, x).scalar_type(), kFloat);
    EXPECT_EQ(get_autocast_dtype(kCPU), kBFloat16);
  }
  EXPECT_FALSE(is_autocast_enabled(kCPU));
}

TEST(Autocast, GuardsEndWithAnError) {
  try {
    const AutocastGuard guard(kCPU, kHalf);
    mm(ones({2, 3}), ones({2, 3}));
    FAIL() << "no Error";
  } catch (const Error&) {}
  EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
  EXPECT_EQ(autocast::get_autocast_dtype(kCPU), kBFloat16);
}

TEST(Autocast, Errors) {
  using namespace autocast;
  EXPECT_ERROR_TEXT(AutocastGuard(kCPU, kFloat),
                    "[AutocastGuard] dtype for cpu: got Float, expected BFloat16 or Half");
  EXPECT_ERROR_TEXT(AutocastGuard(kCUDA, kDouble), "dtype for cuda: got Double");
  EXPECT_ERROR_TEXT(AutocastGuard{kMPS},
                    "[AutocastGuard] device type: got mps, expected cpu or cuda");
  EXPECT_ERROR_TEXT(set_autocast_enabled(kMPS, true),
                    "[set_autocast_enabled] device type: got mps");
  EXPECT_ERROR_TEXT(set_autocast_dtype(kCPU, kLong),
                    "[set_autocast_dtype] dtype for cpu: got Long");
  EXPECT_ERROR_TEXT(get_autocast_dtype(kMPS), "[get_autocast_dtype] device type: got mps");
  EXPECT_EQ(decrement_nesting(), -1);  // nothing was entered
  increment_nesting();
  const AutocastGuard guard(kCPU);
  EXPECT_ERROR_TEXT(mm(Tensor(), ones({2, 2})), "[mm]");
  const Tensor half = ones({2}, kHalf);
  EXPECT_ERROR_TEXT(cat({half, ones({2}, kBFloat16)}),
                    "[cat] got a tensor of Half under autocast to BFloat16");
  EXPECT_EQ(cat({half, ones({2})}).scalar_type(), kFloat);
}

TEST(Autocast, LeavesIntegersAndFloat64) {
  const AutocastGuard guard(kCPU);
  const Tensor whole = ones({2, 2}, kLong), wide = ones({2, 2}, kDouble);
  EXPECT_EQ(mm(whole, whole).scalar_type(), kLong);
  EXPECT_EQ(mm(wide, wide).scalar_type(), kDouble);
  EXPECT_EQ(autocast::cached_cast(kBFloat16, wide, kCPU).scalar_type(), kDouble);
  EXPECT_EQ(autocast::cached_cast(kBFloat16, ones({2}), kCPU).scalar_type(), kBFloat16);
  EXPECT_EQ(autocast::cached_cast(kHalf, ones({2})).scalar_type(), kFloat);  // of GPUs
}

TEST(Autocast, SameValuesAsCasts) {
  const Tensor x = floats({3, 4}), w = parameter({5, 4}, 1), b = parameter({5}, 2);
  Tensor got;
  {
    const AutocastGuard guard(kCPU);
    got = linear(x, w, b);
  }
  const Tensor want = linear(x.to(kBFloat16), w.detach().to(kBFloat16), b.detach().to(kBFloat16));
  EXPECT_EQ(values(got), values(want));
  got.sum().backward();
  EXPECT_EQ(w.grad().scalar_type(), kFloat);
  EXPECT_EQ(b.grad().scalar_type(), kFloat);
}

TEST(Autocast, InPlaceAndOutFormsAreAsTheyAre) {
  const Tensor a = floats({2, 3}), b = floats({3, 2}, 1);
  Tensor sum = zeros({2, 2}), out = zeros({2, 2});
  const AutocastGuard guard(kCPU);
  sum.addmm_(a, b);
  matmul_out(out, a, b);
  autocast::set_autocast_enabled(kCPU, false);
  const Tensor want = mm(a, b);
  EXPECT_EQ(values(sum), values(want));
  EXPECT_EQ(values(out), values(want));
}

// ---- the backward pass --------------------------------------------------------------------------

TEST(Autocast, BackwardRunsInTheForwardsDtypes) {
  const Tensor x = floats({3, 4}), w = parameter({5, 4}, 1), v = parameter({2, 5}, 2);
  const auto gradient = [&](bool inside) {
    w.mutable_grad() = Tensor();
    std::optional<AutocastGuard> guard;
    guard.emplace(kCPU);
    const Tensor loss = linear(linear(x, w).relu(), v).sum();
    if (!inside) guard.reset();
    loss.backward();
    return values(w.grad());
  };
  EXPECT_EQ(gradient(true), gradient(false));
  const AutocastGuard guard(kCPU);
  // A hook runs in the backward pass.
  ScalarType seen = ScalarType::Undefined;
  const Tensor y = linear(x, w);
  y.register_hook([&](const Tensor& g) {
    EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
    seen = g.scalar_type();
  });
  y.sum().backward();
  EXPECT_EQ(seen, kBFloat16);
  EXPECT_TRUE(autocast::is_autocast_enabled(kCPU));
  const Tensor g = autograd::grad({linear(x, w).sum()}, {w})[0];
  EXPECT_EQ(g.scalar_type(), kFloat);
}

TEST(Autocast, SecondDerivative) {
  const Tensor x = floats({3, 4}), w = parameter({5, 4}, 1);
  Tensor loss;
  {
    const AutocastGuard guard(kCPU);
    loss = linear(x, w).square().sum();
  }
  const Tensor g = autograd::grad({loss}, {w}, {}, true, true)[0];
  g.sum().backward();
  EXPECT_EQ(w.grad().scalar_type(), kFloat);
  // d/dw of the sum of the gradient 2 x^T (x w^T): about 2 x^T x summed.
  const std::vector<double> want = values(x.t().mm(x).mul(2).sum(int64_t{0}));
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_NEAR(w.grad()[0][i].item<double>(), want[static_cast<size_t>(i)], 0.1);
}

// ---- casts of parameters ------------------------------------------------------------------------

TEST(AutocastCache, OneCastForEachOutermostGuard) {
  const Tensor x = floats({3, 4}), w = parameter({4, 4}, 1);
  const void *first, *inside;
  Tensor kept;
  {
    const AutocastGuard guard(kCPU);
    kept = linear(x, w);
    first = cast_in(kept);
    const Tensor y = linear(kept, w);
    EXPECT_EQ(cast_in(y), first);
    {
      const AutocastGuard inner(kCPU);
      inside = cast_in(linear(x, w));
    }
    EXPECT_EQ(inside, first);
    EXPECT_EQ(cast_in(linear(x, w)), first);
    const AutocastGuard other(kCPU, kHalf);
    EXPECT_NE(cast_in(linear(x, w)), first);
    autocast::clear_cache();
    EXPECT_NE(cast_in(linear(x, w)), first);
  }
  const AutocastGuard guard(kCPU);
  EXPECT_NE(cast_in(linear(x, w)), first);
}

TEST(AutocastCache, OnlyWhereItIsOn) {
  const Tensor x = floats({3, 4}), w = parameter({4, 4}, 1);
  const auto twice = [&] {
    const Tensor a = linear(x, w), b = linear(x, w);
    return cast_in(a) == cast_in(b);
  };
  autocast::set_autocast_enabled(kCPU, true);
  EXPECT_FALSE(twice());  // outside of any region
  autocast::increment_nesting();
  EXPECT_TRUE(twice());
  autocast::set_autocast_cache_enabled(false);
  EXPECT_FALSE(twice());
  autocast::set_autocast_cache_enabled(true);
  EXPECT_EQ(autocast::decrement_nesting(), 0);
  autocast::clear_cache();
  autocast::set_autocast_enabled(kCPU, false);
  const AutocastGuard guard(kCPU, std::nullopt, true, false);
  EXPECT_FALSE(twice());
}

TEST(AutocastCache, FollowsWritesAndMoves) {
  const Tensor x = ones({1, 2}), w = ones({1, 2}).requires_grad_();
  const AutocastGuard guard(kCPU);
  EXPECT_EQ(values(linear(x, w)), std::vector<double>{2});
  {
    const NoGradGuard off;
    w.mul_(3);
  }
  EXPECT_EQ(values(linear(x, w)), std::vector<double>{6});
  {
    const NoGradGuard off;
    w.fill_(0.5);
  }
  EXPECT_EQ(values(linear(x, w)), std::vector<double>{1});
  w.set_data(full({1, 2}, 4.0));
  EXPECT_EQ(values(linear(x, w)), std::vector<double>{8});
}

// A cast without history does not serve an operation that is recorded.
TEST(AutocastCache, KnowsGradMode) {
  const Tensor x = floats({3, 4}), w = parameter({4, 4}, 1);
  const AutocastGuard guard(kCPU);
  {
    const NoGradGuard off;
    EXPECT_FALSE(linear(x, w).requires_grad());
  }
  linear(x, w).sum().backward();
  EXPECT_TRUE(w.grad().defined());
  const NoGradGuard off;
  EXPECT_FALSE(linear(x, w).requires_grad());
}

TEST(AutocastCache, OneCastServesSeveralBackwardPasses) {
  const Tensor x = floats({3, 4}), w = parameter({4, 4}, 1);
  {
    const AutocastGuard guard(kCPU);
    linear(x, w).sum().backward();
  }
  const std::vector<double> once = values(w.grad());
  w.mutable_grad() = Tensor();
  const AutocastGuard guard(kCPU);
  for (int i = 0; i < 2; ++i) linear(x, w).sum().backward();
  std::vector<double> twice = once;
  for (double& v : twice) v *= 2;
  expect_values(w.grad(), twice, 1e-6);
}

// Only parameters are kept: neither results nor leaves without a gradient.
TEST(AutocastCache, HoldsNothingElse) {
  const AutocastGuard guard(kCPU);
  const Tensor x = floats({3, 4});
  linear(x, floats({4, 4}));
  EXPECT_EQ(x->refs.load(), 1u);
  const Tensor w = parameter({4, 4});
  linear(x, w);
  EXPECT_EQ(x->refs.load(), 1u);
  EXPECT_EQ(w->refs.load(), 2u);
  autocast::clear_cache();
  EXPECT_EQ(w->refs.load(), 1u);
}

// ---- functions of users -------------------------------------------------------------------------

// x w^T.
struct Product : autograd::Function<Product> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, const Tensor& w) {
    ctx->save_for_backward({x, w});
    return linear(x, w);
  }
  static autograd::tensor_list backward(autograd::AutogradContext* ctx,
                                        autograd::tensor_list grads) {
    const autograd::tensor_list saved = ctx->get_saved_variables();
    EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
    const Tensor g = grads[0].to(kFloat);
    return {mm(g, saved[1]), mm(g.t(), saved[0])};
  }
};

ScalarType inside = ScalarType::Undefined, in_backward = ScalarType::Undefined;
template <bool kCast> struct Wrapped : autograd::Function<Wrapped<kCast>> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, const Tensor& w) {
    const auto dtype = kCast ? std::optional<ScalarType>(kFloat) : std::nullopt;
    return custom_fwd(
        ctx, kCPU, dtype,
        [ctx](const Tensor& a, const Tensor& b) {
          ctx->save_for_backward({a, b});
          Tensor y = linear(a, b);
          inside = y.scalar_type();
          return y;
        },
        x, w);
  }
  static autograd::tensor_list backward(autograd::AutogradContext* ctx,
                                        autograd::tensor_list grads) {
    return custom_bwd(ctx, kCPU, [&]() -> autograd::tensor_list {
      const autograd::tensor_list saved = ctx->get_saved_variables();
      const Tensor gx = mm(grads[0], saved[1]);
      in_backward = gx.scalar_type();
      return {gx, mm(grads[0].t(), saved[0])};
    });
  }
};

TEST(AutocastFunctions, ForwardIsCastAndBackwardIsNot) {
  const Tensor x = parameter({3, 4}), w = parameter({5, 4}, 1);
  const AutocastGuard guard(kCPU);
  const Tensor y = Product::apply(x, w);
  EXPECT_EQ(y.scalar_type(), kBFloat16);
  y.sum().backward();
  EXPECT_EQ(x.grad().scalar_type(), kFloat);
  EXPECT_EQ(w.grad().scalar_type(), kFloat);
}

TEST(AutocastFunctions, CustomForwardAndBackward) {
  const Tensor x = parameter({3, 4}), w = parameter({5, 4}, 1);
  const auto run = [&](auto function, bool autocast_on) {
    Tensor y;
    {
      const AutocastGuard guard(kCPU, kHalf, autocast_on);
      y = decltype(function)::apply(x.to(kBFloat16), w);
    }
    y.sum().backward();
    EXPECT_EQ(w.grad().scalar_type(), kFloat);
  };
  run(Wrapped<true>(), true);  // inputs are cast to float32, and autocast is off inside
  EXPECT_EQ(inside, kFloat);
  EXPECT_EQ(in_backward, kFloat);
  run(Wrapped<false>(), true);  // the backward runs under the forward's autocast
  EXPECT_EQ(inside, kHalf);
  EXPECT_EQ(in_backward, kHalf);
  // Without autocast custom_fwd changes nothing.
  EXPECT_ERROR_TEXT(run(Wrapped<true>(), false), "[linear]");
  EXPECT_ERROR_TEXT(custom_bwd(nullptr, kCPU, [] { return 1; }), "[custom_bwd] got a context");
  EXPECT_ERROR_TEXT(custom_fwd(nullptr, kCPU, kFloat, [] { return 1; }), "[custom_fwd] got no");
}

// ---- training -----------------------------------------------------------------------------------

// A small net learns a function about as well as in float32.
TEST(Autocast, Trains) {
  const auto trained = [](bool on) {
    const Tensor x = floats({64, 4}, 3), y = x.sum(1, true).tanh();
    std::vector<Tensor> p = {parameter({16, 4}, 4), parameter({16}, 5), parameter({1, 16}, 6),
                             parameter({1}, 7)};
    double last = 0;
    for (int step = 0; step < 200; ++step) {
      Tensor loss;
      {
        const AutocastGuard guard(kCPU, std::nullopt, on);
        loss = mse_loss(linear(linear(x, p[0], p[1]).tanh(), p[2], p[3]), y);
      }
      EXPECT_EQ(loss.scalar_type(), kFloat);
      loss.backward();
      const NoGradGuard off;
      for (const Tensor& t : p) {
        t.sub_(t.grad(), 0.1);
        t.mutable_grad() = Tensor();
      }
      last = loss.item<double>();
    }
    return last;
  };
  const double plain = trained(false), mixed = trained(true);
  EXPECT_LT(plain, 0.02);
  EXPECT_LT(mixed, 1.5 * plain + 1e-3);
  EXPECT_NE(mixed, plain);
}

}  // namespace
}  // namespace ramet
