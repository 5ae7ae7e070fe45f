// Shared parts of the float convolutions: slabs of an image, packed filters. Not for fronts.
#pragma once
#include "kernels/image/conv2d.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

/// Rows first .. first+rows of one image (h x w pixels, c channels, strides of `v`) as
/// dst[row][columns][c]. They are shifted right by `left` columns (left if negative), with zeros
/// outside the image. May set up to 15 floats after the end to zero.
void load_slab(const float* image, const ImageView& v, int64_t h, int64_t w, int64_t c,
               int64_t first, int64_t rows, int64_t left, int64_t columns, float* dst);

/// The same as dst[c][row][columns], channels `plane` floats apart, at least 15 more than they
/// have. `columns` is a multiple of `step`. Every step-th column is a neighbour of the one before:
/// 0, step, ...; 1, ...
void load_plane_slab(const float* image, const ImageView& v, int64_t h, int64_t w, int64_t c,
                     int64_t first, int64_t rows, int64_t left, int64_t columns, int64_t step,
                     int64_t plane, float* dst);

/// Copies src[w][c], dense, to one row of an image with channel stride sc and pixel stride sw.
void store_row(const float* src, int64_t c, int64_t w, float* dst, int64_t sc, int64_t sw);

/// The place of the channels of one tap in a packed filter: rows row .. of a matrix of `rows` rows.
/// The matrix starts at `base` and is stored in slivers of kNR columns. Element (k, j) of the
/// sliver from column s on is at s*rows + k*width + j - s, where width is the sliver's. (The last
/// one's may be smaller.) So the tile reads a sliver from first to last byte.
struct TapPlace {
  int64_t base, rows, row;
};

/// Element (c, o) of tap's matrix = weight[g*cog + o][c][tap]. The groups are consecutive.
void pack_filter(const float* weight, int64_t groups, int64_t cog, int64_t cig, int64_t taps,
                 const TapPlace* place, float* dst);

/// Element (o, c) of tap's matrix = weight[g*cog + o][c][tap].
void pack_filter_transposed(const float* weight, int64_t groups, int64_t cog, int64_t cig,
                            int64_t taps, const TapPlace* place, float* dst);

/// The float part of conv2d_backward_weight (conv2d_weight.cc).
void conv2d_float_backward_weight(const Conv2dArgs& a);

}  // namespace ramet::kernels::RAMET_VARIANT
