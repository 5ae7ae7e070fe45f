// Bags of a matrix's rows, and rows of limited norm: LibTorch's functions of the same names.
#pragma once
#include <optional>
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

/// Of rows of the matrix `weight` (floating point) named by the vector `indices`, in bags: bag b
/// begins at offsets[b] (offsets[0] is 0) and ends where the next one begins, the last one where
/// indices end; with include_last_offset the last offset is the end of the last bag. Each bag gives
/// its sum (mode 0), where each row may have a weight of weight's dtype, its mean (1) or its maxima
/// (2); an empty one 0. Indices that are padding_idx (negative: from the end) count as not there.
/// indices and offsets: int64 or int32.
///
/// Gives [bags, weight.size(1)]; which bag each index is in (empty for mode 0 without padding_idx);
/// how many rows each bag has (zeros for mode 0); the rows the maxima come from, [bags,
/// weight.size(1)] (the number of rows for other modes). The first is differentiable to any order
/// in weight and per_sample_weights; with scale_grad_by_freq a row's gradient is divided by how
/// often it was named. Sums are formed in float (double of float64). Sparse gradients are not
/// implemented.
RAMET_API std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, const std::optional<Tensor>& per_sample_weights,
    bool include_last_offset, std::optional<int64_t> padding_idx);
RAMET_API std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets,
    bool scale_grad_by_freq = false, int64_t mode = 0, bool sparse = false,
    const std::optional<Tensor>& per_sample_weights = {}, bool include_last_offset = false);

/// Each row of the matrix `self` that `indices` name and whose norm_type-norm is more than max_norm
/// times max_norm / (norm + 1e-7), in place. It has no derivative: refused
/// where self wants a gradient and grad mode is on.
RAMET_API Tensor& embedding_renorm_(Tensor& self, const Tensor& indices, double max_norm,
                                    double norm_type);
/// The same of a copy, without history.
RAMET_API Tensor embedding_renorm(const Tensor& self, const Tensor& indices, double max_norm,
                                  double norm_type);
RAMET_API Tensor& embedding_renorm_out(Tensor& out, const Tensor& self, const Tensor& indices,
                                       double max_norm, double norm_type);

}  // namespace ramet
