// Layout changes around the float convolutions: slabs of an image, packed filters. Not for fronts.
#pragma once
#include "kernels/conv2d.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

/// Rows first .. first+rows of one image (h x w pixels, c channels, strides of `v`) as dst[row][columns][c], shifted right
/// by `left` columns (left if negative); zeros outside the image. May set up to 15 floats after the end to zero.
void load_slab(const float* image, const ImageView& v, int64_t h, int64_t w, int64_t c, int64_t first, int64_t rows,
               int64_t left, int64_t columns, float* dst);

/// src[w][c], dense, to one row of an image with channel stride sc and pixel stride sw.
void store_row(const float* src, int64_t c, int64_t w, float* dst, int64_t sc, int64_t sw);

/// dst[g*taps*cig*cog + place[tap] + c*cog + o] = weight[g*cog + o][c][tap].
void pack_filter(const float* weight, int64_t groups, int64_t cog, int64_t cig, int64_t taps, const int64_t* place, float* dst);

/// dst[g*taps*cig*cog + place[tap] + o*cig + c] = weight[g*cog + o][c][tap].
void pack_filter_transposed(const float* weight, int64_t groups, int64_t cog, int64_t cig, int64_t taps, const int64_t* place,
                            float* dst);

}  // namespace ramet::kernels::RAMET_VARIANT
