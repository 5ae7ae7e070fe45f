// The networks of the main job. Both take (batch, 1, 28, 28) float32 and give (batch, 10) logits.
#pragma once
#include <memory>
#include <string>

#include "ramet.h"

namespace ramet::training {

/// Two 3x3 convolutions (32 and 64 channels) with BatchNorm, ReLU and a 2x2 max pool each, then 3136-128-10.
struct CnnImpl : nn::Cloneable<CnnImpl> {
  explicit CnnImpl(double dropout);
  void reset() override;
  Tensor forward(Tensor x);

  double dropout;
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d norm1{nullptr}, norm2{nullptr};
  nn::Linear hidden{nullptr}, out{nullptr};
  nn::Dropout drop{nullptr};
};
RAMET_MODULE(Cnn);

/// 784-128-10.
struct MlpImpl : nn::Cloneable<MlpImpl> {
  explicit MlpImpl(double dropout);
  void reset() override;
  Tensor forward(Tensor x);

  double dropout;
  nn::Linear hidden{nullptr}, out{nullptr};
  nn::Dropout drop{nullptr};
};
RAMET_MODULE(Mlp);

}  // namespace ramet::training
