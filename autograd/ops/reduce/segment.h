// Reductions of the segments of a dimension: LibTorch's function segment_reduce, differentiable to
// any order.
#pragma once
#include <optional>
#include <string_view>

#include "autograd/tensor.h"

namespace ramet {

/// Each segment of dimension `axis` as one element, by `reduce`: "sum", "mean", "prod", "max" or
/// "min". `lengths` (int64 or int32) has data's sizes up to `axis`, which is its last dimension, in
/// which stand the segments' lengths, that together are the extent; `offsets` instead has one
/// number more there, where each begins and the last one ends. `initial` takes part in each
/// segment; an empty one gives it, or 0, NaN, 1, -infinity or infinity. With `unsafe` lengths are
/// not looked at. Extrema that are equal share the gradient: those among the
/// data, also where `initial` is one. There are no `indices`.
RAMET_API Tensor segment_reduce(const Tensor& data, std::string_view reduce,
                                const std::optional<Tensor>& lengths = {},
                                const std::optional<Tensor>& indices = {},
                                const std::optional<Tensor>& offsets = {}, int64_t axis = 0,
                                bool unsafe = false,
                                const std::optional<Scalar>& initial = std::nullopt);

}  // namespace ramet
