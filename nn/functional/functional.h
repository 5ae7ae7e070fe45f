// nn::functional: what the modules compute, as functions. `namespace F = ramet::nn::functional;`
//
// Each function takes its tensors and an options object, as LibTorch's function of the same name.
// Modules call the forms in `detail`, which take plain arguments. A new function is declared in its
// module's header in nn/layers, and this header includes that one.
#pragma once
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "nn/layers/basic/activation.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/layers/basic/bilinear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/conv_transpose.h"
#include "nn/layers/loss/ctc_loss.h"
#include "nn/layers/loss/distance.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/sequence/embedding.h"
#include "nn/layers/sequence/embedding_bag.h"
#include "nn/layers/image/fold.h"
#include "nn/layers/norm/group_norm.h"
#include "nn/layers/norm/instance_norm.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/loss/loss.h"
#include "nn/layers/loss/margin_loss.h"
#include "nn/layers/sequence/multihead_attention.h"
#include "nn/layers/image/padding.h"
#include "nn/layers/image/pixel_shuffle.h"
#include "nn/layers/image/pooling.h"
#include "nn/layers/image/upsampling.h"
#include "nn/layers/norm/response_norm.h"
#include "nn/layers/norm/rms_norm.h"

namespace ramet::nn::functional {

// ---- options that differ from the module's ------------------------------------------------------

/// The options of conv1d, conv2d and conv3d but for the weight.
template <size_t D> struct ConvFuncOptions {
  /// Numbers, kSame or kValid.
  using padding_t = nn::detail::conv_padding_t<D>;
  RAMET_ARG(Tensor, bias);
  RAMET_ARG(ExpandingArray<D>, stride) = 1;
  RAMET_ARG(padding_t, padding) = ExpandingArray<D>(0);

 public:
  auto padding(std::initializer_list<int64_t> list) -> decltype(*this) {
    return padding(padding_t(ExpandingArray<D>(list)));
  }
  RAMET_ARG(ExpandingArray<D>, dilation) = 1;
  RAMET_ARG(int64_t, groups) = 1;
};
using Conv1dFuncOptions = ConvFuncOptions<1>;
using Conv2dFuncOptions = ConvFuncOptions<2>;
using Conv3dFuncOptions = ConvFuncOptions<3>;

struct RAMET_API BatchNormFuncOptions {
  RAMET_ARG(Tensor, weight);
  RAMET_ARG(Tensor, bias);
  RAMET_ARG(bool, training) = false;
  RAMET_ARG(double, momentum) = 0.1;
  RAMET_ARG(double, eps) = 1e-5;
};
struct RAMET_API LayerNormFuncOptions {
  LayerNormFuncOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}
  RAMET_ARG(std::vector<int64_t>, normalized_shape);
  RAMET_ARG(Tensor, weight);
  RAMET_ARG(Tensor, bias);
  RAMET_ARG(double, eps) = 1e-5;
};
struct RAMET_API DropoutFuncOptions {
  RAMET_ARG(double, p) = 0.5;
  RAMET_ARG(bool, training) = true;
  RAMET_ARG(bool, inplace) = false;
};
using Dropout2dFuncOptions = DropoutFuncOptions;
using Dropout3dFuncOptions = DropoutFuncOptions;
struct RAMET_API AlphaDropoutFuncOptions {
  RAMET_ARG(double, p) = 0.5;
  RAMET_ARG(bool, training) = false;
  RAMET_ARG(bool, inplace) = false;
};
struct RAMET_API FeatureAlphaDropoutFuncOptions {
  RAMET_ARG(double, p) = 0.5;
  RAMET_ARG(bool, training) = false;
  RAMET_ARG(bool, inplace) = false;
};
struct RAMET_API EmbeddingFuncOptions {
  RAMET_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  RAMET_ARG(std::optional<double>, max_norm) = std::nullopt;
  RAMET_ARG(double, norm_type) = 2.;
  RAMET_ARG(bool, scale_grad_by_freq) = false;
  RAMET_ARG(bool, sparse) = false;
};
struct RAMET_API NormalizeFuncOptions {
  /// The p of the norm.
  RAMET_ARG(double, p) = 2.0;
  RAMET_ARG(int64_t, dim) = 1;
  RAMET_ARG(double, eps) = 1e-12;
};
// ---- and those that do not ----------------------------------------------------------------------

