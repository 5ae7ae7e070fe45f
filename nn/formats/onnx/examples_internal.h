// Inputs with which the exporter runs a forward: the example's shapes with other numbers.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "nn/module/module.h"

namespace ramet {
namespace formats {

/// Whole numbers that differ from the example's. They are in its range, with `more` at the upper
/// end. Of bools the opposite.
Tensor other_whole_numbers(const Tensor& example, int64_t more);

/// Floating-point numbers in the range of the example's that do not repeat. So operations that give
/// the same for the example differ here.
Tensor other_numbers(const Tensor& example, double phase);

/// Inputs that change what was computed from them without a history, comparisons above all.
/// Floating-point inputs are filled with `value`; whole numbers are in the other order. Empty where
/// that changes no input.
std::vector<Tensor> probe(const std::vector<Tensor>& inputs, double value);

bool same_bits(const Tensor& a, const Tensor& b);

/// Two extents for the dimension `batch_dim` of the inputs; {0, 0} where none is free. No other
/// dimension of inputs, parameters and buffers has them. So a size with that number is the batch's.
std::pair<int64_t, int64_t> batches(const nn::Module& module, const std::vector<Tensor>& inputs,
                                    const std::optional<int64_t>& batch_dim);

}  // namespace formats
}  // namespace ramet
