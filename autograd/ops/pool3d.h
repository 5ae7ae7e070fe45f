// Pooling of volumes [n, c, d, h, w] or [c, d, h, w]: LibTorch's functions of the same names, with
// the numbers and errors of those in pool.h. A list of one number stands for all three dimensions.
#pragma once
#include <optional>
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

RAMET_API Tensor max_pool3d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {},
                            IntArrayRef padding = 0, IntArrayRef dilation = 1,
                            bool ceil_mode = false);
/// And the places in the volume, (z * h + y) * w + x.
RAMET_API std::tuple<Tensor, Tensor> max_pool3d_with_indices(
    const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {}, IntArrayRef padding = 0,
    IntArrayRef dilation = 1, bool ceil_mode = false);
RAMET_API Tensor avg_pool3d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {},
                            IntArrayRef padding = 0, bool ceil_mode = false,
                            bool count_include_pad = true,
                            std::optional<int64_t> divisor_override = std::nullopt);
RAMET_API Tensor adaptive_avg_pool3d(const Tensor& self, IntArrayRef output_size);

/// Maxima over windows floor(i in / out) .. ceil((i + 1) in / out) of the last one, two or three
/// dimensions, and their places as max_pool1d's to max_pool3d's. Floating point.
RAMET_API std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self,
                                                         IntArrayRef output_size);
RAMET_API std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& self,
                                                         IntArrayRef output_size);
RAMET_API std::tuple<Tensor, Tensor> adaptive_max_pool3d(const Tensor& self,
                                                         IntArrayRef output_size);

}  // namespace ramet
