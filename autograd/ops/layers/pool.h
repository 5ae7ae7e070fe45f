// Pooling over the last one or two dimensions: LibTorch's functions of the same names. Inputs [n,
// c, h, w] or [c, h, w] (1d: [n, c, l] or [c, l]); every dtype but bool. A list of one number
// stands for both dimensions, an empty stride for the kernel size. Output extents: floor (ceil with
// ceil_mode) of (in + 2 padding - dilation (k - 1) - 1) / stride, plus 1. With ceil_mode no window
// starts in the padding on the right. The part of a window outside of the image costs nothing,
// however large the numbers are. The sum of extent and padding must fit in an int64.
#pragma once
#include <optional>
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/layers/pool.inc"

/// The first maximum of each window; a NaN wins. Padding counts as -infinity and is at most half of
/// the kernel. With a dilation, a window that contains nothing but padding is an error.
RAMET_API Tensor max_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {},
                            IntArrayRef padding = 0, IntArrayRef dilation = 1,
                            bool ceil_mode = false);
/// max_pool2d of sequences: self [n, c, l] or [c, l].
RAMET_API Tensor max_pool1d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {},
                            IntArrayRef padding = 0, IntArrayRef dilation = 1,
                            bool ceil_mode = false);
/// max_pool1d, and the position of each maximum in its row, as int64.
RAMET_API std::tuple<Tensor, Tensor> max_pool1d_with_indices(
    const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {}, IntArrayRef padding = 0,
    IntArrayRef dilation = 1, bool ceil_mode = false);

/// avg_pool2d of sequences: self [n, c, l] or [c, l].
RAMET_API Tensor avg_pool1d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {},
                            IntArrayRef padding = 0, bool ceil_mode = false,
                            bool count_include_pad = true);

/// adaptive_avg_pool2d of sequences: self [n, c, l] or [c, l].
RAMET_API Tensor adaptive_avg_pool1d(const Tensor& self, IntArrayRef output_size);

}  // namespace ramet
