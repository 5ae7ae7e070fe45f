// Users' own Functions.
#include "autograd/graph/function.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <variant>

#include "autograd/autograd.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using autograd::AutogradContext;
using autograd::Function;
using autograd::tensor_list;
using Values = std::vector<double>;

struct Cube : Function<Cube> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double scale) {
    ctx->saved_data["scale"] = scale;
    ctx->save_for_backward({x});
    return x * x * x * scale;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    const Tensor x = ctx->get_saved_variables()[0];
    return {grads[0] * x * x * (3 * ctx->saved_data["scale"].toDouble()), Tensor()};
  }
};

TEST(Function, ForwardBackwardAndDouble) {
  expect_derivatives(OF_X(Cube::apply(x[0], 2.0)), {varied_leaf({5})});
  EXPECT_NE(Cube::apply(leaf({1}), 1.0).grad_fn()->name().find("Cube"), std::string::npos);
}

TEST(Function, WithoutGradRecordsNothing) {
  EXPECT_FALSE(Cube::apply(constant({2}), 1.0).requires_grad());
  NoGradGuard off;
  EXPECT_FALSE(Cube::apply(leaf({2}), 1.0).requires_grad());
}

struct ExpOut : Function<ExpOut> {  // saves its output
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    Tensor y = x.exp();
    ctx->save_for_backward({y});
    return y;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    return {grads[0] * ctx->get_saved_variables()[0]};
  }
};

TEST(Function, SavedOutputLeaksNothingAndDifferentiatesTwice) {
  expect_derivatives(OF_X(ExpOut::apply(x[0])), {varied_leaf({3})});
}

struct SinCos : Function<SinCos> {  // two outputs: several slots
  static tensor_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& w) {
    ctx->save_for_backward({x, w});
    return {x.sin() * w, x.cos()};
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &w = saved[1];
    return {grads[0] * x.cos() * w - grads[1] * x.sin(), grads[0] * x.sin()};
  }
};

TEST(Function, SeveralOutputs) {
  const auto f = [](const std::vector<Tensor>& in) {
    const auto out = SinCos::apply(in[0], in[1]);
    return out[0] * out[1];
  };
  expect_derivatives(f, {varied_leaf({3}, 1), varied_leaf({3}, 2)});
}

// An in-place operation takes a retained gradient along, and only its own tensor's.
TEST(Function, RetainedGradientsFollowInPlaceOperations) {
  for (size_t changed : {size_t{0}, size_t{1}}) {
    const Tensor x = leaf({0.5}), w = leaf({2});
    auto out = SinCos::apply(x, w);
    for (Tensor& t : out) t.retain_grad();
    out[changed].mul_(3);
    (out[0] * 5 + out[1] * 7).sum().backward();
    EXPECT_EQ(values(out[0].grad()), (Values{5})) << "output " << changed << " changed";
    EXPECT_EQ(values(out[1].grad()), (Values{7})) << "output " << changed << " changed";
  }
}

TEST(Function, MissingGradientsAreZeros) {
  const Tensor x = leaf({0.5}), w = leaf({2});
  SinCos::apply(x, w)[1].sum().backward();
  EXPECT_NEAR(values(x.grad())[0], -0.479425538604203, 1e-15);
  EXPECT_EQ(values(w.grad()), (Values{0}));
}

struct Wrong : Function<Wrong> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 1; }
  static tensor_list backward(AutogradContext*, tensor_list) { return {constant({1, 2, 3, 4, 5})}; }
};
struct TooMany : Function<TooMany> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 1; }
  static tensor_list backward(AutogradContext*, tensor_list g) { return {g[0], g[0]}; }
};
struct Wide : Function<Wide> {  // returns the broadcast gradient: it is summed
  static Tensor forward(AutogradContext*, const Tensor& x, const Tensor& like) {
    return x.expand_as(like).clone();
  }
  static tensor_list backward(AutogradContext*, tensor_list g) { return {g[0], Tensor()}; }
};

