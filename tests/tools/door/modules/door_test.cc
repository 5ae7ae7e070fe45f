// What nn does in a program that includes the LibTorch compatibility headers. It calls its classes
// torch::nn::..., and optimizers that are written with LibTorch's macros save and load.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "nn/module/class_name.h"
#include "ramet.h"
#include "ramet/compat/optim.h"
#include "ramet/compat/prefix.h"
#include "tests/error_text.h"

class OfNoNamespaceImpl : public ramet::nn::Module {};
namespace mine {
struct Bar : ramet::nn::Cloneable<Bar> {
  void reset() override {}
};
}  // namespace mine

namespace ramet::nn {
namespace {

// And in which state it leaves the stream: a program's next bool is printed as LibTorch leaves it.
template <class T> std::string print(const T& value) {
  std::ostringstream out;
  out << value << true;
  return out.str();
}

// What LibTorch 2.15 prints.
TEST(Door, ModulesPrintAsLibTorchs) {
  const struct {
    std::string got;
    const char* expected;
  } rows[] = {
      {print(Linear(1, 2)), "torch::nn::Linear(in_features=1, out_features=2, bias=true)true"},
      {print(Linear(LinearOptions(1, 2).bias(false))),
       "torch::nn::Linear(in_features=1, out_features=2, bias=false)true"},
      {print(Identity()), "torch::nn::Identity()1"},
      {print(Conv1d(1, 2, 3)), "torch::nn::Conv1d(1, 2, kernel_size=3, stride=1)1"},
      {print(Conv1d(Conv1dOptions(2, 2, 3).stride(2).padding(1).dilation(2).groups(2).bias(false))),
       "torch::nn::Conv1d(2, 2, kernel_size=3, stride=2, padding=1, dilation=2, groups=2, "
       "bias=false)true"},
      {print(Conv2d(1, 2, 3)), "torch::nn::Conv2d(1, 2, kernel_size=[3, 3], stride=[1, 1])1"},
      {print(Conv2d(Conv2dOptions(4, 4, {3, 5})
                        .stride({2, 1})
                        .padding({1, 2})
                        .dilation({2, 1})
                        .groups(4)
                        .bias(false))),
       "torch::nn::Conv2d(4, 4, kernel_size=[3, 5], stride=[2, 1], padding=[1, 2], dilation=[2, "
       "1], groups=4, bias=false)true"},
      {print(Conv2d(Conv2dOptions(1, 2, 3).padding(kSame))),
       "torch::nn::Conv2d(1, 2, kernel_size=[3, 3], stride=[1, 1], padding='same')1"},
      {print(Conv2d(Conv2dOptions(1, 2, 3).padding(kValid))),
       "torch::nn::Conv2d(1, 2, kernel_size=[3, 3], stride=[1, 1], padding='valid')1"},
      {print(Conv1d(Conv1dOptions(1, 2, 3).padding(kSame))),
       "torch::nn::Conv1d(1, 2, kernel_size=3, stride=1, padding='same')1"},
      {print(Conv2d(Conv2dOptions(1, 1, 1).padding({0, 1}))),
       "torch::nn::Conv2d(1, 1, kernel_size=[1, 1], stride=[1, 1], padding=[0, 1])1"},
      {print(Conv3d(Conv3dOptions(1, 2, 3).padding_mode(kReflect))),
       "torch::nn::Conv3d(1, 2, kernel_size=[3, 3, 3], stride=[1, 1, 1], padding_mode=kReflect)1"},
      {print(ConvTranspose1d(1, 2, 3)),
       "torch::nn::ConvTranspose1d(1, 2, kernel_size=3, stride=1)1"},
      {print(ConvTranspose2d(
           ConvTranspose2dOptions(4, 4, {3, 5}).stride(2).padding(1).output_padding(1).groups(2))),
       "torch::nn::ConvTranspose2d(4, 4, kernel_size=[3, 5], stride=[2, 2], padding=[1, 1], "
       "output_padding=[1, 1], groups=2)1"},
      {print(MaxPool1d(2)),
       "torch::nn::MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=false)true"},
      {print(MaxPool1d(MaxPool1dOptions(3).stride(2).padding(1).dilation(2).ceil_mode(true))),
       "torch::nn::MaxPool1d(kernel_size=3, stride=2, padding=1, dilation=2, ceil_mode=true)true"},
      {print(MaxPool2d(2)),
       "torch::nn::MaxPool2d(kernel_size=[2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1], "
       "ceil_mode=false)true"},
      {print(MaxPool2d(
           MaxPool2dOptions({3, 2}).stride({2, 1}).padding({1, 0}).dilation({2, 1}).ceil_mode(
               true))),
       "torch::nn::MaxPool2d(kernel_size=[3, 2], stride=[2, 1], padding=[1, 0], dilation=[2, 1], "
       "ceil_mode=true)true"},
      {print(AvgPool1d(2)), "torch::nn::AvgPool1d(kernel_size=2, stride=2, padding=0)1"},
      {print(AvgPool1d(
           AvgPool1dOptions(3).stride(2).padding(1).ceil_mode(true).count_include_pad(false))),
       "torch::nn::AvgPool1d(kernel_size=3, stride=2, padding=1)1"},
      {print(AvgPool2d(2)),
       "torch::nn::AvgPool2d(kernel_size=[2, 2], stride=[2, 2], padding=[0, 0])1"},
      {print(AvgPool2d(AvgPool2dOptions({3, 2})
                           .stride({2, 1})
                           .padding({1, 0})
                           .ceil_mode(true)
                           .count_include_pad(false)
                           .divisor_override(3))),
       "torch::nn::AvgPool2d(kernel_size=[3, 2], stride=[2, 1], padding=[1, 0])1"},
      {print(AdaptiveAvgPool1d(3)), "torch::nn::AdaptiveAvgPool1d(output_size=3)1"},
      {print(AdaptiveAvgPool2d(3)), "torch::nn::AdaptiveAvgPool2d(output_size=[3, 3])1"},
      {print(AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({3, 2}))),
       "torch::nn::AdaptiveAvgPool2d(output_size=[3, 2])1"},
      {print(AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({nullopt, 2}))),
       "torch::nn::AdaptiveAvgPool2d(output_size=[None, 2])1"},
      {print(AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({3, nullopt}))),
       "torch::nn::AdaptiveAvgPool2d(output_size=[3, None])1"},
      {print(MaxPool3d(MaxPool3dOptions({3, 2, 1}).stride(2))),
       "torch::nn::MaxPool3d(kernel_size=[3, 2, 1], stride=[2, 2, 2], padding=[0, 0, 0], "
       "dilation=[1, 1, 1], ceil_mode=false)true"},
      {print(AvgPool3d(2)),
       "torch::nn::AvgPool3d(kernel_size=[2, 2, 2], stride=[2, 2, 2], padding=[0, 0, 0])1"},
      {print(AdaptiveAvgPool3d(AdaptiveAvgPool3dOptions({3, nullopt, 2}))),
       "torch::nn::AdaptiveAvgPool3d(output_size=[3, None, 2])1"},
      {print(AdaptiveMaxPool1d(3)), "torch::nn::AdaptiveMaxPool1d(output_size=3)1"},
      {print(AdaptiveMaxPool2d(AdaptiveMaxPool2dOptions({3, nullopt}))),
       "torch::nn::AdaptiveMaxPool2d(output_size=[3, None])1"},
      {print(BatchNorm1d(4)),
       "torch::nn::BatchNorm1d(4, eps=1e-05, momentum=0.1, affine=true, "
       "track_running_stats=true)true"},
      {print(BatchNorm1d(
           BatchNorm1dOptions(4).eps(1e-3).momentum(nullopt).affine(false).track_running_stats(
               false))),
       "torch::nn::BatchNorm1d(4, eps=0.001, momentum=None, affine=false, "
       "track_running_stats=false)true"},
      {print(BatchNorm2d(4)),
       "torch::nn::BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=true, "
       "track_running_stats=true)true"},
      {print(BatchNorm2d(BatchNorm2dOptions(4).momentum(0.01))),
       "torch::nn::BatchNorm2d(4, eps=1e-05, momentum=0.01, affine=true, "
       "track_running_stats=true)true"},
      {print(BatchNorm3d(4)),
       "torch::nn::BatchNorm3d(4, eps=1e-05, momentum=0.1, affine=true, "
       "track_running_stats=true)true"},
      {print(InstanceNorm1d(
           InstanceNorm1dOptions(4).eps(0.5).affine(true).track_running_stats(true))),
       "torch::nn::InstanceNorm1d(4, eps=0.5, momentum=0.1, affine=true, "
       "track_running_stats=true)true"},
      {print(LocalResponseNorm(LocalResponseNormOptions(2).alpha(0.0002).beta(0.85).k(2.))),
       "torch::nn::LocalResponseNorm(2, alpha=0.0002, beta=0.85, k=2)1"},
      {print(Dropout3d(0.25)), "torch::nn::Dropout3d(p=0.25, inplace=false)true"},
      {print(AlphaDropout(0.25)), "torch::nn::AlphaDropout(p=0.25, inplace=false)true"},
      {print(FeatureAlphaDropout()), "torch::nn::FeatureAlphaDropout(p=0.5, inplace=false)true"},
      {print(LayerNorm(LayerNormOptions({4}))),
       "torch::nn::LayerNorm([4], eps=1e-05, elementwise_affine=true)true"},
      {print(LayerNorm(LayerNormOptions({2, 3}).eps(1e-6).elementwise_affine(false))),
       "torch::nn::LayerNorm([2, 3], eps=1e-06, elementwise_affine=false)true"},
      {print(GroupNorm(2, 6)), "torch::nn::GroupNorm(2, 6, eps=1e-05, affine=true)true"},
      {print(GroupNorm(GroupNormOptions(1, 5).eps(2e-3).affine(false))),
       "torch::nn::GroupNorm(1, 5, eps=0.002, affine=false)true"},
      {print(Upsample(UpsampleOptions().size(std::vector<int64_t>{4}))),
       "torch::nn::Upsample(size=[4], mode=kNearest)1"},
      {print(Upsample(UpsampleOptions().scale_factor(std::vector<double>{2, 1.5}).mode(kBilinear))),
       "torch::nn::Upsample(scale_factor=[2, 1.5], mode=kBilinear)1"},
      {print(Bilinear(3, 2, 4)),
       "torch::nn::Bilinear(in1_features=3, in2_features=2, out_features=4, bias=true)true"},
      {print(EmbeddingBag(4, 3)), "torch::nn::EmbeddingBag(num_embeddings=4, embedding_dim=3)1"},
      {print(EmbeddingBag(EmbeddingBagOptions(4, 3)
                              .max_norm(2)
                              .norm_type(1)
                              .scale_grad_by_freq(true)
                              .mode(kSum)
                              .include_last_offset(true)
                              .padding_idx(1))),
       "torch::nn::EmbeddingBag(num_embeddings=4, embedding_dim=3, max_norm=2, norm_type=1, "
       "scale_grad_by_freq=true, mode=kSum, include_last_offset=true, padding_idx=1)true"},
      {print(EmbeddingBag(EmbeddingBagOptions(4, 3).norm_type(2.5).mode(kMax))),
       "torch::nn::EmbeddingBag(num_embeddings=4, embedding_dim=3, norm_type=2.5, mode=kMax)1"},
      {print(Embedding(EmbeddingOptions(4, 3).max_norm(2).norm_type(2.5).padding_idx(-1))),
       "torch::nn::Embedding(num_embeddings=4, embedding_dim=3, padding_idx=3, max_norm=2, "
       "norm_type=2.5)1"},
      {print(ParameterList(ones({2, 3}))),
       "torch::nn::ParameterList(\n(0): Parameter containing: [Float of size [2, 3]]\n)1"},
      {print(PixelShuffle(2)), "torch::nn::PixelShuffle(upscale_factor=2)1"},
      {print(PixelUnshuffle(3)), "torch::nn::PixelUnshuffle(downscale_factor=3)1"},
      {print(Fold(FoldOptions({4, 5}, {2, 3}).padding(1))),
       "torch::nn::Fold(output_size=[4, 5], kernel_size=[2, 3], dilation=[1, 1], padding=[1, 1], "
       "stride=[1, 1])1"},
      {print(Unfold(UnfoldOptions({2, 3}).stride(2))),
       "torch::nn::Unfold(kernel_size=[2, 3], dilation=[1, 1], padding=[0, 0], stride=[2, 2])1"},
      {print(RNN(RNNOptions(3, 4).nonlinearity(kReLU))),
       "torch::nn::RNN(input_size=3, hidden_size=4, num_layers=1, bias=true, batch_first=false, "
       "dropout=0, bidirectional=false)true"},
      {print(LSTM(LSTMOptions(3, 4).num_layers(2).proj_size(2).dropout(0.5))),
       "torch::nn::LSTM(input_size=3, hidden_size=4, num_layers=2, bias=true, batch_first=false, "
       "dropout=0.5, bidirectional=false, proj_size=2)true"},
      {print(GRU(GRUOptions(3, 4).bidirectional(true))),
       "torch::nn::GRU(input_size=3, hidden_size=4, num_layers=1, bias=true, batch_first=false, "
       "dropout=0, bidirectional=true)true"},
      {print(RNNCell(3, 4)), "torch::nn::RNNCell(3, 4)1"},
      {print(LSTMCell(LSTMCellOptions(3, 4).bias(false))),
       "torch::nn::LSTMCell(3, 4, bias=false)true"},
      {print(GRUCell(3, 4)), "torch::nn::GRUCell(3, 4)1"},
      {print(MultiheadAttention(4, 2)),
       "torch::nn::MultiheadAttention(\n  (out_proj): torch::nn::Linear(in_features=4, "
       "out_features=4, bias=true)\n)true"},
      {print(TransformerDecoderLayer(
           TransformerDecoderLayerOptions(2, 1).dim_feedforward(3).dropout(.5))),
       "torch::nn::TransformerDecoderLayerImpl(\n"
       "  (self_attn): torch::nn::MultiheadAttention(\n"
       "    (out_proj): torch::nn::Linear(in_features=2, out_features=2, bias=true)\n"
       "  )\n"
       "  (multihead_attn): torch::nn::MultiheadAttention(\n"
       "    (out_proj): torch::nn::Linear(in_features=2, out_features=2, bias=true)\n"
       "  )\n"
       "  (linear1): torch::nn::Linear(in_features=2, out_features=3, bias=true)\n"
       "  (dropout): torch::nn::Dropout(p=0.5, inplace=false)\n"
       "  (linear2): torch::nn::Linear(in_features=3, out_features=2, bias=true)\n"
       "  (norm1): torch::nn::LayerNorm([2], eps=1e-05, elementwise_affine=true)\n"
       "  (norm2): torch::nn::LayerNorm([2], eps=1e-05, elementwise_affine=true)\n"
       "  (norm3): torch::nn::LayerNorm([2], eps=1e-05, elementwise_affine=true)\n"
       "  (dropout1): torch::nn::Dropout(p=0.5, inplace=false)\n"
       "  (dropout2): torch::nn::Dropout(p=0.5, inplace=false)\n"
       "  (dropout3): torch::nn::Dropout(p=0.5, inplace=false)\n)true"},
      {print(TransformerEncoder(
           TransformerEncoderOptions(TransformerEncoderLayerOptions(2, 1).dim_feedforward(3), 0))),
       "torch::nn::TransformerEncoderImpl(\n  (layers): torch::nn::ModuleList\n)1"},
      {print(Dropout()), "torch::nn::Dropout(p=0.5, inplace=false)true"},
      {print(Dropout(0.1)), "torch::nn::Dropout(p=0.1, inplace=false)true"},
      {print(Dropout(DropoutOptions(0.25).inplace(true))),
       "torch::nn::Dropout(p=0.25, inplace=true)true"},
      {print(Dropout2d()), "torch::nn::Dropout2d(p=0.5, inplace=false)true"},
      {print(Dropout2d(Dropout2dOptions(0.3).inplace(true))),
       "torch::nn::Dropout2d(p=0.3, inplace=true)true"},
      {print(ReLU()), "torch::nn::ReLU()1"},
      {print(ReLU(true)), "torch::nn::ReLU(inplace=true)true"},
      {print(ReLU(ReLUOptions().inplace(true))), "torch::nn::ReLU(inplace=true)true"},
      {print(LeakyReLU()), "torch::nn::LeakyReLU(negative_slope=0.01)true"},
      {print(LeakyReLU(LeakyReLUOptions().negative_slope(0.2).inplace(true))),
       "torch::nn::LeakyReLU(negative_slope=0.2, inplace=true)true"},
      {print(GELU()), "torch::nn::GELU()1"},
      {print(GELU(GELUOptions().approximate("tanh"))), "torch::nn::GELU()1"},
      {print(Tanh()), "torch::nn::Tanh()1"},
      {print(Sigmoid()), "torch::nn::Sigmoid()1"},
      {print(Softmax(1)), "torch::nn::Softmax(dim=1)1"},
      {print(Softmax(SoftmaxOptions(-1))), "torch::nn::Softmax(dim=-1)1"},
      {print(LogSoftmax(1)), "torch::nn::LogSoftmax(dim=1)1"},
      {print(ELU()), "torch::nn::ELU(alpha=1)1"},
      {print(ELU(ELUOptions().alpha(0.5).inplace(true))),
       "torch::nn::ELU(alpha=0.5, inplace=true)true"},
      {print(SELU()), "torch::nn::SELU()1"},
      {print(SELU(true)), "torch::nn::SELU(inplace=true)true"},
      {print(SELU(SELUOptions().inplace(true))), "torch::nn::SELU(inplace=true)true"},
      {print(Hardshrink()), "torch::nn::Hardshrink(0.5)true"},
      {print(Hardshrink(0.25)), "torch::nn::Hardshrink(0.25)true"},
      {print(Hardtanh()), "torch::nn::Hardtanh(min_val=-1, max_val=1)true"},
      {print(Hardtanh(HardtanhOptions().min_val(-2).max_val(0.5).inplace(true))),
       "torch::nn::Hardtanh(min_val=-2, max_val=0.5, inplace=true)true"},
      {print(LogSigmoid()), "torch::nn::LogSigmoid()1"},
      {print(Softmin(1)), "torch::nn::Softmin(dim=1)1"},
      {print(Softmax2d()), "torch::nn::Softmax2d()1"},
      {print(PReLU()), "torch::nn::PReLU(num_parameters=1)1"},
      {print(PReLU(PReLUOptions().num_parameters(3).init(0.1))),
       "torch::nn::PReLU(num_parameters=3)1"},
      {print(ReLU6()), "torch::nn::ReLU6()1"},
      {print(ReLU6(true)), "torch::nn::ReLU6(inplace=true)true"},
      {print(RReLU()), "torch::nn::RReLU(lower=0.125, upper=0.333333)1"},
      {print(RReLU(RReLUOptions().lower(0.1).upper(0.4).inplace(true))),
       "torch::nn::RReLU(lower=0.1, upper=0.4, inplace=true)true"},
      {print(CELU()), "torch::nn::CELU(alpha=1)1"},
      {print(CELU(CELUOptions().alpha(2).inplace(true))),
       "torch::nn::CELU(alpha=2, inplace=true)true"},
      {print(GLU()), "torch::nn::GLU(dim=-1)1"},
      {print(GLU(1)), "torch::nn::GLU(dim=1)1"},
      {print(SiLU()), "torch::nn::SiLU()1"},
      {print(Mish()), "torch::nn::Mish()1"},
      {print(Softplus()), "torch::nn::Softplus(beta=1, threshold=20)1"},
      {print(Softplus(SoftplusOptions().beta(2).threshold(10))),
       "torch::nn::Softplus(beta=2, threshold=10)1"},
      {print(Softshrink()), "torch::nn::Softshrink(0.5)1"},
      {print(Softshrink(0.3)), "torch::nn::Softshrink(0.3)1"},
      {print(Softsign()), "torch::nn::Softsign()1"},
      {print(Tanhshrink()), "torch::nn::Tanhshrink()1"},
      {print(Threshold(1, 2)), "torch::nn::Threshold(threshold=1, value=2)1"},
      {print(Threshold(ThresholdOptions(0.5, -3).inplace(true))),
       "torch::nn::Threshold(threshold=0.5, value=-3, inplace=true)true"},
      {print(CosineSimilarity()), "torch::nn::CosineSimilarity(dim=1, eps=1e-08)true"},
      {print(CosineSimilarity(CosineSimilarityOptions().dim(0).eps(0.5))),
       "torch::nn::CosineSimilarity(dim=0, eps=0.5)true"},
      {print(PairwiseDistance()), "torch::nn::PairwiseDistance(p=2, eps=1e-06, keepdim=false)true"},
      {print(PairwiseDistance(PairwiseDistanceOptions().p(3).eps(0.5).keepdim(true))),
       "torch::nn::PairwiseDistance(p=3, eps=0.5, keepdim=true)true"},
      {print(KLDivLoss()), "torch::nn::KLDivLoss()1"},
      {print(HingeEmbeddingLoss()), "torch::nn::HingeEmbeddingLoss(margin=1)1"},
      {print(HingeEmbeddingLoss(HingeEmbeddingLossOptions().margin(4))),
       "torch::nn::HingeEmbeddingLoss(margin=4)1"},
      {print(MultiMarginLoss()),
       "torch::nn::MultiMarginLoss(p=1, margin=1, weight=[ Tensor (undefined) ], "
       "reduction=kMean)1"},
      {print(MultiMarginLoss(MultiMarginLossOptions().margin(2).p(2))),
       "torch::nn::MultiMarginLoss(p=2, margin=2, weight=[ Tensor (undefined) ], "
       "reduction=kMean)1"},
      {print(MultiMarginLoss(MultiMarginLossOptions().margin(2).p(2).weight(ones({3})))),
       "torch::nn::MultiMarginLoss(p=2, margin=2, weight= 1\n 1\n 1\n[ CPUFloatType{3} ], "
       "reduction=kMean)1"},
      {print(CosineEmbeddingLoss()), "torch::nn::CosineEmbeddingLoss(margin=0)1"},
      {print(CosineEmbeddingLoss(CosineEmbeddingLossOptions().margin(0.5))),
       "torch::nn::CosineEmbeddingLoss(margin=0.5)1"},
      {print(MultiLabelMarginLoss()), "torch::nn::MultiLabelMarginLoss()1"},
      {print(SoftMarginLoss()), "torch::nn::SoftMarginLoss()1"},
      {print(MultiLabelSoftMarginLoss()), "torch::nn::MultiLabelSoftMarginLoss()1"},
      {print(TripletMarginLoss()),
       "torch::nn::TripletMarginLoss(margin=1, p=2, eps=1e-06, swap=false)true"},
      {print(TripletMarginLoss(TripletMarginLossOptions().margin(3).p(2).eps(1e-6).swap(true))),
       "torch::nn::TripletMarginLoss(margin=3, p=2, eps=1e-06, swap=true)true"},
      {print(TripletMarginWithDistanceLoss()),
       "torch::nn::TripletMarginWithDistanceLoss(margin=1, swap=false)true"},
      {print(TripletMarginWithDistanceLoss(
           TripletMarginWithDistanceLossOptions().margin(2).swap(true))),
       "torch::nn::TripletMarginWithDistanceLoss(margin=2, swap=true)true"},
      {print(HuberLoss()), "torch::nn::HuberLoss1"},
      {print(HuberLoss(HuberLossOptions().delta(0.5))), "torch::nn::HuberLoss1"},
      {print(PoissonNLLLoss()), "torch::nn::PoissonNLLLoss()1"},
      {print(MarginRankingLoss()), "torch::nn::MarginRankingLoss()1"},
      {print(MarginRankingLoss(MarginRankingLossOptions().margin(0.5))),
       "torch::nn::MarginRankingLoss()1"},
      {print(ReflectionPad1d(2)), "torch::nn::ReflectionPad1d(padding=[2, 2])1"},
      {print(ReflectionPad1d(ReflectionPad1dOptions({3, 1}))),
       "torch::nn::ReflectionPad1d(padding=[3, 1])1"},
      {print(ReplicationPad3d(1)), "torch::nn::ReplicationPad3d(padding=[1, 1, 1, 1, 1, 1])1"},
      {print(ReplicationPad3d(ReplicationPad3dOptions({1, 2, 3, 4, 5, 6}))),
       "torch::nn::ReplicationPad3d(padding=[1, 2, 3, 4, 5, 6])1"},
      {print(ZeroPad2d(2)), "torch::nn::ZeroPad2d(padding=[2, 2, 2, 2])1"},
      {print(ZeroPad2d(ZeroPad2dOptions({1, 1, 2, 0}))),
       "torch::nn::ZeroPad2d(padding=[1, 1, 2, 0])1"},
      {print(ConstantPad2d(ConstantPad2dOptions({3, 0, 2, 1}, 3.5))),
       "torch::nn::ConstantPad2d(padding=[3, 0, 2, 1], value=3.5)1"},
      {print(Embedding(3, 4)), "torch::nn::Embedding(num_embeddings=3, embedding_dim=4)1"},
      {print(Embedding(EmbeddingOptions(3, 4).padding_idx(1))),
       "torch::nn::Embedding(num_embeddings=3, embedding_dim=4, padding_idx=1)1"},
      {print(Embedding(EmbeddingOptions(3, 4).padding_idx(-1).scale_grad_by_freq(true))),
       "torch::nn::Embedding(num_embeddings=3, embedding_dim=4, padding_idx=2, "
       "scale_grad_by_freq=true)true"},
      {print(Flatten()), "torch::nn::Flatten(start_dim=1, end_dim=-1)1"},
      {print(Flatten(FlattenOptions().start_dim(0).end_dim(2))),
       "torch::nn::Flatten(start_dim=0, end_dim=2)1"},
      {print(Unflatten(1, std::vector<int64_t>{2, 3})),
       "torch::nn::Unflatten(dim=1, unflattened_size={2, 3})1"},
      {print(Unflatten(UnflattenOptions(1, {2, 3}))),
       "torch::nn::Unflatten(dim=1, unflattened_size={2, 3})1"},
      {print(L1Loss()), "torch::nn::L1Loss()1"},
      {print(MSELoss()), "torch::nn::MSELoss()1"},
      {print(MSELoss(MSELossOptions(kSum))), "torch::nn::MSELoss()1"},
      {print(SmoothL1Loss()), "torch::nn::SmoothL1Loss1"},
      {print(BCELoss()), "torch::nn::BCELoss()1"},
      {print(BCEWithLogitsLoss()), "torch::nn::BCEWithLogitsLoss()1"},
      {print(NLLLoss()), "torch::nn::NLLLoss()1"},
      {print(CrossEntropyLoss()), "torch::nn::CrossEntropyLoss()1"},
      {print(CrossEntropyLoss(CrossEntropyLossOptions().ignore_index(3))),
       "torch::nn::CrossEntropyLoss()1"},
      {print(CTCLoss()), "torch::nn::CTCLoss()1"},
      {print(CTCLoss(CTCLossOptions().blank(42).zero_infinity(true).reduction(kSum))),
       "torch::nn::CTCLoss()1"},
      {print(Functional(relu)), "torch::nn::Functional()1"},
      {print(Sequential()), "torch::nn::Sequential1"},
      {print(Sequential(Linear(1, 2), ReLU())),
       "torch::nn::Sequential(\n  (0): torch::nn::Linear(in_features=1, out_features=2, "
       "bias=true)\n  (1): torch::nn::ReLU()\n)true"},
      {print(ModuleList()), "torch::nn::ModuleList1"},
      {print(ModuleList(Linear(1, 2), ReLU())),
       "torch::nn::ModuleList(\n  (0): torch::nn::Linear(in_features=1, out_features=2, "
       "bias=true)\n  (1): torch::nn::ReLU()\n)true"},
      {print(ModuleDict()), "torch::nn::ModuleDict1"},
  };
  for (const auto& row : rows) EXPECT_EQ(row.got, row.expected);
}

