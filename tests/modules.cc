#include "tests/modules.h"

#include "autograd/ops.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/bilinear.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/functional_module.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/conv_transpose.h"
#include "nn/layers/image/fold.h"
#include "nn/layers/image/padding.h"
#include "nn/layers/image/pixel_shuffle.h"
#include "nn/layers/image/pooling.h"
#include "nn/layers/image/upsampling.h"
#include "nn/layers/loss/ctc_loss.h"
#include "nn/layers/loss/distance.h"
#include "nn/layers/loss/loss.h"
#include "nn/layers/loss/margin_loss.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/layers/norm/group_norm.h"
#include "nn/layers/norm/instance_norm.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/norm/response_norm.h"
#include "nn/layers/norm/rms_norm.h"
#include "nn/layers/sequence/embedding.h"
#include "nn/layers/sequence/embedding_bag.h"
#include "nn/layers/sequence/multihead_attention.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/recurrent_cells.h"
#include "nn/layers/sequence/transformer.h"
#include "nn/layers/sequence/transformer_layers.h"
#include "nn/module/module_list.h"
#include "nn/module/parameter_list.h"
#include "nn/module/sequential.h"

namespace ramet::testing {
namespace {

// Results of a forward as one tensor, batch first: states of recurrent modules have it second.
Tensor joined(const Tensor& y) { return y; }
Tensor joined(const std::tuple<Tensor, Tensor>& y) {
  const Tensor first = std::get<0>(y);
  Tensor second = std::get<1>(y);
  if (second.size(0) != first.size(0)) second = second.transpose(0, 1);
  return cat({first.flatten(1), second.flatten(1)}, 1);
}
Tensor joined(const std::tuple<Tensor, std::tuple<Tensor, Tensor>>& y) {
  const auto& [h, c] = std::get<1>(y);
  return joined(std::tuple(joined(std::tuple(std::get<0>(y), h)), c));
}

template <class M, class... T> Tensor called(M& module, const T&... inputs) {
  if constexpr (requires { module.forward(inputs...); }) return joined(nn::call(module, inputs...));
  else fail("modules.cc", "no forward of ", sizeof...(T), " tensors");
}

template <class Holder> ModuleRow line(const char* name, Holder (*make)()) {
  ModuleRow row;
  row.name = name;
  row.make = [make] { return make().ptr(); };
  row.call = [](nn::Module& m, const Tensors& in) {
    auto& module = dynamic_cast<typename Holder::ContainedType&>(m);
    switch (in.size()) {
      case 1: return called(module, in[0]);
      case 2: return called(module, in[0], in[1]);
      default: return called(module, in.at(0), in.at(1), in.at(2));
    }
  };
  return row;
}

Tensor own_six() { return ones({6}, TensorOptions().requires_grad(true)); }

nn::TransformerEncoderLayerOptions encoder(double p) {
  return nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(6).dropout(p).batch_first(true);
}
nn::TransformerDecoderLayerOptions decoder() {
  return nn::TransformerDecoderLayerOptions(4, 2).dim_feedforward(6).dropout(0).batch_first(true);
}

std::vector<ModuleRow> lines() {
  using namespace nn;
  std::vector<ModuleRow> all;
  // A module, its constructor's arguments; then the inputs of its forward.
#define MODULE(Name, ...) \
  all.push_back(line<nn::Name>(#Name, [] { return nn::Name(__VA_ARGS__); })), all.back().inputs =
#define LACKS(check, reason) all.back().lacks(Check::check, reason)
#define VARIANT(word) all.back().name += " " word

  const std::vector<Draw> plain = {real({kBatch, 6})}, planes = {real({kBatch, 2, 4, 4})},
                          lines = {real({kBatch, 2, 6})}, volumes = {real({kBatch, 2, 2, 2, 2})},
                          steps = {real({kBatch, 3, 4})},
                          two = {real({kBatch, 6}), real({kBatch, 6})},
                          three = {real({kBatch, 6}), real({kBatch, 6}), real({kBatch, 6})},
                          classes = {real({kBatch, 6}), indices(6, {kBatch})},
                          signed_pairs = {real({kBatch, 6}), signs({kBatch, 6})};
  const auto random = [&](const char* what) {
    LACKS(kRepeats, what);
    LACKS(kTrainIsEval, what);
  };

  MODULE(Linear, 6, 3) plain;
  MODULE(Identity) plain;
  MODULE(Flatten) planes;
  MODULE(Unflatten, UnflattenOptions(1, {2, 3})) plain;
  MODULE(Functional, [](Tensor x) { return tanh(x); }) plain;
  LACKS(kArchive, "functions are not saved");
  MODULE(Sequential, Linear(6, 4), Tanh(), Linear(4, 3)) plain;
  MODULE(ModuleList, Linear(6, 4), Linear(4, 3)) plain;
  all.back().call = [](Module& m, const Tensors& in) {
    return call(*m.children()[1]->as<Linear>(), call(*m.children()[0]->as<Linear>(), in[0]));
  };
  using Named = std::vector<std::pair<std::string, std::shared_ptr<Module>>>;
  MODULE(ModuleDict, Named{{"one", Linear(6, 4).ptr()}, {"two", Linear(6, 4).ptr()}}) plain;
  all.back().call = [](Module& m, const Tensors& in) {
    return call(*m.children()[1]->as<Linear>(), in[0]) *
           call(*m.children()[0]->as<Linear>(), in[0]);
  };

  MODULE(Conv1d, Conv1dOptions(2, 4, 3).padding(1)) lines;
  MODULE(Conv2d, Conv2dOptions(2, 3, 3).padding(1).stride(2)) planes;
  MODULE(Conv2d, Conv2dOptions(2, 4, 3).groups(2).bias(false)) planes;
  VARIANT("in groups");
  MODULE(Conv2d, Conv2dOptions(2, 3, 3).padding(1).padding_mode(kReflect)) planes;
  VARIANT("with reflected borders");
  MODULE(Conv3d, Conv3dOptions(2, 2, 2).padding(1).padding_mode(kCircular)) volumes;
  MODULE(ConvTranspose1d, ConvTranspose1dOptions(2, 4, 3).stride(2)) lines;
  MODULE(ConvTranspose2d, ConvTranspose2dOptions(2, 2, 3).groups(2).output_padding(1).stride(2))
  std::vector<Draw>{real({kBatch, 2, 1, 3})};
  MODULE(ConvTranspose3d, 2, 2, 2) volumes;
  MODULE(Upsample, UpsampleOptions().scale_factor(std::vector<double>{2, 1.5}).mode(kBilinear))
  std::vector<Draw>{real({kBatch, 2, 4, 3})};
  MODULE(MaxPool1d, 2) lines;
  MODULE(MaxPool2d, MaxPool2dOptions(3).stride(1)) planes;
  MODULE(AvgPool1d, 2) lines;
  MODULE(AvgPool2d, AvgPool2dOptions(3).stride(1)) planes;
  MODULE(AdaptiveAvgPool1d, 4) lines;
  MODULE(AdaptiveAvgPool2d, 3) planes;
  MODULE(MaxPool3d, MaxPool3dOptions(2).stride(1)) volumes;
  MODULE(AvgPool3d, AvgPool3dOptions(2).stride(1).padding(1)) volumes;
  MODULE(AdaptiveAvgPool3d, 3) volumes;
  MODULE(AdaptiveMaxPool1d, 4) lines;
  MODULE(AdaptiveMaxPool2d, 3) planes;
  MODULE(AdaptiveMaxPool3d, 1) volumes;
  MODULE(PixelShuffle, 2) std::vector<Draw>{real({kBatch, 4, 2, 2})};
  MODULE(PixelUnshuffle, 2) planes;
  MODULE(Unfold, UnfoldOptions(2).padding(1)) std::vector<Draw>{real({kBatch, 1, 3, 3})};
  MODULE(Fold, FoldOptions({3, 3}, 2)) std::vector<Draw>{real({kBatch, 8, 4})};

  const char* const statistics = "a batch's statistics";
  const auto batch_norm = [&] {
    LACKS(kTrainIsEval, statistics);
    LACKS(kPieces, statistics);
  };
  MODULE(BatchNorm1d, 6) plain;
  batch_norm();
  MODULE(BatchNorm2d, 2) planes;
  batch_norm();
  MODULE(BatchNorm3d, 2) volumes;
  batch_norm();
  MODULE(BatchNormReLUMaxPool2d, 2) planes;
  batch_norm();
  MODULE(InstanceNorm1d, InstanceNorm1dOptions(2).affine(true)) lines;
  MODULE(InstanceNorm2d, 2) planes;
  MODULE(InstanceNorm3d, 2) volumes;
  MODULE(LocalResponseNorm, 2) planes;
  MODULE(RMSNorm, RMSNormOptions({6})) plain;
  MODULE(LayerNorm, LayerNormOptions({6})) plain;
  MODULE(GroupNorm, 2, 6) plain;
  MODULE(GroupNorm, 1, 2) planes;
  VARIANT("of planes");
  MODULE(Dropout, 0.25) plain;
  random("drops in training");
  MODULE(Dropout2d, 0.25) planes;
  random("drops in training");
  MODULE(Dropout3d, 0.25) volumes;
  random("drops in training");
  MODULE(AlphaDropout, 0.25) plain;
  random("drops in training");
  MODULE(FeatureAlphaDropout, 0.25) planes;
  random("drops in training");
  MODULE(Embedding, 6, 3)
  std::vector<Draw>{indices(6, {kBatch, 2})};
  MODULE(EmbeddingBag, 6, 3)
  std::vector<Draw>{indices(6, {kBatch, 2})};
  MODULE(Bilinear, 4, 5, 3)
  std::vector<Draw>{real({kBatch, 4}), real({kBatch, 5})};
  MODULE(ParameterList, own_six(), own_six()) plain;
  all.back().call = [](Module& m, const Tensors& in) {
    return in[0] * m.parameters()[0] + m.parameters()[1];
  };
  const char* const own_list = "parameters are read from the module's own list, which has shards";
  LACKS(kShards, own_list);
  MODULE(ParameterDict) plain;
  all.back().make = [] {
    ParameterDict made;
    made->insert("one", own_six());
    return made.ptr();
  };
  all.back().call = [](Module& m, const Tensors& in) { return in[0] * m.parameters()[0]; };
  LACKS(kShards, own_list);

#define OF_PLAIN(Name) MODULE(Name) plain
  OF_PLAIN(ReLU);
  OF_PLAIN(ReLU6);
  OF_PLAIN(LeakyReLU);
  OF_PLAIN(ELU);
  OF_PLAIN(SELU);
  OF_PLAIN(CELU);
  OF_PLAIN(GELU);
  OF_PLAIN(GLU);
  OF_PLAIN(SiLU);
  OF_PLAIN(Mish);
  OF_PLAIN(Tanh);
  OF_PLAIN(Sigmoid);
  OF_PLAIN(LogSigmoid);
  OF_PLAIN(Softplus);
  OF_PLAIN(Softsign);
  OF_PLAIN(Tanhshrink);
  OF_PLAIN(Hardshrink);
  OF_PLAIN(Softshrink);
  OF_PLAIN(Hardtanh);
#undef OF_PLAIN
  MODULE(Threshold, 0.1, 0.5) plain;
  MODULE(PReLU, PReLUOptions().num_parameters(6)) plain;
  MODULE(RReLU) plain;
  random("draws slopes in training");
  for (const Check dtype : {Check::kHalf, Check::kBFloat16, Check::kDouble})
    all.back().lacks(dtype, "draws other slopes");
  MODULE(Softmax, 1) plain;
  MODULE(Softmin, 1) plain;
  MODULE(LogSoftmax, 1) plain;
  MODULE(Softmax2d) planes;

#define OF_ALL_RANKS(Kind, ...)                                       \
  MODULE(Kind##1d, Kind##1dOptions({1, 2} __VA_ARGS__)) lines;        \
  MODULE(Kind##2d, Kind##2dOptions({2, 0, 0, 1} __VA_ARGS__)) planes; \
  MODULE(Kind##3d, Kind##3dOptions({1, 0, 0, 1, 1, 0} __VA_ARGS__)) volumes
#define COMMA ,
  OF_ALL_RANKS(ReflectionPad, );
  OF_ALL_RANKS(ReplicationPad, );
  OF_ALL_RANKS(ZeroPad, );
  OF_ALL_RANKS(ConstantPad, COMMA 0.5);
#undef COMMA
#undef OF_ALL_RANKS

  // A loss for each element or sample: the mean of a piece is not that of the batch.
#define LOSS(Name, ...) MODULE(Name, Name##Options().reduction(kNone) __VA_ARGS__)
  LOSS(L1Loss) two;
  LOSS(MSELoss) two;
  LOSS(SmoothL1Loss) two;
  LOSS(HuberLoss) two;
  LOSS(BCELoss) std::vector<Draw>{positive({kBatch, 6}), positive({kBatch, 6})};
  LOSS(BCEWithLogitsLoss) std::vector<Draw>{real({kBatch, 6}), positive({kBatch, 6})};
  LOSS(KLDivLoss) std::vector<Draw>{real({kBatch, 6}), positive({kBatch, 6})};
  LOSS(PoissonNLLLoss) std::vector<Draw>{real({kBatch, 6}), positive({kBatch, 6})};
  LOSS(NLLLoss) classes;
  LOSS(CrossEntropyLoss) classes;
  LOSS(MultiMarginLoss) classes;
  LOSS(CTCLoss, .blank(5).zero_infinity(true))
  std::vector<Draw>{real({kBatch, 4, 6}), indices(5, {kBatch, 3}), indices(5, {kBatch}),
                    indices(4, {kBatch})};
  all.back().call = [](Module& m, const Tensors& in) {
    return call(*m.as<CTCLoss>(), log_softmax(in[0].transpose(0, 1), 2), in[1], in[2], in[3]);
  };
  LOSS(MultiLabelMarginLoss) std::vector<Draw>{real({kBatch, 6}), indices(6, {kBatch, 6})};
  LOSS(MultiLabelSoftMarginLoss) std::vector<Draw>{real({kBatch, 6}), positive({kBatch, 6})};
  LOSS(SoftMarginLoss) signed_pairs;
  LOSS(HingeEmbeddingLoss) signed_pairs;
  LOSS(MarginRankingLoss)
  std::vector<Draw>{real({kBatch, 6}), real({kBatch, 6}), signs({kBatch, 6})};
  LOSS(CosineEmbeddingLoss)
  std::vector<Draw>{real({kBatch, 6}), real({kBatch, 6}), signs({kBatch})};
  LOSS(TripletMarginLoss) three;
  LOSS(TripletMarginWithDistanceLoss) three;
#undef LOSS
  MODULE(CosineSimilarity) two;
  MODULE(PairwiseDistance) two;

  MODULE(RNN, RNNOptions(4, 3).batch_first(true)) steps;
  MODULE(LSTM, LSTMOptions(4, 3).batch_first(true).num_layers(2).proj_size(2)) steps;
  MODULE(GRU, GRUOptions(4, 3).batch_first(true).bidirectional(true)) steps;
  MODULE(LSTM, LSTMOptions(4, 3).batch_first(true).num_layers(2).dropout(.5)) steps;
  VARIANT("with dropout");
  random("drops between layers");
  LACKS(kReplicas, "drops rows of all steps, which are no samples: each device draws its own");
  LACKS(kSecond, "the same");
  const std::vector<Draw> two_steps = {real({kBatch, 3, 4}), real({kBatch, 2, 4})};
  const std::vector<Draw> three_steps = {real({kBatch, 2, 4}), real({kBatch, 3, 4}),
                                         real({kBatch, 3, 4})};
  MODULE(MultiheadAttention, MultiheadAttentionOptions(4, 2).batch_first(true).add_bias_kv(true))
  three_steps;
  MODULE(TransformerEncoderLayer, encoder(0)) steps;
  MODULE(TransformerEncoderLayer, encoder(.5)) steps;
  VARIANT("with dropout");
  random("drops in training");
  MODULE(TransformerDecoderLayer, decoder()) two_steps;
  MODULE(TransformerEncoder,
         TransformerEncoderOptions(encoder(0), 2).norm(AnyModule(LayerNorm(LayerNormOptions({4})))))
  steps;
  MODULE(TransformerDecoder, TransformerDecoderOptions(decoder(), 2)) two_steps;
  MODULE(Transformer,
         TransformerOptions(4, 2, 1, 1).dim_feedforward(6).dropout(0).batch_first(true))
  two_steps;
  MODULE(RNNCell, 6, 3) plain;
  MODULE(LSTMCell, 6, 2) plain;
  MODULE(GRUCell, 6, 3) plain;
#undef MODULE
#undef LACKS
#undef VARIANT
  return all;
}

}  // namespace

const std::vector<ModuleRow>& all_modules() {
  static const std::vector<ModuleRow> all = lines();
  return all;
}

const ModuleRow& module_row(const std::string& name) {
  for (const ModuleRow& row : all_modules())
    if (row.name == name) return row;
  fail("modules.cc", "no module ", name);
}

}  // namespace ramet::testing
