// Ring 2: scatter and gather as recorded operations. They are each other's gradient, differentiable
// to any order.
//
// Values, rules, options and errors are those of parallel/move/comm.h. A piece without a delivered
// gradient counts as zeros. Note [Pieces and in-place operations]: every piece may be written in
// place, and that never changes the input. A piece that shares the input's memory is copied at the
// first write (Alias::view). If it has views of its own, such a write is an Error.
#pragma once
#include "parallel/move/comm.h"

namespace ramet {
namespace parallel {

RAMET_API std::vector<Tensor> scatter(const Tensor& t, ArrayRef<Device> devices,
                                      const ScatterOptions& options);
/// With PyTorch's arguments: sizes of the pieces, or the chunk rule.
RAMET_API std::vector<Tensor> scatter(
    const Tensor& t, ArrayRef<Device> devices,
    const std::optional<std::vector<int64_t>>& chunk_sizes = std::nullopt, int64_t dim = 0);

/// 0-dim tensors form a vector, with a warning the first time; their gradients are 0-dim.
RAMET_API Tensor gather(ArrayRef<Tensor> tensors, int64_t dim = 0,
                        std::optional<Device> destination = std::nullopt, bool promote = false);

namespace detail {
/// 0-dim tensors as a vector, without the warning.
Tensor stack_scalars(ArrayRef<Tensor> tensors, Device destination);
}  // namespace detail

}  // namespace parallel
}  // namespace ramet
