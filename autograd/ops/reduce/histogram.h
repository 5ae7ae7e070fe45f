// Histograms with edges of their bins: LibTorch's functions of the same names. They count
// floating-point samples, in their dtype. A sample is a number (histogram) or a row of the last
// dimension (histogramdd). Differentiable in the weights (LibTorch has no derivative), but not in
// the samples, which move from bin to bin.
#pragma once
#include <optional>
#include <tuple>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {

/// (counts, edges). Bin i has the samples from edge i up to edge i + 1; the last bin includes its
/// upper end. Samples outside and NaNs are left out. `bins` are the edges, in order, or the number
/// of bins of equal width from range[0] to range[1]. Without a range, the ends are the smallest and
/// the largest sample, which are read. They become 0.5 less and more where both are equal, and [0,
/// 1] where there are no samples. `weight`, of self's sizes and dtype, says how much each sample
/// counts. `density`: counts are divided by their sum and by the bins' widths.
RAMET_API std::tuple<Tensor, Tensor> histogram(const Tensor& self, const Tensor& bins,
                                               const std::optional<Tensor>& weight = {},
                                               bool density = false);
RAMET_API std::tuple<Tensor, Tensor> histogram(const Tensor& self, int64_t bins = 100,
                                               std::optional<ArrayRef<double>> range = std::nullopt,
                                               const std::optional<Tensor>& weight = {},
                                               bool density = false);
/// Writes into results of self's dtype.
RAMET_API std::tuple<Tensor&, Tensor&> histogram_out(Tensor& hist, Tensor& bin_edges,
                                                     const Tensor& self, const Tensor& bins,
                                                     const std::optional<Tensor>& weight = {},
                                                     bool density = false);
RAMET_API std::tuple<Tensor&, Tensor&> histogram_out(
    Tensor& hist, Tensor& bin_edges, const Tensor& self, int64_t bins = 100,
    std::optional<ArrayRef<double>> range = std::nullopt, const std::optional<Tensor>& weight = {},
    bool density = false);

/// The same for points: self is [..., D]. `bins` are the edges of each coordinate, or the number of
/// its bins (one number: the same for each). `range` has two numbers for each coordinate. weight
/// has self's sizes except for the last.
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
