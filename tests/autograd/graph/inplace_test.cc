// In-place operations: histories of leaves, bases and views, versions, refusals. Expected gradients
// are worked out by hand or by the same computation without in-place operations.
#include <gtest/gtest.h>

#include <functional>

#include "autograd/autograd.h"
#include "autograd/graph/function.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using Values = std::vector<double>;

TEST(Inplace, OnANonLeaf) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 3;
  y.mul_(2);
  y.add_(x);
  y.sum().backward();
  EXPECT_EQ(values(y), (Values{7, 14}));
  EXPECT_EQ(values(x.grad()), (Values{7, 7}));
}

TEST(Inplace, OnALeafIsRefused) {
  const Tensor x = leaf({1, 2});
  EXPECT_ERROR_TEXT(x.add_(1),
                    "a leaf Variable that requires grad is being used in an in-place operation");
  EXPECT_ERROR_TEXT(x.view({2, 1}).add_(1), "a view of a leaf Variable that requires grad");
  NoGradGuard off;
  x.add_(1);
  EXPECT_EQ(values(x), (Values{2, 3}));
}

TEST(Inplace, OnAViewThatIsALeafIsRefused) {
  const Tensor base = constant({1, 2}), x = base.view({2, 1});
  x.requires_grad_();
  EXPECT_ERROR_TEXT(x.add_(1), "a view of a leaf Variable that requires grad");
  EXPECT_TRUE(x.is_leaf());
  EXPECT_EQ(values(base), (Values{1, 2}));
}

TEST(Inplace, LeafWithoutGradBecomesPartOfTheGraph) {
  const Tensor x = leaf({1, 2});
  Tensor buffer = constant({10, 20});
  buffer.add_(x);
  EXPECT_TRUE(buffer.requires_grad());
  (buffer * buffer).sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{22, 44}));
}

TEST(Inplace, SavedInputChangedIsAnErrorNamingBoth) {
  const Tensor x = leaf({1, 2});
  Tensor h = x * 2;
  const Tensor y = (h * h).sum();
  h.add_(1);
  const std::string what = error_of([&] { y.backward(); });
  expect_part(what, "has been modified by an inplace operation");
  expect_part(what, "MulBackward0");
  expect_part(what, "add_");
}

TEST(Inplace, SavedOutputChangedIsAnError) {
  const Tensor x = leaf({1, 2});
  Tensor y = x.exp();
  y.mul_(2);
  EXPECT_ERROR_TEXT(y.sum().backward(), "has been modified by an inplace operation");
}

TEST(Inplace, OperationOnItsOwnOutputIsFine) {
  const Tensor x = leaf({-1, 2});
  Tensor y = x * 2;
  y.tanh_();
  const Tensor expected = (x * 2).tanh();
  EXPECT_EQ(values(y), values(expected));
  const Tensor g = autograd::grad({expected.sum()}, {x})[0];
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), values(g));
}

TEST(Inplace, OverwrittenInputsAreKeptWhereTheyAreNeeded) {
  const auto f = [](const std::vector<Tensor>& in) {
    Tensor y = in[0] * in[0];
    y.mul_(in[1]);
    y.div_(in[1] + 3);
    y.sin_();
    return Tensor(y);
  };
  expect_derivatives(f, {varied_leaf({4}, 1), varied_leaf({4}, 2)});
}

TEST(Inplace, WriteThroughAView) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor s = leaf({10, 20});
  Tensor b = x * 1;
  Tensor v = b.slice(0, 1, 3);
  v.mul_(s);  // b = [1, 20, 60, 4]
  EXPECT_EQ(values(b), (Values{1, 20, 60, 4}));
  EXPECT_EQ(b.grad_fn()->name(), "CopySlices");
  EXPECT_EQ(v.grad_fn()->name(), "AsStridedBackward0");
  (b * constant({1, 2, 3, 4})).sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{1, 20, 60, 4}));
  EXPECT_EQ(values(s.grad()), (Values{4, 9}));
}

TEST(Inplace, OtherViewsFollow) {
  const Tensor x = leaf({1, 2, 3, 4});
  Tensor b = x * 1;
  const Tensor matrix = b.view({2, 2}), row = matrix[1];
  b.slice(0, 2, 4).mul_(5);  // row is now 15, 20
  (row * constant({1, 10})).sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{0, 0, 5, 50}));
}

