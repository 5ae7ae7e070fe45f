// Convolution as a public operation. Values: tests/kernels/image/conv2d_test.cc.
#include "autograd/ops/layers/conv.h"

#include "autograd/autograd.h"
#include "autograd/graph/layout.h"
#include "autograd/graph/node.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using In = std::vector<Tensor>;

TEST(Conv2d, NamedPadding) {
  const Tensor x = varied({1, 1, 3, 4}, 1), w = varied({1, 1, 2, 3}, 2);
  expect_values(conv2d(x, w, {}, 1, "same"),
                {-0.301059067538258, 2.07579239082276, -1.13863513540498, -1.38841833954604,
                 -0.283266756069299, -0.69026859311343, 0.935304015387062, 0.978185231667619,
                 -0.525337705813795, 0.801122109941015, -0.504531197142216, -0.461581747543613});
  expect_values(conv2d(x, w, {}, 1, "valid"), values(conv2d(x, w, {}, 1, 0)), 0);
  EXPECT_ERROR_START(conv2d(x, w, {}, 2, "same"),
                     "[conv2d] padding='same' is not supported for strided");
  EXPECT_ERROR_START(conv2d(x, w, {}, 1, "full"), "[conv2d] padding: got \"full\"");
}

TEST(Conv2d, Derivatives) {
  expect_derivatives(OF_X(conv2d(x[0], x[1], {}, {2, 1}, {0, 1}, {1, 2}, 2)),
                     {varied_leaf({1, 2, 4, 3}, 1), varied_leaf({2, 1, 3, 2}, 2)});
  expect_derivatives(
      OF_X(conv2d(x[0], x[1], x[2], 1, "same")),
      {varied_leaf({1, 3, 2}, 1), varied_leaf({1, 1, 2, 2}, 2), varied_leaf({1}, 3)});
  expect_derivatives(OF_X(conv1d(x[0], x[1], x[2], 2, 1)),
                     {varied_leaf({1, 2, 5}, 1), varied_leaf({2, 2, 3}, 2), varied_leaf({2}, 3)});
}

TEST(Conv2d, OneGradientAtATime) {
  const auto run = [](bool dx, bool dw, bool db) {
    const Tensor x = varied({2, 2, 4, 4}, 1).requires_grad_(dx),
                 w = varied({3, 2, 3, 3}, 2).requires_grad_(dw),
                 b = varied({3}, 3).requires_grad_(db);
    conv2d(x, w, b, 1, 1).mul(varied({2, 3, 4, 4}, 4)).sum().backward();
    EXPECT_EQ(x.grad().defined(), dx);
    EXPECT_EQ(w.grad().defined(), dw);
    EXPECT_EQ(b.grad().defined(), db);
    return std::array<std::vector<double>, 3>{dx ? values(x.grad()) : std::vector<double>(),
                                              dw ? values(w.grad()) : std::vector<double>(),
                                              db ? values(b.grad()) : std::vector<double>()};
  };
  const auto all = run(true, true, true);
  EXPECT_EQ(run(true, false, false)[0], all[0]);
  EXPECT_EQ(run(false, true, false)[1], all[1]);
  const auto bias = run(false, false, true)[2];
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(bias[i], all[2][i], 1e-13);
}

