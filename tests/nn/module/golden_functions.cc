// The functions of nn::functional as tests/nn/goldens/golden_functions.py calls them.
#include "autograd/ops.h"
#include "nn/functional/functional.h"
#include "tests/nn/module/goldens.h"

namespace ramet::testing {
namespace {

namespace F = nn::functional;

Tensor flat(const Tensors& results) {
  Tensors parts;
  for (const Tensor& t : results) parts.push_back(t.flatten().to(kDouble));
  return cat(parts);
}
Tensor flat(const std::tuple<Tensor, Tensor>& results) {
  return flat(Tensors{std::get<0>(results), std::get<1>(results)});
}

Tensor normed(const Tensors& t) {
  const Tensor mean = t[1].clone(), var = t[2].clone();
  const auto options =
      F::BatchNormFuncOptions().weight(t[3]).bias(t[4]).training(true).momentum(.3);
  const Tensor y = F::batch_norm(t[0], mean, var, options);
  return flat(Tensors{y, mean, var});
}

std::vector<FunctionRow> elements() {
  return {
#define ROW(name, ...)                                           \
  {                                                              \
    name, [](const Tensors& t) -> Tensor { return __VA_ARGS__; } \
  }
      ROW("relu", F::relu(t[0])),
      ROW("relu6", F::relu6(t[0])),
      ROW("leaky_relu", F::leaky_relu(t[0], F::LeakyReLUFuncOptions().negative_slope(.3))),
      ROW("elu", F::elu(t[0], F::ELUFuncOptions().alpha(.7))),
      ROW("selu", F::selu(t[0])),
      ROW("celu", F::celu(t[0], F::CELUFuncOptions().alpha(2))),
      ROW("gelu", F::gelu(t[0])),
      ROW("gelu, by tanh", F::gelu(t[0], F::GELUFuncOptions().approximate("tanh"))),
      ROW("glu", F::glu(t[0], F::GLUFuncOptions(0))),
      ROW("silu", F::silu(t[0])),
      ROW("mish", F::mish(t[0])),
      ROW("softplus", F::softplus(t[0], F::SoftplusFuncOptions().beta(2).threshold(3))),
      ROW("logsigmoid", F::logsigmoid(t[0])),
      ROW("softsign", F::softsign(t[0])),
      ROW("tanhshrink", F::tanhshrink(t[0])),
      ROW("hardshrink", F::hardshrink(t[0], F::HardshrinkFuncOptions(.3))),
      ROW("softshrink", F::softshrink(t[0], F::SoftshrinkFuncOptions(.2))),
      ROW("hardtanh", F::hardtanh(t[0], F::HardtanhFuncOptions().min_val(-.3).max_val(.8))),
      ROW("threshold", F::threshold(t[0], F::ThresholdFuncOptions(.3, -2))),
      ROW("prelu", F::prelu(t[0], t[1])),
      ROW("prelu, of channels", F::prelu(t[0], t[1])),
      ROW("rrelu", F::rrelu(t[0], F::RReLUFuncOptions().lower(.2).upper(.5))),
      ROW("softmax", F::softmax(t[0], F::SoftmaxFuncOptions(1))),
      ROW("softmin", F::softmin(t[0], F::SoftminFuncOptions(0))),
      ROW("log_softmax", F::log_softmax(t[0], F::LogSoftmaxFuncOptions(-1))),
      {"gumbel_softmax", nullptr, "always adds random numbers"},
  };
}

std::vector<FunctionRow> images() {
  using Sizes = std::vector<int64_t>;
  using Scales = std::vector<double>;
  using Scaled = F::InterpolateFuncOptions;
  return {
      ROW("linear", F::linear(t[0], t[1], t[2])),
      ROW("linear, of a vector", F::linear(t[0], t[1])),
      ROW("bilinear", F::bilinear(t[0], t[1], t[2], t[3])),
      ROW("conv1d, as large as before",
          F::conv1d(t[0], t[1], F::Conv1dFuncOptions().bias(t[2]).padding(kSame).dilation(2))),
      ROW("conv2d", F::conv2d(t[0], t[1],
                              F::Conv2dFuncOptions()
                                  .bias(t[2])
                                  .stride({2, 1})
                                  .padding({1, 0})
                                  .dilation({1, 2})
                                  .groups(2))),
      ROW("conv3d",
          F::conv3d(t[0], t[1],
                    F::Conv3dFuncOptions().stride({1, 2, 1}).padding({0, 1, 0}).groups(2))),
      ROW("conv_transpose1d", F::conv_transpose1d(t[0], t[1],
                                                  F::ConvTranspose1dFuncOptions()
                                                      .bias(t[2])
                                                      .stride(2)
                                                      .padding(1)
                                                      .output_padding(1)
                                                      .groups(2))),
      ROW("conv_transpose2d",
          F::conv_transpose2d(
              t[0], t[1],
              F::ConvTranspose2dFuncOptions().bias(t[2]).padding({0, 1}).dilation({2, 1}))),
      ROW("conv_transpose3d",
          F::conv_transpose3d(t[0], t[1], F::ConvTranspose3dFuncOptions().stride(2))),
      ROW("fold",
          F::fold(
              t[0],
              F::FoldFuncOptions({4, 5}, {2, 3}).dilation({2, 1}).padding({0, 1}).stride({1, 2}))),
      ROW("unfold",
          F::unfold(t[0],
                    F::UnfoldFuncOptions({2, 3}).dilation({2, 1}).padding({0, 1}).stride({1, 2}))),
      ROW("pixel_shuffle", F::pixel_shuffle(t[0], F::PixelShuffleFuncOptions(3))),
      ROW("pixel_unshuffle", F::pixel_unshuffle(t[0], F::PixelUnshuffleFuncOptions(3))),
      ROW("pad", F::pad(t[0], F::PadFuncOptions({1, 2, -1, 3}).value(.7))),
      ROW("pad, reflected", F::pad(t[0], F::PadFuncOptions({2, 1, 0, 1}).mode(kReflect))),
      ROW("pad, replicated", F::pad(t[0], F::PadFuncOptions({3, -1}).mode(kReplicate))),
      ROW("pad, around", F::pad(t[0], F::PadFuncOptions({2, 1, 0, 2}).mode(kCircular))),
      ROW("interpolate, nearest", F::interpolate(t[0], Scaled().size(Sizes{7}).mode(kNearest))),
      ROW("interpolate, nearest-exact",
          F::interpolate(t[0], Scaled().size(Sizes{5, 3}).mode(kNearestExact))),
      ROW("interpolate, linear",
          F::interpolate(t[0],
                         Scaled().scale_factor(Scales{1.5}).mode(kLinear).align_corners(true))),
      ROW("interpolate, bilinear",
          F::interpolate(
              t[0], Scaled().scale_factor(Scales{1.5, 2.3}).mode(kBilinear).align_corners(false))),
      ROW("interpolate, bicubic",
          F::interpolate(t[0], Scaled().size(Sizes{6, 7}).mode(kBicubic).align_corners(true))),
      ROW("interpolate, trilinear",
          F::interpolate(t[0],
                         Scaled().size(Sizes{3, 2, 4}).mode(kTrilinear).align_corners(false))),
      ROW("interpolate, area", F::interpolate(t[0], Scaled().size(Sizes{3, 2}).mode(kArea))),
      ROW("interpolate, places by extents",
          F::interpolate(
              t[0], Scaled().scale_factor(Scales{1.4}).mode(kLinear).recompute_scale_factor(true))),
      ROW("interpolate, antialiased",
          F::interpolate(t[0], Scaled().size(Sizes{3, 4}).mode(kBicubic).antialias(true))),
  };
}

std::vector<FunctionRow> windows() {
  return {
      ROW("max_pool1d",
          F::max_pool1d(t[0], F::MaxPool1dFuncOptions(3).stride(2).padding(1).ceil_mode(true))),
      ROW("max_pool2d",
          F::max_pool2d(
              t[0], F::MaxPool2dFuncOptions(2).stride(2).padding(1).dilation(2).ceil_mode(true))),
      ROW("max_pool3d",
          F::max_pool3d(t[0],
                        F::MaxPool3dFuncOptions({2, 3, 2}).stride({1, 2, 2}).padding({1, 1, 0}))),
      ROW("avg_pool1d",
          F::avg_pool1d(
              t[0],
              F::AvgPool1dFuncOptions(3).stride(2).padding(1).ceil_mode(true).count_include_pad(
                  false))),
      ROW("avg_pool2d",
          F::avg_pool2d(t[0],
                        F::AvgPool2dFuncOptions({2, 3}).stride(2).padding(1).divisor_override(5))),
      ROW("avg_pool3d",
          F::avg_pool3d(
              t[0],
              F::AvgPool3dFuncOptions(2).padding(1).ceil_mode(true).count_include_pad(false))),
      ROW("adaptive_avg_pool1d", F::adaptive_avg_pool1d(t[0], F::AdaptiveAvgPool1dFuncOptions(3))),
      ROW("adaptive_avg_pool2d",
          F::adaptive_avg_pool2d(t[0], F::AdaptiveAvgPool2dFuncOptions({3, std::nullopt}))),
      ROW("adaptive_avg_pool3d",
          F::adaptive_avg_pool3d(t[0], F::AdaptiveAvgPool3dFuncOptions({2, std::nullopt, 3}))),
      ROW("adaptive_max_pool1d", F::adaptive_max_pool1d(t[0], F::AdaptiveMaxPool1dFuncOptions(3))),
      ROW("adaptive_max_pool2d",
          F::adaptive_max_pool2d(t[0], F::AdaptiveMaxPool2dFuncOptions({3, std::nullopt}))),
      ROW("adaptive_max_pool3d",
          F::adaptive_max_pool3d(t[0], F::AdaptiveMaxPool3dFuncOptions({2, std::nullopt, 3}))),
      ROW("adaptive_max_pool1d_with_indices",
          flat(F::adaptive_max_pool1d_with_indices(t[0], F::AdaptiveMaxPool1dFuncOptions(3)))),
      ROW("adaptive_max_pool2d_with_indices",
          flat(F::adaptive_max_pool2d_with_indices(
              t[0], F::AdaptiveMaxPool2dFuncOptions({3, std::nullopt})))),
      ROW("adaptive_max_pool3d_with_indices",
          flat(F::adaptive_max_pool3d_with_indices(
              t[0], F::AdaptiveMaxPool3dFuncOptions({2, std::nullopt, 3})))),
      ROW("max_pool1d_with_indices",
          flat(F::max_pool1d_with_indices(t[0], F::MaxPool1dFuncOptions(2).stride(1)))),
      ROW("max_pool2d_with_indices",
          flat(F::max_pool2d_with_indices(t[0], F::MaxPool2dFuncOptions(2).stride(1)))),
      ROW("max_pool3d_with_indices",
          flat(F::max_pool3d_with_indices(t[0], F::MaxPool3dFuncOptions(2).stride(1)))),
  };
}

std::vector<FunctionRow> norms() {
  return {
      ROW("batch_norm", F::batch_norm(t[0], t[1], t[2],
                                      F::BatchNormFuncOptions().weight(t[3]).bias(t[4]).eps(.1))),
      ROW("batch_norm, in training", normed(t)),
      ROW("layer_norm",
          F::layer_norm(t[0], F::LayerNormFuncOptions({2, 3}).weight(t[1]).bias(t[2]).eps(.01))),
      ROW("residual_layer_norm",
          flat(F::residual_layer_norm(
              t[0], t[1], F::LayerNormFuncOptions({4}).weight(t[2]).bias(t[3]).eps(.01)))),
      ROW("group_norm",
          F::group_norm(t[0], F::GroupNormFuncOptions(2).weight(t[1]).bias(t[2]).eps(.01))),
      ROW("instance_norm",
          F::instance_norm(t[0], F::InstanceNormFuncOptions().weight(t[1]).bias(t[2]).eps(.01))),
      ROW("instance_norm, by running statistics",
          F::instance_norm(
              t[0],
              F::InstanceNormFuncOptions().running_mean(t[1]).running_var(t[2]).use_input_stats(
                  false))),
      ROW("rms_norm", F::rms_norm(t[0], F::RMSNormFuncOptions({2, 3}).weight(t[1]).eps(.01))),
      ROW("local_response_norm",
          F::local_response_norm(t[0], F::LocalResponseNormFuncOptions(3).alpha(.5).beta(.6).k(2))),
      ROW("normalize", F::normalize(t[0])),
      ROW("normalize, p 3", F::normalize(t[0], F::NormalizeFuncOptions().p(3).dim(0))),
      ROW("cosine_similarity",
          F::cosine_similarity(t[0], t[1], F::CosineSimilarityFuncOptions().dim(0))),
      ROW("pairwise_distance",
          F::pairwise_distance(t[0], t[1],
                               F::PairwiseDistanceFuncOptions().p(3).eps(.01).keepdim(true))),
      ROW("pdist", F::pdist(t[0], 3)),
      ROW("dropout", F::dropout(t[0], F::DropoutFuncOptions().training(false))),
      ROW("dropout2d", F::dropout2d(t[0], F::Dropout2dFuncOptions().training(false))),
      ROW("dropout3d", F::dropout3d(t[0], F::Dropout3dFuncOptions().training(false))),
      ROW("alpha_dropout", F::alpha_dropout(t[0])),
      ROW("feature_alpha_dropout", F::feature_alpha_dropout(t[0])),
  };
}

Tensor longs(const std::vector<int64_t>& v) { return tensor(v, kLong); }

std::vector<FunctionRow> rows() {
  using Bag = F::EmbeddingBagFuncOptions;
  using Attention = F::MultiheadAttentionForwardFuncOptions;
  return {
      ROW("one_hot", F::one_hot(t[0], 5)),
      ROW("embedding", F::embedding(t[0], t[1], F::EmbeddingFuncOptions().padding_idx(2))),
      ROW("embedding, of limited norm",
          F::embedding(t[0], t[1], F::EmbeddingFuncOptions().max_norm(.75).norm_type(3))),
      ROW("embedding_bag", F::embedding_bag(t[0], t[1], Bag().offsets(longs({0, 2})))),
      ROW("embedding_bag, weighted", F::embedding_bag(t[0], t[1],
                                                      Bag()
                                                          .offsets(longs({0, 1, 4, 6}))
                                                          .include_last_offset(true)
                                                          .mode(kSum)
                                                          .per_sample_weights(t[2]))),
      ROW("embedding_bag, largest",
          F::embedding_bag(t[0], t[1], Bag().offsets(longs({0, 3})).mode(kMax))),
      ROW("multi_head_attention_forward",
          flat(F::multi_head_attention_forward(
              t[0], t[1], t[2],
              Attention(4, 2, t[3], t[4], t[5], t[6], true, 0, t[7], t[8]).attn_mask(t[9])))),
      ROW("multi_head_attention_forward, of other columns",
          flat(F::multi_head_attention_forward(
              t[0], t[1], t[2],
              Attention(4, 2, {}, t[3], {}, {}, false, 0, t[7], t[8])
                  .use_separate_proj_weight(true)
                  .q_proj_weight(t[4])
                  .k_proj_weight(t[5])
                  .v_proj_weight(t[6])
                  .average_attn_weights(false)))),
      ROW("multi_head_attention_forward, causal, with a mask that is not read",
          std::get<0>(F::multi_head_attention_forward(
              t[0], t[0], t[0],
              Attention(4, 2, t[1], t[2], {}, {}, false, 0, t[3], t[4])
                  .attn_mask(t[5])
                  .is_causal(true)
                  .need_weights(false)))),
  };
}

std::vector<FunctionRow> losses() {
  return {
      ROW("l1_loss", F::l1_loss(t[0], t[1])),
      ROW("mse_loss", F::mse_loss(t[0], t[1])),
      ROW("smooth_l1_loss", F::smooth_l1_loss(t[0], t[1], F::SmoothL1LossFuncOptions().beta(.5))),
      ROW("huber_loss", F::huber_loss(t[0], t[1], F::HuberLossFuncOptions(kSum).delta(.6))),
      ROW("binary_cross_entropy",
          F::binary_cross_entropy(t[0], t[1], F::BinaryCrossEntropyFuncOptions().weight(t[2]))),
      ROW("binary_cross_entropy_with_logits",
          F::binary_cross_entropy_with_logits(
              t[0], t[1],
              F::BinaryCrossEntropyWithLogitsFuncOptions().weight(t[2]).pos_weight(t[3]))),
      ROW("nll_loss",
          F::nll_loss(t[0], t[1], F::NLLLossFuncOptions().weight(t[2]).ignore_index(1))),
      ROW("nll_loss, of images", F::nll_loss(t[0], t[1], F::NLLLossFuncOptions().reduction(kSum))),
      ROW("cross_entropy",
          F::cross_entropy(
              t[0], t[1],
              F::CrossEntropyFuncOptions().weight(t[2]).ignore_index(1).label_smoothing(.2))),
      ROW("cross_entropy, of probabilities",
          F::cross_entropy(t[0], t[1],
                           F::CrossEntropyFuncOptions().weight(t[2]).label_smoothing(.2))),
      ROW("ctc_loss", F::ctc_loss(log_softmax(t[0], 2), t[1], longs({4, 3, 4}), longs({2, 1, 0}),
                                  F::CTCLossFuncOptions().blank(3))),
      ROW("kl_div", F::kl_div(t[0], t[1], F::KLDivFuncOptions(kBatchMean))),
      ROW("kl_div, of logarithms",
          F::kl_div(t[0], t[1], F::KLDivFuncOptions(kSum).log_target(true))),
      ROW("poisson_nll_loss",
          F::poisson_nll_loss(t[0], t[1],
                              F::PoissonNLLLossFuncOptions().log_input(false).full(true))),
      ROW("hinge_embedding_loss",
          F::hinge_embedding_loss(t[0], t[1], F::HingeEmbeddingLossFuncOptions().margin(.4))),
      ROW("soft_margin_loss", F::soft_margin_loss(t[0], t[1], F::SoftMarginLossFuncOptions(kSum))),
      ROW("multilabel_margin_loss",
          F::multilabel_margin_loss(t[0], longs({2, 0, -1, 3, 1}).expand({2, 5}))),
      ROW("cosine_embedding_loss",
          F::cosine_embedding_loss(t[0], t[1], t[2],
                                   F::CosineEmbeddingLossFuncOptions().margin(-.3))),
      ROW("margin_ranking_loss",
          F::margin_ranking_loss(t[0], t[1], t[2],
                                 F::MarginRankingLossFuncOptions().margin(.3).reduction(kSum))),
      ROW("triplet_margin_loss",
          F::triplet_margin_loss(
              t[0], t[1], t[2],
              F::TripletMarginLossFuncOptions().margin(.5).p(3).eps(.01).swap(true))),
      ROW("triplet_margin_with_distance_loss",
          F::triplet_margin_with_distance_loss(
              t[0], t[1], t[2],
              F::TripletMarginWithDistanceLossFuncOptions()
                  .distance_function(
                      [](const Tensor& x, const Tensor& y) { return (x - y).square().sum(1); })
                  .margin(2)
                  .swap(true)
                  .reduction(kSum))),
      ROW("multi_margin_loss",
          F::multi_margin_loss(
              t[0], t[1],
              F::MultiMarginLossFuncOptions().p(2).margin(.6).weight(t[2]).reduction(kSum))),
      ROW("multilabel_soft_margin_loss",
          F::multilabel_soft_margin_loss(t[0], t[1],
                                         F::MultilabelSoftMarginLossFuncOptions().weight(t[2]))),
#undef ROW
  };
}

}  // namespace

const std::vector<FunctionRow>& golden_functions() {
  static const std::vector<FunctionRow> all = [] {
    std::vector<FunctionRow> made;
    for (const auto& part : {elements(), images(), windows(), norms(), rows(), losses()})
      made.insert(made.end(), part.begin(), part.end());
    return made;
  }();
  return all;
}

}  // namespace ramet::testing