// A view's history is made again when an operation on it is recorded. That operation still counts
// as the later one, so that no node runs before all of its gradient is there.
TEST(Inplace, ViewsOfAWrittenBaseRunOnce) {
  const Tensor x = leaf({3, 4});
  const Tensor y = x * 2, v = y.view({2, 1}), u = y.view({1, 2});
  y.mul_(5);
  const Tensor w = v.view({1, 2}), joined = cat({u, w});
  // A node that ran twice would find what it saved gone.
  (v.sum() + u.sum() + w.sum() + joined.sum()).backward();
  EXPECT_EQ(values(x.grad()), (Values{50, 50}));
}

TEST(Inplace, WindowsOfAWrittenBaseOverlap) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor y = x * 2, windows = y.unfold(0, 3, 1);
  y.mul_(5);
  (windows * constant({1, 10, 100})).sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{10, 110, 1100, 1000}));
}

// The sum over a dimension without elements is one number more than the memory can hold.
TEST(Inplace, PartOfAnEmptyExpandedTensor) {
  const Tensor x = leaf({7}), empty = constant({1, 2, 3}).expand({2, 3}).slice(0, 0, 0).detach();
  empty.select(1, 0).copy_(x);
  // Tensors of no bytes, in memory on both sides of what backward makes.
  std::vector<TensorBase> others;
  for (int i = 0; i < 400; ++i)
    others.push_back(TensorBase::empty(int64_t{0}, kDouble, Device(kCPU, 0)));
  for (size_t i = 101; i < 300; i += 2) others[i] = TensorBase();
  for (size_t i = 1; i < 100; i += 2) others[i] = TensorBase();
  empty.sum().backward();
  EXPECT_EQ(values(x.grad()), Values{0});
  for (size_t i = 0; i < others.size(); i += 2) {
    ASSERT_EQ(others[i].use_count(), 1) << i;
    ASSERT_EQ(others[i].scalar_type(), kDouble) << i;
  }
}

TEST(Inplace, WriteToTheBaseReachesViewsMadeBefore) {
  const Tensor x = leaf({1, 2});
  Tensor b = x * 1;
  const Tensor v = b.view({2, 1});
  b.mul_(7);
  v.sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{7, 7}));
}

TEST(Inplace, ViewOfAnOrdinaryTensorMakesItRequireGrad) {
  const Tensor x = leaf({5, 6});
  Tensor b = constant({1, 2, 3, 4});
  b.slice(0, 0, 2).copy_(x);
  EXPECT_TRUE(b.requires_grad());
  (b * b).sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{10, 12}));
}

TEST(Inplace, OverwritingCutsTheOldHistory) {
  const Tensor x = leaf({1, 2, 3});
  Tensor b = x * 2;
  b[1] = 9;
  b.sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{2, 0, 2}));
  Tensor whole = leaf({1, 2}) * 2;
  whole.zero_();
  EXPECT_EQ(values(whole), (Values{0, 0}));
}

TEST(Inplace, GradientsThroughInfinitiesInAnOverwrittenPart) {
  const Tensor x = leaf({0, 1});
  Tensor y = x.log();  // -inf, 0
  y[0] = 0;
  y.sum().backward();  // the overwritten element passes nothing on, not 0 * inf
  EXPECT_EQ(values(x.grad())[1], 1);
}

TEST(Inplace, CopyOfATransposedSelf) {
  const Tensor x = varied({3, 3});
  const std::vector<double> before = values(x.t().clone());
  x.copy_(x.t());
  EXPECT_EQ(values(x), before);
}

TEST(Inplace, ExpandedMemoryIsRefused) {
  Tensor b = constant({1, 2});
  EXPECT_ERROR_TEXT(b.view({2, 1}).expand({2, 3}).add_(1),
                    "more than one element of the written-to tensor");
}

