#include "kernels/image/conv2d_taps.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

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
        for (int r = 0; r < R; ++r) acc[r] = fma(load(p + r * row), x, acc[r]);
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

}  // namespace

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

}  // namespace ramet::kernels::RAMET_VARIANT
