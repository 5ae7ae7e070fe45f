// PixelShuffle and PixelUnshuffle.
#pragma once
#include "nn/module/listed_module.h"

namespace ramet::nn {

struct RAMET_API PixelShuffleOptions {
  PixelShuffleOptions(int64_t upscale_factor) : upscale_factor_(upscale_factor) {}
  /// At least 1.
  RAMET_ARG(int64_t, upscale_factor);
};
struct RAMET_API PixelUnshuffleOptions {
  PixelUnshuffleOptions(int64_t downscale_factor) : downscale_factor_(downscale_factor) {}
  /// At least 1.
  RAMET_ARG(int64_t, downscale_factor);
};

RAMET_LAYER(PixelShuffle, PixelShuffleOptions, Tensor forward(const Tensor& input);)

RAMET_LAYER(PixelUnshuffle, PixelUnshuffleOptions, Tensor forward(const Tensor& input);)

namespace functional {

using PixelShuffleFuncOptions = PixelShuffleOptions;
using PixelUnshuffleFuncOptions = PixelUnshuffleOptions;

namespace detail {
RAMET_API Tensor pixel_shuffle(const Tensor& input, int64_t upscale_factor);
RAMET_API Tensor pixel_unshuffle(const Tensor& input, int64_t downscale_factor);
}  // namespace detail
/// The functions of these names in autograd/ops/layers/shuffle.h.
RAMET_API Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& options);
RAMET_API Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& options);

}  // namespace functional
}  // namespace ramet::nn
