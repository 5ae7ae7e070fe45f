// Float convolution. See Note [Convolution without im2col] in conv2d.h.
#include "kernels/image/conv2d_bfloat.h"
#include "kernels/image/conv2d_taps.h"
#include "kernels/image/conv2d_wide.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

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

}  // namespace

void conv2d_forward(const Conv2dArgs& a) {
  if (a.dtype == ScalarType::BFloat16) return conv2d_bfloat_forward(a);
  if (a.dtype != ScalarType::Float) return conv2d_wide_forward(a);
  if (a.shape.n > 0 && a.shape.co > 0) forward(a);
}
void conv2d_backward_weight(const Conv2dArgs& a) {
  if (a.dtype == ScalarType::BFloat16) return conv2d_bfloat_backward_weight(a);
  if (a.dtype != ScalarType::Float) return conv2d_wide_backward_weight(a);
  conv2d_float_backward_weight(a);
}

}  // namespace ramet::kernels::RAMET_VARIANT
