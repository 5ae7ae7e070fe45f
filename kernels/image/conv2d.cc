// Float convolution. See Note [Convolution without im2col] in conv2d.h.
#include "kernels/image/conv2d.h"

#include "kernels/image/conv2d_slab.h"
#include "kernels/image/conv2d_wide.h"
#include "kernels/matrix/micro.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

RAMET_INLINE float* data_of(const ImageView& v) { return static_cast<float*>(v.data); }

// A filter's taps as runs over a slab; the same for all groups.
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
// The places of a range that are inside an image: the taps that do not read only the border.
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

struct Result {
  float* data;
  int64_t row, pixel, channel;  // strides; channels of tiles are dense
};

// For R result rows, `row` apart in the slab, and one channel of n in its group. A vector is
// neighbouring pixels, which fill it where channels are few.
template <int R>
void plane_rows(const Taps& taps, const float* weights, const Inside& inside, const float* a,
                int64_t row, int64_t n, const float* bias, const Result& out, float* c,
                int64_t pixels) {
  for (int64_t i = 0; i < pixels; i += VL) {
    vf acc[R];
    for (int r = 0; r < R; ++r) acc[r] = vf{};
    for (int64_t s = inside.from * taps.runs; s < inside.to * taps.runs; ++s) {
      const float *p = a + taps.offset[s] + i, *w = weights + s * taps.k * n;
      for (int64_t k = 0; k < taps.k; ++k, p += taps.plane, w += n) {
        const vf x = set1(*w);
        for (int r = 0; r < R; ++r) acc[r] = mac(load(p + r * row), x, acc[r]);
      }
    }
    const int64_t left = imin(VL, pixels - i);
    alignas(64) float value[VL];
    for (int r = 0; r < R; ++r) {
      const vf v = bias ? acc[r] + set1(*bias) : acc[r];
      float* to = c + r * out.row + i * out.pixel;
      if (out.pixel == 1) {
        storen(to, v, left);
      } else {
        store(value, v);
        for (int64_t j = 0; j < left; ++j) to[j * out.pixel] = value[j];
      }
    }
  }
}
void convolve_planes(const Taps& taps, const float* slab, int64_t slab_first, int64_t slab_row,
                     int64_t source_rows, int64_t groups, int64_t n, const float* bias,
                     const Result& out, int64_t t0, int64_t rows, int64_t pixels) {
  constexpr decltype(&plane_rows<1>) fn[] = {plane_rows<1>, plane_rows<2>, plane_rows<3>,
                                             plane_rows<4>, plane_rows<5>, plane_rows<6>,
                                             plane_rows<7>, plane_rows<8>};
  for (int64_t r = 0, end; r < rows; r = end) {
    const Inside inside(taps, t0 + r, source_rows);
    end = r + 1;
    while (end < imin(rows, r + 8) && Inside(taps, t0 + end, source_rows) == inside) ++end;
    const float* a = slab + ((t0 + r) * taps.stride - slab_first) * slab_row;
    for (int64_t o = 0; o < groups * n; ++o)
      fn[end - r - 1](taps, taps.weights + o / n * taps.group + o % n, inside,
                      a + o / n * taps.k * taps.plane, taps.stride * slab_row, n,
                      bias ? bias + o : nullptr, out, out.data + r * out.row + o * out.channel,
                      pixels);
  }
}

// Result rows t0 .. t0+rows, `pixels` of them in each, n channels in each of the groups.
void convolve(const Taps& taps, const float* slab, int64_t slab_first, int64_t slab_row,
              int64_t source_rows, int64_t as, int64_t group_channels, int64_t groups, int64_t n,
              const float* bias, const Result& out, int64_t t0, int64_t rows, int64_t pixels) {
  if (pixels <= 0) return;
  if (taps.plane)
    return convolve_planes(taps, slab, slab_first, slab_row, source_rows, groups, n, bias, out, t0,
                           rows, pixels);
  const Cut cut(pixels);
  Tile t{};
  t.as = as, t.cs = out.pixel;
  t.k = taps.k;
  t.alpha = 1;
  for (int64_t g = 0; g < groups; ++g)
    // the filter's sliver stays in the cache over the whole slab
    for (int64_t j = 0; j < n; j += kNR) {
      const int64_t width = imin(n - j, kNR);
      const auto* fn = micro_for(t, false, width, false);
      t.bs = width, t.bseg = taps.k * width;
      t.bias = bias ? bias + g * n + j : nullptr;
      for (int64_t r = 0; r < rows; ++r) {
        const auto [from, to] = Inside(taps, t0 + r, source_rows);
        t.segs = (to - from) * taps.runs;
        t.aoff = taps.offset + from * taps.runs;
        t.b = taps.weights + g * taps.group + j * taps.rows * taps.runs * taps.k +
              from * taps.runs * t.bseg;
        const float* a =
            slab + ((t0 + r) * taps.stride - slab_first) * slab_row + g * group_channels;
        float* c = out.data + r * out.row + g * n + j;
        for (int64_t s = 0, i = 0; s < cut.parts; i += cut.size(s++)) {
          t.a = a + i * as;
          t.c = c + i * out.pixel;
          fn[cut.size(s) - 1](t);
        }
      }
    }
}

