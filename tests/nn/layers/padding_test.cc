// Pad modules and pad against numbers from PyTorch 2.15 in float64.
#include "nn/layers/image/padding.h"

#include "autograd/autograd.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "nn/layers/image/conv.h"
#include "nn/module/sequential.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

namespace F = functional;

TEST(Padding, ValuesAndGradients) {
  const struct {
    const char* name;
    std::vector<int64_t> sizes, pad;
    F::PadFuncOptions::mode_t mode;
    double value;
    std::vector<int64_t> result;
    std::vector<double> values, gradient;  // of 1, 2, 3, ...; of their sum with sines
  } rows[] = {
      {"constant, 1-d",
       {2, 3},
       {1, 2},
       kConstant,
       7.5,
       {2, 6},
       {7.5, 1, 2, 3, 7.5, 7.5, 7.5, 4, 5, 6, 7.5, 7.5},
       {0.461779175541483, 0.751280405140293, 0.939099356319068, 0.42737988023383,
        0.0715315111408437, -0.293998312415568}},
      {"constant, cut",
       {2, 3},
       {-1, 2, 1, -1},
       kConstant,
       7.5,
       {2, 4},
       {7.5, 7.5, 7.5, 7.5, 2, 3, 7.5, 7.5},
       {0, 0.999815615134291, 0.925211520788168, 0, 0, 0}},
      {"constant, 3-d",
       {1, 2, 2, 2},
       {1, 0, 0, 1, 1, 0},
       kConstant,
       -1.0,
       {1, 3, 3, 3},
       {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1,  2,  -1, 3,
        4,  -1, -1, -1, -1, 5,  6,  -1, 7,  8,  -1, -1, -1},
       {-0.619736843594963, -0.861596900310741, -0.978526129941139, -0.837769480165098,
        0.755760508057054, 0.941419372572818, 0.92260421023934, 0.720676727346018}},
      {"reflect, 1-d",
       {2, 4},
       {3, 2},
       kReflect,
       0,
       {2, 9},
       {4, 3, 2, 1, 2, 3, 4, 3, 2, 8, 7, 6, 5, 6, 7, 8, 7, 6},
       {0.939099356319068, 1.82262753141543, 1.81437057656348, 0.835162688303995,
        -0.986843858503237, -1.72357382540139, -1.70799530638714, -0.877622973818575}},
      {"reflect, 1-d, cut",
       {2, 4},
       {-1, 3},
       kReflect,
       0,
       {2, 6},
       {2, 3, 4, 3, 2, 1, 6, 7, 8, 7, 6, 5},
       {0.925211520788168, 1.10959391597147, 1.40087853186055, 0.751280405140293,
        -0.861596900310741, 0.105647543871857, 0.133381567818263, 0.0715315111408437}},
      {"reflect, 2-d",
       {1, 2, 3},
       {2, 1, 1, 0},
       kReflect,
       0,
       {1, 3, 6},
       {6, 5, 4, 5, 6, 5, 3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5},
       {0.0715315111408437, -0.728215332492478, 0.105647543871857, -0.0864890750248051,
        0.880488466155067, -0.127738925158846}},
      {"reflect, 3-d",
       {1, 2, 2, 3},
       {2, 1, 1, 1, 0, 1},
       kReflect,
       0,
       {1, 3, 4, 6},
       {6,  5,  4,  5,  6,  5,  3, 2, 1, 2, 3, 2, 6,  5,  4,  5,  6,  5,  3, 2, 1, 2, 3, 2,
        12, 11, 10, 11, 12, 11, 9, 8, 7, 8, 9, 8, 12, 11, 10, 11, 12, 11, 9, 8, 7, 8, 9, 8,
        6,  5,  4,  5,  6,  5,  3, 2, 1, 2, 3, 2, 6,  5,  4,  5,  6,  5,  3, 2, 1, 2, 3, 2},
       {2.06704024433229, 4.71263907554482, 3.05288846013624, -1.19555372849248, -1.24935115503418,
        -1.76575767752726, -1.20845288741535, -2.75514824339, -1.78480892412444, 0.698956084294155,
        0.730407651634503, 1.03231418436796}},
      {"replicate, 1-d",
       {2, 3},
       {2, 4},
       kReplicate,
       0,
       {2, 9},
       {1, 1, 1, 2, 3, 3, 3, 3, 3, 4, 4, 4, 5, 6, 6, 6, 6, 6},
       {1.32283788151895, 0.939099356319068, 3.14932291476395, -1.77533205632127,
        -0.986843858503237, -2.53386004928583}},
      {"replicate, 1-d, cut",
       {2, 3},
       {2, -2},
       kReplicate,
       0,
       {2, 3},
       {1, 1, 1, 4, 4, 4},
       {1.32283788151895, 0, 0, 2.86412649224153, 0, 0}},
      {"replicate, 2-d",
       {1, 1, 2},
       {1, 2, 2, 1},
       kReplicate,
       0,
       {1, 4, 5},
       {1, 1, 2, 2, 2, 1, 1, 2, 2, 2, 1, 1, 2, 2, 2, 1, 1, 2, 2, 2},
       {-0.0932940033021406, 1.43209170405942}},
      {"replicate, 3-d",
       {1, 1, 2, 2},
       {1, 0, 0, 2, 1, 1},
       kReplicate,
       0,
       {1, 3, 4, 3},
       {1, 1, 2, 3, 3, 4, 3, 3, 4, 3, 3, 4, 1, 1, 2, 3, 3, 4,
        3, 3, 4, 3, 3, 4, 1, 1, 2, 3, 3, 4, 3, 3, 4, 3, 3, 4},
       {-0.907870814914378, -0.386994034273363, 1.06786418573707, 0.821616373394758}},
      {"circular, 1-d",
       {2, 3},
       {3, 2},
       kCircular,
       0,
       {2, 8},
       {1, 2, 3, 1, 2, 3, 1, 2, 4, 5, 6, 4, 5, 6, 4, 5},
       {1.77426204462306, 1.8889746709096, 1.67649192592846, -1.627834869335, -1.86446683232181,
        -1.5982629735361}},
      {"circular, 1-d, cut",
       {2, 4},
       {-1, 2},
       kCircular,
       0,
       {2, 5},
       {2, 3, 4, 2, 3, 6, 7, 8, 6, 7},
       {0, 1.04887765715624, 1.46159479067577, 0.751280405140293, 0, 0.996743031929012,
        0.431386075051252, 0.42737988023383}},
      {"circular, 2-d",
       {1, 2, 3},
       {2, 1, 1, 2},
       kCircular,
       0,
       {1, 5, 6},
       {5, 6, 4, 5, 6, 4, 2, 3, 1, 2, 3, 1, 5, 6, 4, 5, 6, 4, 2, 3, 1, 2, 3, 1, 5, 6, 4, 5, 6, 4},
       {0.872030710748939, 1.89886062066861, 1.48600775493526, -0.333156017916456,
        -0.72545248138911, -0.567723613543399}},
      {"circular, 3-d",
       {1, 2, 2, 2},
       {2, 1, 1, 1, 0, 2},
       kCircular,
       0,
       {1, 4, 4, 5},
       {3, 4, 3, 4, 3, 1, 2, 1, 2, 1, 3, 4, 3, 4, 3, 1, 2, 1, 2, 1, 7, 8, 7, 8, 7, 5, 6,
        5, 6, 5, 7, 8, 7, 8, 7, 5, 6, 5, 6, 5, 3, 4, 3, 4, 3, 1, 2, 1, 2, 1, 3, 4, 3, 4,
        3, 1, 2, 1, 2, 1, 7, 8, 7, 8, 7, 5, 6, 5, 6, 5, 7, 8, 7, 8, 7, 5, 6, 5, 6, 5},
       {0.692215503921951, 0.521104422724231, 0.748487223752963, 0.563466146655726,
        -0.574551936989061, -0.432526509090635, 1.16825770262522, 0.879472147431559}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    int64_t count = 1;
    for (const int64_t n : row.sizes) count *= n;
    const Tensor x = arange(1, count + 1, kDouble).view(row.sizes).requires_grad_();
    const Tensor y = F::pad(x, F::PadFuncOptions(row.pad).mode(row.mode).value(row.value));
    ASSERT_EQ(y.sizes(), IntArrayRef(row.result));
    expect_values(y, row.values, 0);
    y.flatten().mul(sines(y.numel())).sum().backward();
    expect_values(x.grad(), row.gradient);
  }
}

TEST(Padding, Modules) {
  const Tensor x = sines(2 * 3 * 4 * 5 * 6).view({2, 3, 4, 5, 6});
  const Tensor plane = x.select(0, 0), line = plane.select(0, 0);
  const std::vector<int64_t> six = {1, 2, 0, 3, 2, 1}, four = {1, 2, 0, 3}, two = {1, 2};
  const auto padded = [](const Tensor& t, const std::vector<int64_t>& pad, auto mode,
                         double value = 0) {
    return F::pad(t, F::PadFuncOptions(pad).mode(mode).value(value));
  };
  EXPECT_TRUE(same_bits(ReflectionPad3d(six)(x), padded(x, six, kReflect)));
  EXPECT_TRUE(same_bits(ReflectionPad2d(four)(plane), padded(plane, four, kReflect)));
  EXPECT_TRUE(same_bits(ReflectionPad1d(two)(line), padded(line, two, kReflect)));
  EXPECT_TRUE(same_bits(ReplicationPad3d(six)(x), padded(x, six, kReplicate)));
  EXPECT_TRUE(same_bits(ReplicationPad2d(four)(plane), padded(plane, four, kReplicate)));
  EXPECT_TRUE(same_bits(ReplicationPad1d(two)(line), padded(line, two, kReplicate)));
  EXPECT_TRUE(same_bits(ZeroPad3d(six)(x), padded(x, six, kConstant)));
  EXPECT_TRUE(same_bits(ZeroPad2d(four)(plane), padded(plane, four, kConstant)));
  EXPECT_TRUE(same_bits(ZeroPad1d(two)(line), padded(line, two, kConstant)));
  EXPECT_TRUE(same_bits(ConstantPad3d(six, 2)(x), padded(x, six, kConstant, 2)));
  EXPECT_TRUE(same_bits(ConstantPad2d(four, 2)(plane), padded(plane, four, kConstant, 2)));
  EXPECT_TRUE(same_bits(ConstantPad1d(two, 2)(line), padded(line, two, kConstant, 2)));

  ZeroPad2d pad(ZeroPad2dOptions({1, 1, 2, 0}));
  EXPECT_EQ(pad(x).sizes(), IntArrayRef({2, 3, 4, 7, 8}));
  const auto copy = std::dynamic_pointer_cast<ZeroPad2dImpl>(pad->clone());
  EXPECT_EQ(copy->forward(x).sizes(), pad(x).sizes());
  EXPECT_EQ(pad->parameters().size(), 0u);
  Sequential net(ReflectionPad2d(1), Conv2d(Conv2dOptions(1, 2, 3)));
  EXPECT_EQ(net->forward(ones({1, 1, 4, 5})).sizes(), IntArrayRef({1, 2, 4, 5}));
}

TEST(Padding, PrintsAsInLibTorch) {
  EXPECT_EQ(text_of(ReflectionPad1d(2)), "ramet::nn::ReflectionPad1d(padding=[2, 2])");
  EXPECT_EQ(text_of(ConstantPad2d(ConstantPad2dOptions({3, 0, 2, 1}, 3.5))),
            "ramet::nn::ConstantPad2d(padding=[3, 0, 2, 1], value=3.5)");
}

TEST(Padding, Refuses) {
  const Tensor x = ones({4, 6}), y = ones({1, 2, 5});
  EXPECT_ERROR_TEXT(ReflectionPad2d(1)(x), "Padding size 4 is not supported for 2D input tensor");
  EXPECT_ERROR_TEXT(ZeroPad3d(1)(x), "got padding length 6 and input of dimension 2");
  EXPECT_ERROR_TEXT(ConstantPad1d(-4, 1)(x), "resulted in an invalid output size");
  EXPECT_ERROR_TEXT(ReflectionPad1d(5)(y), "less than the corresponding input dimension");
  EXPECT_ERROR_TEXT(F::pad(y, F::PadFuncOptions({1, 1}).mode(kReflect).value(2)),
                    "Padding mode \"reflect\" doesn't take in value argument");
  EXPECT_ERROR_TEXT(ReplicationPad2dOptions({1, 2, 3}), "Expected 4 values");
}

}  // namespace
}  // namespace ramet::nn
