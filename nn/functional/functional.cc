#include "nn/functional/functional.h"

#include "autograd/ops/layers/batch_norm.h"
#include "autograd/ops/layers/conv.h"
#include "autograd/ops/layers/embedding.h"
#include "autograd/ops/layers/layer_norm.h"
#include "autograd/ops/layers/pool.h"
#include "autograd/ops/layers/pool3d.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/random/random.h"
#include "nn/layers/sequence/embedding_internal.h"

namespace ramet::nn::functional {
namespace detail {
namespace {

// Calls `conv` with LibTorch's two words for padding, or with numbers.
template <size_t D, class Conv>
Tensor padded_conv(const nn::detail::conv_padding_t<D>& padding, const Conv& conv) {
  if (std::holds_alternative<enumtype::kValid>(padding)) return conv("valid");
  if (std::holds_alternative<enumtype::kSame>(padding)) return conv("same");
  return conv(IntArrayRef(std::get<ExpandingArray<D>>(padding)));
}

void check_probability(const char* op, double p) {
  RAMET_CHECK(p >= 0 && p <= 1, op, "dropout probability has to be between 0 and 1, but got ", p);
}

}  // namespace

Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias,
              ExpandingArray<1> stride, const nn::detail::conv_padding_t<1>& padding,
              ExpandingArray<1> dilation, int64_t groups) {
  return padded_conv<1>(padding, [&](const auto& p) {
    return ramet::conv1d(input, weight, bias, stride, p, dilation, groups);
  });
}
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias,
              ExpandingArray<2> stride, const nn::detail::conv_padding_t<2>& padding,
              ExpandingArray<2> dilation, int64_t groups) {
  return padded_conv<2>(padding, [&](const auto& p) {
    return ramet::conv2d(input, weight, bias, stride, p, dilation, groups);
  });
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias,
              ExpandingArray<3> stride, const nn::detail::conv_padding_t<3>& padding,
              ExpandingArray<3> dilation, int64_t groups) {
  return padded_conv<3>(padding, [&](const auto& p) {
    return ramet::conv3d(input, weight, bias, stride, p, dilation, groups);
  });
}

namespace {

void check_batch(const char* op, const Tensor& input, bool training) {
  RAMET_CHECK(input.dim() >= 2, op, "Expected at least 2 input dimensions, but got ",
              describe(input));
  if (training)
    RAMET_CHECK(input.size(1) == 0 || input.numel() / input.size(1) != 1, op,
                "Expected more than 1 value per channel when training, got input size ",
                input.sizes());
}

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  Tensor weight, Tensor bias, bool training, std::optional<double> momentum,
                  double eps) {
  check_batch("batch_norm", input, training);
  return ramet::batch_norm(input, weight, bias, running_mean, running_var, training,
                           momentum.value_or(0.0), eps,
                           /*cudnn_enabled=*/true);
}

Tensor batch_norm_relu_max_pool2d(const Tensor& input, const Tensor& running_mean,
                                  const Tensor& running_var, Tensor weight, Tensor bias,
                                  bool training, std::optional<double> momentum, double eps) {
  check_batch("batch_norm_relu_max_pool2d", input, training);
  return ramet::batch_norm_relu_max_pool2d(input, weight, bias, running_mean, running_var, training,
                                           momentum.value_or(0.0), eps);
}

Tensor layer_norm(const Tensor& input, const std::vector<int64_t>& normalized_shape,
                  const Tensor& weight, const Tensor& bias, double eps) {
  return ramet::layer_norm(input, normalized_shape, weight, bias, eps);
}

Tensor dropout(Tensor input, double p, bool training, bool inplace) {
  check_probability("dropout", p);
  return inplace ? ramet::dropout_(input, p, training) : ramet::dropout(input, p, training);
}

namespace {

// Drops channels. An input of another rank gets a batch.
Tensor drop_channels(const char* op, int64_t batched, Tensor input, double p, bool training,
                     bool inplace) {
  check_probability(op, p);
  const bool whole = input.dim() == batched;
  Tensor x = whole ? input : input.unsqueeze(0);
  if (inplace) {
    ramet::feature_dropout_(x, p, training);
    return input;
  }
  x = ramet::feature_dropout(x, p, training);
  return whole ? x : x.squeeze(0);
}

}  // namespace

