// How a GPU cuts the gradient of a convolution's weight into parts. It sums the parts afterwards:
// Note [Cuts for a nominal GPU] in kernels/gpu/gpu_cuts.h.
#pragma once
#include "kernels/image/conv2d.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

/// Outputs and depth of a block of gemm_gpu.h: tiles of kConvTile x kConvTile elements.
inline constexpr int64_t kConvTile = 64, kConvTileDepth = 16;

/// A part has some images, or one of the `bands` of one.
struct ConvWeightCut {
  int64_t images, bands, pixels, parts;
  RAMET_INLINE explicit ConvWeightCut(const Conv2dShape& s) {
    // Enough parts to keep a large GPU busy, if a tile then still has enough to add. About
    // kNominalBlocks, but the number affects the bits, so it stays as it is.
    constexpr int64_t kBlocks = 512, kLeast = 512;
    const int64_t of_image = s.oh * s.ow,
                  tiles = s.groups * ceil_div(s.co / s.groups, kConvTile) *
                          ceil_div(s.ci / s.groups * s.kh * s.kw, kConvTile),
                  wanted =
                      imax(1, imin(ceil_div(s.n * of_image, kLeast), ceil_div(kBlocks, tiles)));
    images = imax(1, s.n / wanted), bands = ceil_div(wanted, imax(1, s.n)), pixels = of_image;
    if (bands > 1) {
      const int64_t steps =
          ceil_div(ceil_div(of_image, bands), kConvTileDepth);  // of a tile, whole
      pixels = imin(of_image, steps * kConvTileDepth);
      bands = ceil_div(of_image, pixels);
    }
    parts = ceil_div(s.n, images) * bands;
  }
};

}  // namespace ramet::kernels::RAMET_VARIANT
