// Histories of views that are made where grad mode is off, by Functions, or not at all any more,
// and of lists of views.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/graph/function.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using Values = std::vector<double>;

// The history of a view of what was written is made when it is needed, in InferenceMode too.
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
  const Tensor v = without_grad([&] { return b.slice(0, 1); });
  EXPECT_ERROR_TEXT(ScaledAndDirty::apply(x, v), "created in no_grad mode");
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
    expect_part(text, why);
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
  EXPECT_ERROR_TEXT(t.resize_({1, 2}), "Inplace update to inference tensor");
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
  const Tensor v = without_grad([&] { return w.view({2, 2}); });
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
  const Tensor v = without_grad([&] { return b.view({2, 1}); });
  b.mul_(w);
  EXPECT_ERROR_TEXT(v.requires_grad_(), "created in no_grad mode");
}

TEST(ViewHistories, ALeafInTheChainIsNotConsumed) {
  const Tensor b = leaf({1, 2, 3, 4}) * 2;
  const Tensor x = without_grad([&] { return b.view({2, 2}); });
  x.requires_grad_();
  const Tensor y = x.view({2, 2}), target = constant({0, 1}).to(kLong);
  EXPECT_ERROR_TEXT(cross_entropy_loss_consuming(y, target), "a view of one");
  EXPECT_EQ(values(x), (Values{2, 4, 6, 8}));
}

// ---- lists of parts, which have one node
// ---------------------------------------------------------

using List = std::vector<Tensor>;
struct Cut {
  const char* node;
  std::function<List(const Tensor&)> parts, slices;  // the list, and each part by itself
};
// Of a [3, 6] tensor.
const std::vector<Cut>& cuts() {
  const auto columns = [](std::vector<int64_t> ends) {
    return [ends](const Tensor& x) {
      List list;
      int64_t start = 0;
      for (const int64_t end : ends) list.push_back(x.slice(1, start, end)), start = end;
      return list;
    };
  };
  static const std::vector<Cut> all = {
      {"SplitBackward0", [](const Tensor& x) { return x.split(4, 1); }, columns({4, 6})},
      {"SplitBackward0", [](const Tensor& x) { return x.chunk(3, -1); }, columns({2, 4, 6})},
      {"SplitWithSizesBackward0",
       [](const Tensor& x) {
         return x.split_with_sizes({1, 0, 3, 2}, 1);
       },
       columns({1, 1, 4, 6})},
      {"UnbindBackward0", [](const Tensor& x) { return x.unbind(0); },
       [](const Tensor& x) {
         return List{x.select(0, 0), x.select(0, 1), x.select(0, 2)};
       }},
      {"UnbindBackward0", [](const Tensor& x) { return x.t().unbind(1); },
       [](const Tensor& x) {
         return List{x.select(0, 0), x.select(0, 1), x.select(0, 2)};
       }},
      {"SliceBackward0", [](const Tensor& x) { return x.tensor_split(4, 1); },
       columns({2, 4, 5, 6})},
      {"SliceBackward0",
       [](const Tensor& x) {
         return x.tensor_split({2, -1, 9}, 1);
       },
       columns({2, 5, 6, 6})},
  };
  return all;
}
// A use of each part with its bit set in `used`, each in a different way, the first one twice.
Tensor used_up(const List& parts, unsigned used) {
  Tensor sum = zeros({}, TensorOptions(kDouble));
  for (size_t i = 0; i < parts.size(); ++i)
    if (used >> i & 1)
      sum = sum + parts[i].pow(static_cast<double>(i + 2)).sum() +
            (i == 0 ? parts[i].exp().sum() : Tensor(sum.detach() * 0));
  return sum;
}

TEST(ViewLists, HaveOneNodeWithTheGradientsOfAllParts) {
  for (const Cut& cut : cuts()) {
    const Tensor a = varied_leaf({3, 6}), b = varied_leaf({3, 6});
    const int64_t before = autograd::nodes_alive();
    const List parts = cut.parts(a);
    EXPECT_LE(autograd::nodes_alive() - before, 2) << cut.node;  // t() has one, too
    for (const Tensor& v : parts) {
      EXPECT_EQ(v.grad_fn()->name(), cut.node);
      EXPECT_EQ(v.grad_fn(), parts[0].grad_fn());
    }
    for (const unsigned used : {15u, 5u, 2u, 1u}) {
      used_up(cut.parts(a), used).backward();
      used_up(cut.slices(b), used).backward();
      EXPECT_EQ(values(a.grad()), values(b.grad())) << cut.node << " " << used;
      const auto f = [&](const List& in) { return List{used_up(cut.parts(in[0]), used)}; };
      EXPECT_TRUE(autograd::gradcheck(f, {a}));
      EXPECT_TRUE(autograd::gradgradcheck(f, {a}));
    }
  }
}

TEST(ViewLists, PartsAreRootsHookedAndRetained) {
  const Tensor a = leaf({1, 2, 3, 4, 5, 6}), b = a * 1;
  const List parts = b.split(2);
  autograd::backward({parts[2], parts[0]}, {constant({1, 2}), constant({3, 4})}, true);
  EXPECT_EQ(values(a.grad()), (Values{3, 4, 0, 0, 1, 2}));
  parts[0].retain_grad();
  parts[1].register_hook([](const Tensor& g) { return g * 10; });
  a.mutable_grad() = Tensor();
  (parts[0] * 2 + parts[1] * 3).sum().backward();
  EXPECT_EQ(values(a.grad()), (Values{2, 2, 30, 30, 0, 0}));
  EXPECT_EQ(values(parts[0].grad()), (Values{2, 2}));
  const List found = autograd::grad({parts[1].square().sum()}, {b, parts[1]});
  EXPECT_EQ(values(found[0]), (Values{0, 0, 60, 80, 0, 0}));
  EXPECT_EQ(values(found[1]), (Values{60, 80}));
}

// As every view: before, between and after, also of the base.
TEST(ViewLists, PartsMayBeWritten) {
  for (const Cut& cut : cuts()) {
    const auto run = [&](const auto& list) {
      const Tensor a = varied_leaf({3, 6}), b = a * 1;
      const List parts = list(b);
      const Tensor early = parts[0].exp();
      parts.back().mul_(3);
      parts[0].mul_(parts[0].exp());
      b.mul_(2);
      (used_up(parts, 15) + early.sum() + b.sum()).backward();
      return values(a.grad());
    };
    EXPECT_EQ(run(cut.parts), run(cut.slices)) << cut.node;
  }
  const Tensor x = leaf({1, 2});
  EXPECT_ERROR_TEXT(x.chunk(2)[1].mul_(2), "a view of a leaf Variable that requires grad");
}

TEST(ViewLists, PlacesThatOverlapAreAdded) {
  const Tensor a = leaf({1, 2, 3, 4});
  const List parts = a.tensor_split({3, 1});  // [0, 3), [3, 1), [1, 4)
  (parts[0].sum() + parts[2].sum() * 10).backward();
  EXPECT_EQ(values(a.grad()), (Values{1, 11, 11, 10}));
}

TEST(ViewLists, MoreThanANodeHasSlots) {
  const Tensor a = zeros({66000}, TensorOptions(kDouble)).requires_grad_();
  const List parts = a.unbind();
  (parts[65999] * 2 + parts[7]).backward();
  EXPECT_EQ(a.grad()[65999].item<double>(), 2);
  EXPECT_EQ(a.grad().sum().item<double>(), 3);
}

}  // namespace
}  // namespace ramet
