// Choosing elements by index tensors: LibTorch's functions index and index_put. The methods, which
// take more, are in autograd/ops/index/index_list.h. Differentiable to any order.
#pragma once
#include <optional>
#include <vector>

#include "autograd/ops/index/index_list.h"
#include "autograd/tensor.h"

namespace ramet {

/// self[indices]: for each leading dimension one index tensor (int64, int32, bool or uint8 mask),
/// or an undefined one for ":".
RAMET_API Tensor index(const Tensor& self, const std::vector<std::optional<Tensor>>& indices);
/// out = self[indices].
RAMET_API Tensor& index_out(Tensor& out, const Tensor& self,
                            const std::vector<std::optional<Tensor>>& indices);
#include "autograd/ops/index/index_put.inc"

RAMET_API Tensor& index_put_(Tensor& self, const std::vector<std::optional<Tensor>>& indices,
                             const Tensor& values, bool accumulate = false);

}  // namespace ramet
