// Reductions of the segments of a dimension: LibTorch's function segment_reduce, differentiable to
// any order.
#pragma once
#include <optional>
#include <string_view>

#include "autograd/tensor.h"

namespace ramet {

/// Each segment of dimension `axis` reduced to one element, by `reduce`: "sum", "mean", "prod",
/// "max" or "min". `lengths` (int64 or int32) has data's sizes up to `axis`. Its last dimension has
/// the segments' lengths, which add up to the extent. `offsets` instead has one number more there:
/// where each segment begins, and where the last one ends. `initial` takes part in each segment. An
/// empty segment gives it, or by default 0, NaN, 1, -infinity or infinity. With `unsafe` lengths
/// are not checked. Equal extrema in the data share the gradient, also where `initial` equals them.
/// `indices` is not supported.
RAMET_API Tensor segment_reduce(const Tensor& data, std::string_view reduce,
                                const std::optional<Tensor>& lengths = {},
                                const std::optional<Tensor>& indices = {},
                                const std::optional<Tensor>& offsets = {}, int64_t axis = 0,
                                bool unsafe = false,
                                const std::optional<Scalar>& initial = std::nullopt);

}  // namespace ramet
