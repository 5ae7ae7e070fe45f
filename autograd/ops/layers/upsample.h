// Resampling of [n, c, l], [n, c, h, w] and [n, c, d, h, w] to other extents: LibTorch's functions
// of the same names. They take floating-point types (also half on CPUs, where LibTorch refuses it),
// and uint8. uint8 works for the nearest modes and in two dimensions, without history. A value
// between two of uint8 is rounded to the nearest; LibTorch computes with 16-bit weights and may be
// one off.
//
// An output's position in the input is (place + 0.5) * step - 0.5. Here step is 1 / scale, or
// without a scale the input extent divided by the output extent. With align_corners, the corners'
// centres coincide and scales have no meaning. output_size sets the extents, not a scale.
// Differentiable to any order. One thread computes each sum of a gradient, in one order. On a CPU
// the result keeps the memory layout of a channels-last input.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/layers/upsample.inc"

}  // namespace ramet