// The taps for a pixel of the result, the same in all images.
struct Window {
  int64_t a;             // offset of its first tap in an image
  const float* weights;  // a matrix of `lines` rows, in slivers; that tap's row is `first`
  int64_t lines, first;
  int64_t rows, aseg, step;  // row taps; the steps between them in the image and matrix
  int64_t k;                 // channels of the taps in one of them
};
// Tiles of one pixel of several images. They read no taps outside the border. An element is the
// same chain of operations as elsewhere. Calls `window(y, x, line)`; rows of the source are `line`
// apart.
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

void forward(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  const Conv2dPlan p = conv2d_forward_plan(s);
  const int64_t cig = s.ci / s.groups, cog = s.co / s.groups;
  const bool in_place = p.plane == 0 && conv2d_in_place(s, a.x);
  const int64_t pixel = in_place  ? a.x.w
                        : p.plane ? 1
                                  : s.ci,
                slab_row = in_place ? a.x.h : p.slab_columns * pixel;
  const bool neighbours = s.groups == 1 && s.dw == 1 && p.plane == 0 && pixel == s.ci;

  auto* weights = static_cast<float*>(a.workspace);
  auto* offset = reinterpret_cast<int64_t*>(weights + p.weights);
  auto* place = reinterpret_cast<TapPlace*>(offset + conv2d_round(s.kh * s.kw));
  float* slots = reinterpret_cast<float*>(place + conv2d_round(s.kh * s.kw));
  for (int64_t tap = 0; tap < s.kh * s.kw; ++tap) place[tap] = {0, s.kh * s.kw * cig, tap * cig};
  pack_filter(static_cast<const float*>(a.weight), s.groups, cog, cig, s.kh * s.kw, place, weights);
  if (p.by_images)
    return by_images(p, s.n, a.x, s.h, s.w, s.ci, a.y, s.oh, s.ow, s.co,
                     static_cast<const float*>(a.bias), slots,
                     [&](int64_t y, int64_t x, int64_t line) {
                       const int64_t y0 = y * s.sh - s.ph, x0 = x * s.sw - s.pw;
                       const Inside r(y0, s.dh, s.kh, s.h), q(x0, 1, s.kw, s.w);
                       return Window{(y0 + r.from * s.dh) * line + (x0 + q.from) * s.ci,
                                     weights,
                                     s.kh * s.kw * s.ci,
                                     (r.from * s.kw + q.from) * s.ci,
                                     r.to - r.from,
                                     s.dh * line,
                                     s.kw * s.ci,
                                     (q.to - q.from) * s.ci};
                     });
  Taps taps{offset,
            weights,
            s.kh * s.kw * cig * cog,
            s.kh,
            neighbours ? 1 : s.kw,
            neighbours ? s.kw * cig : cig,
            -s.ph,
            s.dh,
            s.sh,
            p.plane};
  for (int64_t r = 0; r < s.kh; ++r)
    for (int64_t q = 0; q < taps.runs; ++q)
      offset[r * taps.runs + q] =
          r * s.dh * slab_row +
          (p.plane ? q * s.dw % s.sw * (slab_row / s.sw) + q * s.dw / s.sw : q * s.dw * pixel);

  const int64_t blocks = ceil_div(s.oh, p.rows);
  parallel_tasks(s.n * blocks, [&](int64_t task, int slot) {
    const int64_t n = task / blocks, y0 = task % blocks * p.rows, rows = imin(s.oh - y0, p.rows);
    float* slab = slots + slot * (p.slab + p.out);
    const float* image = data_of(a.x) + n * a.x.n;
    // slab_first: the slab row 0 is this row of the padded image.
    const int64_t first = in_place ? 0 : y0 * s.sh;
    const int64_t seen = (rows - 1) * s.sh + (s.kh - 1) * s.dh + 1;
    if (p.plane)
      load_plane_slab(image, a.x, s.h, s.w, s.ci, first - s.ph, seen, s.pw, p.slab_columns, s.sw,
                      p.plane, slab);
    else if (!in_place)
      load_slab(image, a.x, s.h, s.w, s.ci, first - s.ph, seen, s.pw, p.slab_columns, slab);
    float* y = data_of(a.y) + n * a.y.n + y0 * a.y.h;
    const bool direct = p.plane || a.y.c == 1 || s.co == 1;
    const Result out =
        direct ? Result{y, a.y.h, a.y.w, a.y.c} : Result{slab + p.slab, s.ow * s.co, s.co, 1};
    convolve(taps, in_place ? image : slab, first, slab_row, s.h, s.sw * pixel, cig, s.groups, cog,
             static_cast<const float*>(a.bias), out, y0, rows, s.ow);
    if (!direct)
      for (int64_t r = 0; r < rows; ++r)
        store_row(out.data + r * out.row, s.co, s.ow, y + r * a.y.h, a.y.c, a.y.w);
  });
}