using MaxPool1dFuncOptions = MaxPool1dOptions;
using MaxPool2dFuncOptions = MaxPool2dOptions;
using MaxPool3dFuncOptions = MaxPool3dOptions;
using AvgPool1dFuncOptions = AvgPool1dOptions;
using AvgPool2dFuncOptions = AvgPool2dOptions;
using AvgPool3dFuncOptions = AvgPool3dOptions;
using AdaptiveAvgPool1dFuncOptions = AdaptiveAvgPool1dOptions;
using AdaptiveAvgPool2dFuncOptions = AdaptiveAvgPool2dOptions;
using AdaptiveAvgPool3dFuncOptions = AdaptiveAvgPool3dOptions;
using AdaptiveMaxPool1dFuncOptions = AdaptiveMaxPool1dOptions;
using AdaptiveMaxPool2dFuncOptions = AdaptiveMaxPool2dOptions;
using AdaptiveMaxPool3dFuncOptions = AdaptiveMaxPool3dOptions;
using L1LossFuncOptions = L1LossOptions;
using MSELossFuncOptions = MSELossOptions;
using SmoothL1LossFuncOptions = SmoothL1LossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using NLLLossFuncOptions = NLLLossOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;

// ---- plain forms --------------------------------------------------------------------------------

namespace detail {
RAMET_API Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        ExpandingArray<1> stride, const nn::detail::conv_padding_t<1>& padding,
                        ExpandingArray<1> dilation, int64_t groups);
RAMET_API Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        ExpandingArray<2> stride, const nn::detail::conv_padding_t<2>& padding,
                        ExpandingArray<2> dilation, int64_t groups);
RAMET_API Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        ExpandingArray<3> stride, const nn::detail::conv_padding_t<3>& padding,
                        ExpandingArray<3> dilation, int64_t groups);
RAMET_API Tensor batch_norm(const Tensor& input, const Tensor& running_mean,
                            const Tensor& running_var, Tensor weight, Tensor bias, bool training,
                            std::optional<double> momentum, double eps);
RAMET_API Tensor batch_norm_relu_max_pool2d(const Tensor& input, const Tensor& running_mean,
                                            const Tensor& running_var, Tensor weight, Tensor bias,
                                            bool training, std::optional<double> momentum,
                                            double eps);
RAMET_API Tensor layer_norm(const Tensor& input, const std::vector<int64_t>& normalized_shape,
                            const Tensor& weight, const Tensor& bias, double eps);
RAMET_API Tensor dropout(Tensor input, double p, bool training, bool inplace);
RAMET_API Tensor dropout2d(Tensor input, double p, bool training, bool inplace);
RAMET_API Tensor dropout3d(Tensor input, double p, bool training, bool inplace);
RAMET_API Tensor alpha_dropout(Tensor input, double p, bool training, bool inplace);
RAMET_API Tensor feature_alpha_dropout(Tensor input, double p, bool training, bool inplace);
RAMET_API Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                          int64_t ignore_index, const NLLLossFuncOptions::reduction_t& reduction);
RAMET_API Tensor cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight,
                               int64_t ignore_index,
                               const CrossEntropyFuncOptions::reduction_t& reduction,
                               double label_smoothing);
RAMET_API Tensor binary_cross_entropy_with_logits(
    const Tensor& input, const Tensor& target, const Tensor& weight,
    const BinaryCrossEntropyWithLogitsFuncOptions::reduction_t& reduction,
    const Tensor& pos_weight);
}  // namespace detail

// ---- the functions ------------------------------------------------------------------------------

RAMET_API Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {});
RAMET_API Tensor conv1d(const Tensor& input, const Tensor& weight,
                        const Conv1dFuncOptions& options = {});
RAMET_API Tensor conv2d(const Tensor& input, const Tensor& weight,
                        const Conv2dFuncOptions& options = {});
RAMET_API Tensor conv3d(const Tensor& input, const Tensor& weight,
                        const Conv3dFuncOptions& options = {});

RAMET_API Tensor max_pool1d(const Tensor& input, const MaxPool1dFuncOptions& options);
RAMET_API std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& input,
                                                             const MaxPool1dFuncOptions& options);
RAMET_API Tensor max_pool2d(const Tensor& input, const MaxPool2dFuncOptions& options);
RAMET_API std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& input,
                                                             const MaxPool2dFuncOptions& options);
RAMET_API Tensor max_pool3d(const Tensor& input, const MaxPool3dFuncOptions& options);
RAMET_API std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& input,
                                                             const MaxPool3dFuncOptions& options);
