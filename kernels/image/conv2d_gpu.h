// Convolutions as products of matrices that are read directly from the images
// (kernels/matrix/gemm_gpu.h), with positions of type I. For .cu files only.
//
// Depth k of the forward pass and of the gradient of the input is (row of the filter, its column,
// channel), the channel fastest. The position of an element is a sum of three terms: of the pixel,
// the tap and the channel. They are computed separately, so an element costs two comparisons and an
// addition.
#pragma once
#include "kernels/matrix/gemm_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/image/conv2d.h"
#include "kernels/image/conv2d_weight_cut.h"
#include "kernels/image/images_gpu.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {

/// The parts of a Conv2dShape that the products of a convolution need, with prepared divisions.
template <class I> struct ConvGeometry {
  I h, w, oh, ow, kh, kw, ph, pw, dh, dw, sh, sw;
  I in, out;  // channels of a group
  Divisor<I> by_h, by_w, by_oh, by_ow, by_kh, by_kw, by_sh, by_sw, by_in, by_out;
  explicit ConvGeometry(const Conv2dShape& s)
      : h(static_cast<I>(s.h)),
        w(static_cast<I>(s.w)),
        oh(static_cast<I>(s.oh)),
        ow(static_cast<I>(s.ow)),
        kh(static_cast<I>(s.kh)),
        kw(static_cast<I>(s.kw)),
        ph(static_cast<I>(s.ph)),
        pw(static_cast<I>(s.pw)),
        dh(static_cast<I>(s.dh)),
        dw(static_cast<I>(s.dw)),
        sh(static_cast<I>(s.sh)),
        sw(static_cast<I>(s.sw)),
        in(static_cast<I>(s.ci / s.groups)),
        out(static_cast<I>(s.co / s.groups)),
        by_h(s.h),
        by_w(s.w),
        by_oh(s.oh),
        by_ow(s.ow),
        by_kh(s.kh),
        by_kw(s.kw),
        by_sh(s.sh),
        by_sw(s.sw),
        by_in(in),
        by_out(out) {}
};
/// A pixel around which a filter is placed: the position of its first tap, and the element there.
template <class I> struct ConvPixel { I y, x, at; };
/// For a tap and channel: the distance from the first tap, and the offsets of the elements of both
/// operands.
template <class I> struct alignas(16) ConvDepth { I y, x, a, b; };

/// Rows: pixels of the output. Columns: channels of the output. One batch a group.
template <class T, class I> struct Forward {
  using Value = T;
  using Index = I;
  using Batch = I;  // group
  using Row = ConvPixel<I>;
  using Column = I;  // where the filter of a channel begins
  using Depth = ConvDepth<I>;
  struct Out {
    I at, channel;
  };
  ConvGeometry<I> g;
  Images<const T, I> from;
  Images<T, I> to;
  const T *weight, *bias;
  int64_t batch;
  I m, n, k;
  bool rows_adjacent, columns_adjacent = false;
  explicit Forward(const Conv2dArgs& args)
      : g(args.shape),
        from(args.x),
        to(args.y),
        weight(static_cast<const T*>(args.weight)),
        bias(static_cast<const T*>(args.bias)),
        batch(args.shape.groups) {
    const Conv2dShape& s = args.shape;
    m = static_cast<I>(s.n * s.oh * s.ow), n = g.out, k = static_cast<I>(g.in * s.kh * s.kw);
    rows_adjacent = args.x.c != 1;
  }
  RAMET_INLINE Batch of(int64_t group) const { return static_cast<I>(group); }
  RAMET_INLINE Row row(Batch group, I i) const {
    const I x = g.by_ow.take(i) * g.sw - g.pw, y = g.by_oh.take(i) * g.sh - g.ph;
    return {y, x, i * from.n + group * g.in * from.c + y * from.h + x * from.w};
  }
  RAMET_INLINE Column column(Batch group, I j) const { return (group * n + j) * k; }
  RAMET_INLINE Depth depth(Batch, I at) const {
    const I c = g.by_in.take(at), s = g.by_kw.take(at), y = at * g.dh, x = s * g.dw;
    return {y, x, c * from.c + y * from.h + x * from.w, (c * g.kh + at) * g.kw + s};
  }
  RAMET_INLINE T a(const Row& p, const Depth& d) const {
    const I y = p.y + d.y, x = p.x + d.x;
    if (y < 0 || y >= g.h || x < 0 || x >= g.w) return T(0);
    return from.data[p.at + d.a];
  }
  RAMET_INLINE T b(const Depth& d, Column filter) const { return weight[filter + d.b]; }
  RAMET_INLINE Out out(Batch group, I i) const {
    const I x = g.by_ow.take(i), y = g.by_oh.take(i);
    return {i * to.n + y * to.h + x * to.w, group * n};
  }
  RAMET_INLINE void put(const Out& o, I j, T sum) const {
    const I channel = o.channel + j;
    if (bias) sum = vadd(sum, bias[channel]);
    to.data[o.at + channel * to.c] = sum;
  }
};

