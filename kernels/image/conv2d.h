// Two-dimensional convolution (cross-correlation, as LibTorch's conv2d) and its two gradients.
#pragma once
#include "kernels/image/image.h"
#include "kernels/kernel.h"
#include "kernels/matrix/gemm_plan.h"

namespace ramet {
namespace kernels {

/// The extents of one convolution. Input [n, ci, h, w], weight [co, ci/groups, kh, kw], output [n,
/// co, oh, ow] with
///   y[n,o,i,j] = bias[o] + sum over c,r,s of weight[o,c,r,s] * x[n, c, i*sh - ph + r*dh, j*sw - pw
///       + s*dw],
/// where c runs over the ci/groups channels of o's group. x outside its extents is zero: ph rows
/// above, and as many below as oh asks for. REQUIRES: groups divides ci and co; every extent but n,
/// ci and co is positive. Memory and time are proportional to (oh - 1) sh + (kh - 1) dh, and
/// likewise for the columns. That counts rows outside the image, too. So fronts cut away taps that
/// meet no pixel (Note [Taps that meet the image] in autograd/ops/front/conv_internal.h).
struct Conv2dShape {
  int64_t n, ci, h, w, co, oh, ow;
  int64_t kh, kw, sh, sw, ph, pw, dh, dw, groups;
};

/// weight (and its gradient) are contiguous; bias is null or co values. All have one dtype: float,
/// double or int64; on a CPU also bfloat16. The three functions below define the use of each
/// operand. Unused operands are null.
struct Conv2dArgs {
  Conv2dShape shape;
  ImageView x, y;
  void *weight, *bias;
  ScalarType dtype;
  void* workspace;  // conv2d_*_workspace bytes, aligned to 64
};

/// y from x, weight, bias.
RAMET_KERNEL(conv2d_forward, Conv2dArgs);
/// Gradient of x, written to `x`, from the gradient of y in `y` and weight. In bfloat16 a bias of
/// ci values is added, if there is one.
RAMET_KERNEL(conv2d_backward_input, Conv2dArgs);
/// Gradient of the weight, written to `weight`, and of the bias (unless null) from x and the
/// gradient of y in `y`. Images are summed in groups that follow from the shape, then the groups in
/// order. A GPU also sums parts of images, and does not need the workspace. Zeros for n = 0.
RAMET_KERNEL(conv2d_backward_weight, Conv2dArgs);

// A 1x1 filter that moves by whole pixels does not depend on rows. So an image may be cut into rows
// of any length, here the largest divisor of its pixels up to 1024. For fronts, before they ask for
// the workspace. Does nothing to other shapes.
RAMET_PLAN void conv2d_simplify(Conv2dArgs& a) {
  Conv2dShape& s = a.shape;
  if (s.kh != 1 || s.kw != 1 || s.sh != 1 || s.sw != 1 || s.ph != 0 || s.pw != 0) return;
  if (s.oh != s.h || s.ow != s.w) return;
  if (a.x.h != s.w * a.x.w || a.y.h != s.ow * a.y.w) return;
  const int64_t pixels = s.h * s.w;
  int64_t line = pixels < 1024 ? pixels : 1024;
  while (pixels % line) --line;
  if (line < s.w) return;
  s.w = s.ow = line, s.h = s.oh = pixels / line;
  a.x.h = line * a.x.w, a.y.h = line * a.y.w;
}

// Note [Convolution without im2col]
// Float convolutions run the register tile of the matrix product on a slab. A slab is some rows of
// the image as [row][column][channel] with a border of zeros. For one row of the output, operand A
// is "pixel i, tap and channel". It has a row stride of sw * ci, and a run of channels for each tap
// of the filter. The offset of a run does not depend on the pixel. So the k loop is a list of runs
// (Tile::aoff). With one group and no dilation the taps of a filter row are neighbours and become
// one run. The gradient of the input is the same function on a slab of the output's gradient. Input
// rows are grouped by their residue modulo the stride. Each residue has its own subset of the taps,
// and the step in it is 1. The gradient of the weight reads A by column, with the rows of the image
// as runs.
//
// Three kinds of shapes would leave most of a tile unused. Rows of few pixels: a tile is one pixel
// of several images (by_images). Few channels in a result, or in each group of it: vectors are
// pixels, of a slab of planes (plane). Filters larger than images: the gradient of the weight is
// formed tile by tile for all images (by_tiles). Each element is computed by the same chain of
// operations in all of them.

// Note [Convolution in pairs]
// Convolutions in bfloat16 are products of lines (im2col) with the packed filter. They use the
// tiles of products in bfloat16 (kernels/matrix/bfloat_tile.h), so they have their bits. A line has
// what a pixel of the result reads: row taps, column taps, channels. An odd number of channels (of
// a group) is padded with a zero in both operands, so a pair is two channels of one tap. A sum is
// one chain over the line. For the gradient of the input the channels are those of y. Its taps are
// in the order in which they meet the image. For the gradient of the weight, a pair is two
// neighbours among the pixels of a part of the images. These are in the order image, row, column. A
// sum is one chain over the part; then the parts are added in order. Results are rounded once. What
// is outside an image counts as zero, so a weight that is infinite gives a NaN there.
//
// Lines are copied in 16 bits, block after block, and are read as operands where they are. The copy
// of an element takes less than half a cycle, and its products with 64 channels take two. So slabs,
// as for floats, would save little; and lines make short rows and small images fast, too.

struct Conv2dPlan {
  int64_t rows;                           // rows of the result in one task
  int64_t slab_rows, slab_columns, slab;  // extents of a slab and its floats
  int64_t out;                            // floats of a result that is transposed afterwards
  int64_t weights;                        // floats of the packed weights
  bool by_images;                         // tiles of one pixel of several images
  int64_t image;                          // floats of a copy of a source image
  int64_t plane;                          // distance of planes if a slab is by channels, or 0
};
// with 16 floats of slack
RAMET_PLAN int64_t conv2d_round(int64_t floats) { return (floats + 31) / 16 * 16; }
RAMET_PLAN int64_t conv2d_rows(int64_t images, int64_t rows, int64_t floats_per_row) {
  const int64_t parts = images >= 16 ? 1 : (16 + images - 1) / (images > 0 ? images : 1);
  const int64_t by_parts = (rows + parts - 1) / parts;
  // half a megabyte
  const int64_t by_cache = 128 * 1024 / (floats_per_row > 0 ? floats_per_row : 1);
  return by_parts < by_cache ? by_parts : by_cache > 1 ? by_cache : 1;
}
// Columns that the outputs of a row read.
RAMET_PLAN int64_t conv2d_seen(const Conv2dShape& s) {
  return (s.ow - 1) * s.sw + (s.kw - 1) * s.dw + 1;
}
// Columns of a slab. (With equal padding on both sides, these are a few more than are read.)
RAMET_PLAN int64_t conv2d_slab_columns(const Conv2dShape& s) {
  const int64_t even = s.w + 2 * s.pw, seen = conv2d_seen(s);
  return even > seen ? even : seen;
}
// The image itself is a slab where nothing is padded and channels are dense.
RAMET_PLAN bool conv2d_in_place(const Conv2dShape& s, const ImageView& x) {
  return s.ph == 0 && s.pw == 0 && x.c == 1 && conv2d_seen(s) <= s.w;
}
// Short rows of a result (of `row` pixels) fill only a part of a register tile. One pixel of
// several images fills all of it. That needs images small enough for the second-level cache, and
// taps of a row that are neighbours.
RAMET_PLAN void conv2d_by_images(const Conv2dShape& s, int64_t source, int64_t row, int64_t pixels,
                                 Conv2dPlan& p) {
  p.by_images =
      s.groups == 1 && s.dw == 1 && s.n >= 8 && row <= 7 && source <= 16 * 1024 && pixels <= 1024;
  p.image = conv2d_round(source);
  if (p.by_images) p.slab = 0, p.out = 14 * pixels * 32;  // of the largest tile
}
// Few channels of a result (in each group) would fill only a part of a vector. Neighbouring pixels
// fill all of it.
RAMET_PLAN void conv2d_by_planes(const Conv2dShape& s, int64_t from, int64_t to, int64_t row,
                                 int64_t step, Conv2dPlan& p) {
  if (to > 4 * s.groups || (s.groups == 1 && from < 8) || row < 4 || p.by_images) return;
  p.slab_columns = (p.slab_columns + step - 1) / step * step;
  p.plane = conv2d_round(p.slab_rows * p.slab_columns);
  p.slab = from * p.plane + 16;
}
RAMET_PLAN Conv2dPlan conv2d_forward_plan(const Conv2dShape& s) {
  Conv2dPlan p{};
  p.slab_columns = conv2d_slab_columns(s);
  p.rows = conv2d_rows(s.n, s.oh, s.sh * p.slab_columns * s.ci);
  p.slab_rows = (p.rows - 1) * s.sh + (s.kh - 1) * s.dh + 1;
  p.slab = conv2d_round(p.slab_rows * p.slab_columns * s.ci);
  p.out = conv2d_round(p.rows * s.ow * s.co);
  p.weights = conv2d_round(s.co * (s.ci / s.groups) * s.kh * s.kw);
  conv2d_by_images(s, s.h * s.w * s.ci, s.ow, s.oh * s.ow, p);
  conv2d_by_planes(s, s.ci, s.co, s.ow, s.sw, p);
  return p;
}
RAMET_PLAN int64_t conv2d_floor_div(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}
// Index of the first row (column) of the output that reaches row (column) `first` of the input.
RAMET_PLAN int64_t conv2d_lowest(int64_t first, int64_t k, int64_t stride, int64_t pad,
                                 int64_t dilation) {
  return conv2d_floor_div(first + pad - (k - 1) * dilation, stride);
}
RAMET_PLAN Conv2dPlan conv2d_backward_input_plan(const Conv2dShape& s) {
  Conv2dPlan p{};
  p.slab_columns =
      conv2d_floor_div(s.w - 1 + s.pw, s.sw) - conv2d_lowest(0, s.kw, s.sw, s.pw, s.dw) + 1;
  p.rows = conv2d_rows(s.n, s.h, p.slab_columns * s.co / s.sh);
  p.slab_rows = (p.rows - 1 + (s.kh - 1) * s.dh) / s.sh + 2;
  p.slab = conv2d_round(p.slab_rows * p.slab_columns * s.co);
  p.out = conv2d_round(p.rows * s.w * s.ci);
  p.weights = conv2d_round(s.co * (s.ci / s.groups) * s.kh * s.kw);
  conv2d_by_images(s, s.oh * s.ow * s.co, (s.w + s.sw - 1) / s.sw, s.h * s.w, p);
  conv2d_by_planes(s, s.co, s.ci, s.w / s.sw, 1, p);
  return p;
}
// Floats that a convolution needs.
RAMET_PLAN int64_t conv2d_floats(const Conv2dShape& s, const Conv2dPlan& p, int slots) {
  return p.weights + (p.by_images ? s.n * p.image : 0) + slots * (p.slab + p.out) +
         8 * conv2d_round(s.kh * s.kw);
}
struct Conv2dWeightPlan {
  int64_t per, parts;  // images of a partial sum; partial sums
  // output rows processed at a time, of so many images: their slabs and gradients fit the
  // second-level cache
  int64_t rows, batch;
  bool by_tiles;
  int64_t slab_rows, slab_columns, slab, dy, weights, bias;
};
RAMET_PLAN Conv2dWeightPlan conv2d_backward_weight_plan(const Conv2dShape& s) {
  Conv2dWeightPlan p{};
  p.weights = conv2d_round(s.co * (s.ci / s.groups) * s.kh * s.kw);
  p.bias = conv2d_round(s.co);
  const int64_t fit = 16 * 1024 * 1024 / p.weights;  // at most 64 MB of partial sums
  const int64_t wanted = (s.n + 7) / 8, parts = wanted < fit ? wanted : fit > 1 ? fit : 1;
  p.per = parts > 0 ? (s.n + parts - 1) / parts : 1;
  p.parts = (s.n + p.per - 1) / p.per;
  p.slab_columns = conv2d_slab_columns(s);
  const int64_t fit_rows = 48 * 1024 / (s.sh * p.slab_columns * s.ci + s.ow * s.co + 1);
  p.rows = fit_rows < 1 ? 1 : fit_rows < s.oh ? fit_rows : s.oh;
  p.slab_rows = (p.rows - 1) * s.sh + (s.kh - 1) * s.dh + 1;
  p.slab = conv2d_round(p.slab_rows * p.slab_columns * s.ci);
  p.dy = conv2d_round(p.rows * s.ow * s.co);
  // Several images if they are small. If the sums of a tile over all of them are many, they must
  // stay in the first-level cache.
  const bool single = p.rows < s.oh || p.weights <= 8 * 1024;
  const int64_t fit_images = single ? 1 : 96 * 1024 / (p.slab + p.dy);
  p.batch = fit_images < 1 ? 1 : fit_images < p.per ? fit_images : p.per;
  // All of them, where their pixels are few: then partial sums need no memory.
  p.by_tiles = p.rows == s.oh && s.n > 0 && s.oh * s.ow <= 2048 / s.n &&
               s.n * (p.slab + p.dy) <= p.parts * p.weights;
  return p;
}
// Double and int64: im2col blocks of whole output rows.
struct Conv2dWidePlan {
  // output rows of a block; values of the column matrix and of a block of the result
  int64_t rows, column, pixels;
  int64_t pack_b;
};
RAMET_PLAN Conv2dWidePlan conv2d_wide_plan(const Conv2dShape& s) {
  Conv2dWidePlan p{};
  const int64_t k = s.ci / s.groups * s.kh * s.kw, fit = 64 * 1024 / (s.ow * (k > 0 ? k : 1));
  p.rows = fit < 1 ? 1 : fit < s.oh ? fit : s.oh;
  p.column = conv2d_round(p.rows * s.ow * k);
  p.pixels = conv2d_round(p.rows * s.ow * (s.co / s.groups));
  p.pack_b = 256 * (512 + 16) + 8;  // wide_pack_b at its largest
  return p;
}
RAMET_PLAN int64_t conv2d_wide_slot(const Conv2dShape& s) {
  const Conv2dWidePlan p = conv2d_wide_plan(s);
  return p.column + p.pixels + p.pack_b + (64 + 16) * 256;
}

// bfloat16. Sizes in floats.
struct Conv2dBfloatPlan {
  int64_t channels;  // of a line's tap, even
  int64_t k;         // elements of a line
  int64_t pixels;    // lines of one task
  int64_t line;      // from line to line, if elements are floats
  int64_t weights, ordered;
  int64_t slot;
};
RAMET_PLAN int64_t conv2d_even(int64_t n) { return n + n % 2; }
// Lines that are a multiple of 4 KB apart would share the sets of the first-level cache.
RAMET_PLAN int64_t conv2d_line(int64_t floats) { return floats % 1024 ? floats : floats + 16; }
RAMET_PLAN Conv2dBfloatPlan conv2d_bfloat_plan(const Conv2dShape& s, int64_t from, int64_t to,
                                               int64_t results) {
  Conv2dBfloatPlan p{};
  p.channels = conv2d_even(from);
  p.k = s.kh * s.kw * p.channels;
  // A quarter of a megabyte, and 16 tasks.
  const int64_t fit = 128 * 1024 / (p.k > 0 ? p.k : 1), each = (results + 15) / 16;
  p.pixels = fit < 28 ? 28 : fit < 448 ? fit / 14 * 14 : 448;
  if (p.pixels > each) p.pixels = each < 28 ? 28 : (each + 13) / 14 * 14;
  p.line = conv2d_line(p.k);
  p.weights = conv2d_round(s.groups * (to + 32) * p.k);
  p.ordered = conv2d_round(s.groups * to * p.k / 2);
  p.slot = conv2d_round(p.pixels * p.line) + conv2d_round(p.pixels * (to + 32));
  return p;
}
RAMET_PLAN Conv2dBfloatPlan conv2d_bfloat_forward_plan(const Conv2dShape& s) {
  return conv2d_bfloat_plan(s, s.ci / s.groups, s.co / s.groups, s.n * s.oh * s.ow);
}
RAMET_PLAN Conv2dBfloatPlan conv2d_bfloat_input_plan(const Conv2dShape& s) {
  return conv2d_bfloat_plan(s, s.co / s.groups, s.ci / s.groups, s.n * s.h * s.w);
}
// Images are read where they are if their channels (`channels` of each group) are innermost and in
// pairs. Otherwise they are copied, to so many floats.
RAMET_PLAN int64_t conv2d_bfloat_copy(const ImageView& v, int64_t pixels, int64_t groups,
                                      int64_t channels) {
  if (v.c == 1 && channels % 2 == 0) return 0;
  return conv2d_round(pixels * groups * conv2d_even(channels) / 2);
}
RAMET_PLAN int64_t conv2d_bfloat_copy_of_x(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  return conv2d_bfloat_copy(a.x, s.n * s.h * s.w, s.groups, s.ci / s.groups);
}
RAMET_PLAN int64_t conv2d_bfloat_copy_of_y(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  return conv2d_bfloat_copy(a.y, s.n * s.oh * s.ow, s.groups, s.co / s.groups);
}
// The gradient of y as an operand, for the gradient of the weight: pixels are at one distance.
RAMET_PLAN int64_t conv2d_bfloat_copy_of_rows(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  if (a.y.c == 1 && a.y.h == s.ow * a.y.w && (s.n == 1 || a.y.n == s.oh * a.y.h)) return 0;
  return conv2d_round(s.n * s.oh * s.ow * s.co / 2);
}
RAMET_PLAN int64_t conv2d_bfloat_floats(const Conv2dBfloatPlan& p, int64_t copy, int slots) {
  return p.weights + p.ordered + copy + slots * p.slot;
}
struct Conv2dBfloatWeightPlan {
  int64_t channels, k;
  int64_t per, parts;  // images of a partial sum; partial sums
  int64_t splits;      // of a part, by row taps
  int64_t pixels;      // lines of a block
  int64_t width;       // floats of a row of sums
  int64_t sums, bias;
  int64_t lines, pack_b, pack_a;
};
RAMET_PLAN Conv2dBfloatWeightPlan conv2d_bfloat_weight_plan(const Conv2dShape& s) {
  const Conv2dWeightPlan images = conv2d_backward_weight_plan(s);
  Conv2dBfloatWeightPlan p{};
  p.channels = conv2d_even(s.ci / s.groups);
  p.k = s.kh * s.kw * p.channels;
  p.per = images.per, p.parts = images.parts;
  const int64_t wanted = 8 / (p.parts > 0 ? p.parts : 1);
  p.splits = wanted < 1 ? 1 : wanted < s.kh ? wanted : s.kh;
  const int64_t fit = 128 * 1024 / (p.k > 0 ? p.k : 1);
  p.pixels = fit < 64 ? 64 : fit < 512 ? fit / 2 * 2 : 512;
  p.width = bfloat_sums_row(s.co / s.groups);
  p.sums = conv2d_round(s.groups * p.k * p.width), p.bias = images.bias;
  p.lines = conv2d_round(p.pixels * p.k / 2);
  p.pack_b = conv2d_round(bfloat_pack_b(s.co / s.groups, p.pixels));
  p.pack_a = conv2d_round(bfloat_pack_a(p.k, p.pixels));
  return p;
}

/// Bytes of workspace when regions have at most `slots` threads (max_parallel_slots()). Pointers do
/// not count.
RAMET_PLAN int64_t conv2d_forward_workspace(const Conv2dArgs& a, int slots) {
  const Conv2dShape& s = a.shape;
  if (a.dtype == ScalarType::BFloat16)
    return 4 *
           conv2d_bfloat_floats(conv2d_bfloat_forward_plan(s), conv2d_bfloat_copy_of_x(a), slots);
  if (a.dtype != ScalarType::Float) return 8 * slots * conv2d_wide_slot(s);
  return 4 * conv2d_floats(s, conv2d_forward_plan(s), slots);
}
RAMET_PLAN int64_t conv2d_backward_input_workspace(const Conv2dArgs& a, int slots) {
  const Conv2dShape& s = a.shape;
  if (a.dtype == ScalarType::BFloat16)
    return 4 * conv2d_bfloat_floats(conv2d_bfloat_input_plan(s), conv2d_bfloat_copy_of_y(a), slots);
  if (a.dtype != ScalarType::Float) return 8 * slots * conv2d_wide_slot(s);
  return 4 * conv2d_floats(s, conv2d_backward_input_plan(s), slots);
}
RAMET_PLAN int64_t conv2d_backward_weight_workspace(const Conv2dArgs& a, int slots) {
  const Conv2dShape& s = a.shape;
  if (a.dtype == ScalarType::BFloat16) {
    const Conv2dBfloatWeightPlan b = conv2d_bfloat_weight_plan(s);
    return 4 * (conv2d_bfloat_copy_of_x(a) + conv2d_bfloat_copy_of_rows(a) +
                b.parts * (b.sums + b.bias) + slots * (b.lines + b.pack_b + b.pack_a));
  }
  const Conv2dWeightPlan p = conv2d_backward_weight_plan(s);
  if (a.dtype != ScalarType::Float)
    return 8 * (slots * conv2d_wide_slot(s) + p.parts * (p.weights + p.bias));
  return 4 * (p.by_tiles ? p.weights + p.parts * p.bias + s.n * (p.slab + p.dy)
                         : p.parts * (p.weights + p.bias) + slots * p.batch * (p.slab + p.dy));
}

}  // namespace kernels
}  // namespace ramet