// Such a view has no history: its gradient does not reach the leaf, and no operation may write
// through it where history is made. It says that it requires a gradient, as in LibTorch.
TEST(Inplace, ViewsOfWhatBecomesALeafLater) {
  const Tensor b = constant({1, 2, 3, 4}), v = b.view({2, 2}), row = v[1];
  b.requires_grad_();
  EXPECT_TRUE(v.requires_grad() && row.requires_grad());
  EXPECT_TRUE(v.is_leaf() && !v.grad_fn() && !(v * 2).requires_grad() && !(row + row).grad_fn());
  EXPECT_TRUE(b.view({2, 2}).requires_grad());
  (b * v.view({4})).sum().backward();
  EXPECT_EQ(values(b.grad()), (Values{1, 2, 3, 4}));
  EXPECT_ERROR_TEXT(v.mul_(2), "a view of a leaf Variable that requires grad");
  NoGradGuard off;
  v.mul_(2);
  EXPECT_EQ(values(b), (Values{2, 4, 6, 8}));
}

// As in LibTorch: a view keeps the history that it has (a crash).
TEST(Inplace, ViewsOfWhatIsDetachedLater) {
  const Tensor x = leaf({1, 2}), y = x * 2, v = y.view({2, 1});
  y.detach_();
  EXPECT_FALSE(y.requires_grad());
  (v * v).sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{8, 16}));
}

TEST(Inplace, AViewIsNoLeafOnceItsBaseHasAHistory) {
  const Tensor x = leaf({1, 2}), b = constant({3, 4}), v = b.view({2, 1});
  EXPECT_TRUE(v.is_leaf());
  b.mul_(x);
  EXPECT_FALSE(v.is_leaf());
  EXPECT_THROW(v.requires_grad_(false), Error);
  EXPECT_EQ(v.grad_fn()->name(), "AsStridedBackward0");
}

TEST(Inplace, NoGradViewIsRefused) {
  const Tensor x = leaf({1, 2});
  const Tensor h = x * 2;
  Tensor v;
  {
    NoGradGuard off;
    v = h.view({2, 1});
  }
  EXPECT_ERROR_TEXT(v.add_(1), "A view was created in no_grad mode");
}

// Operations that end with a view of what they have made give results like any other.
TEST(Inplace, ResultsThatAreViewsMayBeWritten) {
#define F(value) [](const Tensor& x) -> Tensor { return value; }
  Tensor (*const makes[])(const Tensor& x) = {
      F(softmax(x, 0)),
      F(log_softmax(x.repeat({1, 5}), 0)),
      F(pixel_shuffle(x.view({4, 2, 2}), 2)),
      F(pixel_unshuffle(x.view({1, 4, 4}), 2)),
      F(channel_shuffle(x.view({1, 4, 4}), 2)),
      F(im2col(x.view({1, 4, 4}), {2, 2}, {1, 1}, {0, 0}, {1, 1})),
      F(col2im(x.view({4, 4}), {4, 4}, {2, 2}, {1, 1}, {0, 0}, {2, 2})),
      F(linalg_pinv(x)),
      F(matmul(x.view({2, 2, 4}), x)),
      F(x.repeat({2, 1})),
  };
#undef F
  for (size_t i = 0; i < std::size(makes); ++i) {
    SCOPED_TRACE(i);
    const auto& make = makes[i];
    const Tensor x = arange(16, kDouble).view({4, 4}).sin().detach().requires_grad_(),
                 w = full({}, 3, kDouble).requires_grad_();
    const Tensor y = make(x), want = y.detach() * 3;
    const Tensor plain = autograd::grad({make(x)}, {x}, {ones_like(y)})[0];
    const std::string saves = y.grad_fn()->name();  // its result, so it has no gradient below
    y.mul_(w);
    EXPECT_TRUE(equal(y, want));
    if (saves.find("Softmax") == std::string::npos && saves.find("Pinv") == std::string::npos) {
      EXPECT_TRUE(allclose(autograd::grad({y}, {x}, {ones_like(y)}, true)[0], plain * 3));
    }
    EXPECT_TRUE(allclose(autograd::grad({y}, {w}, {ones_like(y)})[0], want.sum() / 3));
    const Tensor constant = without_grad([&] { return make(x); });
    const Tensor part = i < 9 ? constant.select(0, 0) : constant;  // repeat() gives a view
    constant.mul_(w);
    EXPECT_TRUE(part.requires_grad());
    EXPECT_TRUE(equal(constant, want));
    EXPECT_TRUE(allclose(autograd::grad({constant}, {w}, {ones_like(y)})[0], want.sum() / 3));
    const Tensor shown = make(x);
    if (i < 8) {
      EXPECT_FALSE(shown.is_view());
      shown.select(0, 0).mul_(w);
    }
    const Tensor alone = make(x);
    alone.detach_();
    EXPECT_FALSE(alone.requires_grad());
  }
}

