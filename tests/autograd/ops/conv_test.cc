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

TEST(Conv2d, AsPyTorch) {
  const Tensor x = varied_leaf({1, 2, 4, 4}, 1), w = varied_leaf({2, 1, 2, 2}, 2),
               b = varied_leaf({2}, 3);
  const Tensor y = conv2d(x, w, b, 2, 1, 1, 2);
  expect_values(y, {0.488707843733211, 0.668901419739577, 0.997750839489855, 0.740121743328219,
                    0.190227483779519, 0.679312017473675, 1.10787106323675, 0.441456343277913,
                    0.538018289599944, 0.0248995033682354, 0.533628873437348, -0.656607574708873,
                    -0.28368773531578, -0.264956971992232, -0.710183653858015, -0.292455462911687,
                    -0.718780833932992, -0.0374443033768122});
  y.mul(varied({1, 2, 3, 3}, 4)).sum().backward();
  expect_values(x.grad().select(0, 0).select(0, 0),
                {0.243660713779115, 0.200395465480937, -0.619721685394393, -0.251337741022395,
                 -0.0425890861859159, 0.786990774429739, -0.469549025865413, -0.370889075951936,
                 -0.0861220550045181, 0.307035224933489, -0.949504454178026, -0.144698025136054,
                 -0.205673289896792, -0.813159762000993, 0.485162452377141, -0.0975507093370141});
  expect_values(w.grad(),
                {0.0978932734250785, -0.459181546341265, -2.30013360614113, -0.262994277740489,
                 -0.242420245576458, 0.102264098215853, 1.43394231353962, 1.028535015208});
  expect_values(b.grad(), {0.482674205303192, -1.583669090271});
}

TEST(Conv2d, NamedPadding) {
  const Tensor x = varied({1, 1, 3, 4}, 1), w = varied({1, 1, 2, 3}, 2);
  expect_values(conv2d(x, w, {}, 1, "same"),
                {-0.301059067538258, 2.07579239082276, -1.13863513540498, -1.38841833954604,
                 -0.283266756069299, -0.69026859311343, 0.935304015387062, 0.978185231667619,
                 -0.525337705813795, 0.801122109941015, -0.504531197142216, -0.461581747543613});
  expect_values(conv2d(x, w, {}, 1, "valid"), values(conv2d(x, w, {}, 1, 0)), 0);
  EXPECT_EQ(error_of([&] {
              conv2d(x, w, {}, 2, "same");
            }).find("[conv2d] padding='same' is not supported for strided"),
            0u);
  EXPECT_EQ(error_of([&] { conv2d(x, w, {}, 1, "full"); }).find("[conv2d] padding: got \"full\""),
            0u);
}

