// gradcheck and gradgradcheck, on which the tests of all derivatives depend. They refuse what is
// wrong and name the place, and they accept what is right within the tolerance.
#include "autograd/gradcheck.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/graph/function.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using autograd::AutogradContext;
using autograd::Function;
using autograd::gradcheck;
using autograd::GradcheckOptions;
using autograd::gradgradcheck;
using autograd::tensor_list;
using Tensors = std::vector<Tensor>;

// 3 x, with a backward that gives 3 + error at one element (all elements for -1).
struct Triple : Function<Triple> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double error, int64_t at) {
    ctx->saved_data["error"] = error;
    ctx->saved_data["at"] = at;
    return x * 3;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list g) {
    const double error = ctx->saved_data["error"].toDouble();
    const int64_t at = ctx->saved_data["at"].toInt();
    Tensor out = g[0] * 3;
    if (at < 0) out = g[0] * (3 + error);
    else out.select(0, at).add_(g[0].select(0, at) * error);
    return {out, Tensor(), Tensor()};
  }
};
// x^2 with a right first derivative and a lost second one.
struct Square : Function<Square> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list g) {
    return {g[0] * 2 * ctx->get_saved_variables()[0].detach()};
  }
};
// x y; of its gradients the one of `lost` has no history.
struct Product : Function<Product> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y, int64_t lost) {
    ctx->save_for_backward({x, y});
    ctx->saved_data["lost"] = lost;
    return x * y;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list g) {
    const auto saved = ctx->get_saved_variables();
    tensor_list out = {g[0] * saved[1], g[0] * saved[0], Tensor()};
    const int64_t lost = ctx->saved_data["lost"].toInt();
    if (lost >= 0) out[static_cast<size_t>(lost)] = out[static_cast<size_t>(lost)].detach();
    return out;
  }
};
// A gradient that differs from call to call.
struct Unsteady : Function<Unsteady> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 1; }
  static tensor_list backward(AutogradContext*, tensor_list g) {
    static int calls = 0;
    return {g[0] * (1 + 1e-9 * ++calls)};
  }
};

auto triple(double error, int64_t at = -1) {
  return [=](const Tensors& in) { return Tensors{Triple::apply(in[0], error, at)}; };
}
TEST(Gradcheck, WrongDerivativesAreRefused) {
  EXPECT_TRUE(gradcheck(triple(0), {leaf({1, 2, 4})}));
  EXPECT_ERROR_TEXT(gradcheck(triple(0.1), {leaf({1, 2, 4})}),
                    "[gradcheck] Jacobian mismatch for output 0 element 0 with respect to input 0 "
                    "element 0: numerical ");
  for (int64_t at : {0, 1, 2}) {
    const std::string e = std::to_string(at);
    EXPECT_ERROR_TEXT(gradcheck(triple(-0.1, at), {leaf({1, 2, 4})}),
                      "output 0 element " + e + " with respect to input 0 element " + e);
  }
  // The wrong one of two outputs and of two inputs; outputs without a gradient count.
  const auto several = [](const Tensors& in) {
    return Tensors{in[0] + in[1], in[0].detach(), Triple::apply(in[1], 1.0, int64_t{1})};
  };
  EXPECT_ERROR_TEXT(gradcheck(several, {leaf({1, 2}), leaf({3, 4})}),
                    "output 2 element 1 with respect to input 1 element 1");
}

TEST(Gradcheck, Tolerance) {
  const Tensors in = {leaf({1, 2})};
  EXPECT_TRUE(gradcheck(triple(2.5e-3), in)) << "rtol |numeric| = 3e-3";
  EXPECT_TRUE(gradcheck(triple(-2.5e-3), in));
  EXPECT_ERROR_TEXT(gradcheck(triple(3.5e-3), in), "mismatch");
  EXPECT_ERROR_TEXT(gradcheck(triple(-3.5e-3), in), "mismatch");
  // Where the derivative is 0, atol = 1e-5 alone counts.
  const auto cancelled = [](double error) {
    return [=](const Tensors& x) {
      return Tensors{Triple::apply(x[0], error, int64_t{-1}) - x[0] * 3};
    };
  };
  EXPECT_TRUE(gradcheck(cancelled(0.5e-5), in));
  EXPECT_ERROR_TEXT(gradcheck(cancelled(2e-5), in), "mismatch");
  GradcheckOptions strict;
  strict.rtol = 1e-5;
  EXPECT_ERROR_TEXT(gradcheck(triple(2.5e-3), in, strict), "mismatch");
  GradcheckOptions coarse;  // (x + h)^3 - (x - h)^3 = 2 h (3 x^2 + h^2)
  coarse.eps = 1;
  EXPECT_ERROR_TEXT(gradcheck([](const Tensors& x) { return Tensors{x[0].pow(3)}; }, in, coarse),
                    "element 0: numerical 4, analytical 3");
}

TEST(Gradcheck, NoException) {
  GradcheckOptions quiet;
  quiet.raise_exception = false;
  EXPECT_FALSE(gradcheck(triple(1), {leaf({1, 2})}, quiet));
  EXPECT_TRUE(gradcheck(triple(0), {leaf({1, 2})}, quiet));
  const auto square = [](const Tensors& in) { return Tensors{Square::apply(in[0])}; };
  EXPECT_FALSE(gradgradcheck(square, {leaf({1, 2})}, {}, quiet));
}

