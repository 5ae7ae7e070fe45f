#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <tuple>

namespace split {

struct PolicyImpl : torch::nn::Cloneable<PolicyImpl> {
  PolicyImpl(int64_t inputs, int64_t actions);
  void reset() override;
  // log probabilities and value
  std::tuple<at::Tensor, at::Tensor> forward(at::Tensor state);

  int64_t inputs_, actions_;
  torch::nn::Linear body{nullptr}, actor{nullptr}, critic{nullptr};
};
TORCH_MODULE(Policy);

}  // namespace split
