// What recurrent layers and cells share.
#pragma once
#include <cmath>
#include <vector>

#include "nn/init.h"

namespace ramet::nn::detail {

/// uniform(-1, 1) / sqrt(hidden_size), in their order.
inline void reset_recurrent(const std::vector<Tensor>& weights, int64_t hidden_size) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  for (const Tensor& weight : weights) init::uniform_(weight, -bound, bound);
}

}  // namespace ramet::nn::detail
