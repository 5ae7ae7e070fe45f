// Choosing between values: LibTorch's functions of the same names, with broadcasting and promotion.
// The gradient goes where the value came from.
#pragma once
#include <optional>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {

/// self where condition is true, else other. `condition` is bool (or uint8).
RAMET_API Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other);
RAMET_API Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other);
RAMET_API Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other);
RAMET_API Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other);
/// The positions of the elements != 0, as from nonzero_numpy.
RAMET_API std::vector<Tensor> where(const Tensor& condition);
RAMET_API Tensor& where_out(Tensor& out, const Tensor& condition, const Tensor& self,
                            const Tensor& other);

#include "autograd/forms/functions.inc"
#include "autograd/ops/pointwise/where.inc"

/// Another name of clamp.
RAMET_API Tensor clip(const Tensor& self, const std::optional<Scalar>& min,
                      const std::optional<Scalar>& max = std::nullopt);
RAMET_API Tensor clip(const Tensor& self, const std::optional<Tensor>& min = std::nullopt,
                      const std::optional<Tensor>& max = std::nullopt);
RAMET_API Tensor& clip_(Tensor& self, const std::optional<Scalar>& min,
                        const std::optional<Scalar>& max = std::nullopt);
RAMET_API Tensor& clip_(Tensor& self, const std::optional<Tensor>& min = std::nullopt,
                        const std::optional<Tensor>& max = std::nullopt);
RAMET_API Tensor& clip_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& min,
                           const std::optional<Scalar>& max = std::nullopt);
RAMET_API Tensor& clip_out(Tensor& out, const Tensor& self,
                           const std::optional<Tensor>& min = std::nullopt,
                           const std::optional<Tensor>& max = std::nullopt);

// Out forms with a kernel that writes into `out`.
RAMET_API Tensor& clamp_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& min,
                            const std::optional<Scalar>& max = std::nullopt);
RAMET_API Tensor& maximum_out(Tensor& out, const Tensor& self, const Tensor& other);
RAMET_API Tensor& minimum_out(Tensor& out, const Tensor& self, const Tensor& other);
/// Another name of maximum; min is one of minimum.
RAMET_API Tensor max(const Tensor& self, const Tensor& other);
RAMET_API Tensor min(const Tensor& self, const Tensor& other);
RAMET_API Tensor& max_out(Tensor& out, const Tensor& self, const Tensor& other);
RAMET_API Tensor& min_out(Tensor& out, const Tensor& self, const Tensor& other);

}  // namespace ramet
