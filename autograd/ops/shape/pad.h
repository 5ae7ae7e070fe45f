// Padding: LibTorch's functions of the same names. `pad` has two numbers for each dimension, the
// last one first: {left, right, top, bottom, ...}; negative ones cut off. The inside is copied
// once, and borders are filled from it. Any dtype; the result has the same. Differentiable to any
// order.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/shape/pad.inc"

/// self surrounded by constants; `pad` for any number of dimensions. An Error where more is cut off
/// than exists.
RAMET_API Tensor constant_pad_nd(const Tensor& self, IntArrayRef pad, const Scalar& value = 0);
/// Pads by `mode`:
/// - "constant": as constant_pad_nd.
/// - "reflect": the inside, mirrored at the border elements (each number less than the dimension's
///   size).
/// - "replicate": the border elements.
/// - "circular": the elements at the other end (each number at most the dimension's size).
///
/// Only "constant" takes a `value`. The others pad the last one, two or three dimensions. The input
/// then has one or two more dimensions than are padded.
RAMET_API Tensor pad(const Tensor& self, IntArrayRef pad, const std::string& mode = "constant",
                     std::optional<double> value = std::nullopt);
/// Joins sequences [length_i, ...], which differ only in length, as [longest, batch, ...] (or batch
/// first). The padding goes to the end, or to the beginning with padding_side "left".
RAMET_API Tensor pad_sequence(TensorList sequences, bool batch_first = false,
                              double padding_value = 0.0, std::string_view padding_side = "right");

}  // namespace ramet