TEST(Function, ShapesOfGradientsAreChecked) {
  EXPECT_ERROR_TEXT(Wrong::apply(leaf({1, 2})).sum().backward(),
                    "returned an invalid gradient at index 0");
  EXPECT_ERROR_TEXT(TooMany::apply(leaf({1, 2})).sum().backward(), "incorrect number of gradients");
  const Tensor x = leaf({3});
  Wide::apply(x, constant({1, 2, 3, 4})).sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{4}));
}

struct Throws : Function<Throws> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 1; }
  static tensor_list backward(AutogradContext*, tensor_list) {
    throw std::domain_error("no gradient today");
  }
};

TEST(Function, ExceptionKeepsItsType) {
  EXPECT_THROW(Throws::apply(leaf({1})).sum().backward(), std::domain_error);
}

struct Inner : Function<Inner> {  // a backward inside backward
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list g) {
    EnableGradGuard on;
    const Tensor x = ctx->get_saved_variables()[0].detach().requires_grad_();
    (x * x * 3).sum().backward();
    return {g[0] * x.grad()};
  }
};

TEST(Function, BackwardInsideBackward) {
  const Tensor x = leaf({2});
  Inner::apply(x).sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{12}));
}

struct AddInPlace : Function<AddInPlace> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    x.add_(10);
    ctx->mark_dirty({x});
    return x;
  }
  static tensor_list backward(AutogradContext*, tensor_list g) { return {g[0] * 7}; }
};
struct Identity : Function<Identity> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static tensor_list backward(AutogradContext*, tensor_list g) { return {g[0] * 5}; }
};
struct Indices : Function<Indices> {
  static tensor_list forward(AutogradContext* ctx, const Tensor& x) {
    tensor_list out = {x * 2, x * 3};
    ctx->mark_non_differentiable({out[1]});
    return out;
  }
  static tensor_list backward(AutogradContext*, tensor_list g) { return {g[0] * 2}; }
};

TEST(Function, DirtyInputs) {
  const Tensor x = leaf({1});
  Tensor h = x * 3;
  const Tensor y = AddInPlace::apply(h);
  EXPECT_TRUE(y.is_same(h));
  EXPECT_EQ(values(h), (Values{13}));
  h.sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{21}));
}

// As in LibTorch: what was saved is gone. A function that reads nothing of it may run again.
TEST(Function, ASecondBackward) {
  const Tensor x = leaf({1.0, 2.0});
  const Tensor y = Identity::apply(x).sum();
  y.backward();
  y.backward();
  EXPECT_EQ(values(x.grad()), (Values{10, 10}));
  const Tensor z = Cube::apply(x, 2.0).sum();
  z.backward();
  EXPECT_THROW(z.backward(), Error);
}

TEST(Function, InputHandedThrough) {
  const Tensor x = leaf({1});
  const Tensor y = Identity::apply(x);
  EXPECT_FALSE(y.is_same(x));
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{5}));
}

TEST(Function, NonDifferentiableOutputs) {
  const auto out = Indices::apply(leaf({1}));
  EXPECT_TRUE(out[0].requires_grad());
  EXPECT_FALSE(out[1].requires_grad());
}

TEST(Function, SavedInputChangedLater) {
  const Tensor x = leaf({1});
  Tensor h = x * 2;
  const Tensor y = Cube::apply(h, 1.0);
  h.add_(1);
  EXPECT_ERROR_TEXT(y.sum().backward(), "modified by an inplace operation");
}

