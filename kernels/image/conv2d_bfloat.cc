// Convolution in bfloat16 and the gradient of its input: Note [Convolution in pairs] in conv2d.h.
#include "kernels/image/conv2d_bfloat.h"

#include "kernels/image/conv2d_taps.h"
#include "kernels/matrix/bfloat_tile.h"
#include "kernels/matrix/gemm_bfloat.h"

namespace ramet::kernels::RAMET_VARIANT {

BfloatImages bfloat_images(const ImageView& v, int64_t n, int64_t h, int64_t w, int64_t groups,
                           int64_t channels, int64_t padded, uint16_t* copy, bool in_place) {
  const auto* data = static_cast<const uint16_t*>(v.data);
  if (in_place && v.c == 1 && padded == channels) return {data, v.n, v.h, v.w, channels};
  const int64_t pixel = groups * padded;
  parallel_tasks(n * h, [&](int64_t task, int) {
    const uint16_t* from = data + task / h * v.n + task % h * v.h;
    uint16_t* to = copy + task * w * pixel;
    if (padded > channels) __builtin_memset(to, 0, static_cast<size_t>(w * pixel) * 2);
    // Pixels in blocks, so that a block's lines stay in the cache.
    constexpr int64_t kBlock = 32;
    for (int64_t x0 = 0; x0 < w; x0 += kBlock)
      for (int64_t c = 0; c < groups * channels; ++c) {
        const uint16_t* p = from + c * v.c;
        uint16_t* t = to + c / channels * padded + c % channels;
        for (int64_t x = x0; x < imin(w, x0 + kBlock); ++x) t[x * pixel] = p[x * v.w];
      }
  });
  return {copy, h * w * pixel, w * pixel, pixel, padded};
}

namespace {

// Some pixels of a result, those of one residue modulo the stride, and their packed filter. Result
// (n, y, x) is at y * row + x * pixel of image n.
struct Pass {
  BfloatWindow window;
  const float* weights;  // group after group, in slivers of kNR outputs
  int64_t weights_group;
  int64_t n, outputs;  // images; outputs of a group
  uint16_t* data;
  int64_t image, row, pixel, channel;
  const uint16_t* bias;
};

// One pixel's outputs j .. j + width.
RAMET_INLINE void put_pixel(const float* sums, int64_t width, const uint16_t* bias, uint16_t* to,
                            int64_t channel) {
  for (int64_t c = 0; c < width; c += VL) {
    const int64_t n = imin(width - c, VL);
    vf v = load(sums + c);
    if (bias) v += as_floats(bias + c, n);
    if (channel == 1) {
      store_halves(to + c, v, n);
      continue;
    }
    uint16_t halves[VL];
    store_halves(halves, v, VL);
    for (int64_t i = 0; i < n; ++i) to[(c + i) * channel] = halves[i];
  }
}

template <class Step>
void run(const Pass& pass, const Conv2dBfloatPlan& p, int64_t groups, float* slots) {
  const BfloatWindow& w = pass.window;
  const int64_t total = pass.n * w.rows.results * w.columns.results, k = w.k(),
                steps = Step::kPairs ? k / 2 : k, line = conv2d_line(steps),
                width = ceil_div(pass.outputs, kNR) * kNR;
  parallel_tasks(ceil_div(total, p.pixels), [&](int64_t task, int slot) {
    float* lines = slots + slot * p.slot;
    float* sums = lines + conv2d_round(p.pixels * p.line);
    const int64_t first = task * p.pixels, count = imin(total - first, p.pixels);
    const Cut cut(count);
    for (int64_t g = 0; g < groups; ++g) {
      bfloat_columns<Step::kPairs>(w, g, 0, w.rows.taps, first, count, lines, line);
      BfloatTile t{nullptr, 4 * line, nullptr, nullptr, width, steps, true};
      for (int64_t j = 0; j < pass.outputs; j += kNR) {
        t.b = pass.weights + g * pass.weights_group + j * steps;
        for (int64_t s = 0, i = 0; s < cut.parts; i += cut.size(s++)) {
          t.a = lines + i * line, t.c = sums + i * width + j;
          bfloat_tile<Step>(t, cut.size(s), imin(pass.outputs - j, kNR));
        }
      }
      const uint16_t* bias = pass.bias ? pass.bias + g * pass.outputs : nullptr;
      uint16_t* to = pass.data + g * pass.outputs * pass.channel;
      int64_t x = first % w.columns.results, y = first / w.columns.results % w.rows.results,
              n = first / w.columns.results / w.rows.results;
      for (int64_t i = 0; i < count; ++i) {
        put_pixel(sums + i * width, pass.outputs, bias,
                  to + n * pass.image + y * pass.row + x * pass.pixel, pass.channel);
        if (++x < w.columns.results) continue;
        x = 0;
        if (++y == w.rows.results) y = 0, ++n;
      }
    }
  });
}

// The workspace's parts.
struct Space {
  float* weights;
  uint16_t *ordered, *source;
  float* slots;
  Space(void* workspace, const Conv2dBfloatPlan& p, int64_t copy)
      : weights(static_cast<float*>(workspace)) {
    float* next = weights + p.weights;
    ordered = reinterpret_cast<uint16_t*>(next), next += p.ordered;
    source = reinterpret_cast<uint16_t*>(next), slots = next + copy;
  }
};

// Packs `outputs` lines of k elements: the filter of a group.
void pack(bool pairs, const uint16_t* ordered, int64_t outputs, int64_t k, float* to) {
  const BfloatOperand o{ordered, k, false, outputs, k};
  for (int64_t j = 0; j < outputs; j += kNR) {
    const int64_t n = imin(outputs - j, kNR);
    if (pairs) bfloat_pack<true>(o, j, n, 0, k / 2, to + j * (k / 2), kNR);
    else bfloat_pack<false>(o, j, n, 0, k / 2, to + j * k, kNR);
  }
}

void run(const Pass& pass, const Conv2dBfloatPlan& p, int64_t groups, float* slots, bool pairs) {
#if defined(__AVX512F__)
  if (pairs) return run<PairStep>(pass, p, groups, slots);
#else
  (void)pairs;
#endif
  run<FloatStep>(pass, p, groups, slots);
}

}  // namespace

void conv2d_bfloat_forward(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  if (s.n <= 0 || s.co <= 0) return;
  const Conv2dBfloatPlan p = conv2d_bfloat_forward_plan(s);
  const bool pairs = bfloat_uses_pairs();
  const Space space(a.workspace, p, conv2d_bfloat_copy_of_x(a));
  const int64_t cig = s.ci / s.groups, cog = s.co / s.groups, taps = s.kh * s.kw,
                group = ceil_div(cog, kNR) * kNR * (pairs ? p.k / 2 : p.k);
  const auto* weight = static_cast<const uint16_t*>(a.weight);
  parallel_tasks(s.groups * ceil_div(cog, kNR), [&](int64_t task, int) {
    const int64_t slivers = ceil_div(cog, kNR), g = task / slivers, j = task % slivers * kNR,
                  n = imin(cog - j, kNR);
    uint16_t* ordered = space.ordered + (g * cog + j) * p.k;
    for (int64_t o = 0; o < n; ++o)
      for (int64_t tap = 0; tap < taps; ++tap) {
        const uint16_t* from = weight + (g * cog + j + o) * cig * taps + tap;
        uint16_t* to = ordered + o * p.k + tap * p.channels;
        for (int64_t c = 0; c < cig; ++c) to[c] = from[c * taps];
        if (cig < p.channels) to[cig] = 0;
      }
    pack(pairs, ordered, n, p.k, space.weights + g * group + j * (pairs ? p.k / 2 : p.k));
  });
  run({{bfloat_images(a.x, s.n, s.h, s.w, s.groups, cig, p.channels, space.source),
        {s.oh, s.h, s.kh, -s.ph, s.dh, s.sh},
        {s.ow, s.w, s.kw, -s.pw, s.dw, s.sw},
        p.channels},
       space.weights,
       group,
       s.n,
       cog,
       static_cast<uint16_t*>(a.y.data),
       a.y.n,
       a.y.h,
       a.y.w,
       a.y.c,
       static_cast<const uint16_t*>(a.bias)},
      p, s.groups, space.slots, pairs);
}

void conv2d_bfloat_backward_input(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  if (s.n <= 0 || s.ci <= 0) return;
  const Conv2dBfloatPlan p = conv2d_bfloat_input_plan(s);
  const bool pairs = bfloat_uses_pairs();
  const Space space(a.workspace, p, conv2d_bfloat_copy_of_y(a));
  const int64_t cig = s.ci / s.groups, cog = s.co / s.groups;
  const auto* weight = static_cast<const uint16_t*>(a.weight);
  const BfloatImages dy =
      bfloat_images(a.y, s.n, s.oh, s.ow, s.groups, cog, p.channels, space.source);
  for (int64_t i = 0; i < imin(s.sh, s.h); ++i)
    for (int64_t j = 0; j < imin(s.sw, s.w); ++j) {
      // The pixels of a residue modulo the stride see the same taps.
      const Phase rows = phase_of(i, s.kh, s.sh, s.ph, s.dh),
                  columns = phase_of(j, s.kw, s.sw, s.pw, s.dw);
      const int64_t k = rows.taps * columns.taps * p.channels, steps = pairs ? k / 2 : k,
                    group = ceil_div(cig, kNR) * kNR * steps;
      parallel_tasks(s.groups * ceil_div(cig, kNR), [&](int64_t task, int) {
        const int64_t slivers = ceil_div(cig, kNR), g = task / slivers, c0 = task % slivers * kNR,
                      n = imin(cig - c0, kNR);
        uint16_t* ordered = space.ordered + (g * cig + c0) * p.k;
        // Blocks of outputs, so that a block's filters stay in the cache.
        constexpr int64_t kBlock = 32;
        const int64_t size = s.kh * s.kw;
        for (int64_t o0 = 0; o0 < cog; o0 += kBlock)
          for (int64_t c = 0; c < n; ++c)
            for (int64_t tap = 0; tap < rows.taps * columns.taps; ++tap) {
              const int64_t r = rows.first_tap - tap / columns.taps * rows.tap_step,
                            q = columns.first_tap - tap % columns.taps * columns.tap_step;
              const uint16_t* from = weight + ((g * cog + o0) * cig + c0 + c) * size + r * s.kw + q;
              uint16_t* to = ordered + c * k + tap * p.channels + o0;
              for (int64_t o = 0; o < imin(kBlock, cog - o0); ++o) to[o] = from[o * cig * size];
            }
        for (int64_t i = cog; i < n * k && cog < p.channels; i += p.channels) ordered[i] = 0;
        pack(pairs, ordered, n, k, space.weights + g * group + c0 * steps);
      });
      run({{dy,
            {(s.h - i - 1) / s.sh + 1, s.oh, rows.taps, rows.first, rows.step, 1},
            {(s.w - j - 1) / s.sw + 1, s.ow, columns.taps, columns.first, columns.step, 1},
            p.channels},
           space.weights,
           group,
           s.n,
           cig,
           static_cast<uint16_t*>(a.x.data) + i * a.x.h + j * a.x.w,
           a.x.n,
           s.sh * a.x.h,
           s.sw * a.x.w,
           a.x.c,
           static_cast<const uint16_t*>(a.bias)},
          p, s.groups, space.slots, pairs);
    }
}

}  // namespace ramet::kernels::RAMET_VARIANT
