// Copies with elements repeated, rolled or turned: LibTorch's functions of the same names,
// differentiable to any order. repeat is in autograd/ops/index/gather_scatter.h.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/shape/rearrange.inc"

/// Each index i repeats[i] times, for a vector of integers, in repeats' dtype.
RAMET_API Tensor repeat_interleave(const Tensor& repeats,
                                   std::optional<int64_t> output_size = std::nullopt);
RAMET_API Tensor& repeat_interleave_out(Tensor& out, const Tensor& repeats,
                                        std::optional<int64_t> output_size = std::nullopt);

namespace autograd {
/// The same for an int64 vector with a known sum. The host reads nothing, so a capture may call it.
/// The time is linear in both.
RAMET_API Tensor repeated_positions(const Tensor& repeats, int64_t sum);
}  // namespace autograd

}  // namespace ramet