TEST(Conv2d, Derivatives) {
  expect_derivatives(
      [](const In& x) { return conv2d(x[0], x[1], x[2], 1, 1); },
      {varied_leaf({1, 2, 3, 3}, 1), varied_leaf({2, 2, 2, 2}, 2), varied_leaf({2}, 3)});
  expect_derivatives(
      [](const In& x) {
        return conv2d(x[0], x[1], {}, {2, 1}, {0, 1}, {1, 2}, 2);
      },
      {varied_leaf({1, 2, 4, 3}, 1), varied_leaf({2, 1, 3, 2}, 2)});
  expect_derivatives(
      [](const In& x) { return conv2d(x[0], x[1], x[2], 1, "same"); },
      {varied_leaf({1, 3, 2}, 1), varied_leaf({1, 1, 2, 2}, 2), varied_leaf({1}, 3)});
  expect_derivatives([](const In& x) { return conv1d(x[0], x[1], x[2], 2, 1); },
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

TEST(Conv2d, AnyInputLayoutAndDtype) {
  const Tensor x = varied({2, 3, 5, 6}, 1), w = varied({4, 3, 3, 3}, 2),
               want = conv2d(x, w, {}, 2, 1);
  expect_values(conv2d(x.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2}), w, {}, 2, 1),
                values(want), 1e-13);
  expect_values(conv2d(x.transpose(2, 3).contiguous().transpose(2, 3),
                       w.transpose(0, 1).contiguous().transpose(0, 1), {}, 2, 1),
                values(want), 1e-13);
  expect_values(conv2d(x.select(0, 0), w, {}, 2, 1), values(want.select(0, 0)), 0);
  for (ScalarType t : {kFloat, kHalf, kBFloat16}) {
    const Tensor y = conv2d(x.to(t), w.to(t), zeros(4, t), 2, 1);
    EXPECT_EQ(y.scalar_type(), t);
    expect_values(y.to(kDouble), values(want), t == kFloat ? 1e-5 : t == kHalf ? 1e-2 : 5e-2);
  }
  for (ScalarType t : {kLong, kInt, kChar})
    expect_values(conv2d(ones({1, 1, 3, 3}, t), ones({1, 1, 2, 2}, t)).to(kDouble), {4, 4, 4, 4},
                  0);
  EXPECT_THROW(conv2d(ones({1, 1, 3, 3}, kBool), ones({1, 1, 2, 2}, kBool)), NotImplementedError);
  EXPECT_EQ(conv2d(zeros({0, 3, 5, 6}), zeros({4, 3, 3, 3})).sizes().vec(),
            (std::vector<int64_t>{0, 4, 3, 4}));
}

TEST(Conv2d, Errors) {
  const Tensor x = varied({1, 2, 4, 4}), w = varied({2, 2, 3, 3});
  EXPECT_EQ(error_of([&] {
              conv2d(x, varied({2, 3, 3, 3}));
            }).find("[conv2d] Given groups=1, weight of size [2, 3, 3, 3], expected input"),
            0u);
  EXPECT_EQ(error_of([&] {
              conv2d(x, varied({2, 2, 5, 5}));
            }).find("[conv2d] Calculated padded input size per channel: (4 x 4)"),
            0u);
  EXPECT_EQ(error_of([&] { conv2d(x, w, {}, 0); }).find("[conv2d] stride: got 0"), 0u);
  EXPECT_EQ(error_of([&] { conv2d(x, w, {}, 1, -1); }).find("[conv2d] padding: got -1"), 0u);
  EXPECT_EQ(error_of([&] {
              conv2d(x, w, {}, {1, 1, 1});
            }).find("[conv2d] stride: got [1, 1, 1]"),
            0u);
  EXPECT_EQ(error_of([&] { conv2d(x, w, varied({3})); }).find("[conv2d] bias"), 0u);
  const auto types = [&](const Tensor& in, const Tensor& weight, const Tensor& b) {
    return error_of([&] { conv2d(in, weight, b); });
  };
  expect_part(types(x.to(kByte), w.to(kFloat), {}),
              "[conv2d] Input type (uint8) and weight type (float32) should be the same: got input "
              "uint8[1, 2, 4, 4] on cpu and weight float32[2, 2, 3, 3] on cpu");
  expect_part(types(x, w, zeros({2})), "Input type (float64) and bias type (float32) should be");
  // Channels as the caller has them.
  const Tensor kernel = varied({8, 1, 3, 3});
  expect_part(
      error_of([&] {
        conv2d(varied({64, 28, 27}), kernel);
      }),
      "[conv2d] Given groups=1, weight of size [8, 1, 3, 3], expected input to have 1 "
      "channels, but got 64 channels instead: got input float64[64, 28, 27] on cpu, which is "
      "one sample without a batch: its dimension 0 has the channels");
  const std::string batched = error_of([&] { conv2d(varied({1, 1, 5, 5}), w); });
  expect_part(batched,
              "to have 2 channels, but got 1 channels instead: got input float64[1, 1, 5, 5]");
  EXPECT_EQ(batched.find("without a batch"), std::string::npos);
  expect_part(error_of([&] {
                conv1d(varied({3, 9}), varied({4, 2, 3}));
              }),
              "but got 3 channels instead: got input float64[3, 9] on cpu, which is one sample");
  expect_part(error_of([&] {
                conv2d(x, varied({2, 1, 3, 3}), {}, 1, 0, 1, 3);
              }),
              "[conv2d] Given groups=3, expected weight to be divisible by 3 at dimension 0");
  EXPECT_EQ(error_of([&] {
              conv2d(varied({2, 4}), w);
            }).find("[conv2d] Expected 3D (unbatched) or 4D (batched) input"),
            0u);
  EXPECT_EQ(error_of([&] { conv1d(x, w); }).find("[conv1d] weight"), 0u);
  EXPECT_EQ(error_of([&] {
              conv3d(varied({1, 2, 3, 3}), varied({2, 1, 2, 2, 4}));
            }).find("[conv3d] Calculated padded input size per channel: (2 x 3 x 3). Kernel"),
            0u);
}

