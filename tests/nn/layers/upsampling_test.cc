// What changes resolution: which operation a mode calls, odd scales, bytes, layouts, refusals.
// Numbers: tests/nn/goldens.
#include "nn/layers/image/upsampling.h"

#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/graph/layout.h"
#include "autograd/ops/layers/pool.h"
#include "autograd/ops/layers/pool3d.h"
#include "autograd/ops/layers/upsample.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/random/random.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "nn/module/sequential.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

namespace F = functional;
using O = F::InterpolateFuncOptions;
using D = std::vector<double>;
using I = std::vector<int64_t>;

// Each branch that tests/nn/goldens does not take, as the operation it calls (their numbers:
// tests/autograd/table).
TEST(Interpolate, CallsItsOperation) {
  const Tensor line = sines(30).reshape({2, 3, 5}), image = sines(60).reshape({1, 2, 5, 6}),
               solid = sines(60).reshape({1, 2, 2, 3, 5});
  const auto by = [](D factors) { return O().scale_factor(std::move(factors)); };
  using S = std::optional<double>;
  const auto to = [](I sizes) { return O().size(std::move(sizes)); };
  const struct {
    const char* name;
    Tensor x;
    O options;
    Tensor expected;
  } rows[] = {
      {"nearest, 1-d", line, by({1.7}), upsample_nearest1d(line, 8, S(1.7))},
      {"nearest, 2-d", image, by({1.5, 1.7}), upsample_nearest2d(image, {7, 10}, 1.5, 1.7)},
      {"nearest, 3-d", solid, by({2.4, 1.5, 1.3}),
       upsample_nearest3d(solid, {4, 4, 6}, 2.4, 1.5, 1.3)},
      {"exact, 1-d", line, by({1.7}).mode(kNearestExact),
       _upsample_nearest_exact1d(line, 8, S(1.7))},
      {"exact, 2-d", image, by({1.5, 1.7}).mode(kNearestExact),
       _upsample_nearest_exact2d(image, {7, 10}, 1.5, 1.7)},
      {"exact, 3-d", solid, by({2.4, 1.5, 1.3}).mode(kNearestExact),
       _upsample_nearest_exact3d(solid, {4, 4, 6}, 2.4, 1.5, 1.3)},
      {"linear, factor", line, by({2.5}).mode(kLinear).align_corners(false),
       upsample_linear1d(line, 12, false, S(2.5))},
      {"bilinear, corners", image, to({3, 5}).mode(kBilinear).align_corners(true),
       upsample_bilinear2d(image, {3, 5}, true)},
      {"bilinear, extents", image,
       by({1.4, .8}).mode(kBilinear).align_corners(false).recompute_scale_factor(true),
       upsample_bilinear2d(image, {7, 4}, false)},
      {"bilinear, antialias", image,
       by({.5, .6}).mode(kBilinear).align_corners(false).antialias(true),
       _upsample_bilinear2d_aa(image, {2, 3}, false, .5, .6)},
      {"bicubic, factors", image, by({1.5, .7}).mode(kBicubic).align_corners(false),
       upsample_bicubic2d(image, {7, 4}, false, 1.5, .7)},
      {"bicubic, antialias", image,
       by({.5, .6}).mode(kBicubic).align_corners(false).antialias(true),
       _upsample_bicubic2d_aa(image, {2, 3}, false, .5, .6)},
      {"trilinear, corners", solid, by({1, 1.5, 1}).mode(kTrilinear).align_corners(true),
       upsample_linear1d(solid.transpose(3, 4).reshape({2, 10, 3}), 4, true)
           .reshape({1, 2, 2, 5, 4})
           .transpose(3, 4)},
      {"trilinear, factors", solid, by({2.4, 1.5, .7}).mode(kTrilinear).align_corners(false),
       upsample_trilinear3d(solid, {4, 4, 3}, false, 2.4, 1.5, .7)},
      {"area, 1-d", line, to({2}).mode(kArea), adaptive_avg_pool1d(line, 2)},
      {"area, 3-d", solid, to({1, 2, 2}).mode(kArea), adaptive_avg_pool3d(solid, {1, 2, 2})},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Tensor y = F::interpolate(row.x, row.options);
    ASSERT_EQ(y.sizes(), row.expected.sizes());
    expect_values(y, values(row.expected), 1e-14);
  }
}

// An image does not change when it is resized to its own size; each result still reads nine inputs
// an axis.
TEST(Upsampling, AntialiasedToTheSameSize) {
  const Tensor x = randn({2, 3, 40, 40}, kDouble).requires_grad_(), g = randn_like(x.detach());
  for (const auto& mode : {O().mode(kBicubic), O().mode(kBilinear)}) {
    x.mutable_grad() = Tensor();
    const Tensor y =
        F::interpolate(x, O(mode).size(I{40, 40}).align_corners(false).antialias(true));
    expect_values(y.detach(), values(x.detach()), 1e-14);
    y.backward(g);
    expect_values(x.grad(), values(g), 1e-14);
  }
}

