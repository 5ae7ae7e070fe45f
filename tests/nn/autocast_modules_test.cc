// The result dtypes of modules under autocast to bfloat16 on CPUs, for inputs of float32 and
// bfloat16: those of PyTorch 2.15's modules.
#include <functional>

#include "autograd/autocast.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/conv_transpose.h"
#include "nn/layers/image/fold.h"
#include "nn/layers/image/padding.h"
#include "nn/layers/image/pixel_shuffle.h"
#include "nn/layers/image/pooling.h"
#include "nn/layers/image/upsampling.h"
#include "nn/layers/loss/distance.h"
#include "nn/layers/loss/loss.h"
#include "nn/layers/loss/margin_loss.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/layers/norm/group_norm.h"
#include "nn/layers/norm/instance_norm.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/norm/response_norm.h"
#include "nn/layers/sequence/multihead_attention.h"
#include "nn/layers/sequence/packed_sequence.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/recurrent_cells.h"
#include "nn/layers/sequence/transformer_layers.h"
#include "tests/nn/support.h"

namespace ramet::autocast_modules {
namespace {

using namespace nn;

const std::vector<int64_t> kRows{3, 8}, kSteps{5, 3, 8}, kLines{2, 4, 9}, kImages{2, 4, 8, 8},
    kVolumes{2, 4, 5, 5, 5};

struct ModuleCall {
  const char* name;
  std::vector<int64_t> sizes;  // of the input
  std::function<Tensor(const Tensor&)> call;
  const char* expected;  // of each input's result; f: float32, b: bfloat16
};

Tensor labels() { return tensor({1, 0, 2}, kLong); }
Tensor all_ones() { return ones({3, 8}); }

#define CALL(name, sizes, result, expected)                                  \
  {                                                                          \
#name, sizes, [](const Tensor& x) -> Tensor { return result; }, expected \
  }
const ModuleCall kCalls[] = {
    CALL(Linear, kRows, Linear(8, 4)(x), "bb"),
    CALL(Conv1d, kLines, Conv1d(Conv1dOptions(4, 4, 3))(x), "bb"),
    CALL(Conv2d, kImages, Conv2d(Conv2dOptions(4, 4, 3))(x), "bb"),
    CALL(Conv3d, kVolumes, Conv3d(Conv3dOptions(4, 4, 3))(x), "bb"),
    CALL(ConvTranspose2d, kImages, ConvTranspose2d(ConvTranspose2dOptions(4, 4, 3))(x), "bb"),
    CALL(MaxPool2d, kImages, MaxPool2d(2)(x), "fb"),
    CALL(AvgPool2d, kImages, AvgPool2d(2)(x), "fb"),
    CALL(AvgPool3d, kVolumes, AvgPool3d(2)(x), "ff"),
    CALL(AdaptiveAvgPool2d, kImages, AdaptiveAvgPool2d(2)(x), "fb"),
    CALL(BatchNorm2d, kImages, BatchNorm2d(4)(x), "fb"),
    CALL(LayerNorm, kRows, LayerNorm(LayerNormOptions({8}))(x), "fb"),
    CALL(GroupNorm, kImages, GroupNorm(2, 4)(x), "fb"),
    CALL(InstanceNorm2d, kImages, InstanceNorm2d(InstanceNorm2dOptions(4).affine(true))(x), "fb"),
    CALL(LocalResponseNorm, kImages, LocalResponseNorm(2)(x), "ff"),
    CALL(LocalResponseNorm.lines, kLines, LocalResponseNorm(2)(x), "fb"),
    CALL(GELU, kRows, GELU()(x), "fb"),
    CALL(Softplus, kRows, Softplus()(x), "fb"),
    CALL(LogSigmoid, kRows, LogSigmoid()(x), "fb"),
    CALL(PReLU, kRows, PReLU()(x), "bb"),
    CALL(Tanhshrink, kRows, Tanhshrink()(x), "fb"),
    CALL(Softmax, kRows, Softmax(1)(x), "fb"),
    CALL(LogSoftmax, kRows, LogSoftmax(1)(x), "fb"),
    CALL(RNN, kSteps, std::get<0>(RNN(8, 4)(x)), "bb"),
    CALL(LSTM, kSteps, std::get<0>(LSTM(8, 4)(x)), "bb"),
    CALL(LSTM.packed, kSteps,
         std::get<0>(LSTM(8, 4)->forward_with_packed_input(
                         utils::rnn::pack_padded_sequence(x, tensor({5, 4, 2}, kLong))))
             .data(),
         "bb"),
    CALL(GRU, kSteps, std::get<0>(GRU(8, 4)(x)), "fb"),
    CALL(RNNCell, kRows, RNNCell(8, 4)(x), "bb"),
    CALL(LSTMCell, kRows, std::get<0>(LSTMCell(8, 4)(x)), "fb"),
    CALL(GRUCell, kRows, GRUCell(8, 4)(x), "fb"),
    CALL(MultiheadAttention, kSteps, std::get<0>(MultiheadAttention(8, 2)(x, x, x)), "bb"),
    CALL(MultiheadAttention.weights, kSteps, std::get<1>(MultiheadAttention(8, 2)(x, x, x)), "bb"),
    CALL(TransformerEncoderLayer, kSteps,
         TransformerEncoderLayer(TransformerEncoderLayerOptions(8, 2).dim_feedforward(16))(x),
         "fb"),
    CALL(TransformerDecoderLayer, kSteps,
         TransformerDecoderLayer(TransformerDecoderLayerOptions(8, 2).dim_feedforward(16))(x, x),
         "fb"),
    CALL(CosineSimilarity, kRows, CosineSimilarity()(x, x), "fb"),
    CALL(PairwiseDistance, kRows, PairwiseDistance()(x, x), "fb"),
    CALL(L1Loss, kRows, L1Loss()(x, all_ones()), "ff"),
    CALL(MSELoss, kRows, MSELoss()(x, all_ones()), "ff"),
    CALL(HuberLoss, kRows, HuberLoss()(x, all_ones()), "ff"),
    CALL(CrossEntropyLoss, kRows, CrossEntropyLoss()(x, labels()), "ff"),
    CALL(NLLLoss, kRows, NLLLoss()(x, labels()), "ff"),
    CALL(BCEWithLogitsLoss, kRows, BCEWithLogitsLoss()(x, all_ones()), "ff"),
    CALL(KLDivLoss, kRows, KLDivLoss(KLDivLossOptions(kSum))(x, all_ones()), "ff"),
    CALL(PoissonNLLLoss, kRows, PoissonNLLLoss()(x, all_ones()), "ff"),
    CALL(MultiMarginLoss, kRows, MultiMarginLoss()(x, labels()), "ff"),
    CALL(MultiLabelSoftMarginLoss, kRows, MultiLabelSoftMarginLoss()(x, all_ones()), "ff"),
    CALL(SoftMarginLoss, kRows, SoftMarginLoss()(x, all_ones()), "ff"),
    CALL(CosineEmbeddingLoss, kRows, CosineEmbeddingLoss()(x, x, ones({3})), "ff"),
    CALL(TripletMarginLoss, kRows, TripletMarginLoss()(x, x, x), "ff"),
    CALL(Upsample, kImages,
         Upsample(UpsampleOptions().scale_factor(std::vector<double>{2, 2}).mode(kNearest))(x),
         "fb"),
    CALL(Upsample.area, kVolumes,
         (nn::functional::detail::interpolate(x, std::vector<int64_t>{2, 2, 2}, {}, kArea, {}, {},
                                              false)),
         "ff"),
    CALL(PixelShuffle, kImages, PixelShuffle(2)(x), "fb"),
    CALL(ReflectionPad2d, kImages, ReflectionPad2d(1)(x), "ff"),
    CALL(Unfold, kImages, Unfold(2)(x), "fb"),
};
#undef CALL

TEST(AutocastModules, ResultsHavePyTorchsDtypes) {
  const AutocastGuard autocast(kCPU, kBFloat16);
  for (const ModuleCall& m : kCalls) {
    std::string got;
    for (const ScalarType dtype : {kFloat, kBFloat16}) {
      const ScalarType result = m.call(randn(m.sizes).to(dtype)).scalar_type();
      got += result == kFloat ? 'f' : result == kBFloat16 ? 'b' : '?';
    }
    EXPECT_EQ(got, m.expected) << m.name;
  }
}

// A step's results have the dtype of its cell.
TEST(AutocastModules, StepsFollowTheCell) {
  LSTMCell net(8, 4);
  const Tensor x = randn({3, 8}), h = randn({3, 4}), c = randn({3, 4});
  const AutocastGuard autocast(kCPU);
  const auto dtype = [&](const Tensor& hidden, const Tensor& cell) {
    const auto [y, next] = net(x, std::tuple(hidden, cell));
    EXPECT_EQ(y.scalar_type(), next.scalar_type());
    return y.scalar_type();
  };
  EXPECT_EQ(dtype(h, c.to(kBFloat16)), kBFloat16);
  EXPECT_EQ(dtype(h.to(kBFloat16), c), kFloat);
}

// A module's networks compute what the functions do.
TEST(AutocastModules, NetworksAreThoseOfTheFunctions) {
  const Tensor x = randn({5, 3, 8}), zero = zeros({1, 3, 4});
  LSTM net(8, 4);
  const AutocastGuard autocast(kCPU);
  const Tensor expected = std::get<0>(
      lstm(x, TensorList{zero, zero}, net->all_weights(), true, 1, 0, true, false, false));
  EXPECT_TRUE(equal(std::get<0>(net(x)), expected));
}

}  // namespace
}  // namespace ramet::autocast_modules
