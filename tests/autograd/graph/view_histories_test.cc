// Histories of views that are made where grad mode is off, by Functions, or not at all any more.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/graph/function.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using Values = std::vector<double>;

// The history of a view of what was written is made when somebody needs it, in InferenceMode too.
TEST(ViewHistories, AreMadeInInferenceMode) {
  using Use = void (*)(const Tensor&);
  const Use uses[] = {[](const Tensor& v) { EXPECT_TRUE(v.grad_fn()); },
                      [](const Tensor& v) { v.retain_grad(); },
                      [](const Tensor& v) { v.register_hook([](const Tensor& g) { return g; }); }};
  for (const Use use : uses) {
    const Tensor a = leaf({1, 2, 3, 4}), b = a * 2, v = b.view({2, 2});
    b.mul_(3);
    {
      const InferenceMode on;
      use(v);
    }
    v.sum().backward();
    EXPECT_EQ(values(a.grad()), (Values{6, 6, 6, 6}));
  }
  const Tensor a = leaf({1, 2}), b = a * 2, v = b.view({2, 1}),
               seed = constant({1, 2}).view({2, 1});
  b.mul_(3);
  const InferenceMode on;
  v.backward(seed);
  EXPECT_EQ(values(a.grad()), (Values{6, 12}));
}

// What a fused backward's own derivative is composed of is recorded there, too.
TEST(ViewHistories, ComposedDerivativesInInferenceMode) {
  const auto second = [](bool inference) {
    const Tensor a = leaf({1, 2, 4, 8, -3});
    const Tensor y = layer_norm(a, {5}).pow(3).sum();
    const Tensor g = autograd::grad({y}, {a}, {}, true, true)[0], z = (g * g).sum();
    const InferenceMode mode(inference);
    z.backward();
    return values(a.grad());
  };
  EXPECT_EQ(second(true), second(false));
}

struct ScaledAndDirty : autograd::Function<ScaledAndDirty> {  // x * 3, and the view v, doubled
  static autograd::variable_list forward(autograd::AutogradContext* c, const Tensor& x, Tensor v) {
    v.mul_(2);
    c->mark_dirty({v});
    return {x * 3, v};
  }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list g) {
    return {g[0] * 3, g[1] * 2};
  }
};

TEST(ViewHistories, OfADirtyViewThatIsNotTheFirstResult) {
  const Tensor a = leaf({1, 2, 3}), x = leaf({1, 1}), b = a * 1, v = b.slice(0, 1);
  const auto y = ScaledAndDirty::apply(x, v);
  (y[0] * 10).sum().backward({}, true);
  (b * 100).sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{30, 30}));
  EXPECT_EQ(values(a.grad()), (Values{100, 200, 200}));
}

TEST(ViewHistories, ADirtyViewThatIsRefusedLeavesItsBase) {
  const Tensor b = constant({1, 2, 3}), x = leaf({1, 1});
  const Tensor v = [&] {
    const NoGradGuard off;
    return b.slice(0, 1);
  }();
  EXPECT_NE(error_of([&] { ScaledAndDirty::apply(x, v); }).find("created in no_grad mode"),
            std::string::npos);
  EXPECT_FALSE(b.requires_grad());
}

struct RawTimesTen : autograd::Function<RawTimesTen> {  // in place, unseen by any operation
  static autograd::variable_list forward(autograd::AutogradContext* c, const Tensor& x,
                                         bool returns_it) {
    for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<double>()[i] *= 10;
    c->mark_dirty({x});
    return {returns_it ? x : x.clone()};
  }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list g) {
    return {g[0] * 10, Tensor()};
  }
};

// As an operation in place would be: nothing is recorded of these, and a gradient would be wrong.
TEST(ViewHistories, DirtyInputsAreCheckedWhereNothingIsRecorded) {
  const auto refused = [](const Tensor& x, const char* why, bool returns_it = true) {
    const std::string text = error_of([&] { RawTimesTen::apply(x, returns_it); });
    EXPECT_NE(text.find(why), std::string::npos) << text;
  };
  const Tensor w = leaf({1, 2, 3, 4}), b = w * 1;
  for (const Tensor& base : {w, b})
    for (const bool inference : {false, true}) {
      const Tensor v = [&] {
        const NoGradGuard off;
        const InferenceMode mode(inference);
        const NoGradGuard still;
        return base.view({2, 2});
      }();
      refused(v, "created in no_grad mode");
    }
  const Tensor t = [] {
    const InferenceMode on;
    return constant({1, 2});
  }();
  refused(t, "Inplace update to inference tensor");
  {
    const NoGradGuard off;
    refused(t, "Inplace update to inference tensor");
  }
  refused(w * 1, "did not return it", false);
  EXPECT_NE(error_of([&] {
              t.resize_({1, 2});
            }).find("Inplace update to inference tensor"),
            std::string::npos);
}

struct Fresh : autograd::Function<Fresh> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& x) {
    Tensor y = x * 2;
    made = y.impl();
    return y;
  }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list g) {
    return {g[0] * 2};
  }
  static inline const TensorImpl* made = nullptr;
};

TEST(ViewHistories, AResultOfForwardIsTheOneThatItMade) {
  const Tensor y = Fresh::apply(leaf({1, 2}));
  EXPECT_EQ(y.impl(), Fresh::made);
}

TEST(ViewHistories, OtherDataEndAView) {
  const Tensor w = leaf({1, 2, 3, 4});
  const Tensor v = [&] {
    const NoGradGuard off;
    return w.view({2, 2});
  }();
  EXPECT_TRUE(v.is_view() && v.requires_grad());
  v.set_data(constant({5, 6}));
  EXPECT_FALSE(v.is_view() || v.requires_grad());
  v.add_(1);
  EXPECT_EQ(values(v), (Values{6, 7}));
  EXPECT_EQ(values(w), (Values{1, 2, 3, 4}));
}

// 4 values lie in one block with the tensor that was made for them, 400 do not.
TEST(ViewHistories, ABaseOfOtherDataDoesNotHoldTheMemory) {
  for (const int64_t n : {4, 400}) {
    Tensor v, same;
    {
      const Tensor b = zeros({n});
      v = b.view({2, n / 2});
      same = v.data();
      b.set_data(zeros({1}));
    }
    EXPECT_FALSE(v.unique()) << n << ": an engine would add into what another tensor shows";
    same = Tensor();
    EXPECT_TRUE(v.unique()) << n;
  }
}

TEST(ViewHistories, AStaleViewDoesNotBecomeALeaf) {
  const Tensor b = constant({1, 2}), w = leaf({3, 4});
  const Tensor v = [&] {
    const NoGradGuard off;
    return b.view({2, 1});
  }();
  b.mul_(w);
  EXPECT_NE(error_of([&] { v.requires_grad_(); }).find("created in no_grad mode"),
            std::string::npos);
}

TEST(ViewHistories, ALeafInTheChainIsNotConsumed) {
  const Tensor b = leaf({1, 2, 3, 4}) * 2;
  const Tensor x = [&] {
    const NoGradGuard off;
    return b.view({2, 2});
  }();
  x.requires_grad_();
  const Tensor y = x.view({2, 2}), target = constant({0, 1}).to(kLong);
  EXPECT_NE(error_of([&] { cross_entropy_loss_consuming(y, target); }).find("a view of one"),
            std::string::npos);
  EXPECT_EQ(values(x), (Values{2, 4, 6, 8}));
}

}  // namespace
}  // namespace ramet
