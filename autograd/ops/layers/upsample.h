// Resampling of [n, c, l], [n, c, h, w] and [n, c, d, h, w] to other extents: LibTorch's functions
// of the same names. Floating-point types (also where LibTorch has no half on CPUs), and uint8 of
// the nearest and in two dimensions, without history there; a value between two of uint8 is rounded
// to the nearest, where LibTorch computes with weights of 16 bits and may be one off.
//
// An output's place in the input is (place + 0.5) * step - 0.5 with step = 1 / scale, or input by
// output extent without one; with align_corners, the corners' centres fall together and scales have
// no meaning. A scale is not what sets the extents: output_size is. Differentiable to any order;
// gradients have one owner each and are formed in one order. On a CPU the result keeps the memory
// layout of a channels-last input.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/layers/upsample.inc"

}  // namespace ramet