// What LibTorch says, where it says something (with padding 4, oneDNN does).
TEST(ConvTranspose, Errors) {
  const Tensor x = varied({1, 2, 4, 4}), w = varied({2, 3, 3, 3});
  const auto error = [&](IntArrayRef stride, IntArrayRef padding, IntArrayRef more, int64_t groups,
                         IntArrayRef dilation) {
    return error_of([&] { conv_transpose2d(x, w, {}, stride, padding, more, groups, dilation); });
  };
  EXPECT_EQ(error(2, 0, 2, 1, 1)
                .find("[conv_transpose2d] output padding must be smaller than "
                      "either stride or dilation, but got output_padding 2"),
            0u);
  EXPECT_EQ(error(1, 0, 1, 1, 2), "no error");
  EXPECT_EQ(error(1, 0, -1, 1, 1).find("[conv_transpose2d] output_padding: got -1"), 0u);
  EXPECT_EQ(
      error(1, 4, 0, 1, 1)
          .find("[conv_transpose2d] Calculated output size per channel: (-2 x -2). Output size"),
      0u);
  EXPECT_EQ(error(INT64_MAX, 0, 0, 1, INT64_MAX)
                .find("[conv_transpose2d] Calculated output size per channel: (more than "
                      "9223372036854775807 x"),
            0u);
  EXPECT_EQ(error(1, INT64_MAX, 0, 1, 1)
                .find("[conv_transpose2d] Calculated output size per channel: (less than "
                      "-9223372036854775808 x"),
            0u);
  EXPECT_EQ(error(INT64_MIN, 0, 0, 1, 1).find("[conv_transpose2d] stride: got -92"), 0u);
  EXPECT_EQ(error(1, 0, 0, 4, 1).find("[conv_transpose2d] Given groups=4, expected weight to be"),
            0u);
  EXPECT_EQ(error(1, 0, 0, INT64_MAX, 1).find("[conv_transpose2d] Given groups="), 0u);
  EXPECT_EQ(error_of([&] {
              conv_transpose2d(x, varied({3, 2, 3, 3}));
            })
                .find("[conv_transpose2d] Given transposed=1, weight of size [3, 2, 3, 3], "
                      "expected input to have 3 channels"),
            0u);
  EXPECT_EQ(error_of([&] { conv_transpose2d(x, w, varied({2})); }).find("[conv_transpose2d] bias"),
            0u);
  expect_part(
      error_of([&] { conv_transpose2d(x, w.to(kFloat)); }),
      "[conv_transpose2d] Input type (float64) and weight type (float32) should be the same");
  EXPECT_EQ(error_of([&] {
              conv_transpose3d(x, w);
            }).find("[conv_transpose3d] weight: got float64[2, 3, 3, 3] on cpu, expected 5"),
            0u);
  EXPECT_THROW(conv_transpose2d(x.to(kBool), w.to(kBool)), NotImplementedError);
}

// Rows that no tap reaches are the bias, however far from each other the others are.
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
