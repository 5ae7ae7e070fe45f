#pragma once
#include <torch/torch.h>

// A block of convolutions, and a network of two with a skip.
class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(int64_t in, int64_t out);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::nn::Conv2d conv_;
  torch::nn::BatchNorm2d norm_;
};
TORCH_MODULE(Block);

class SegmenterImpl : public torch::nn::Module {
 public:
  explicit SegmenterImpl(int64_t width = 8);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  Block down_, up_;
  torch::nn::Conv2d head_{nullptr};
  torch::nn::ModuleList spare_;
};
TORCH_MODULE(Segmenter);