TEST(IValue, KindsAndErrors) {
  EXPECT_EQ(IValue(5.5).toDouble(), 5.5);
  EXPECT_EQ(IValue(7).toInt(), 7);
  EXPECT_TRUE(IValue(true).toBool());
  EXPECT_EQ(IValue("text").toStringRef(), "text");
  EXPECT_TRUE(IValue().isNone());
  const IValue tuple = std::make_tuple(leaf({2}), 3, std::string("x"));
  ASSERT_TRUE(tuple.isTuple() && tuple.toTuple()->elements().size() == 3);
  EXPECT_EQ(tuple.toTuple()->elements()[1].toInt(), 3);
  const List<Tensor> tensors{leaf({2})};
  EXPECT_TRUE(IValue(tensors).toTensorVector()[0].is_same(tensors.get(0)));
  EXPECT_EQ(IValue(List<double>{1.5}).toDoubleVector(), std::vector<double>{1.5});
  const IValue::GenericList any{1, "a"};
  EXPECT_TRUE(IValue(any).toList().is(any)) << "not a list of numbers or tensors: no copy";
  EXPECT_ERROR_TEXT(IValue(1.0).toInt(), "got double, expected int");
}

struct RawWrite : Function<RawWrite> {  // not through an operation
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    for (int i = 0; i < x.numel(); ++i) x.data_ptr<double>()[i] = 100;
    ctx->mark_dirty({x});
    return x;
  }
  static tensor_list backward(AutogradContext*, tensor_list g) { return {g[0] * 0}; }
};

TEST(Function, WhatIsDirtyHasANewVersion) {
  const Tensor w = leaf({1, 2}), x = w * 3;
  const Tensor y = (x * x).sum();  // its gradient would be 200 x
  RawWrite::apply(x);
  EXPECT_EQ(x._version(), 1);
  EXPECT_ERROR_TEXT(y.backward(), "has been modified by an inplace operation");
  const Tensor plain = constant({1});  // also where nothing is recorded
  RawWrite::apply(plain);
  EXPECT_EQ(plain._version(), 1);
}

struct Joined : Function<Joined> {  // the sum of i * list[i]
  static Tensor forward(AutogradContext*, TensorList list, const std::string&) {
    Tensor sum = list[0] * 0;
    for (size_t i = 0; i < list.size(); ++i) sum = sum + list[i] * static_cast<double>(i + 1);
    return sum;
  }
  static tensor_list backward(AutogradContext*, tensor_list g) {
    return {g[0], g[0] * 2, Tensor()};
  }
};

TEST(Function, TakesListsOfTensorsOfAnyKind) {
  const Tensor a = leaf({1}), b = leaf({2});
  const std::vector<Tensor> list = {a, b};
  const std::array<Tensor, 2> array = {a, b};
  const Tensor c_array[] = {a, b};
  const std::initializer_list<Tensor> braces = {a, b};
  const auto check = [&](const Tensor& y) {
    EXPECT_EQ(values(y), Values{5});
    const auto g = autograd::grad({y}, {a, b});
    EXPECT_EQ(values(g[0]), Values{1});
    EXPECT_EQ(values(g[1]), Values{2});
  };
  check(Joined::apply(TensorList(list), "list"));
  check(Joined::apply(list, std::string("vector")));
  check(Joined::apply(array, "array"));
  check(Joined::apply(c_array, "array"));
  check(Joined::apply(braces, "braces"));
}

// What apply() would overlook does not compile: this is what its static_assert asks.
template <class... T> constexpr bool all_hide = (autograd::detail::hides_tensors<T> && ...);
template <class... T> constexpr bool none_hides = !(autograd::detail::hides_tensors<T> || ...);
struct Step {
  double size;
  Tensor x;
};
struct Steps {
  int count;
  Step first;
};
struct Options {
  std::string name;
  std::vector<int64_t> sizes;
  std::optional<double> scale;
  std::unique_ptr<int> owned;
  std::function<Tensor(Tensor)> f;
};
struct Derived : Tensor {};
struct Unknown;
static_assert(all_hide<TensorBase, Derived, Tensor*, const Tensor*, const tensor_list*,
                       std::shared_ptr<Tensor>, std::unique_ptr<tensor_list>,
                       std::reference_wrapper<const Tensor>, std::pair<int, Tensor>,
                       std::tuple<int, tensor_list>, std::variant<int, Tensor>,
                       std::optional<tensor_list>, std::vector<std::optional<Tensor>>,
                       std::vector<tensor_list>, std::unordered_map<std::string, Tensor>, IValue,
                       Step, Steps, std::array<std::pair<int, Tensor>, 2>>);
