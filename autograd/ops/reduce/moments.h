// Variance, standard deviation, norms, log-sum-exp. They behave as all reductions
// (autograd/ops/reduce/reduce.h).
#pragma once
#include <optional>
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/reduce/moments.inc"

/// (var, mean) and (std, mean) from one pass over the elements.
RAMET_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, bool unbiased);
RAMET_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int64_t dim);
RAMET_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int dim);
RAMET_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dim,
                                              bool unbiased, bool keepdim = false);
RAMET_API std::tuple<Tensor, Tensor> var_mean(
    const Tensor& self, OptionalIntArrayRef dim = std::nullopt,
    const std::optional<Scalar>& correction = std::nullopt, bool keepdim = false);
/// (std, mean); as var_mean().
RAMET_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, bool unbiased);
RAMET_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int64_t dim);
RAMET_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int dim);
RAMET_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dim,
                                              bool unbiased, bool keepdim = false);
RAMET_API std::tuple<Tensor, Tensor> std_mean(
    const Tensor& self, OptionalIntArrayRef dim = std::nullopt,
    const std::optional<Scalar>& correction = std::nullopt, bool keepdim = false);

}  // namespace ramet