TEST(Door, TreesPrintAsLibTorchs) {
  const OrderedDict<std::string, std::shared_ptr<Module>> named = {
      {"a", Linear(1, 2).ptr()}, {"b", Sequential(Linear(1, 2)).ptr()}};
  Module top;
  top.register_module("seq", Sequential({{"x", Linear(1, 2)}, {"f", Functional(relu)}}));
  top.register_module("list", ModuleList(ModuleList(Linear(1, 1)), Sequential()));
  top.register_module("dict", ModuleDict(named));
  top.register_module("foo", std::make_shared<OfNoNamespaceImpl>());
  top.register_module("bar", std::make_shared<mine::Bar>());
  top.register_parameter("p", ones({1}));
  EXPECT_EQ(print(top),
            "torch::nn::Module(\n"
            "  (seq): torch::nn::Sequential(\n"
            "    (x): torch::nn::Linear(in_features=1, out_features=2, bias=true)\n"
            "    (f): torch::nn::Functional()\n"
            "  )\n"
            "  (list): torch::nn::ModuleList(\n"
            "    (0): torch::nn::ModuleList(\n"
            "      (0): torch::nn::Linear(in_features=1, out_features=1, bias=true)\n"
            "    )\n"
            "    (1): torch::nn::Sequential\n"
            "  )\n"
            "  (dict): torch::nn::ModuleDict(\n"
            "    (a): torch::nn::Linear(in_features=1, out_features=2, bias=true)\n"
            "    (b): torch::nn::Sequential(\n"
            "      (0): torch::nn::Linear(in_features=1, out_features=2, bias=true)\n"
            "    )\n"
            "  )\n"
            "  (foo): OfNoNamespaceImpl\n"
            "  (bar): mine::Bar\n"
            ")true");
}