// Float results lie channels-last inside, and their users do not see it.
TEST(Conv2d, FloatResultsShowRowMajorStrides) {
  const Tensor x = varied({2, 3, 6, 5}, 1).to(kFloat).requires_grad_(),
               w = varied({4, 3, 3, 3}, 2).to(kFloat).requires_grad_();
  const Tensor y = conv2d(x, w, {}, 1, 1), want = conv2d(x.to(kDouble), w.to(kDouble), {}, 1, 1);
  EXPECT_TRUE(autograd::is_channels_last(y));
  expect_values(y, values(want), 1e-5);
  EXPECT_TRUE(y.is_contiguous());
  EXPECT_EQ(y.strides().vec(), (std::vector<int64_t>{120, 30, 5, 1}));
  EXPECT_FALSE(autograd::is_channels_last(y));
  expect_values(y, values(want), 1e-5);
  EXPECT_EQ(y.view({2, 120}).size(1), 120);
  // A stack of two keeps the layout in between.
  const Tensor w2 = varied({2, 4, 3, 3}, 3).to(kFloat);
  const Tensor z = conv2d(conv2d(x, w, {}, 1, 1).relu(), w2, {}, 2),
               reference = conv2d(want.relu(), w2.to(kDouble), {}, 2);
  expect_values(z, values(reference), 1e-5);
  z.sum().backward();
  const Tensor xd = x.detach().to(kDouble).requires_grad_(),
               wd = w.detach().to(kDouble).requires_grad_();
  conv2d(conv2d(xd, wd, {}, 1, 1).relu(), w2.to(kDouble), {}, 2).sum().backward();
  expect_values(x.grad(), values(xd.grad()), 1e-4);
  expect_values(w.grad(), values(wd.grad()), 1e-4);
}

// In bfloat16 results and gradients are those of float64, rounded once: half a unit in the last of
// eight places. (Sums in float err far less.)
TEST(Conv2d, BfloatRoundsOnce) {
  const auto check = [](bool transposed, int64_t channels, int64_t groups, int64_t stride) {
    SCOPED_TRACE(detail::join(transposed, " ", channels, " ", groups, " ", stride));
    const auto leaves = [&](ScalarType t) {
      return In{varied({2, channels, 6, 5}, 1).to(kBFloat16).to(t).requires_grad_(),
                varied({channels, channels / groups, 3, 3}, 2).to(kBFloat16).to(t).requires_grad_(),
                varied({channels}, 3).to(kBFloat16).to(t).requires_grad_()};
    };
    const auto run = [&](const In& in) {
      const Tensor y = transposed ? conv_transpose2d(in[0], in[1], in[2], stride, 1, 0, groups)
                                  : conv2d(in[0], in[1], in[2], stride, 1, 1, groups);
      y.backward(varied(y.sizes().vec(), 4).to(kBFloat16).to(y.scalar_type()));
      return In{y.detach(), in[0].grad(), in[1].grad(), in[2].grad()};
    };
    const In got = run(leaves(kBFloat16)), want = run(leaves(kDouble));
    for (size_t r = 0; r < got.size(); ++r) {
      EXPECT_EQ(got[r].scalar_type(), kBFloat16);
      const std::vector<double> g = values(got[r].to(kDouble)), w = values(want[r]);
      for (size_t i = 0; i < g.size(); ++i)
        ASSERT_NEAR(g[i], w[i], std::fabs(w[i]) * 0x1.01p-8 + 1e-5) << "result " << r << ", " << i;
    }
  };
  for (bool transposed : {false, true}) {
    check(transposed, 8, 1, 1);
    check(transposed, 9, 1, 2);
    check(transposed, 64, 2, 1);
    check(transposed, 4, 2, 1);  // converted to float
  }
}

TEST(Conv2d, BfloatHasSecondDerivativesAndALayoutInside) {
  const Tensor x = varied({2, 8, 6, 5}, 1).to(kBFloat16).requires_grad_(),
               w = varied({8, 8, 3, 3}, 2).to(kBFloat16).requires_grad_();
  const Tensor y = conv2d(x, w, {}, 1, 1);
  EXPECT_TRUE(autograd::is_channels_last(y));
  const Tensor dx = autograd::grad({y.square().sum()}, {x}, {}, {}, true)[0];
  EXPECT_EQ(dx.scalar_type(), kBFloat16);
  const Tensor second = autograd::grad({dx.square().sum()}, {w})[0];
  const Tensor xd = x.detach().to(kDouble).requires_grad_(),
               wd = w.detach().to(kDouble).requires_grad_();
  const Tensor dxd =
                   autograd::grad({conv2d(xd, wd, {}, 1, 1).square().sum()}, {xd}, {}, {}, true)[0],
               want = autograd::grad({dxd.square().sum()}, {wd})[0];
  double size = 0;
  for (double v : values(want)) size = std::max(size, std::fabs(v));
  expect_values(second.to(kDouble), values(want), 0.03 * size);
}

