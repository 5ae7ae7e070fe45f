// Bags of a matrix's rows, and rows of limited norm: LibTorch's functions of the same names.
#pragma once
#include <optional>
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

/// Reduces bags of rows of the matrix `weight` (floating point), which the vector `indices` names.
/// Bag b begins at offsets[b] (offsets[0] is 0) and ends where the next one begins; the last one
/// ends with `indices`. With include_last_offset, the last offset is the end of the last bag. Each
/// bag gives its sum (mode 0), its mean (1) or its maxima (2); an empty one gives 0. In mode 0 each
/// row may have a weight of weight's dtype. Indices equal to padding_idx (negative: from the end)
/// do not count. indices and offsets: int64 or int32.
///
/// Returns four tensors. The first are the reduced bags, [bags, weight.size(1)]. The second is the
/// bag of each index (empty for mode 0 without padding_idx). The third is the number of rows of
/// each bag (zeros for mode 0). The fourth are the rows of the maxima, [bags, weight.size(1)] (for
/// other modes: the number of rows).
///
/// The first is differentiable to any order in weight and per_sample_weights. With
/// scale_grad_by_freq a row's gradient is divided by the number of indices that name it. Sums are
/// computed in float (double for float64). Sparse gradients are not implemented.
RAMET_API std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, const std::optional<Tensor>& per_sample_weights,
    bool include_last_offset, std::optional<int64_t> padding_idx);
RAMET_API std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets,
    bool scale_grad_by_freq = false, int64_t mode = 0, bool sparse = false,
    const std::optional<Tensor>& per_sample_weights = {}, bool include_last_offset = false);

/// Scales rows of the matrix `self` in place: each row that `indices` name and that has a
/// norm_type-norm above max_norm, by max_norm / (norm + 1e-7). There is no derivative: an Error
/// where self wants a gradient and grad mode is on.
RAMET_API Tensor& embedding_renorm_(Tensor& self, const Tensor& indices, double max_norm,
                                    double norm_type);
/// embedding_renorm_ of a copy, without history.
RAMET_API Tensor embedding_renorm(const Tensor& self, const Tensor& indices, double max_norm,
                                  double norm_type);
RAMET_API Tensor& embedding_renorm_out(Tensor& out, const Tensor& self, const Tensor& indices,
                                       double max_norm, double norm_type);

}  // namespace ramet
