#include "split/policy.h"

namespace split {

PolicyImpl::PolicyImpl(int64_t inputs, int64_t actions) : inputs_(inputs), actions_(actions) {
  reset();
}

void PolicyImpl::reset() {
  body = register_module("body", torch::nn::Linear(inputs_, 32));
  actor = register_module("actor", torch::nn::Linear(32, actions_));
  critic = register_module("critic", torch::nn::Linear(32, 1));
  torch::NoGradGuard guard;
  for (auto& p : named_parameters()) {
    if (p.key().find("weight") != std::string::npos) torch::nn::init::orthogonal_(p.value());
    else torch::nn::init::zeros_(p.value());
  }
}

std::tuple<at::Tensor, at::Tensor> PolicyImpl::forward(at::Tensor state) {
  const auto hidden = at::tanh(body->forward(state));
  return std::make_tuple(at::log_softmax(actor->forward(hidden), -1),
                         critic->forward(hidden).squeeze(-1));
}

}  // namespace split
