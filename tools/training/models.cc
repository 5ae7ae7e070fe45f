#include "tools/training/models.h"

namespace ramet::training {

CnnImpl::CnnImpl(double p) : dropout(p) { CnnImpl::reset(); }

void CnnImpl::reset() {
  // No bias in front of a BatchNorm: its gradient is zero but for rounding, which Adam would turn into full-size steps.
  conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 32, 3).padding(1).bias(false)));
  norm1 = register_module("norm1", nn::BatchNorm2d(32));
  conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(32, 64, 3).padding(1).bias(false)));
  norm2 = register_module("norm2", nn::BatchNorm2d(64));
  hidden = register_module("hidden", nn::Linear(3136, 128));
  drop = register_module("drop", nn::Dropout(dropout));
  out = register_module("out", nn::Linear(128, 10));
}

Tensor CnnImpl::forward(Tensor x) {
  x = max_pool2d(relu(norm1->forward(conv1->forward(x))), 2);
  x = max_pool2d(relu(norm2->forward(conv2->forward(x))), 2);
  return out->forward(drop->forward(relu(hidden->forward(x.flatten(1)))));
}

MlpImpl::MlpImpl(double p) : dropout(p) { MlpImpl::reset(); }

void MlpImpl::reset() {
  hidden = register_module("hidden", nn::Linear(784, 128));
  drop = register_module("drop", nn::Dropout(dropout));
  out = register_module("out", nn::Linear(128, 10));
}

Tensor MlpImpl::forward(Tensor x) { return out->forward(drop->forward(relu(hidden->forward(x.flatten(1))))); }

}  // namespace ramet::training