static_assert(none_hides<Tensor, std::optional<Tensor>, tensor_list, TensorList, Tensor[2],
                         std::array<Tensor, 2>, std::initializer_list<Tensor>>);
static_assert(none_hides<int, double, bool, Scalar, std::string, const char*, char[4], IntArrayRef,
                         std::vector<int64_t>, std::nullopt_t, std::nullptr_t, void*, Unknown*,
                         TensorOptions, ScalarType, Options, std::function<Tensor(Tensor)>,
                         std::pair<int, int>, std::unordered_map<int, int>>);

struct Scaled : Function<Scaled> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& by) {
    ctx->save_for_backward({by});
    return x * by;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list g) {
    return {g[0] * ctx->get_saved_variables()[0], Tensor()};
  }
};

TEST(Function, InferenceTensorsCannotBeSaved) {
  const auto two = [] {
    const InferenceMode on;
    return constant({2});
  }();
  const Tensor x = leaf({3});
  EXPECT_ERROR_TEXT(Scaled::apply(x, two), "Inference tensors cannot be saved");
  EXPECT_EQ(values(Scaled::apply(x.detach(), two)), Values{6});  // nothing is recorded
  Scaled::apply(x, two.clone()).backward();
  EXPECT_EQ(values(x.grad()), Values{2});
}

// A view of what forward made is a tensor like others; one of an input would have two histories.
struct Reshaped : Function<Reshaped> {
  static Tensor forward(AutogradContext*, const Tensor& x, bool of_input) {
    return of_input ? x.view({2, 1}) : (x * 1).view({2, 1});
  }
  static tensor_list backward(AutogradContext*, tensor_list g) {
    return {g[0].view({2}) * 5, Tensor()};
  }
};

TEST(Function, ViewsAsResults) {
  const Tensor w = leaf({1, 2}), h = w * 1;
  const Tensor fresh = Reshaped::apply(h, false), view = Reshaped::apply(h, true);
  EXPECT_FALSE(fresh.is_view());
  fresh.mul_(2);
  EXPECT_ERROR_TEXT(view.mul_(2), "in the forward of a Function");
  (fresh + view).sum().backward();
  EXPECT_EQ(values(w.grad()), (Values{15, 15}));
  h.mul_(2);
  EXPECT_ERROR_TEXT(view * 2, "modified inplace");
}

TEST(Function, UndefinedGradEndsTheGraph) {
  const Tensor w = leaf({1, 2});
  const Tensor y = autograd::UndefinedGrad()({w * 3, Tensor()})[0];
  EXPECT_EQ(values(y), (Values{3, 6}));
  EXPECT_EQ(y.grad_fn()->name(), "UndefinedGradBackward");
  (y * w).sum().backward();
  EXPECT_EQ(values(w.grad()), (Values{3, 6}));  // y's own part is missing
  EXPECT_FALSE(autograd::UndefinedGrad().apply({constant({1})})[0].requires_grad());
  EXPECT_FALSE(autograd::UndefinedGradBackward().apply({w})[0].defined());
  const Tensor x = constant({5});
  autograd::UndefinedGrad()({x})[0].zero_();
  EXPECT_EQ(values(x), (Values{5})) << "a copy, as LibTorch's";
}

TEST(Function, DelayedErrorSaysItsMessageInBackward) {
  const Tensor w = leaf({1, 2});
  const tensor_list out = autograd::DelayedError("only once", 1)({w});
  EXPECT_EQ(values(out[0]), (Values{1, 2}));
  EXPECT_ERROR_TEXT(out[0].sum().backward(), "only once");
  EXPECT_ERROR_TEXT(autograd::DelayedError("", -1), "num_inputs");
}

}  // namespace
}  // namespace ramet