RAMET_API Tensor avg_pool1d(const Tensor& input, const AvgPool1dFuncOptions& options);
RAMET_API Tensor avg_pool2d(const Tensor& input, const AvgPool2dFuncOptions& options);
RAMET_API Tensor avg_pool3d(const Tensor& input, const AvgPool3dFuncOptions& options);
RAMET_API Tensor adaptive_avg_pool1d(const Tensor& input,
                                     const AdaptiveAvgPool1dFuncOptions& options);
RAMET_API Tensor adaptive_avg_pool2d(const Tensor& input,
                                     const AdaptiveAvgPool2dFuncOptions& options);
RAMET_API Tensor adaptive_avg_pool3d(const Tensor& input,
                                     const AdaptiveAvgPool3dFuncOptions& options);
RAMET_API Tensor adaptive_max_pool1d(const Tensor& input,
                                     const AdaptiveMaxPool1dFuncOptions& options);
/// The maxima and, for each, its position in the input's last dimension (int64).
RAMET_API std::tuple<Tensor, Tensor> adaptive_max_pool1d_with_indices(
    const Tensor& input, const AdaptiveMaxPool1dFuncOptions& options);
RAMET_API Tensor adaptive_max_pool2d(const Tensor& input,
                                     const AdaptiveMaxPool2dFuncOptions& options);
/// The maxima and, for each, its position in the input's plane (int64).
RAMET_API std::tuple<Tensor, Tensor> adaptive_max_pool2d_with_indices(
    const Tensor& input, const AdaptiveMaxPool2dFuncOptions& options);
RAMET_API Tensor adaptive_max_pool3d(const Tensor& input,
                                     const AdaptiveMaxPool3dFuncOptions& options);
/// The maxima and, for each, its position in the input's volume (int64).
RAMET_API std::tuple<Tensor, Tensor> adaptive_max_pool3d_with_indices(
    const Tensor& input, const AdaptiveMaxPool3dFuncOptions& options);

RAMET_API Tensor batch_norm(const Tensor& input, const Tensor& running_mean,
                            const Tensor& running_var, const BatchNormFuncOptions& options = {});
RAMET_API Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options);
/// layer_norm(input + residual) and input + residual, in one pass
/// (autograd/ops/layers/layer_norm.h).
RAMET_API std::tuple<Tensor, Tensor> residual_layer_norm(const Tensor& input,
                                                         const Tensor& residual,
                                                         const LayerNormFuncOptions& options);
/// x / max(||x||_p along dim, eps)
RAMET_API Tensor normalize(const Tensor& input, NormalizeFuncOptions options = {});

RAMET_API Tensor dropout(Tensor input, const DropoutFuncOptions& options = {});
/// As the module Dropout2d, in training or not as `training` says.
RAMET_API Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& options = {});
/// As the module Dropout3d, in training or not as `training` says.
RAMET_API Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& options = {});
RAMET_API Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& options = {});
RAMET_API Tensor feature_alpha_dropout(Tensor input,
                                       const FeatureAlphaDropoutFuncOptions& options = {});

RAMET_API Tensor embedding(const Tensor& input, const Tensor& weight,
                           const EmbeddingFuncOptions& options = {});
/// (*) classes to (*, num_classes) of zeros and ones (int64); -1: as many classes as the largest
/// index needs.
RAMET_API Tensor one_hot(const Tensor& tensor, int64_t num_classes = -1);

RAMET_API Tensor l1_loss(const Tensor& input, const Tensor& target,
                         const L1LossFuncOptions& options = {});
RAMET_API Tensor mse_loss(const Tensor& input, const Tensor& target,
                          const MSELossFuncOptions& options = {});
RAMET_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                                const SmoothL1LossFuncOptions& options = {});
RAMET_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                                const SmoothL1LossFuncOptions& options, double beta);
RAMET_API Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                                      const BinaryCrossEntropyFuncOptions& options = {});
RAMET_API Tensor
binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                 const BinaryCrossEntropyWithLogitsFuncOptions& options = {});
RAMET_API Tensor nll_loss(const Tensor& input, const Tensor& target,
                          const NLLLossFuncOptions& options = {});
/// As the module CrossEntropyLoss.
RAMET_API Tensor cross_entropy(const Tensor& input, const Tensor& target,
                               const CrossEntropyFuncOptions& options = {});

}  // namespace ramet::nn::functional
