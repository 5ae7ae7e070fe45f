#include "nn/layers/image/upsampling.h"

#include <cmath>

#include "autograd/ops/layers/pool.h"
#include "autograd/ops/layers/pool3d.h"
#include "autograd/ops/layers/upsample.h"
#include "nn/module/listed_module_internal.h"
#include "runtime/base/logging.h"

namespace ramet::nn {

Tensor UpsampleImpl::forward(const Tensor& input) {
  const auto mode =
      std::visit([](auto same) { return functional::InterpolateFuncOptions::mode_t(same); },
                 UpsampleOptions::mode_t::variant_t(options.mode()));
  return functional::detail::interpolate(input, options.size(), options.scale_factor(), mode,
                                         options.align_corners(), std::nullopt, false);
}

RAMET_FIELDS(Upsample, {"scale_factor", &o.scale_factor(), kIfChanged},
             {"size", &o.size(), kPositive | (o.scale_factor() ? kNotPrinted : kIfChanged)},
             {"mode", &o.mode()}, {"align_corners", &o.align_corners(), kNotPrinted})

namespace functional {

namespace {

using Mode = InterpolateFuncOptions::mode_t;
constexpr const char* kOp = "interpolate";

template <class K> bool is(const Mode& mode) { return holds_alternative<K>(mode); }

[[noreturn]] void refuse(const Tensor& x, const Mode& mode) {
  fail(kOp, "Input Error: Only 3D, 4D and 5D input Tensors supported (got ", x.dim(),
       "D) for the modes: nearest | linear | bilinear | bicubic | trilinear (got ",
       enumtype::get_enum_name(mode), ")");
}
// That x has the dimensions of a mode of `dims`.
void check_rank(const Tensor& x, int64_t dims, const char* mode) {
  RAMET_CHECK(x.dim() == dims, kOp, "Got ", x.dim(), "D input, but ", mode, " mode needs ", dims,
              "D input");
}

// The result's extents after the channels.
std::vector<int64_t> extents(const Tensor& x, const std::optional<std::vector<int64_t>>& size,
                             const std::optional<std::vector<double>>& scale) {
  RAMET_CHECK(size || scale, kOp, "either size or scale_factor should be defined");
  RAMET_CHECK(!size || !scale, kOp, "only one of size or scale_factor should be defined");
  if (size) return *size;
  const int64_t dims = x.dim() - 2;
  RAMET_CHECK(static_cast<int64_t>(scale->size()) == dims, kOp,
              "scale_factor shape must match input shape. Input is ", dims,
              "D, scale_factor size is ", ArrayRef<double>(*scale));
  std::vector<int64_t> out;
  for (int64_t d = 0; d < dims; ++d) {
    const double n =
        std::floor(static_cast<double>(x.size(d + 2)) * (*scale)[static_cast<size_t>(d)]);
    RAMET_CHECK(n > -0x1p62 && n < 0x1p62, kOp, "scale_factor: got ", ArrayRef<double>(*scale),
                " for ", x.sizes(), ", expected extents that an int64 holds");
    out.push_back(static_cast<int64_t>(n));
  }
  return out;
}

Tensor area(const Tensor& x, const std::vector<int64_t>& size) {
  if (x.dim() == 3) return adaptive_avg_pool1d(x, size);
  if (x.dim() == 4) return adaptive_avg_pool2d(x, size);
  RAMET_CHECK(size.size() == 3, kOp, "size: got ", IntArrayRef(size), ", expected three numbers");
  return adaptive_avg_pool3d(x, size);
}

}  // namespace

Tensor detail::interpolate(const Tensor& x, const std::optional<std::vector<int64_t>>& size,
                           const std::optional<std::vector<double>>& scale_factor, Mode mode,
                           std::optional<bool> align_corners,
                           std::optional<bool> recompute_scale_factor, bool antialias) {
  RAMET_CHECK(x.defined(), kOp, "undefined tensor");
  if (is<enumtype::kNearest>(mode) || is<enumtype::kArea>(mode))
    RAMET_CHECK(!align_corners, kOp, "align_corners option can only be set with the ",
                "interpolating modes: linear | bilinear | bicubic | trilinear");
  else if (!align_corners)
    RAMET_WARN_ONCE("[interpolate] align_corners was not given for mode ",
                    enumtype::get_enum_name(mode), ": false is taken");
  if (x.dim() < 3 || x.dim() > 5) refuse(x, mode);
  RAMET_CHECK(!antialias ||
                  (x.dim() == 4 && (is<enumtype::kBilinear>(mode) || is<enumtype::kBicubic>(mode))),
              kOp, "Anti-alias option is only supported for bilinear and bicubic modes");
  if (is<enumtype::kLinear>(mode)) check_rank(x, 3, "linear");
  if (is<enumtype::kBilinear>(mode)) check_rank(x, 4, "bilinear");
  if (is<enumtype::kTrilinear>(mode)) check_rank(x, 5, "trilinear");
  if (is<enumtype::kBicubic>(mode) && x.dim() != 4) refuse(x, mode);
  const std::vector<int64_t> out = extents(x, size, scale_factor);
  if (is<enumtype::kArea>(mode)) return area(x, out);
  const bool corners = align_corners.value_or(false);
  std::optional<double> s[3];
  if (scale_factor && !recompute_scale_factor.value_or(false))
    for (size_t i = 0; i < scale_factor->size(); ++i) s[i] = (*scale_factor)[i];
  const int64_t dims = x.dim() - 2;
  if (is<enumtype::kNearest>(mode))
    return dims == 1   ? upsample_nearest1d(x, out, s[0])
           : dims == 2 ? upsample_nearest2d(x, out, s[0], s[1])
                       : upsample_nearest3d(x, out, s[0], s[1], s[2]);
  if (is<enumtype::kNearestExact>(mode))
    return dims == 1   ? _upsample_nearest_exact1d(x, out, s[0])
           : dims == 2 ? _upsample_nearest_exact2d(x, out, s[0], s[1])
                       : _upsample_nearest_exact3d(x, out, s[0], s[1], s[2]);
  if (is<enumtype::kLinear>(mode)) return upsample_linear1d(x, out, corners, s[0]);
  if (is<enumtype::kTrilinear>(mode))
    return upsample_trilinear3d(x, out, corners, s[0], s[1], s[2]);
  if (is<enumtype::kBilinear>(mode))
    return antialias ? _upsample_bilinear2d_aa(x, out, corners, s[0], s[1])
                     : upsample_bilinear2d(x, out, corners, s[0], s[1]);
  return antialias ? _upsample_bicubic2d_aa(x, out, corners, s[0], s[1])
                   : upsample_bicubic2d(x, out, corners, s[0], s[1]);
}

Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options) {
  return detail::interpolate(input, options.size(), options.scale_factor(), options.mode(),
                             options.align_corners(), options.recompute_scale_factor(),
                             options.antialias());
}

}  // namespace functional
}  // namespace ramet::nn