Tensor dropout2d(Tensor input, double p, bool training, bool inplace) {
  return drop_channels("dropout2d", 4, std::move(input), p, training, inplace);
}
Tensor dropout3d(Tensor input, double p, bool training, bool inplace) {
  return drop_channels("dropout3d", 5, std::move(input), p, training, inplace);
}
Tensor alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  check_probability("alpha_dropout", p);
  return inplace ? ramet::alpha_dropout_(input, p, training)
                 : ramet::alpha_dropout(input, p, training);
}
Tensor feature_alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  check_probability("feature_alpha_dropout", p);
  return inplace ? ramet::feature_alpha_dropout_(input, p, training)
                 : ramet::feature_alpha_dropout(input, p, training);
}

}  // namespace detail

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return ramet::linear(input, weight, bias);
}

Tensor max_pool1d(const Tensor& input, const MaxPool1dFuncOptions& o) {
  return ramet::max_pool1d(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(),
                           o.ceil_mode());
}
std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& input,
                                                   const MaxPool1dFuncOptions& o) {
  return ramet::max_pool1d_with_indices(input, o.kernel_size(), o.stride(), o.padding(),
                                        o.dilation(), o.ceil_mode());
}
Tensor max_pool2d(const Tensor& input, const MaxPool2dFuncOptions& o) {
  return ramet::max_pool2d(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(),
                           o.ceil_mode());
}
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& input,
                                                   const MaxPool2dFuncOptions& o) {
  return ramet::max_pool2d_with_indices(input, o.kernel_size(), o.stride(), o.padding(),
                                        o.dilation(), o.ceil_mode());
}
Tensor max_pool3d(const Tensor& input, const MaxPool3dFuncOptions& o) {
  return ramet::max_pool3d(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(),
                           o.ceil_mode());
}
std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& input,
                                                   const MaxPool3dFuncOptions& o) {
  return ramet::max_pool3d_with_indices(input, o.kernel_size(), o.stride(), o.padding(),
                                        o.dilation(), o.ceil_mode());
}
Tensor avg_pool1d(const Tensor& input, const AvgPool1dFuncOptions& o) {
  return ramet::avg_pool1d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(),
                           o.count_include_pad());
}
Tensor avg_pool2d(const Tensor& input, const AvgPool2dFuncOptions& o) {
  return ramet::avg_pool2d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(),
                           o.count_include_pad(), o.divisor_override());
}
Tensor avg_pool3d(const Tensor& input, const AvgPool3dFuncOptions& o) {
  return ramet::avg_pool3d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(),
                           o.count_include_pad(), o.divisor_override());
}

namespace {

// Sizes that are not given are the input's.
template <size_t D>
std::array<int64_t, D> size_of(const Tensor& input,
                               const ExpandingArrayWithOptionalElem<D>& wanted) {
  std::array<int64_t, D> size{};
  for (size_t d = 0; d < D; ++d)
    size[d] = (*wanted)[d] ? *(*wanted)[d]
                           : input.size(static_cast<int64_t>(d) - static_cast<int64_t>(D));
  return size;
}

}  // namespace