TEST(Inplace, DoubleBackwardThroughCopySlices) {
  const auto f = [](const std::vector<Tensor>& in) {
    Tensor b = in[0] * in[0];
    b.narrow(0, 1, 2).mul_(in[1]);
    b.view({2, 2})[0].add_(in[1]);
    return Tensor(b * b);
  };
  expect_derivatives(f, {varied_leaf({4}, 1), varied_leaf({2}, 2)});
}

TEST(Inplace, TransposedBaseAndColumns) {
  const auto f = [](const std::vector<Tensor>& in) {
    Tensor b = (in[0] * 2).t();
    b.select(1, 0).mul_(in[1]);
    return Tensor(b.exp());
  };
  expect_derivatives(f, {varied_leaf({2, 3}, 1), varied_leaf({3}, 2)});
}

TEST(Inplace, ChunksMayBeWritten) {
  const Tensor x = leaf({1, 2, 3, 4});
  Tensor b = x * 1;
  auto parts = b.chunk(2);
  parts[0].mul_(3);
  parts[1].mul_(5);
  b.sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{3, 3, 5, 5}));
}

TEST(Inplace, SqueezeInPlaceKeepsHistory) {
  const Tensor x = leaf({1, 2});
  Tensor y = (x * 2).view({1, 2});
  Tensor z = y * 1;
  z.squeeze_();
  EXPECT_EQ(z.dim(), 1);
  z.unsqueeze_(-1);
  EXPECT_EQ(z.sizes(), IntArrayRef({2, 1}));
  (z * z).sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{8, 16}));
}

// A view with a geometry that was changed in place still follows its base, through whichever tensor
// the write goes.
TEST(Inplace, ViewsOfAnotherGeometryFollow) {
  const std::function<void(const Tensor&)> changes[] = {
      [](const Tensor& v) { v.unsqueeze_(1); }, [](const Tensor& v) { v.squeeze_(); },
      [](const Tensor& v) { v.transpose_(0, 2); }, [](const Tensor& v) { v.swapdims_(1, 2); },
      [](const Tensor& v) {
        v.as_strided_({2, 2}, {1, 2});
      }};
  for (size_t i = 0; i < std::size(changes); ++i) {
    SCOPED_TRACE(i);
    for (const char* writer : {"view", "base", "other"}) {
      SCOPED_TRACE(writer);
      const Tensor x = leaf({1, 2, 3, 4});
      const Tensor base = x * 3, v = base.view({2, 1, 2}), other = base.view({4});
      changes[i](v);
      for (const double slope : {15., 75.}) {
        (*writer == 'v' ? v : *writer == 'b' ? base : other).mul_(5);
        for (const Tensor& t : {v, base, other})
          EXPECT_EQ(values(autograd::grad({t}, {x}, {ones_like(t)}, true)[0]), (Values(4, slope)));
      }
    }
  }
}

TEST(Inplace, AnotherGeometryInNoGradMode) {
  for (const bool view : {true, false}) {
    const Tensor x = leaf({1, 2, 3, 4}), weights = tensor({5, 6, 7, 8}, kFloat).view({2, 2});
    const Tensor y = view ? (x * 3).view({2, 2}) : x.view({2, 2}) * 3;
    {
      NoGradGuard off;
      y.t_();
    }
    EXPECT_TRUE(y.requires_grad());
    y.mul(weights).sum().backward();
    EXPECT_EQ(values(x.grad()), (Values{15, 21, 18, 24}));
  }
  const Tensor w = leaf({1, 2, 3}).detach().view({3, 1}).requires_grad_();
  NoGradGuard off;
  w.t_();
  EXPECT_TRUE(w.is_leaf() && w.requires_grad());
}

TEST(Inplace, AnotherGeometryOfWhatIsSaved) {
  const Tensor x = leaf({1, 2, 3, 4}), square = x.view({2, 2});
  const Tensor constant = tensor({5, 6, 7, 8}, kFloat).view({2, 2}).clone(),
               weight = constant.clone().requires_grad_(), between = weight * 1;
  const auto turned = [&](const Tensor& t) {
    const Tensor y = square * t;
    NoGradGuard off;
    t.t_();
    return autograd::grad({y}, {x}, {ones_like(y)})[0];
  };
  for (const Tensor& t : {constant, weight})
    EXPECT_ERROR_TEXT(turned(t), "modified by an inplace operation");
  EXPECT_EQ(values(turned(between)), (Values{5, 6, 7, 8}));
}