TEST(Door, NamesAndErrorTexts) {
  EXPECT_EQ(Linear(1, 2)->name(), "torch::nn::LinearImpl");
  EXPECT_EQ(Sequential()->name(), "torch::nn::SequentialImpl");
  EXPECT_EQ(mine::Bar().name(), "mine::Bar");
  EXPECT_EQ(Module("ramet::mine").name(), "ramet::mine");  // given, not found
  EXPECT_EQ(detail::with_root_namespace("A<ramet::B, my::ramet::C, gramet::D, ramet::nn::E>"),
            "A<torch::B, my::ramet::C, gramet::D, torch::nn::E>");
  EXPECT_ERROR_TEXT(Module().clone(),
                    "clone() has not been implemented for torch::nn::Module. Subclass "
                    "torch::nn::Cloneable<torch::nn::Module> instead of torch::nn::Module to "
                    "inherit the ability to clone.");
  EXPECT_ERROR_TEXT(AnyModule(Linear(1, 2)).get<ReLUImpl>(),
                    "Attempted to cast module of type torch::nn::LinearImpl to type "
                    "torch::nn::ReLUImpl");
}

// Files are the same with and without the LibTorch compatibility headers.
TEST(Door, FilesDoNotHaveTheName) {
  const Linear layer(1, 1);
  const optim::SGD sgd(layer->parameters(), 0.1);
  optim::Adam adam(layer->parameters());
  serialize::OutputArchive out;
  sgd.save(out);
  std::stringstream file;
  out.save_to(file);
  serialize::InputArchive in;
  in.load_from(file);
  IValue options;
  in.read("options", options);
  EXPECT_EQ(options.toStringRef(), "ramet::optim::SGDOptions");
  EXPECT_ERROR_TEXT(adam.load(in), "got torch::optim::SGDOptions, expected torch::optim::Adam");
}