// The taps of the residue `phase` modulo the stride, in the order of the source: source index = t +
// q with q ascending.
struct Phase {
  int64_t taps, first_tap, tap_step;  // tap r of source order x: first_tap - x * tap_step
  int64_t first, step;                // q of source order x: first + x * step
};
Phase phase_of(int64_t phase, int64_t k, int64_t stride, int64_t pad, int64_t dilation) {
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

void backward_input(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  const Conv2dPlan p = conv2d_backward_input_plan(s);
  const int64_t cig = s.ci / s.groups, cog = s.co / s.groups, pixel = p.plane ? 1 : s.co,
                slab_row = p.slab_columns * pixel;
  const int64_t left = conv2d_lowest(0, s.kw, s.sw, s.pw, s.dw);  // source column of slab column 0
  auto* weights = static_cast<float*>(a.workspace);
  auto* offset = reinterpret_cast<int64_t*>(weights + p.weights);
  auto* place = reinterpret_cast<TapPlace*>(offset + conv2d_round(s.kh * s.kw));
  float* slots = reinterpret_cast<float*>(place + conv2d_round(s.kh * s.kw));

  // For each pair of residues a matrix of weights, (r, s, o) x c, and a table of runs.
  int64_t next = 0;
  for (int64_t i = 0; i < s.sh; ++i)
    for (int64_t j = 0; j < s.sw; ++j) {
      const Phase rows = phase_of(i, s.kh, s.sh, s.ph, s.dh),
                  columns = phase_of(j, s.kw, s.sw, s.pw, s.dw);
      const int64_t first = next, taps = rows.taps * columns.taps;
      for (int64_t r = 0; r < rows.taps; ++r)
        for (int64_t q = 0; q < columns.taps; ++q, ++next) {
          place[(rows.first_tap - r * rows.tap_step) * s.kw + columns.first_tap -
                q * columns.tap_step] = {first * cog * cig, taps * cog, (next - first) * cog};
          offset[next] = (rows.first + r * rows.step) * slab_row +
                         (columns.first + q * columns.step - left) * pixel;
        }
    }
  pack_filter_transposed(static_cast<const float*>(a.weight), s.groups, cog, cig, s.kh * s.kw,
                         place, weights);
  if (p.by_images)
    return by_images(p, s.n, a.y, s.oh, s.ow, s.co, a.x, s.h, s.w, s.ci, nullptr, slots,
                     [&](int64_t y, int64_t x, int64_t line) {
                       const Phase rows = phase_of(y % s.sh, s.kh, s.sh, s.ph, s.dh),
                                   columns = phase_of(x % s.sw, s.kw, s.sw, s.pw, 1);
                       if (rows.taps == 0 || columns.taps == 0) return Window{};
                       const int64_t y0 = y / s.sh + rows.first, x0 = x / s.sw + columns.first;
                       const Inside r(y0, rows.step, rows.taps, s.oh), q(x0, 1, columns.taps, s.ow);
                       const TapPlace& tap = place[rows.first_tap * s.kw + columns.first_tap];
                       return Window{(y0 + r.from * rows.step) * line + (x0 + q.from) * s.co,
                                     weights + tap.base,
                                     tap.rows,
                                     (r.from * columns.taps + q.from) * s.co,
                                     r.to - r.from,
                                     rows.step * line,
                                     columns.taps * s.co,
                                     (q.to - q.from) * s.co};
                     });

  const int64_t blocks = ceil_div(s.h, p.rows);
  parallel_tasks(s.n * blocks, [&](int64_t task, int slot) {
    const int64_t n = task / blocks, y0 = task % blocks * p.rows, y1 = imin(s.h, y0 + p.rows);
    float* slab = slots + slot * (p.slab + p.out);
    const int64_t lo = conv2d_lowest(y0, s.kh, s.sh, s.ph, s.dh),
                  hi = conv2d_floor_div(y1 - 1 + s.ph, s.sh);
    const float* dy = data_of(a.y) + n * a.y.n;
    if (p.plane)
      load_plane_slab(dy, a.y, s.oh, s.ow, s.co, lo, hi - lo + 1, -left, p.slab_columns, 1, p.plane,
                      slab);
    else load_slab(dy, a.y, s.oh, s.ow, s.co, lo, hi - lo + 1, -left, p.slab_columns, slab);
    const bool direct = p.plane || a.x.c == 1 || s.ci == 1;
    float* x = data_of(a.x) + n * a.x.n + y0 * a.x.h;
    const Result whole =
        direct ? Result{x, a.x.h, a.x.w, a.x.c} : Result{slab + p.slab, s.w * s.ci, s.ci, 1};
    const float* wp = weights;
    const int64_t* table = offset;
    for (int64_t i = 0; i < s.sh; ++i)
      for (int64_t j = 0; j < s.sw; ++j) {
        const Phase rows = phase_of(i, s.kh, s.sh, s.ph, s.dh),
                    columns = phase_of(j, s.kw, s.sw, s.pw, s.dw);
        const int64_t t0 = imax(0, -conv2d_floor_div(i - y0, s.sh)),
                      t1 = imax(t0, -conv2d_floor_div(i - y1, s.sh));
        const int64_t pixels = j < s.w ? (s.w - j - 1) / s.sw + 1 : 0;
        const bool neighbours =
            s.groups == 1 && p.plane == 0 && columns.step == 1 && columns.taps > 1;
        // A merged row of taps starts at its first tap. Its table is read with a step.
        int64_t merged[64];
        const bool merge = neighbours && rows.taps <= 64;
        if (merge)
          for (int64_t r = 0; r < rows.taps; ++r) merged[r] = table[r * columns.taps];
        const Taps taps{merge ? merged : table,
                        wp,
                        s.kh * s.kw * cig * cog,
                        rows.taps,
                        merge ? 1 : columns.taps,
                        merge ? columns.taps * cog : cog,
                        rows.first,
                        rows.step,
                        1,
                        p.plane};
        const Result out{whole.data + (t0 * s.sh + i - y0) * whole.row + j * whole.pixel,
                         s.sh * whole.row, s.sw * whole.pixel, whole.channel};
        convolve(taps, slab, lo, slab_row, s.oh, s.co, cog, s.groups, cig, nullptr, out, t0,
                 t1 - t0, pixels);
        wp += rows.taps * columns.taps * cog * cig;
        table += rows.taps * columns.taps;
      }
    if (!direct)
      for (int64_t r = 0; r < y1 - y0; ++r)
        store_row(whole.data + r * whole.row, s.ci, s.w, x + r * a.x.h, a.x.c, a.x.w);
  });
}

}  // namespace

void conv2d_forward(const Conv2dArgs& a) {
  if (a.dtype != ScalarType::Float) return conv2d_wide_forward(a);
  if (a.shape.n > 0 && a.shape.co > 0) forward(a);
}
void conv2d_backward_input(const Conv2dArgs& a) {
  if (a.dtype != ScalarType::Float) return conv2d_wide_backward_input(a);
  if (a.shape.n > 0 && a.shape.ci > 0) backward_input(a);
}
void conv2d_backward_weight(const Conv2dArgs& a) {
  if (a.dtype != ScalarType::Float) return conv2d_wide_backward_weight(a);
  conv2d_float_backward_weight(a);
}

}  // namespace ramet::kernels::RAMET_VARIANT
