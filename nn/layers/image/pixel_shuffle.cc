#include "nn/layers/image/pixel_shuffle.h"

#include "autograd/ops/layers/shuffle.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

Tensor PixelShuffleImpl::forward(const Tensor& input) {
  return functional::detail::pixel_shuffle(input, options.upscale_factor());
}
Tensor PixelUnshuffleImpl::forward(const Tensor& input) {
  return functional::detail::pixel_unshuffle(input, options.downscale_factor());
}

RAMET_FIELDS(PixelShuffle, {"upscale_factor", &o.upscale_factor(), kCount})
RAMET_FIELDS(PixelUnshuffle, {"downscale_factor", &o.downscale_factor(), kCount})

namespace functional {

Tensor detail::pixel_shuffle(const Tensor& input, int64_t upscale_factor) {
  return ramet::pixel_shuffle(input, upscale_factor);
}
Tensor detail::pixel_unshuffle(const Tensor& input, int64_t downscale_factor) {
  return ramet::pixel_unshuffle(input, downscale_factor);
}
Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& options) {
  return detail::pixel_shuffle(input, options.upscale_factor());
}
Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& options) {
  return detail::pixel_unshuffle(input, options.downscale_factor());
}

}  // namespace functional
}  // namespace ramet::nn