// ---- an optimizer in LibTorch's style -----------------------------------------------------------

struct PushOptions : public optim::OptimizerCloneableOptions<PushOptions> {
  using betas_t = std::tuple<double, double>;
  explicit PushOptions(double lr = 0.5) : lr_(lr) {}
  RAMET_ARG(double, lr) = 0.5;
  RAMET_ARG(betas_t, betas) = std::make_tuple(0.25, 0.75);
  RAMET_ARG(std::optional<int64_t>, limit) = std::nullopt;
  RAMET_ARG(bool, fast) = false;

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { this->lr(lr); }
  void serialize(serialize::InputArchive& archive) override {
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, lr);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(betas_t, betas);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG_OPTIONAL(int64_t, limit);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(bool, fast);
  }
  void serialize(serialize::OutputArchive& archive) const override {
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(lr);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(betas);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(limit);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(fast);
  }
};
struct PushParamState : public optim::OptimizerCloneableParamState<PushParamState> {
  RAMET_ARG(int64_t, step) = 0;
  RAMET_ARG(Tensor, sum);
  RAMET_ARG(Tensor, never);
  RAMET_ARG(std::deque<Tensor>, last);

 public:
  void serialize(serialize::InputArchive& archive) override {
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(int64_t, step);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(Tensor, sum);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(Tensor, never);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG_DEQUE(std::deque<Tensor>, last);
  }
  void serialize(serialize::OutputArchive& archive) const override {
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(step);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(sum);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(never);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG_DEQUE(last);
  }
};
class Push : public optim::Optimizer {
 public:
  explicit Push(std::vector<Tensor> params, PushOptions defaults = PushOptions())
      : Optimizer({optim::OptimizerParamGroup(std::move(params))},
                  std::make_unique<PushOptions>(defaults)) {}
  Tensor step(LossClosure closure = nullptr) override {
    const NoGradGuard off;
    for (auto& group : param_groups_)
      for (auto& p : group.params()) {
        auto& kept = state_[p.unsafeGetTensorImpl()];
        if (!kept) kept = std::make_unique<PushParamState>();
        auto& state = static_cast<PushParamState&>(*kept);
        state.step(state.step() + 1).sum(p.detach().clone());
        state.last().push_back(p.detach().clone());
        p.add_(static_cast<PushOptions&>(group.options()).lr());
      }
    return closure ? closure() : Tensor();
  }
  void save(serialize::OutputArchive& archive) const override { serialize(*this, archive); }
  void load(serialize::InputArchive& archive) override { serialize(*this, archive); }

