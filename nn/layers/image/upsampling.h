// Upsample and interpolate.
#pragma once
#include <optional>
#include <variant>
#include <vector>

#include "nn/module/enum.h"
#include "nn/module/listed_module.h"

namespace ramet::nn {

struct RAMET_API UpsampleOptions {
  using mode_t = OneOf<enumtype::kNearest, enumtype::kLinear, enumtype::kBilinear,
                       enumtype::kBicubic, enumtype::kTrilinear>;
  /// Extents of the result after the channels (size), or factors of them (scale_factor): set one of
  /// both.
  RAMET_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  /// One number stands for all dimensions.
  RAMET_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  /// How values between the input's are made; kLinear of one, kBilinear and kBicubic of two,
  /// kTrilinear of three spatial dimensions.
  RAMET_ARG(mode_t, mode) = kNearest;
  /// Whether the corners' centres stay where they are; of kNearest not given.
  RAMET_ARG(std::optional<bool>, align_corners) = std::nullopt;
};

/// functional::interpolate with these options.
RAMET_LAYER(Upsample, UpsampleOptions, Tensor forward(const Tensor& input);)

namespace functional {

struct RAMET_API InterpolateFuncOptions {
  using mode_t =
      OneOf<enumtype::kNearest, enumtype::kLinear, enumtype::kBilinear, enumtype::kBicubic,
            enumtype::kTrilinear, enumtype::kArea, enumtype::kNearestExact>;
  RAMET_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  RAMET_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  RAMET_ARG(mode_t, mode) = kNearest;
  RAMET_ARG(std::optional<bool>, align_corners) = std::nullopt;
  /// true: places come from the extents, which are rounded down, and not from scale_factor.
  RAMET_ARG(std::optional<bool>, recompute_scale_factor) = std::nullopt;
  /// Of kBilinear and kBicubic: means over what an output covers (`_upsample_bilinear2d_aa`).
  RAMET_ARG(bool, antialias) = false;
};

namespace detail {
RAMET_API Tensor interpolate(const Tensor& input, const std::optional<std::vector<int64_t>>& size,
                             const std::optional<std::vector<double>>& scale_factor,
                             InterpolateFuncOptions::mode_t mode, std::optional<bool> align_corners,
                             std::optional<bool> recompute_scale_factor, bool antialias);
}  // namespace detail
/// Resizes the input to other extents: floor(extent * scale_factor), or `size`. The input is one
/// of:
/// - [n, c, l] with kNearest, kNearestExact, kLinear, kArea;
/// - [n, c, h, w] with the same modes, but kBilinear and kBicubic in place of kLinear;
/// - [n, c, d, h, w] with the same, but kTrilinear.
///
/// autograd/ops/layers/upsample.h says what each mode computes; kArea: adaptive averages.
/// align_corners is false by default; kNearest and kArea refuse it.
RAMET_API Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options = {});

}  // namespace functional
}  // namespace ramet::nn