TEST(Conv2d, Errors) {
  const Tensor x = varied({1, 2, 4, 4}), w = varied({2, 2, 3, 3});
  EXPECT_ERROR_START(conv2d(x, varied({2, 3, 3, 3})),
                     "[conv2d] Given groups=1, weight of size [2, 3, 3, 3], expected input");
  EXPECT_ERROR_START(conv2d(x, varied({2, 2, 5, 5})),
                     "[conv2d] Calculated padded input size per channel: (4 x 4)");
  EXPECT_ERROR_START(conv2d(x, w, {}, 0), "[conv2d] stride: got 0");
  EXPECT_ERROR_START(conv2d(x, w, {}, 1, -1), "[conv2d] padding: got -1");
  EXPECT_ERROR_START(conv2d(x, w, {}, {1, 1, 1}), "[conv2d] stride: got [1, 1, 1]");
  EXPECT_ERROR_START(conv2d(x, w, varied({3})), "[conv2d] bias");
  const auto types = [&](const Tensor& in, const Tensor& weight, const Tensor& b) {
    return error_of([&] { conv2d(in, weight, b); });
  };
  expect_part(types(x.to(kByte), w.to(kFloat), {}),
              "[conv2d] Input type (uint8) and weight type (float32) should be the same: got input "
              "uint8[1, 2, 4, 4] on cpu and weight float32[2, 2, 3, 3] on cpu");
  expect_part(types(x, w, zeros({2})), "Input type (float64) and bias type (float32) should be");
  // Channels as the caller has them.
  const Tensor kernel = varied({8, 1, 3, 3});
  EXPECT_ERROR_TEXT(
      conv2d(varied({64, 28, 27}), kernel),
      "[conv2d] Given groups=1, weight of size [8, 1, 3, 3], expected input to have 1 "
      "channels, but got 64 channels instead: got input float64[64, 28, 27] on cpu, which is "
      "one sample without a batch: its dimension 0 has the channels");
  const std::string batched = error_of([&] { conv2d(varied({1, 1, 5, 5}), w); });
  expect_part(batched,
              "to have 2 channels, but got 1 channels instead: got input float64[1, 1, 5, 5]");
  EXPECT_EQ(batched.find("without a batch"), std::string::npos);
  EXPECT_ERROR_TEXT(
      conv1d(varied({3, 9}), varied({4, 2, 3})),
      "but got 3 channels instead: got input float64[3, 9] on cpu, which is one sample");
  EXPECT_ERROR_TEXT(conv2d(x, varied({2, 1, 3, 3}), {}, 1, 0, 1, 3),
                    "[conv2d] Given groups=3, expected weight to be divisible by 3 at dimension 0");
  EXPECT_ERROR_START(conv2d(varied({2, 4}), w),
                     "[conv2d] Expected 3D (unbatched) or 4D (batched) input");
  EXPECT_ERROR_START(conv1d(x, w), "[conv1d] weight");
  EXPECT_ERROR_START(conv3d(varied({1, 2, 3, 3}), varied({2, 1, 2, 2, 4})),
                     "[conv3d] Calculated padded input size per channel: (2 x 3 x 3). Kernel");
}