TEST(Inplace, ViewsOfWhatHasAnotherGeometryKeepTheirHistory) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor y = x * 3, last = y.slice(0, 2);
  y.as_strided_({2}, {1});
  last.sum().backward();  // of elements that y does not show any more
  EXPECT_EQ(values(x.grad()), (Values{0, 0, 3, 3}));
}

// Where a node saves what a later one writes, or a view of it, nothing may keep itself alive.
TEST(Inplace, SavedTensorsDoNotOwnTheirWriters) {
  class Square : public autograd::Function<Square> {
   public:
    static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
      ctx->save_for_backward({x});
      return x * x;
    }
    static autograd::tensor_list backward(autograd::AutogradContext* ctx, autograd::tensor_list g) {
      return {g[0] * ctx->get_saved_variables()[0] * 2};
    }
  };
  class InPlace : public autograd::Function<InPlace> {  // writes one view, saves another
   public:
    static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, const Tensor& y) {
      {
        const NoGradGuard off;
        x.mul_(2);
      }
      ctx->mark_dirty({x});
      ctx->save_for_backward({y});
      return x;
    }
    static autograd::tensor_list backward(autograd::AutogradContext*, autograd::tensor_list g) {
      return {g[0] * 2, Tensor()};
    }
  };
  using Write = void (*)(const Tensor& x);
  const std::pair<const char*, Write> writes[] = {
      {"div_", [](const Tensor& x) { x[0].div_(x[1]); }},
      {"mul_ of overlapping rows", [](const Tensor& x) { x[0].mul_(x.sum(0)); }},
      {"through another node", [](const Tensor& x) { x[0].copy_(x[1] * x[1]); }},
      {"through a Function", [](const Tensor& x) { x[0].copy_(Square::apply(x[1])); }},
      {"itself", [](const Tensor& x) { x.add_(x * x); }},
      {"itself, through a Function", [](const Tensor& x) { x.add_(Square::apply(x)); }},
      {"by a Function that saved a sibling", [](const Tensor& x) { InPlace::apply(x[0], x[1]); }},
      {"by a Function that saved the base", [](const Tensor& x) { InPlace::apply(x[0], x); }},
      {"a list", [](const Tensor& x) {
         x[0].copy_(stack({x[1], x[0]}).prod(0));
       }}};
  for (const auto& [name, write] : writes) {
    for (const bool base_records : {true, false}) {
      SCOPED_TRACE(std::string(name) + (base_records ? "" : ", base without history"));
      const int64_t before = autograd::nodes_alive();
      {
        const Tensor w = leaf({1, 2, 3, 4}).reshape({2, 2});
        const Tensor x = base_records ? w * 2 : zeros({2, 2});
        if (!base_records) x[1].copy_(w[1]);  // from here on it has one
        write(x);
      }
      EXPECT_EQ(autograd::nodes_alive(), before);
    }
  }
}

// The view's own history is kept, and a gradient of a gradient goes through it.
TEST(Inplace, SavedViewsKeepTheirHistory) {
  const Tensor w = leaf({1, 2, 3, 4});
  const Tensor x = w * 2, v = x.slice(0, 1, 3);
  const Tensor y = v * v;  // saves v
  const Tensor g = autograd::grad({y.sum()}, {w}, {}, true, true)[0];
  EXPECT_EQ(values(g), (Values{0, 16, 24, 0}));
  EXPECT_EQ(values(autograd::grad({g.sum()}, {w})[0]), (Values{0, 8, 8, 0}));
  x.add_(1);
  EXPECT_THROW(y.sum().backward(), Error);
}

TEST(Inplace, VersionsAreSharedByViewsAndDetached) {
  Tensor b = constant({1, 2});
  const Tensor v = b.view({2, 1}), d = b.detach();
  b.add_(1);
  EXPECT_EQ(v._version(), 1);
  EXPECT_EQ(d._version(), 1);
}

}  // namespace
}  // namespace ramet
