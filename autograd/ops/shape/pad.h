// Padding: LibTorch's functions of the same names. `pad` has two numbers for each dimension, the
// last one first: {left, right, top, bottom, ...}; negative ones cut off. What is inside is copied
// once, borders are filled from it. Any dtype, which is the result's; differentiable to any order.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/shape/pad.inc"

/// self between constants; `pad` for any number of dimensions. An Error where more is cut off than
/// there is.
RAMET_API Tensor constant_pad_nd(const Tensor& self, IntArrayRef pad, const Scalar& value = 0);
/// mode: "constant": constant_pad_nd; "reflect": what lies inside, mirrored at the border elements
/// (each number less than the dimension's size); "replicate": the border elements; "circular": what
/// lies at the other end (each number at most the dimension's size). Only "constant" takes a
/// `value`; the others take the last dimension of a 2-D or 3-D input, the last two of a 3-D or 4-D
/// one, or the last three of a 4-D or 5-D one.
RAMET_API Tensor pad(const Tensor& self, IntArrayRef pad, const std::string& mode = "constant",
                     std::optional<double> value = std::nullopt);
/// Sequences [length_i, ...], alike but for the length, as [longest, batch, ...] (or batch first);
/// the padding goes to the end, or to the beginning with padding_side "left".
RAMET_API Tensor pad_sequence(TensorList sequences, bool batch_first = false,
                              double padding_value = 0.0, std::string_view padding_side = "right");

}  // namespace ramet