// What LibTorch says, where it says something (with padding 4, oneDNN does).
TEST(ConvTranspose, Errors) {
  const Tensor x = varied({1, 2, 4, 4}), w = varied({2, 3, 3, 3});
  const auto error = [&](int64_t stride, int64_t padding, int64_t more, int64_t groups,
                         int64_t dilation) {
    return error_of([&] { conv_transpose2d(x, w, {}, stride, padding, more, groups, dilation); });
  };
  EXPECT_EQ(error(1, 0, 1, 1, 2), "no error");
  const struct {
    int64_t stride, padding, more, groups, dilation;
    const char* text;
  } cases[] = {
      {2, 0, 2, 1, 1,
       "output padding must be smaller than either stride or dilation, but got output_padding 2"},
      {1, 0, -1, 1, 1, "output_padding: got -1"},
      {1, 4, 0, 1, 1, "Calculated output size per channel: (-2 x -2). Output size"},
      {INT64_MAX, 0, 0, 1, INT64_MAX,
       "Calculated output size per channel: (more than 9223372036854775807 x"},
      {1, INT64_MAX, 0, 1, 1,
       "Calculated output size per channel: (less than -9223372036854775808 x"},
      {INT64_MIN, 0, 0, 1, 1, "stride: got -92"},
      {1, 0, 0, 4, 1, "Given groups=4, expected weight to be"},
      {1, 0, 0, INT64_MAX, 1, "Given groups="},
  };
  for (const auto& c : cases) {
    const std::string text = error(c.stride, c.padding, c.more, c.groups, c.dilation);
    EXPECT_EQ(text.find(std::string("[conv_transpose2d] ") + c.text), 0u) << text;
  }
  EXPECT_ERROR_START(conv_transpose2d(x, varied({3, 2, 3, 3})),
                     "[conv_transpose2d] Given transposed=1, weight of size [3, 2, 3, 3], "
                     "expected input to have 3 channels");
  EXPECT_ERROR_START(conv_transpose2d(x, w, varied({2})), "[conv_transpose2d] bias");
  EXPECT_ERROR_TEXT(
      conv_transpose2d(x, w.to(kFloat)),
      "[conv_transpose2d] Input type (float64) and weight type (float32) should be the same");
  EXPECT_ERROR_START(conv_transpose3d(x, w),
                     "[conv_transpose3d] weight: got float64[2, 3, 3, 3] on cpu, expected 5");
  EXPECT_THROW(conv_transpose2d(x.to(kBool), w.to(kBool)), NotImplementedError);
}

TEST(Convolution, Errors) {
  const Tensor x = zeros({2, 3, 5}), w = zeros({4, 3, 2});
  const auto call = [](const Tensor& in, const Tensor& weight, IntArrayRef more) {
    convolution(in, weight, {}, 1, 0, 1, true, more, 1);
  };
  EXPECT_ERROR_TEXT(call(x, zeros({3, 4}), 0), "expected 3, 4 or 5 dimensions");
  EXPECT_ERROR_TEXT(call(x[0], w, 0), "Expected 3-dimensional input for 3-dimensional weight");
  EXPECT_ERROR_TEXT(call(x, zeros({3, 4, 2}), -1), "negative output_padding is not supported");
  EXPECT_ERROR_TEXT(call(Tensor(), w, 0), "undefined tensor");
  EXPECT_ERROR_TEXT(conv_tbc(x[0], w, zeros({2})), "Input must have 3 dims");
  EXPECT_ERROR_TEXT(conv_tbc(x, w[0], zeros({2})), "Weight tensor must have 3 dims");
  EXPECT_ERROR_TEXT(conv_tbc(x, zeros({2, 5, 4}), zeros({3})), "bias");
  EXPECT_ERROR_TEXT(conv_tbc(x, zeros({2, 5, 4}), zeros({4}), INT64_MIN), "padding");
}

// Rows that no tap reaches are the bias, however far from each other the others are.
TEST(ConvTranspose, FarApart) {
  const Tensor x = varied_leaf({1, 1, 2, 2}, 1), w = varied_leaf({1, 1, 1, 1}, 2),
               b = varied_leaf({1}, 3);
  const Tensor y = conv_transpose2d(x, w, b, 500, 3);
  EXPECT_EQ(y.sizes(), IntArrayRef({1, 1, 495, 495}));
  const double bias = b.item<double>();
  expect_values(y.select(2, 0).flatten(), std::vector<double>(495, bias), 0);
  expect_values(conv_transpose2d(x, w, b, 500).select(2, 500).select(2, 500),
                {bias + x.flatten().select(0, 3).item<double>() * w.item<double>()});
  y.sum().backward();
  expect_values(x.grad(), {0, 0, 0, 0}, 0);
  expect_values(b.grad(), {495 * 495}, 0);
}

}  // namespace
}  // namespace ramet