 private:
  template <class Self, class Archive> static void serialize(Self& self, Archive& archive) {
    _TORCH_OPTIM_SERIALIZE_WITH_TEMPLATE_ARG(Push);
  }
};

TEST(Door, AnOptimizerWithLibTorchsMacrosSavesAndLoads) {
  const Tensor p = zeros({2}, kDouble);
  Push one({p}, PushOptions(2).betas({0.5, 0.125}).limit(7).fast(true));
  one.step(), one.step();
  std::stringstream file;
  save(one, file);
  Push two({p});
  load(two, file);
  const auto& options = static_cast<const PushOptions&>(two.param_groups()[0].options());
  EXPECT_EQ(options.lr(), 2);
  EXPECT_EQ(options.betas(), std::make_tuple(0.5, 0.125));
  EXPECT_EQ(options.limit(), 7);
  EXPECT_TRUE(options.fast());
  const auto& state = static_cast<const PushParamState&>(*two.state().at(p.unsafeGetTensorImpl()));
  EXPECT_EQ(state.step(), 2);
  EXPECT_EQ(state.sum().sum().item<double>(), 4);  // 2 + 2
  EXPECT_FALSE(state.never().defined());
  ASSERT_EQ(state.last().size(), 2u);
  EXPECT_EQ(state.last()[1].sum().item<double>(), 4);
}

}  // namespace
}  // namespace ramet::nn
