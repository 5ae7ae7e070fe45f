#include "tests/nn/c/module_rows.h"

#include "nn/functional/functional.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/transformer_layers.h"

namespace ramet {

using namespace nn;

namespace {

#define ROW(json, made, ...) {R"({"type": )" json "}", [] { return AnyModule(made); }, __VA_ARGS__},
#define PLAIN(Name) ROW("\"" #Name "\"", nn::Name(), {2, 6})

const std::vector<int64_t> kLine = {2, 4, 6}, kPlane = {2, 4, 6, 6}, kVolume = {2, 4, 4, 4, 4};

}  // namespace

std::vector<ModuleRow> module_rows() {
  return {
      // clang-format off
      PLAIN(Identity) PLAIN(Tanh) PLAIN(Sigmoid) PLAIN(LogSigmoid) PLAIN(SiLU) PLAIN(Mish) PLAIN(Softsign)
      PLAIN(Tanhshrink) PLAIN(ReLU6) PLAIN(SELU)
      ROW(R"("Softmax2d")", Softmax2d(), kPlane)
      ROW(R"("Softmax", "dim": 0)", Softmax(0), {2, 6})
      ROW(R"("Softmin", "dim": 0)", Softmin(0), {2, 6})
      ROW(R"("LogSoftmax", "dim": -1)", LogSoftmax(-1), {2, 6})
      ROW(R"("GELU", "approximate": "tanh")", GELU(GELUOptions().approximate("tanh")), {2, 6})
      ROW(R"("GLU", "dim": 0)", GLU(0), {2, 6})
      ROW(R"("Hardshrink", "lambda": 0.75)", Hardshrink(0.75), {2, 6})
      ROW(R"("Softshrink", "lambda": 0.75)", Softshrink(0.75), {2, 6})
      ROW(R"("ReLU", "inplace": true)", ReLU(true), {2, 6})
      ROW(R"("LeakyReLU", "negative_slope": 0.5)", LeakyReLU(LeakyReLUOptions().negative_slope(0.5)), {2, 6})
      ROW(R"("ELU", "alpha": 0.5)", ELU(ELUOptions().alpha(0.5)), {2, 6})
      ROW(R"("CELU", "alpha": 0.5)", CELU(CELUOptions().alpha(0.5)), {2, 6})
      ROW(R"("Hardtanh", "min_val": -0.5, "max_val": 0.25)", Hardtanh(HardtanhOptions().min_val(-0.5).max_val(0.25)), {2, 6})
      ROW(R"("RReLU", "lower": 0.25, "upper": 0.75)", RReLU(RReLUOptions().lower(0.25).upper(0.75)), {2, 6})
      ROW(R"("Softplus", "beta": 2, "threshold": 0.5)", Softplus(SoftplusOptions().beta(2).threshold(0.5)), {2, 6})
      ROW(R"("Threshold", "threshold": 0.5, "value": 7)", Threshold(0.5, 7), {2, 6})
      ROW(R"("PReLU", "num_parameters": 6, "init": 0.5)", PReLU(PReLUOptions().num_parameters(6).init(0.5)), {2, 6})
      ROW(R"("Linear", "in_features": 6, "out_features": 3, "bias": false)", Linear(LinearOptions(6, 3).bias(false)), {2, 6})
      ROW(R"("Flatten", "start_dim": 2, "end_dim": 3)", Flatten(FlattenOptions().start_dim(2).end_dim(3)), kPlane)
      ROW(R"("Unflatten", "dim": 1, "sizes": [2, -1])", Unflatten(1, std::vector<int64_t>{2, -1}), {2, 6})
      ROW(R"("Embedding", "num_embeddings": 9, "embedding_dim": 3, "padding_idx": 2, "max_norm": 1.5, "norm_type": 1, "scale_grad_by_freq": true)",
          Embedding(EmbeddingOptions(9, 3).padding_idx(2).max_norm(1.5).norm_type(1).scale_grad_by_freq(true)), {2, 6}, kInt64)
      ROW(R"("RNN", "input_size": 6, "hidden_size": 3, "num_layers": 2, "nonlinearity": "relu", "bias": false, "bidirectional": true)",
          RNN(RNNOptions(6, 3).num_layers(2).nonlinearity(kReLU).bias(false).bidirectional(true)), kLine)
      ROW(R"("LSTM", "input_size": 6, "hidden_size": 3, "batch_first": true, "proj_size": 2)", LSTM(LSTMOptions(6, 3).batch_first(true).proj_size(2)), kLine)
      ROW(R"("GRU", "input_size": 6, "hidden_size": 3, "num_layers": 2, "dropout": 0.5)", GRU(GRUOptions(6, 3).num_layers(2).dropout(0.5)), kLine)
      ROW(R"("TransformerEncoderLayer", "d_model": 6, "nhead": 2, "dim_feedforward": 5, "dropout": 0.25, "activation": "gelu", "batch_first": true, "norm_first": true)",
          TransformerEncoderLayer(TransformerEncoderLayerOptions(6, 2).dim_feedforward(5).dropout(0.25).activation(kGELU).batch_first(true).norm_first(true)), kLine)
      ROW(R"("BatchNorm1d", "num_features": 4, "eps": 0.5, "affine": false)", BatchNorm1d(BatchNorm1dOptions(4).eps(0.5).affine(false)), kLine)
      ROW(R"("BatchNorm2d", "num_features": 4, "momentum": null)", BatchNorm2d(BatchNorm2dOptions(4).momentum(std::nullopt)), kPlane)
      ROW(R"("BatchNorm3d", "num_features": 4, "track_running_stats": false)", BatchNorm3d(BatchNorm3dOptions(4).track_running_stats(false)), kVolume)
      ROW(R"("LayerNorm", "normalized_shape": [4, 6], "eps": 0.5, "elementwise_affine": false)", LayerNorm(LayerNormOptions({4, 6}).eps(0.5).elementwise_affine(false)), kLine)
      ROW(R"("RMSNorm", "normalized_shape": 6, "eps": 0.5)", RMSNorm(RMSNormOptions({6}).eps(0.5)), kLine)
      ROW(R"("GroupNorm", "num_groups": 2, "num_channels": 4, "eps": 0.5, "affine": false)", GroupNorm(GroupNormOptions(2, 4).eps(0.5).affine(false)), kPlane)
      ROW(R"("LocalResponseNorm", "size": 3, "alpha": 0.5, "beta": 0.25, "k": 2)", LocalResponseNorm(LocalResponseNormOptions(3).alpha(0.5).beta(0.25).k(2)), kPlane)
      ROW(R"("Dropout", "p": 0.25)", Dropout(0.25), {2, 6})
      ROW(R"("Dropout2d", "p": 0.25)", Dropout2d(0.25), kPlane)
      ROW(R"("Dropout3d", "p": 0.25)", Dropout3d(0.25), kVolume)
      ROW(R"("AlphaDropout", "p": 0.25)", AlphaDropout(0.25), {2, 6})
      ROW(R"("FeatureAlphaDropout", "p": 0.25)", FeatureAlphaDropout(0.25), kPlane)
      ROW(R"("Conv1d", "in_channels": 4, "out_channels": 2, "kernel_size": 3, "stride": 2, "padding": 1, "dilation": 2, "groups": 2)",
          Conv1d(Conv1dOptions(4, 2, 3).stride(2).padding(1).dilation(2).groups(2)), kLine)
      ROW(R"("Conv2d", "in_channels": 4, "out_channels": 2, "kernel_size": [3, 2], "padding": "valid", "padding_mode": "circular")",
          Conv2d(Conv2dOptions(4, 2, {3, 2}).padding(kValid).padding_mode(kCircular)), kPlane)
      ROW(R"("Conv3d", "in_channels": 4, "out_channels": 2, "kernel_size": 2, "padding": [0, 1, 0], "bias": false)",
          Conv3d(Conv3dOptions(4, 2, 2).padding({0, 1, 0}).bias(false)), kVolume)
      ROW(R"("ConvTranspose1d", "in_channels": 4, "out_channels": 2, "kernel_size": 3, "stride": 2, "output_padding": 1)",
          ConvTranspose1d(ConvTranspose1dOptions(4, 2, 3).stride(2).output_padding(1)), kLine)
      ROW(R"("ConvTranspose2d", "in_channels": 4, "out_channels": 2, "kernel_size": 3, "padding": [1, 0], "groups": 2)",
          ConvTranspose2d(ConvTranspose2dOptions(4, 2, 3).padding({1, 0}).groups(2)), kPlane)
      ROW(R"("ConvTranspose3d", "in_channels": 4, "out_channels": 2, "kernel_size": 2, "bias": false, "dilation": 2)",
          ConvTranspose3d(ConvTranspose3dOptions(4, 2, 2).bias(false).dilation(2)), kVolume)
      ROW(R"("MaxPool1d", "kernel_size": 3, "padding": 1)", MaxPool1d(MaxPool1dOptions(3).padding(1)), kLine)
      ROW(R"("MaxPool2d", "kernel_size": [2, 3], "stride": 1, "ceil_mode": true)", MaxPool2d(MaxPool2dOptions({2, 3}).stride(1).ceil_mode(true)), kPlane)
      ROW(R"("MaxPool3d", "kernel_size": 2, "dilation": 2)", MaxPool3d(MaxPool3dOptions(2).dilation(2)), kVolume)
      ROW(R"("AvgPool1d", "kernel_size": 3, "stride": 2)", AvgPool1d(AvgPool1dOptions(3).stride(2)), kLine)
      ROW(R"("AvgPool2d", "kernel_size": 3, "padding": 1, "count_include_pad": false)", AvgPool2d(AvgPool2dOptions(3).padding(1).count_include_pad(false)), kPlane)
      ROW(R"("AvgPool3d", "kernel_size": 2, "divisor_override": 3, "ceil_mode": true)", AvgPool3d(AvgPool3dOptions(2).divisor_override(3).ceil_mode(true)), kVolume)
      ROW(R"("AdaptiveAvgPool1d", "output_size": 4)", AdaptiveAvgPool1d(4), kLine)
      ROW(R"("AdaptiveAvgPool2d", "output_size": [null, 3])", AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({std::nullopt, 3})), kPlane)
      ROW(R"("AdaptiveAvgPool3d", "output_size": 3)", AdaptiveAvgPool3d(3), kVolume)
      ROW(R"("AdaptiveMaxPool1d", "output_size": 4)", AdaptiveMaxPool1d(4), kLine)
      ROW(R"("AdaptiveMaxPool2d", "output_size": [4, 3])", AdaptiveMaxPool2d(AdaptiveMaxPool2dOptions({4, 3})), kPlane)
      ROW(R"("AdaptiveMaxPool3d", "output_size": 1)", AdaptiveMaxPool3d(1), kVolume)
      ROW(R"("ReflectionPad1d", "padding": [1, 2])", ReflectionPad1d(ReflectionPad1dOptions({1, 2})), kLine)
      ROW(R"("ReflectionPad2d", "padding": 1)", ReflectionPad2d(1), kPlane)
      ROW(R"("ReflectionPad3d", "padding": 1)", ReflectionPad3d(1), kVolume)
      ROW(R"("ReplicationPad1d", "padding": 2)", ReplicationPad1d(2), kLine)
      ROW(R"("ReplicationPad2d", "padding": [0, 1, 2, 3])", ReplicationPad2d(ReplicationPad2dOptions({0, 1, 2, 3})), kPlane)
      ROW(R"("ReplicationPad3d", "padding": 1)", ReplicationPad3d(1), kVolume)
      ROW(R"("ZeroPad1d", "padding": [-1, 1])", ZeroPad1d(ZeroPad1dOptions({-1, 1})), kLine)
      ROW(R"("ZeroPad2d", "padding": 1)", ZeroPad2d(1), kPlane)
      ROW(R"("ZeroPad3d", "padding": 1)", ZeroPad3d(1), kVolume)
      ROW(R"("ConstantPad1d", "padding": 1, "value": 2.5)", ConstantPad1d(ConstantPad1dOptions(1, 2.5)), kLine)
      ROW(R"("ConstantPad2d", "padding": 1, "value": -1)", ConstantPad2d(ConstantPad2dOptions(1, -1)), kPlane)
      ROW(R"("ConstantPad3d", "padding": 1, "value": 0)", ConstantPad3d(ConstantPad3dOptions(1, 0)), kVolume)
      ROW(R"("InstanceNorm1d", "num_features": 4, "eps": 0.5)", InstanceNorm1d(InstanceNorm1dOptions(4).eps(0.5)), kLine)
      ROW(R"("InstanceNorm2d", "num_features": 4, "affine": true)", InstanceNorm2d(InstanceNorm2dOptions(4).affine(true)), kPlane)
      ROW(R"("InstanceNorm3d", "num_features": 4, "track_running_stats": true, "momentum": 0.5)", InstanceNorm3d(InstanceNorm3dOptions(4).track_running_stats(true).momentum(0.5)), kVolume)
      ROW(R"("PixelShuffle", "upscale_factor": 2)", PixelShuffle(2), kPlane)
      ROW(R"("PixelUnshuffle", "downscale_factor": 3)", PixelUnshuffle(3), kPlane)
      ROW(R"("Fold", "output_size": [3, 3], "kernel_size": 2, "padding": [1, 0], "dilation": 1, "stride": 2)", Fold(FoldOptions({3, 3}, 2).padding({1, 0}).stride(2)), {2, 8, 2})
      ROW(R"("Unfold", "kernel_size": 2, "padding": 1, "stride": [1, 2])", Unfold(UnfoldOptions(2).padding(1).stride({1, 2})), kPlane)
      ROW(R"("Upsample", "scale_factor": [2, 1.5], "mode": "bilinear", "align_corners": true)",
          Upsample(UpsampleOptions().scale_factor(std::vector<double>{2, 1.5}).mode(kBilinear).align_corners(true)), kPlane)
      ROW(R"("Upsample", "size": 9)", Upsample(UpsampleOptions().size(std::vector<int64_t>{9})), kLine)
      // clang-format on
  };
}

}  // namespace ramet