/// Rows: pixels of the input. Columns: channels of the input. Depth: taps and channels of the
/// output.
template <class T, class I> struct BackwardInput {
  using Value = T;
  using Index = I;
  using Batch = I;           // group
  using Row = ConvPixel<I>;  // position of the last tap, in steps of one; the image's first element
  using Column = I;          // where the taps of a channel begin in the first filter
  using Depth = ConvDepth<I>;
  struct Out {
    I at, channel;
  };
  ConvGeometry<I> g;
  Images<const T, I> from;
  Images<T, I> to;
  const T* weight;
  int64_t batch;
  I m, n, k;
  bool rows_adjacent, columns_adjacent = false;
  explicit BackwardInput(const Conv2dArgs& args)
      : g(args.shape),
        from(args.y),
        to(args.x),
        weight(static_cast<const T*>(args.weight)),
        batch(args.shape.groups) {
    const Conv2dShape& s = args.shape;
    m = static_cast<I>(s.n * s.h * s.w), n = g.in, k = static_cast<I>(g.out * s.kh * s.kw);
    rows_adjacent = args.y.c != 1;
  }
  RAMET_INLINE Batch of(int64_t group) const { return static_cast<I>(group); }
  RAMET_INLINE Row row(Batch group, I i) const {
    const I x = g.by_w.take(i) + g.pw, y = g.by_h.take(i) + g.ph;
    return {y, x, i * from.n + group * g.out * from.c};
  }
  RAMET_INLINE Column column(Batch group, I j) const {
    return (group * g.out * n + j) * (g.kh * g.kw);
  }
  RAMET_INLINE Depth depth(Batch, I at) const {
    const I c = g.by_out.take(at), s = g.by_kw.take(at);
    return {at * g.dh, s * g.dw, c * from.c, (c * n * g.kh + at) * g.kw + s};
  }
  RAMET_INLINE T a(const Row& p, const Depth& d) const {
    const I y = p.y - d.y, x = p.x - d.x;
    if (y < 0 || x < 0) return T(0);
    const I i = g.by_sh(y), j = g.by_sw(x);
    if (i * g.sh != y || j * g.sw != x || i >= g.oh || j >= g.ow) return T(0);
    return from.data[p.at + d.a + i * from.h + j * from.w];
  }
  RAMET_INLINE T b(const Depth& d, Column taps) const { return weight[taps + d.b]; }
  RAMET_INLINE Out out(Batch group, I i) const {
    const I x = g.by_w.take(i), y = g.by_h.take(i);
    return {i * to.n + y * to.h + x * to.w, group * n};
  }
  RAMET_INLINE void put(const Out& o, I j, T sum) const {
    to.data[o.at + (o.channel + j) * to.c] = sum;
  }
};

static_assert(kConvTile == kTileRows && kConvTile == kTileColumns && kConvTileDepth == kTileDepth);

/// Rows: channels of the output. Columns: taps. Depth: pixels of the output in a part. One batch
/// for each group and part; the parts are added afterwards.
template <class T, class I> struct BackwardWeight {
  using Value = T;
  using Index = I;
  struct Batch {
    I group, image, pixel;  // where the part begins
    int64_t sums;           // where its sums begin
  };
  using Row = I;                // where a channel of the output begins
  using Column = ConvPixel<I>;  // a tap, and a channel of the input
  using Depth = ConvDepth<I>;   // `a` is negative where the part has no such pixel
  struct Out {
    T* sums;
  };
  ConvGeometry<I> g;
  Images<const T, I> dy, from;
  T* to;  // [part][co][ci / groups][kh][kw]
  Divisor<I> by_groups, by_bands, by_pixels;
  I images, part_images;
  int64_t batch;
  I m, n, k;
  bool rows_adjacent, columns_adjacent = false;
  BackwardWeight(const Conv2dArgs& args, const ConvWeightCut& cut, T* partials)
      : g(args.shape),
        dy(args.y),
        from(args.x),
        to(partials),
        by_groups(args.shape.groups),
        by_bands(cut.bands),
        by_pixels(cut.pixels),
        images(static_cast<I>(args.shape.n)),
        part_images(static_cast<I>(cut.images)),
        batch(args.shape.groups * cut.parts) {
    m = g.out, n = static_cast<I>(g.in * g.kh * g.kw);
    k = static_cast<I>(cut.images * cut.pixels);
    rows_adjacent = args.y.c == 1;
  }
  RAMET_INLINE Batch of(int64_t item) const {
    I rest = static_cast<I>(item);
    const I group = by_groups.take(rest);
    const int64_t sums = (static_cast<int64_t>(rest) * by_groups.by + group) * m * n;
    const I band = by_bands.take(rest);
    return {group, rest * part_images, band * by_pixels.by, sums};
  }
  RAMET_INLINE Row row(const Batch& part, I i) const { return (part.group * m + i) * dy.c; }
  RAMET_INLINE Column column(const Batch& part, I j) const {
    // In the order of the weight's memory.
    const I x = g.by_kw.take(j) * g.dw, y = g.by_kh.take(j) * g.dh;
    return {y, x, (part.group * g.in + j) * from.c + y * from.h + x * from.w};
  }
  RAMET_INLINE Depth depth(const Batch& part, I at) const {
    I pixel = part.pixel + by_pixels.take(at);
    const I image = part.image + at, j = g.by_ow.take(pixel), i = pixel;
    // The last part of the images, and the last band of an image, may be smaller.
    if (image >= images || i >= g.oh) return {0, 0, -1, 0};
    const I y = i * g.sh - g.ph, x = j * g.sw - g.pw;
    return {y, x, image * dy.n + i * dy.h + j * dy.w, image * from.n + y * from.h + x * from.w};
  }
  RAMET_INLINE T a(Row channel, const Depth& d) const {
    return d.a < 0 ? T(0) : dy.data[channel + d.a];
  }
  RAMET_INLINE T b(const Depth& d, const Column& c) const {
    const I y = d.y + c.y, x = d.x + c.x;
    if (d.a < 0 || y < 0 || y >= g.h || x < 0 || x >= g.w) return T(0);
    return from.data[c.at + d.b];
  }
  RAMET_INLINE Out out(const Batch& part, I i) const {
    return {to + part.sums + static_cast<int64_t>(i) * n};
  }
  RAMET_INLINE void put(const Out& o, I j, T sum) const { o.sums[j] = sum; }
};

}  // namespace ramet::kernels::RAMET_VARIANT
