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
/// The positions of the elements != 0: nonzero_numpy.
RAMET_API std::vector<Tensor> where(const Tensor& condition);
RAMET_API Tensor& where_out(Tensor& out, const Tensor& condition, const Tensor& self,
                            const Tensor& other);

/// min(max(self, min), max): `max` where min > max; a NaN anywhere wins. At least one bound. The
/// gradient passes strictly inside; with tensor bounds the bound that was taken gets it, and a tie
/// is shared (as LibTorch 2.15).
/// clip is another name of clamp.
#define RAMET_CLAMP(name)                                                                         \
  RAMET_API Tensor name(const Tensor& self, const std::optional<Scalar>& min,                     \
                        const std::optional<Scalar>& max = std::nullopt);                         \
  RAMET_API Tensor name(const Tensor& self, const std::optional<Tensor>& min = std::nullopt,      \
                        const std::optional<Tensor>& max = std::nullopt);                         \
  RAMET_API Tensor& name##_(Tensor& self, const std::optional<Scalar>& min,                       \
                            const std::optional<Scalar>& max = std::nullopt);                     \
  RAMET_API Tensor& name##_(Tensor& self, const std::optional<Tensor>& min = std::nullopt,        \
                            const std::optional<Tensor>& max = std::nullopt);                     \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& min, \
                               const std::optional<Scalar>& max = std::nullopt);                  \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self,                                   \
                               const std::optional<Tensor>& min = std::nullopt,                   \
                               const std::optional<Tensor>& max = std::nullopt);
RAMET_CLAMP(clamp)
RAMET_CLAMP(clip)
#undef RAMET_CLAMP
RAMET_API Tensor clamp_min(const Tensor& self, const Scalar& min);
RAMET_API Tensor clamp_min(const Tensor& self, const Tensor& min);
RAMET_API Tensor clamp_max(const Tensor& self, const Scalar& max);
RAMET_API Tensor clamp_max(const Tensor& self, const Tensor& max);
#define RAMET_CLAMP_FORMS(name)                                                       \
  RAMET_API Tensor& name##_(Tensor& self, const Scalar& bound);                       \
  RAMET_API Tensor& name##_(Tensor& self, const Tensor& bound);                       \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, const Scalar& bound); \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, const Tensor& bound);
RAMET_CLAMP_FORMS(clamp_min)
RAMET_CLAMP_FORMS(clamp_max)
#undef RAMET_CLAMP_FORMS

/// The larger (smaller) of two; a NaN wins. Where they are equal each gets half of the gradient.
RAMET_API Tensor maximum(const Tensor& self, const Tensor& other);
RAMET_API Tensor minimum(const Tensor& self, const Tensor& other);
RAMET_API Tensor& maximum_out(Tensor& out, const Tensor& self, const Tensor& other);
RAMET_API Tensor& minimum_out(Tensor& out, const Tensor& self, const Tensor& other);
/// maximum and minimum.
RAMET_API Tensor max(const Tensor& self, const Tensor& other);
RAMET_API Tensor min(const Tensor& self, const Tensor& other);
RAMET_API Tensor& max_out(Tensor& out, const Tensor& self, const Tensor& other);
RAMET_API Tensor& min_out(Tensor& out, const Tensor& self, const Tensor& other);

}  // namespace ramet