TEST(Interpolate, Refuses) {
  const Tensor line = ones({1, 1, 8}), image = ones({1, 1, 4, 4}), solid = ones({1, 1, 2, 2, 2});
  const auto refused = [](const Tensor& x, const O& o) {
    return error_of([&] { F::interpolate(x, o); });
  };
  const std::string corners =
      "[interpolate] align_corners option can only be set with the interpolating modes: linear | "
      "bilinear | bicubic | trilinear";
  EXPECT_EQ(refused(line, {}), "[interpolate] either size or scale_factor should be defined");
  EXPECT_EQ(refused(line, O().size(I{2}).scale_factor(D{2})),
            "[interpolate] only one of size or scale_factor should be defined");
  EXPECT_EQ(refused(line, O().scale_factor(D{2, 2})),
            "[interpolate] scale_factor shape must match input shape. Input is 1D, scale_factor "
            "size is [2, 2]");
  EXPECT_EQ(refused(line, O().size(I{2, 2})),
            "[upsample_nearest1d] It is expected output_size equals to 1, but got size 2");
  EXPECT_EQ(refused(line, O().size(I{2}).align_corners(true)), corners);
  EXPECT_EQ(refused(line, O().size(I{2}).mode(kArea).align_corners(false)), corners);
  EXPECT_EQ(refused(line, O().size(I{2}).mode(kBilinear).align_corners(false)),
            "[interpolate] Got 3D input, but bilinear mode needs 4D input");
  EXPECT_EQ(refused(image, O().size(I{2, 2}).mode(kTrilinear).align_corners(false)),
            "[interpolate] Got 4D input, but trilinear mode needs 5D input");
  EXPECT_EQ(refused(solid, O().size(I{2, 2, 2}).mode(kLinear).align_corners(false)),
            "[interpolate] Got 5D input, but linear mode needs 3D input");
  EXPECT_EQ(refused(solid, O().size(I{2, 2, 2}).mode(kBicubic).align_corners(false)),
            "[interpolate] Input Error: Only 3D, 4D and 5D input Tensors supported (got 5D) for "
            "the modes: nearest | linear | bilinear | bicubic | trilinear (got kBicubic)");
  EXPECT_EQ(refused(ones({3}), O().size(I{2})),
            "[interpolate] Input Error: Only 3D, 4D and 5D input Tensors supported (got 1D) for "
            "the modes: nearest | linear | bilinear | bicubic | trilinear (got kNearest)");
  EXPECT_EQ(refused(image, O().size(I{2, 2}).antialias(true)),
            "[interpolate] Anti-alias option is only supported for bilinear and bicubic modes");
  EXPECT_EQ(refused(image, O().scale_factor(D{-1, 1})),
            "[upsample_nearest2d] Input and output sizes should be greater than 0, but got input "
            "(H: 4, W: 4) output (H: -4, W: 4)");
  EXPECT_EQ(refused(ones({1, 0, 3}), O().size(I{2})),
            "[upsample_nearest1d] Non-empty 3D data tensor expected but got a tensor with sizes "
            "[1, 0, 3]");
  for (const double odd : {1e300, -1e300, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_ERROR_TEXT(F::interpolate(line, O().scale_factor(D{odd})), "that an int64 holds");
  EXPECT_ERROR_TEXT(F::interpolate(line, O().size(I{INT64_MAX / 2})), "[");
}

TEST(Upsample, ByListsOfSizesOrFactors) {
  const Tensor x = sines(24).reshape({1, 2, 3, 4});
  const std::vector<double> factors = {1.4, 2.5};
  EXPECT_TRUE(same_bits(upsample_nearest2d(x, {4, 10}, 1.4, 2.5),
                        upsample_nearest2d(x, std::nullopt, ArrayRef<double>(factors))));
  EXPECT_TRUE(same_bits(upsample_bicubic2d(x, {4, 10}, false, 1.4, 2.5),
                        upsample_bicubic2d(x, std::nullopt, false, ArrayRef<double>(factors))));
  EXPECT_TRUE(same_bits(upsample_bilinear2d(x, {5, 2}, true),
                        upsample_bilinear2d(x, OptionalIntArrayRef(I{5, 2}), true, std::nullopt)));
  Tensor out = empty({0}, x.options());
  upsample_nearest2d_out(out, x, std::nullopt, ArrayRef<double>(factors));
  EXPECT_TRUE(same_bits(out, upsample_nearest2d(x, {4, 10}, 1.4, 2.5)));
  const std::string one =
      "[upsample_nearest2d] Must specify exactly one of output_size and scale_factors";
  EXPECT_ERROR_TEXT(upsample_nearest2d(x, std::nullopt, std::nullopt), one);
  EXPECT_ERROR_TEXT(upsample_nearest2d(x, OptionalIntArrayRef(I{5, 2}), ArrayRef<double>(factors)),
                    one);
  EXPECT_ERROR_TEXT(upsample_nearest2d(x, std::nullopt, ArrayRef<double>(factors.data(), 1)),
                    "expected 2 for 4 dimensions");
}

// For every scale each output is made of inputs, and the gradient is the adjoint.
TEST(Upsample, OddScales) {
  const double inf = std::numeric_limits<double>::infinity();
  using Call = Tensor (*)(const Tensor&, double);
  const Call calls[] = {
      [](const Tensor& x, double s) {
        return upsample_nearest2d(x, {5, 3}, s, s);
      },
      [](const Tensor& x, double s) {
        return _upsample_nearest_exact2d(x, {5, 3}, s, s);
      },
      [](const Tensor& x, double s) {
        return upsample_bilinear2d(x, {5, 3}, false, s, s);
      },
      [](const Tensor& x, double s) {
        return upsample_bicubic2d(x, {5, 3}, false, s, s);
      },
      [](const Tensor& x, double s) {
        return _upsample_bilinear2d_aa(x, {5, 3}, false, s, s);
      },
      [](const Tensor& x, double s) {
        return _upsample_bicubic2d_aa(x, {5, 3}, false, s, s);
      },
  };
  for (const Call call : calls)
    for (const double scale :
         {1e-300, 1e-40, 1e-9, 0.01, 100.0, 1e9, 1e300, inf, -2.0, 0.0, std::nan("")})
      for (const ScalarType t : {kFloat, kDouble}) {
        SCOPED_TRACE(scale);
        const Tensor x = sines(80).reshape({2, 2, 4, 5}).to(t).requires_grad_();
        const Tensor y = call(x, scale);
        ASSERT_EQ(y.sizes(), IntArrayRef({2, 2, 5, 3}));
        const Tensor g = sines(y.numel(), 0.7).reshape(y.sizes()).to(t);
        y.backward(g);
        const double forward = y.detach().to(kDouble).mul(g).sum().item<double>(),
                     back = x.grad().to(kDouble).mul(x.detach()).sum().item<double>();
        EXPECT_NEAR(forward, back, t == kFloat ? 1e-4 : 1e-12);
        // A scale that is none: the extents say.
        if (!(scale > 0)) { EXPECT_TRUE(same_bits(y, call(x, 0))); }
      }
}

TEST(Upsample, Bytes) {
  const Tensor x = doubles({0, 255, 9, 200, 3, 77}).to(kByte).reshape({1, 1, 2, 3});
  expect_values(upsample_nearest2d(x, {3, 5}),
                {0, 0, 255, 255, 9, 0, 0, 255, 255, 9, 200, 200, 3, 3, 77});
  expect_values(upsample_bilinear2d(x, {3, 5}, false),
                {0, 102, 255, 107, 9, 100, 112, 129, 77, 43, 200, 121, 3, 47, 77}, 0.02);
  expect_values(upsample_bicubic2d(x, {3, 5}, false),
                {0, 117, 255, 131, 0, 110, 118, 129, 79, 42, 238, 118, 0, 26, 91}, 0.02);
  expect_values(_upsample_bilinear2d_aa(x, {1, 2}, false), {111, 75}, 0.02);
}

TEST(Upsample, KeepsChannelsLast) {
  const Tensor rows = sines(2 * 18 * 5 * 7).reshape({2, 18, 5, 7}).to(kFloat);
  for (const double h : {2.0, 0.5}) {
    const Tensor a = rows.clone().requires_grad_(),
                 b = rows.clone(MemoryFormat::ChannelsLast).requires_grad_();
    const auto sizes = I{static_cast<int64_t>(5 * h), 11};
    const Tensor y = upsample_bilinear2d(a, sizes, false), z = upsample_bilinear2d(b, sizes, false);
    EXPECT_TRUE(z.is_contiguous(MemoryFormat::ChannelsLast));
    EXPECT_TRUE(same_bits(y, z));
    y.square().sum().backward();
    z.square().sum().backward();
    EXPECT_TRUE(same_bits(a.grad(), b.grad()));
  }
}

TEST(Upsample, Module) {
  const Tensor x = sines(12).reshape({1, 1, 3, 4});
  Upsample up(UpsampleOptions().scale_factor(D{1.4, 2}).mode(kBilinear).align_corners(true));
  EXPECT_TRUE(same_bits(up(x), upsample_bilinear2d(x, {4, 8}, true)));
  Sequential net(Upsample(UpsampleOptions().size(I{6, 5})), up);
  EXPECT_TRUE(same_bits(net->forward(x), up(upsample_nearest2d(x, {6, 5}))));
}

}  // namespace
}  // namespace ramet::nn
