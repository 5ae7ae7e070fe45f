// What changes resolution, against numbers from PyTorch 2.15 in float64.
#include "nn/layers/image/upsampling.h"

#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/graph/layout.h"
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

TEST(Interpolate, ValuesAndGradients) {
  const struct {
    const char* name;
    I sizes;
    O options;
    I result;
    D values, gradient;  // of sines; of the result's sum with sines
  } rows[] = {
      {"nearest",
       {1, 2, 3},
       O().size(I{5}),
       {1, 2, 5},
       {0.109778300837, 0.109778300837, 0.461779175541, 0.461779175541, 0.75128040514,
        0.939099356319, 0.939099356319, 0.999815615134, 0.999815615134, 0.925211520788},
       {0.865538965799, 1.92816126357, 0.73223144403, 0.0513226916456, -1.65812190379,
        -0.967001380244}},
      {"nearest, factors",
       {1, 1, 2, 3},
       O().scale_factor(D{1.5, 1.7}),
       {1, 1, 3, 5},
       {0.109778300837, 0.109778300837, 0.461779175541, 0.461779175541, 0.75128040514,
        0.109778300837, 0.109778300837, 0.461779175541, 0.461779175541, 0.75128040514,
        0.939099356319, 0.939099356319, 0.999815615134, 0.999815615134, 0.925211520788},
       {0.916861657444, 0.270039359783, -0.234769936214, -0.956029308197, 0.995380234381,
        0.972750956395}},
      {"nearest, factors by which an extent stays or doubles",
       {1, 1, 2, 3},
       O().scale_factor(D{1.4, 2.3}),
       {1, 1, 2, 6},
       {0.109778300837, 0.109778300837, 0.461779175541, 0.461779175541, 0.75128040514,
        0.75128040514, 0.939099356319, 0.939099356319, 0.999815615134, 0.999815615134,
        0.925211520788, 0.925211520788},
       {0.865538965799, 1.92816126357, 1.01970945637, -0.931146293913, -1.93013231082,
        -0.956029308197}},
      {"nearest, 3-d",
       {1, 1, 2, 1, 3},
       O().size(I{3, 1, 2}),
       {1, 1, 3, 1, 2},
       {0.109778300837, 0.461779175541, 0.109778300837, 0.461779175541, 0.939099356319,
        0.999815615134},
       {1.15075967239, 1.64294055699, 0, 0.73223144403, 0.287478012343, 0}},
      {"nearest-exact",
       {1, 1, 3, 2},
       O().size(I{2, 5}).mode(kNearestExact),
       {1, 1, 2, 5},
       {0.109778300837, 0.109778300837, 0.461779175541, 0.461779175541, 0.461779175541,
        0.999815615134, 0.999815615134, 0.925211520788, 0.925211520788, 0.925211520788},
       {0.865538965799, 2.6603927076, 0, 0, 0.0513226916456, -2.62512328403}},
      {"linear",
       {1, 2, 3},
       O().scale_factor(D{2.5}).mode(kLinear).align_corners(false),
       {1, 2, 7},
       {0.109778300837, 0.144978388308, 0.285778738189, 0.426579088071, 0.548629544421,
        0.664430036261, 0.75128040514, 0.939099356319, 0.945170982201, 0.969457485727,
        0.993743989253, 0.97743438683, 0.947592749092, 0.925211520788},
       {1.37250426529, 2.0200013786, 0.184748721152, -2.11586353341, -1.30815446554, 0.8382456411}},
      {"linear, corners",
       {1, 1, 5},
       O().size(I{3}).mode(kLinear).align_corners(true),
       {1, 1, 3},
       {0.109778300837, 0.75128040514, 0.999815615134},
       {0.198669330795, 0, 0.666869635004, 0, 0.952090341591}},
      {"bilinear, factors",
       {1, 1, 3, 4},
       O().scale_factor(D{1.4, 0.8}).mode(kBilinear).align_corners(false),
       {1, 1, 4, 3},
       {0.153778410175, 0.570342136641, 0.868667249627, 0.631899377699, 0.730304541871,
        0.680361147238, 0.714875869014, 0.48844017225, 0.164837013449, 0.0258402831963,
        -0.416150261608, -0.770899379042},
       {0.539862260189, 0.690050124412, 0.77099186814, 0.672059502514, 0.340438385556,
        -0.000118542238592, -0.225630626435, -0.327298446741, -0.905165037888, -0.69437752554,
        -0.536166908837, -0.328543280316}},
      {"bilinear, extents",
       {1, 1, 3, 4},
       O().scale_factor(D{1.4, 0.8})
           .mode(kBilinear)
           .align_corners(false)
           .recompute_scale_factor(true),
       {1, 1, 4, 3},
       {0.168445113288, 0.606529790341, 0.907796197789, 0.680280417114, 0.743259892708,
        0.638578135487, 0.621092202337, 0.344485879578, -0.00982802275554, 0.0106098738814,
        -0.456867578005, -0.821286890858},
       {0.470579938782, 0.564844201014, 0.647377312627, 0.883245496849, 0.385372709003,
        0.0887121889299, -0.0587428651864, -0.351902561579, -0.879633021254, -0.659007574514,
        -0.585024817195, -0.50971923466}},
      {"bilinear, corners",
       {1, 1, 2, 3},
       O().size(I{3, 5}).mode(kBilinear).align_corners(true),
       {1, 1, 3, 5},
       {0.109778300837, 0.285778738189, 0.461779175541, 0.606529790341, 0.75128040514,
        0.524438828578, 0.627618111958, 0.730797395338, 0.784521679151, 0.838245962964,
        0.939099356319, 0.969457485727, 0.999815615134, 0.962513567961, 0.925211520788},
       {0.616804324294, 1.12624357066, 0.495983482256, -0.746084640887, -0.13822492606,
        0.609511153332}},
      {"bilinear, antialias",
       {1, 1, 5, 6},
       O().size(I{2, 3}).mode(kBilinear).align_corners(false).antialias(true),
       {1, 1, 2, 3},
       {0.129693710065, 0.102425806787, 0.0348022976098, 0.126434592185, 0.0803949504324,
        0.00267982534416},
       {0.0270912723811, 0.0536144965006, 0.0886000964854, 0.122846506067,  0.156353725245,
        0.129830501126,  0.0538460045287, 0.0921076986143, 0.132733750433,  0.172293465936,
        0.210786845124,  0.172525151039,  0.114422751894,  0.154169941639,  0.157382486534,
        0.159487295013,  0.160484367076,  0.120737177331,  0.174999499259,  0.216232184664,
        0.182031222635,  0.146681124089,  0.110181889028,  0.0689492036235, 0.13310058027,
        0.162223421794,  0.131735384662,  0.100435706951,  0.0683243886616, 0.0392015471376}},
      {"bicubic",
       {1, 1, 3, 4},
       O().size(I{5, 3}).mode(kBicubic).align_corners(false),
       {1, 1, 5, 3},
       {0.0748894208965, 0.600387135544, 0.960416971037, 0.549831252121, 0.803616607798,
        0.835923640784, 0.992577767103, 0.846241742836, 0.466679824559, 0.460538823248,
        0.0577943182043, -0.360878414968, -0.0681873364778, -0.594673141349, -0.95726585514},
       {0.642452198722, 0.851051737632, 0.913924674985, 0.944568910681, -0.160990257545,
        -0.509508315402, -0.661656220631, -0.892090581373, -0.339291309174, 0.108403800144,
        0.332040711247, 0.735327614306}},
      {"bicubic, corners",
       {1, 1, 2, 3},
       O().size(I{3, 4}).mode(kBicubic).align_corners(true),
       {1, 1, 3, 4},
       {0.109778300837, 0.318797282068, 0.592029659827, 0.75128040514, 0.524438828578,
        0.653893931622, 0.787552525897, 0.838245962964, 0.939099356319, 0.988990581175,
        0.983075391968, 0.925211520788},
       {0.727308586375, 1.30960586785, 0.801067356375, -0.764677290849, -1.3114047311,
        -0.765798015831}},
      {"bicubic, antialias",
       {1, 1, 5, 6},
       O().size(I{2, 3}).mode(kBicubic).align_corners(false).antialias(true),
       {1, 1, 2, 3},
       {0.115717970145, 0.11935614586, 0.0660140135746, 0.110719861143, 0.0427691166834,
        -0.0455994908364},
       {0.0106804559506, 0.0368944843427, 0.0809161289042, 0.125919924246,  0.171905870368,
        0.142138910765,  0.0413112776097, 0.0795347872469, 0.12472451965,   0.171320004853,
        0.219321242856,  0.177419142282,  0.119114956246,  0.16397217578,   0.164862496189,
        0.167330217288,  0.171375339075,  0.126323299454,  0.179977841104,  0.225089077091,
        0.181553362159,  0.139542354374,  0.0990560537366, 0.0572614762593, 0.146445406333,
        0.179403034642,  0.136555821625,  0.0948072246027, 0.0541572435761, 0.0244955571371}},
      {"trilinear",
       {1, 1, 2, 2, 3},
       O().size(I{3, 3, 2}).mode(kTrilinear).align_corners(false),
       {1, 1, 3, 3, 2},
       {0.197778519513, 0.678905097741, 0.576028470268, 0.811383821058, 0.954278421023,
        0.943862544375, 0.424330890086, 0.419699350577, 0.356876813996, 0.245532339849,
        0.289422737906, 0.0713653291215, 0.650883260659, 0.160493603414, 0.137725157724,
        -0.320319141359, -0.37543294521, -0.801131886132},
       {0.236890581449, 0.220378343231, 0.424244448244, 0.461042789548, 0.255810589089,
        0.306388977719, 0.300606060137, 0.252975567811, 0.458320643295, 0.427973368621,
        0.223754900267, 0.243291332181}},
      {"trilinear, corners",
       {1, 1, 2, 2, 3},
       O().scale_factor(D{1, 1.5, 1}).mode(kTrilinear).align_corners(true),
       {1, 1, 2, 3, 3},
       {0.109778300837, 0.461779175541, 0.75128040514, 0.524438828578, 0.730797395338,
        0.838245962964, 0.939099356319, 0.999815615134, 0.925211520788, 0.725384387467,
        0.427379880234, 0.0715315111408, 0.215693037526, -0.0961784816806, -0.395032694585,
        -0.293998312416, -0.619736843595, -0.861596900311},
       {0.686704791786, 1.03298535702, 1.09582934776, 0.251880140294, -0.328875251201,
        -0.819391924402, -0.830354882755, -0.344496705869, 0.23588649557, 1.09315206414,
        1.03885219509, 0.699505974154}},
      {"area",
       {1, 2, 5},
       O().size(I{2}).mode(kArea),
       {1, 2, 2},
       {0.440945960506, 0.896731792198, 0.692658596163, 0.068304359653},
       {0.066223110265, 0.066223110265, 0.2885129886, 0.222289878335, 0.222289878335,
        0.317363447197, 0.317363447197, 0.642720421191, 0.325356973994, 0.325356973994}},
      {"area, 2-d",
       {1, 1, 3, 4},
       O().size(I{2, 3}).mode(kArea),
       {1, 1, 2, 3},
       {0.624146153075, 0.715913872234, 0.71078600729, 0.425640083662, 0.184215188061,
        -0.0821423690513},
       {0.0496673326988, 0.21638474145, 0.404739994149, 0.238022585398, 0.293685063194,
        0.643460332953, 0.659667358242, 0.309892088483, 0.244017730496, 0.427075591503,
        0.254927364093, 0.0718695030856}},
      {"area, 3-d",
       {1, 2, 3, 2, 3},
       O().size(I{2, 1, 2}).mode(kArea),
       {1, 2, 2, 1, 2},
       {0.34368769494, 0.269458045509, -0.320056815098, -0.366582217552, 0.267709294203,
        0.156466232254, -0.366982977517, -0.362962210898},
       {0.0248336663494,  0.108192370725,   0.0833587043755,  0.0248336663494,  0.108192370725,
        0.0833587043755,  0.143844959048,   0.349212528671,   0.205367569623,   0.143844959048,
        0.349212528671,   0.205367569623,   0.119011292699,   0.241020157947,   0.122008865248,
        0.119011292699,   0.241020157947,   0.122008865248,   0.0915289305038,  0.127463682047,
        0.0359347515428,  0.0915289305038,  0.127463682047,   0.0359347515428,  0.0620095154167,
        0.0110703953074,  -0.0509391201092, 0.0620095154167,  0.0110703953074,  -0.0509391201092,
        -0.0295194150871, -0.116393286739,  -0.0868738716521, -0.0295194150871, -0.116393286739,
        -0.0868738716521}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    int64_t n = 1;
    for (const int64_t s : row.sizes) n *= s;
    const Tensor x = sines(n).reshape(row.sizes).requires_grad_();
    const Tensor y = F::interpolate(x, row.options);
    ASSERT_EQ(y.sizes(), IntArrayRef(row.result));
    expect_values(y, row.values, 1e-10);
    y.mul(sines(y.numel(), 0.53, 0.2).reshape(y.sizes())).sum().backward();
    expect_values(x.grad(), row.gradient, 1e-10);
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
    EXPECT_NE(refused(line, O().scale_factor(D{odd})).find("that an int64 holds"),
              std::string::npos);
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
  EXPECT_EQ(error_of([&] { upsample_nearest2d(x, std::nullopt, std::nullopt); }), one);
  EXPECT_EQ(error_of([&] {
              upsample_nearest2d(x, OptionalIntArrayRef(I{5, 2}), ArrayRef<double>(factors));
            }),
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
  const auto copy = std::dynamic_pointer_cast<UpsampleImpl>(up->clone());
  EXPECT_TRUE(same_bits(copy->forward(x), up(x)));
  EXPECT_TRUE(up->parameters().empty());
}

}  // namespace
}  // namespace ramet::nn
