// Histograms with edges of their bins: LibTorch's functions of the same names. Counts of
// floating-point samples, in their dtype. A sample is a number (histogram) or a row of the last
// dimension (histogramdd). Differentiable in the weights (LibTorch has no derivative), not in the
// samples, which move from bin to bin.
#pragma once
#include <optional>
#include <tuple>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {

/// (counts, edges). Bin i has the samples from edge i up to edge i + 1, the last one with its upper
/// end; samples outside and NaNs are left out. `bins` are the edges, in order, or how many bins of
/// equal width there are from range[0] to range[1], without it from the smallest to the largest
/// sample, which are read; 0.5 less and more where both are the same, and [0, 1] of no samples.
/// With `weight`, of self's sizes and dtype, a sample counts that much. `density`: divided by their
/// sum and the bins' widths.
RAMET_API std::tuple<Tensor, Tensor> histogram(const Tensor& self, const Tensor& bins,
                                               const std::optional<Tensor>& weight = {},
                                               bool density = false);
RAMET_API std::tuple<Tensor, Tensor> histogram(const Tensor& self, int64_t bins = 100,
                                               std::optional<ArrayRef<double>> range = std::nullopt,
                                               const std::optional<Tensor>& weight = {},
                                               bool density = false);
/// Into results of self's dtype.
RAMET_API std::tuple<Tensor&, Tensor&> histogram_out(Tensor& hist, Tensor& bin_edges,
                                                     const Tensor& self, const Tensor& bins,
                                                     const std::optional<Tensor>& weight = {},
                                                     bool density = false);
RAMET_API std::tuple<Tensor&, Tensor&> histogram_out(
    Tensor& hist, Tensor& bin_edges, const Tensor& self, int64_t bins = 100,
    std::optional<ArrayRef<double>> range = std::nullopt, const std::optional<Tensor>& weight = {},
    bool density = false);

/// The same of points: self is [..., D], `bins` the edges of each coordinate or how many bins it
/// has (one number: each), `range` two numbers for each, weight has self's sizes but for the last.
RAMET_API std::tuple<Tensor, std::vector<Tensor>> histogramdd(
    const Tensor& self, IntArrayRef bins, std::optional<ArrayRef<double>> range = std::nullopt,
    const std::optional<Tensor>& weight = {}, bool density = false);
RAMET_API std::tuple<Tensor, std::vector<Tensor>> histogramdd(
    const Tensor& self, int64_t bins, std::optional<ArrayRef<double>> range = std::nullopt,
    const std::optional<Tensor>& weight = {}, bool density = false);
RAMET_API std::tuple<Tensor, std::vector<Tensor>> histogramdd(
    const Tensor& self, TensorList bins, std::optional<ArrayRef<double>> range = std::nullopt,
    const std::optional<Tensor>& weight = {}, bool density = false);

}  // namespace ramet