Tensor adaptive_avg_pool1d(const Tensor& input, const AdaptiveAvgPool1dFuncOptions& o) {
  return ramet::adaptive_avg_pool1d(input, o.output_size());
}
Tensor adaptive_avg_pool2d(const Tensor& input, const AdaptiveAvgPool2dFuncOptions& o) {
  return ramet::adaptive_avg_pool2d(input, size_of(input, o.output_size()));
}
Tensor adaptive_avg_pool3d(const Tensor& input, const AdaptiveAvgPool3dFuncOptions& o) {
  return ramet::adaptive_avg_pool3d(input, size_of(input, o.output_size()));
}
std::tuple<Tensor, Tensor> adaptive_max_pool1d_with_indices(const Tensor& input,
                                                            const AdaptiveMaxPool1dFuncOptions& o) {
  return ramet::adaptive_max_pool1d(input, o.output_size());
}
std::tuple<Tensor, Tensor> adaptive_max_pool2d_with_indices(const Tensor& input,
                                                            const AdaptiveMaxPool2dFuncOptions& o) {
  return ramet::adaptive_max_pool2d(input, size_of(input, o.output_size()));
}
std::tuple<Tensor, Tensor> adaptive_max_pool3d_with_indices(const Tensor& input,
                                                            const AdaptiveMaxPool3dFuncOptions& o) {
  return ramet::adaptive_max_pool3d(input, size_of(input, o.output_size()));
}
Tensor adaptive_max_pool1d(const Tensor& input, const AdaptiveMaxPool1dFuncOptions& o) {
  return std::get<0>(adaptive_max_pool1d_with_indices(input, o));
}
Tensor adaptive_max_pool2d(const Tensor& input, const AdaptiveMaxPool2dFuncOptions& o) {
  return std::get<0>(adaptive_max_pool2d_with_indices(input, o));
}
Tensor adaptive_max_pool3d(const Tensor& input, const AdaptiveMaxPool3dFuncOptions& o) {
  return std::get<0>(adaptive_max_pool3d_with_indices(input, o));
}

Tensor normalize(const Tensor& input, NormalizeFuncOptions o) {
  return input / input.norm(o.p(), o.dim(), /*keepdim=*/true).clamp_min(o.eps()).expand_as(input);
}

Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& o) {
  const int64_t padding_idx =
      o.padding_idx() ? nn::detail::padding_row("embedding", *o.padding_idx(), weight.size(0)) : -1;
  // A sparse call is refused below, before the weight is changed; embedding_renorm_ checks the
  // rest.
  if (o.max_norm() && !o.sparse())
    nn::detail::limit_rows(weight, input, *o.max_norm(), o.norm_type());
  return ramet::embedding(weight, input, padding_idx, o.scale_grad_by_freq(), o.sparse());
}
Tensor one_hot(const Tensor& tensor, int64_t num_classes) {
  return ramet::one_hot(tensor, num_classes);
}

Tensor conv1d(const Tensor& input, const Tensor& weight, const Conv1dFuncOptions& options) {
  return detail::conv1d(input, weight, options.bias(), options.stride(), options.padding(),
                        options.dilation(), options.groups());
}
Tensor conv2d(const Tensor& input, const Tensor& weight, const Conv2dFuncOptions& options) {
  return detail::conv2d(input, weight, options.bias(), options.stride(), options.padding(),
                        options.dilation(), options.groups());
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const Conv3dFuncOptions& options) {
  return detail::conv3d(input, weight, options.bias(), options.stride(), options.padding(),
                        options.dilation(), options.groups());
}
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& options) {
  return detail::batch_norm(input, running_mean, running_var, options.weight(), options.bias(),
                            options.training(), options.momentum(), options.eps());
}
Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options) {
  return detail::layer_norm(input, options.normalized_shape(), options.weight(), options.bias(),
                            options.eps());
}
std::tuple<Tensor, Tensor> residual_layer_norm(const Tensor& input, const Tensor& residual,
                                               const LayerNormFuncOptions& options) {
  return ramet::residual_layer_norm(input, residual, options.normalized_shape(), options.weight(),
                                    options.bias(), options.eps());
}
Tensor dropout(Tensor input, const DropoutFuncOptions& options) {
  return detail::dropout(std::move(input), options.p(), options.training(), options.inplace());
}
Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& options) {
  return detail::dropout2d(std::move(input), options.p(), options.training(), options.inplace());
}
Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& options) {
  return detail::dropout3d(std::move(input), options.p(), options.training(), options.inplace());
}
Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& options) {
  return detail::alpha_dropout(std::move(input), options.p(), options.training(),
                               options.inplace());
}
Tensor feature_alpha_dropout(Tensor input, const FeatureAlphaDropoutFuncOptions& options) {
  return detail::feature_alpha_dropout(std::move(input), options.p(), options.training(),
                                       options.inplace());
}
}  // namespace ramet::nn::functional
