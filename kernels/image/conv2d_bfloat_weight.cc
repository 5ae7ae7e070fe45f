// The gradient of the weight of a convolution in bfloat16: Note [Convolution in pairs] in conv2d.h.
#include "kernels/image/conv2d_bfloat.h"
#include "kernels/matrix/gemm_bfloat.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Sums of dy over `pixels` pixels from number `first` on, added to sums[c].
void add_pixels(const BfloatImages& dy, const Conv2dShape& s, int64_t first, int64_t pixels,
                float* sums) {
  const int64_t plane = s.oh * s.ow;
  for (int64_t c = 0; c < s.co; c += VL) {
    const int64_t left = imin(s.co - c, VL);
    vf sum = loadn(sums + c, left);
    for (int64_t i = first; i < first + pixels; ++i)
      sum += as_floats(dy.data + i / plane * dy.image + i % plane * dy.pixel + c, left);
    storen(sums + c, sum, left);
  }
}

void zero(float* p, int64_t n) {
  if (n > 0) __builtin_memset(p, 0, static_cast<size_t>(n) * sizeof(float));
}

}  // namespace

void conv2d_bfloat_backward_weight(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  const Conv2dBfloatWeightPlan p = conv2d_bfloat_weight_plan(s);
  const int64_t cig = s.ci / s.groups, cog = s.co / s.groups, plane = s.oh * s.ow;
  float* sums = static_cast<float*>(a.workspace);
  float* biases = sums + p.parts * p.sums;
  auto* copies = reinterpret_cast<uint16_t*>(biases + p.parts * p.bias);
  const int64_t copy = conv2d_bfloat_copy_of_x(a), copied_rows = conv2d_bfloat_copy_of_rows(a);
  float* slots = biases + p.parts * p.bias + copy + copied_rows;
  const BfloatWindow window{bfloat_images(a.x, s.n, s.h, s.w, s.groups, cig, p.channels, copies),
                            {s.oh, s.h, s.kh, -s.ph, s.dh, s.sh},
                            {s.ow, s.w, s.kw, -s.pw, s.dw, s.sw},
                            p.channels};
  const BfloatImages dy =
      bfloat_images(a.y, s.n, s.oh, s.ow, 1, s.co, s.co, copies + 2 * copy, copied_rows == 0);
  parallel_tasks(p.parts * p.splits, [&](int64_t task, int slot) {
    const int64_t part = task / p.splits, split = task % p.splits, r0 = s.kh * split / p.splits,
                  r1 = s.kh * (split + 1) / p.splits;
    auto* lines = slots + slot * (p.lines + p.pack_b + p.pack_a);
    const int64_t rows = (r1 - r0) * s.kw * p.channels, line = rows / 2;
    const int64_t first = part * p.per * plane, end = imin(s.n, (part + 1) * p.per) * plane;
    float* bias = biases + part * p.bias;
    if (split == 0 && a.bias) zero(bias, s.co), add_pixels(dy, s, first, end - first, bias);
    for (int64_t g = 0; g < s.groups; ++g) {
      float* to = sums + part * p.sums + (g * p.k + r0 * s.kw * p.channels) * p.width;
      for (int64_t i = first; i < end; i += p.pixels) {
        const int64_t count = imin(end - i, p.pixels);
        bfloat_columns<true>(window, g, r0, r1, i, count, lines, line);
        gemm_bfloat({rows,
                     cog,
                     count,
                     reinterpret_cast<const uint16_t*>(lines),
                     rows,
                     true,
                     dy.data + i * dy.pixel + g * cog,
                     dy.pixel,
                     false,
                     nullptr,
                     p.width,
                     1,
                     0,
                     nullptr,
                     false,
                     lines + p.lines,
                     lines + p.lines + p.pack_b,
                     to,
                     false,
                     i > first});
      }
    }
  });
  // (row tap, column tap, channel) x output becomes output x (channel, row tap, column tap).
  const int64_t taps = s.kh * s.kw;
  auto* out = static_cast<uint16_t*>(a.weight);
  const int64_t vectors = ceil_div(cog, VL);
  parallel_tasks(s.groups * vectors, [&](int64_t task, int) {
    const int64_t g = task / vectors, o = task % vectors * VL, n = imin(cog - o, VL);
    uint16_t* to = out + (g * cog + o) * cig * taps;
    for (int64_t c = 0; c < cig; ++c)
      for (int64_t tap = 0; tap < taps; ++tap) {
        const float* from = sums + (g * p.k + tap * p.channels + c) * p.width + o;
        vf sum{};
        for (int64_t part = 0; part < p.parts; ++part) sum += load(from + part * p.sums);
        uint16_t halves[VL];
        store_halves(halves, sum, VL);
        for (int64_t i = 0; i < n; ++i) to[(i * cig + c) * taps + tap] = halves[i];
      }
  });
  if (!a.bias) return;
  for (int64_t o = 0; o < s.co; ++o) {
    double sum = 0;
    for (int64_t part = 0; part < p.parts; ++part) sum += biases[part * p.bias + o];
    store_halves(static_cast<uint16_t*>(a.bias) + o, set1(static_cast<float>(sum)), 1);
  }
}

}  // namespace ramet::kernels::RAMET_VARIANT
