// Operations are shown by the names of their functions.
#include "tools/see/operation_name.h"

#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <string>
#include <vector>

#include "ramet.h"
#include "tests/tools/see/recording_looks.h"
#include "tools/see/recording.h"

namespace ramet {
namespace see {
namespace {

// Nodes are named by their functions: each word, and each letter after a digit, gets a capital
// letter, as in str.title(). The way back needs a list for some names.
TEST(OperationName, IsTheFunctions) {
  for (const std::string name : {"max_pool2d_with_indices",
                                 "max_pool3d_with_indices",
                                 "adaptive_avg_pool2d",
                                 "avg_pool3d",
                                 "avg_pool2d_backward",
                                 "batch_norm_relu_max_pool2d_backward_weight",
                                 "upsample_bilinear2d",
                                 "upsample_bicubic2d_aa_backward",
                                 "upsample_nearest_exact3d",
                                 "nll_loss2d",
                                 "log1p",
                                 "log2",
                                 "expm1",
                                 "exp2",
                                 "atan2",
                                 "logaddexp2",
                                 "smooth_l1_loss",
                                 "l1_loss",
                                 "smooth_l1_loss_backward",
                                 "im2col",
                                 "col2im",
                                 "deg2rad",
                                 "rad2deg",
                                 "i0",
                                 "i0e",
                                 "constant_pad_nd",
                                 "addmm",
                                 "t",
                                 "linalg_inv_ex",
                                 "native_batch_norm",
                                 "frexp"}) {
    std::string node;
    for (size_t i = 0; i < name.size(); ++i) {
      if (name[i] == '_') continue;
      const bool large = i == 0 || !std::isalpha(static_cast<unsigned char>(name[i - 1]));
      node +=
          large ? static_cast<char>(std::toupper(static_cast<unsigned char>(name[i]))) : name[i];
    }
    EXPECT_EQ(operation_name(node + "Backward0"), name) << node;
  }
  for (const char* const other : {"CopySlices", "AccumulateGrad", "Error", "Backward0", ""})
    EXPECT_EQ(operation_name(other), other);

  // Those that real functions leave.
  namespace F = nn::functional;
  const Tensor x = full({1, 1, 6, 6}, 0.5, TensorOptions(kFloat)).set_requires_grad(true);
  const Tensor w = ones({1, 1, 3, 3});
  const auto last = [](const std::function<void()>& call) {
    Recording r;
    call();
    const RecordingData d = r.data();
    return d.operations.empty() ? std::string() : d.operations.back().name;
  };
  EXPECT_EQ(last([&] { (void)conv2d(x, w); }), "convolution");
  EXPECT_EQ(last([&] { (void)max_pool2d(x, 2); }), "max_pool2d_with_indices");
  EXPECT_EQ(last([&] { (void)avg_pool2d(x, 2); }), "avg_pool2d");
  EXPECT_EQ(last([&] { (void)adaptive_avg_pool2d(x, {2, 2}); }), "adaptive_avg_pool2d");
  EXPECT_EQ(last([&] {
              (void)F::interpolate(
                  x, F::InterpolateFuncOptions().size(std::vector<int64_t>{9, 9}).mode(kBilinear));
            }),
            "upsample_bilinear2d");
  EXPECT_EQ(last([&] { (void)F::unfold(x, F::UnfoldFuncOptions({2, 2})); }), "im2col");
  EXPECT_EQ(last([&] {
              (void)F::fold(x.view({1, 4, 9}), F::FoldFuncOptions({4, 4}, {2, 2}));
            }),
            "col2im");
  EXPECT_EQ(last([&] { (void)log1p(x); }), "log1p");
  EXPECT_EQ(last([&] { (void)x.log2(); }), "log2");
  EXPECT_EQ(last([&] { (void)expm1(x); }), "expm1");
  EXPECT_EQ(last([&] { (void)atan2(x, x); }), "atan2");
  EXPECT_EQ(last([&] { (void)logaddexp2(x, x); }), "logaddexp2");
  EXPECT_EQ(last([&] { (void)deg2rad(x); }), "deg2rad");
  EXPECT_EQ(last([&] { (void)smooth_l1_loss(x, x.detach(), Reduction::None); }), "smooth_l1_loss");
  EXPECT_EQ(last([&] { (void)x.to(kDouble); }), "to");
  Recording r;  // what is made of others is those
  (void)l1_loss(x, x.detach());
  EXPECT_EQ(names(r.data()), (std::vector<std::string>{"sub", "abs", "mean"}));
}

}  // namespace
}  // namespace see
}  // namespace ramet