TEST(Gradcheck, TwoBackwardsMustAgree) {
  const auto f = [](const Tensors& in) { return Tensors{Unsteady::apply(in[0])}; };
  EXPECT_ERROR_TEXT(
      gradcheck(f, {leaf({1, 2})}),
      "Backward is not reentrant: two calls give different bits for output 0, input 0");
  GradcheckOptions once;
  once.check_repeat = false;
  EXPECT_TRUE(gradcheck(f, {leaf({1, 2})}, once));
}

TEST(Gradcheck, Inputs) {
  const auto sum = [](const Tensors& in) { return Tensors{in[0].to(kDouble) + in[1]}; };
  const Tensor x = leaf({1, 2});
  EXPECT_TRUE(gradcheck(sum, {constant({3, 4}).to(kFloat), x})) << "only those that require grad";
  const Tensor strided = varied({2, 2}).select(1, 0).detach().requires_grad_();
  ASSERT_FALSE(strided.is_contiguous());
  EXPECT_ERROR_TEXT(gradcheck(sum, {strided, x}), "must be contiguous float64: got ");
  EXPECT_ERROR_TEXT(gradcheck(sum, {constant({3, 4}).to(kFloat).requires_grad_(), x}),
                    "must be contiguous float64: got ");
  EXPECT_ERROR_TEXT(gradcheck(sum, {constant({1, 2}), constant({1, 2})}),
                    "expects at least one input that requires grad");
  EXPECT_ERROR_TEXT(gradcheck([](const Tensors& in) { return Tensors{in[0].detach()}; }, {x}),
                    "no output requires grad");
  EXPECT_EQ(values(x), (std::vector<double>{1, 2})) << "the inputs are put back";
  // An input that no output depends on has the gradient 0, also where backward gives none.
  EXPECT_TRUE(gradcheck([](const Tensors& in) { return Tensors{in[0] * 2}; }, {x, leaf({5})}));
}

TEST(Gradcheck, InputsArePutBackWhereTheFunctionThrows) {
  const Tensor x = leaf({1, 2, 4});
  GradcheckOptions quiet;
  quiet.raise_exception = false;
  for (int last : {1, 2, 3, 6}) {  // the first call is not a moved one
    int calls = 0;
    const auto f = [&](const Tensors& in) {
      if (calls++ == last) fail("f", "has enough");
      return Tensors{in[0] * 2};
    };
    EXPECT_ERROR_TEXT(gradcheck(f, {x}), "has enough");
    EXPECT_EQ(values(x), (std::vector<double>{1, 2, 4})) << last;
    calls = 0;
    EXPECT_FALSE(gradcheck(f, {x}, quiet));
    EXPECT_EQ(values(x), (std::vector<double>{1, 2, 4})) << last;
    calls = 0;
    EXPECT_FALSE(gradgradcheck(f, {x}, {}, quiet));
    EXPECT_EQ(values(x), (std::vector<double>{1, 2, 4})) << last;
  }
}

TEST(Gradcheck, NotANumberOnBothSidesAgrees) {
  EXPECT_TRUE(gradcheck([](const Tensors& in) { return Tensors{in[0] * NAN}; }, {leaf({1, 2})}));
}

TEST(Gradgradcheck, SecondDerivatives) {
  const auto lost = [](const Tensors& in) { return Tensors{Square::apply(in[0])}; };
  const auto kept = [](const Tensors& in) { return Tensors{in[0] * in[0] * in[1]}; };
  EXPECT_TRUE(gradcheck(lost, {leaf({1, 2})}));
  EXPECT_ERROR_TEXT(gradgradcheck(lost, {leaf({1, 2})}), "[gradgradcheck] Jacobian mismatch");
  EXPECT_TRUE(gradgradcheck(kept, {leaf({1, 2}), leaf({3, 4})}));
  EXPECT_TRUE(gradgradcheck(kept, {leaf({1, 2}), leaf({3, 4})}, {leaf({2, 5})}));
  EXPECT_ERROR_TEXT(gradgradcheck(kept, {leaf({1, 2}), leaf({3, 4})}, {leaf({1, 1}), leaf({1, 1})}),
                    "grad_outputs: got 2, expected 1");
  EXPECT_ERROR_TEXT(gradgradcheck(kept, {constant({1}), constant({2})}), "no output requires grad");
}

TEST(Gradgradcheck, AGradientWithoutHistoryMustBeConstant) {
  const auto product = [](int64_t lost) {
    return [=](const Tensors& in) { return Tensors{Product::apply(in[0], in[1], lost)}; };
  };
  const Tensors in = {leaf({1, 2}), leaf({3, 4})};
  EXPECT_TRUE(gradgradcheck(product(-1), in));
  for (int64_t lost : {0, 1}) {
    EXPECT_TRUE(gradcheck(product(lost), in)) << "the gradient itself is right";
    // The gradient of x is g y, of y it is g x: first seen with the other one moved.
    EXPECT_ERROR_TEXT(gradgradcheck(product(lost), in),
                      "[gradgradcheck] output " + std::to_string(lost) +
                          " does not require grad, but its element 0 depends on input " +
                          std::to_string(1 - lost) + " element 0: numerical ");
  }
  // Zeros, and none at all, are constant.
  EXPECT_TRUE(gradgradcheck(
      [](const Tensors& x) {
        return Tensors{x[0] * x[0] + x[1].sign(), x[0].detach() * 2};
      },
      {leaf({1, 2}), leaf({3, 4}), leaf({5})}));
}

}  // namespace
}  // namespace ramet
