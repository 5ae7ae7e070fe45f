#include "segmenter.h"

BlockImpl::BlockImpl(int64_t in, int64_t out)
    : conv_(torch::nn::Conv2dOptions(in, out, 3).padding(1).bias(false)), norm_(out) {
  register_module("conv", conv_);
  register_module("norm", norm_);
}

torch::Tensor BlockImpl::forward(const torch::Tensor& x) {
  return torch::leaky_relu(norm_(conv_(x)), 0.1);
}

SegmenterImpl::SegmenterImpl(int64_t width) : down_(1, width), up_(width + 1, width) {
  register_module("down", down_);
  register_module("up", up_);
  head_ = register_module("head", torch::nn::Conv2d(torch::nn::Conv2dOptions(width, 2, 1)));
  spare_ = register_module("spare",
                           torch::nn::ModuleList(torch::nn::Linear(2, 2), torch::nn::Dropout(0.5)));
}

torch::Tensor SegmenterImpl::forward(const torch::Tensor& x) {
  namespace F = torch::nn::functional;
  const auto half = F::avg_pool2d(down_(x), F::AvgPool2dFuncOptions(2));
  const auto whole = F::interpolate(
      half,
      F::InterpolateFuncOptions().scale_factor(std::vector<double>({2, 2})).mode(torch::kNearest));
  return head_(up_(torch::cat({whole, x}, 1)));
}
