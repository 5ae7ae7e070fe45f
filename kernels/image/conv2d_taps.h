// Float convolutions as sums over runs of taps: what forward and the gradient of the input share.
// See Note [Convolution without im2col] in conv2d.h. Not for fronts.
#pragma once
#include "kernels/image/conv2d_slab.h"
#include "kernels/matrix/micro.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {

inline float* data_of(const ImageView& v) { return static_cast<float*>(v.data); }

/// A filter's taps as runs over a slab; the same for all groups.
struct Taps {
  // [row taps][runs]: where a run starts, from the pixel's place in the slab
  const int64_t* offset;
  // (row taps, runs, k) x n in slivers (TapPlace), first group; `group` floats to the next
  const float* weights;
  int64_t group;
  // row taps, runs in each, channels of a run (all taps of a row if they are neighbours)
  int64_t rows, runs, k;
  int64_t first, step;  // source row of result row t and tap r: t * stride + first + r * step
  int64_t stride;
  int64_t plane;  // floats between channels, where those of a pixel are not neighbours
};
/// The places of a range that are inside an image: the taps that do not read only the border.
struct Inside {
  int64_t from, to;
  // Of `taps` places from `first` on, `step` apart, those in [0, size).
  Inside(int64_t first, int64_t step, int64_t taps, int64_t size) : from(0), to(taps) {
    while (from < to && first + from * step < 0) ++from;
    while (to > from && first + (to - 1) * step >= size) --to;
  }
  // The row taps of result row t.
  Inside(const Taps& taps, int64_t t, int64_t size)
      : Inside(t * taps.stride + taps.first, taps.step, taps.rows, size) {}
  bool operator==(const Inside& other) const { return from == other.from && to == other.to; }
};

/// Where a convolution puts its pixels.
struct Result {
  float* data;
  int64_t row, pixel, channel;  // strides; channels of tiles are dense
};

/// Result rows t0 .. t0+rows, `pixels` of them in each, n channels in each of the groups. Row 0 of
/// the slab is row `slab_first` of the source, and its rows are `slab_row` floats apart. Pixels are
/// `as` floats apart, and groups `group_channels`.
void convolve(const Taps& taps, const float* slab, int64_t slab_first, int64_t slab_row,
              int64_t source_rows, int64_t as, int64_t group_channels, int64_t groups, int64_t n,
              const float* bias, const Result& out, int64_t t0, int64_t rows, int64_t pixels);

/// The taps of the residue `phase` modulo the stride, in the order of the source: source index = t
/// + q with q ascending.
struct Phase {
  int64_t taps, first_tap, tap_step;  // tap r of source order x: first_tap - x * tap_step
  int64_t first, step;                // q of source order x: first + x * step
};
RAMET_INLINE Phase phase_of(int64_t phase, int64_t k, int64_t stride, int64_t pad,
                            int64_t dilation) {
  Phase p{0, 0, 1, 0, 1};
  int64_t last = -1;
  for (int64_t r = k - 1; r >= 0; --r) {
    const int64_t at = phase + pad - r * dilation;
    if (at % stride) continue;
    const int64_t q = conv2d_floor_div(at, stride);
    if (p.taps == 0) p.first_tap = r, p.first = q;
    else if (p.taps == 1) p.tap_step = last - r, p.step = q - p.first;
    last = r;
    ++p.taps;
  }
  return p;
}

/// The taps for a pixel of the result, the same in all images.
struct Window {
  int64_t a;             // offset of its first tap in an image
  const float* weights;  // a matrix of `lines` rows, in slivers; that tap's row is `first`
  int64_t lines, first;
  int64_t rows, aseg, step;  // row taps; the steps between them in the image and matrix
  int64_t k;                 // channels of the taps in one of them
};
/// Tiles of one pixel of several images. They read no taps outside the border. An element is the
/// same chain of operations as elsewhere. Calls `window(y, x, line)`; rows of the source are `line`
/// apart.
template <class F>
void by_images(const Conv2dPlan& p, int64_t n, const ImageView& from, int64_t h, int64_t w,
               int64_t c, const ImageView& to, int64_t rows, int64_t columns, int64_t channels,
               const float* bias, float* workspace, const F& window) {
  const float* source = data_of(from);
  int64_t image = from.n, line = from.h;
  // (If images were a multiple of 4 KB apart, they would share the sets of the first-level cache.)
  if (from.c != 1 || from.w != c || image % 1024 == 0) {
    parallel_tasks(n, [&](int64_t i, int) {
      load_slab(source + i * from.n, from, h, w, c, 0, h, 0, w, workspace + i * p.image);
    });
    source = workspace, image = p.image, line = w * c;
  }
  float* slots = workspace + n * p.image;
  const bool direct = to.c == 1;
  const int64_t slivers = ceil_div(channels, kNR);
  const Cut cut(n);
  parallel_tasks(cut.parts * slivers, [&](int64_t task, int slot) {
    const int64_t part = task / slivers, j = task % slivers * kNR, width = imin(channels - j, kNR),
                  first = part * cut.per + imin(part, cut.extra), images = cut.size(part);
    const float* a = source + first * image;
    float* result = data_of(to) + first * to.n + j * to.c;
    float* out = slots + slot * p.out;  // [image][row][column][width]
    const int64_t out_image = rows * columns * width;
    Tile t{};
    const Micro fn = micro_for(t, false, width, false)[images - 1];
    t.as = image, t.bs = width, t.cs = direct ? to.n : out_image;
    t.alpha = 1, t.bias = bias ? bias + j : nullptr;
    for (int64_t y = 0; y < rows; ++y)
      for (int64_t x = 0; x < columns; ++x) {
        const Window seen = window(y, x, line);
        t.a = a + seen.a, t.b = seen.weights + j * seen.lines + seen.first * width;
        t.k = seen.k, t.segs = seen.rows, t.aseg = seen.aseg, t.bseg = seen.step * width;
        t.c = direct ? result + y * to.h + x * to.w : out + (y * columns + x) * width;
        fn(t);
      }
    if (!direct)
      for (int64_t i = 0; i < images; ++i)
        for (int64_t y = 0; y < rows; ++y)
          store_row(out + i * out_image + y * columns * width, width, columns,
                    result + i * to.n + y * to.h, to.c, to.w);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
