// Double and int64 convolutions: blocks of output rows as a matrix of columns (im2col), then the
// wide product. It is not meant to be fast. But it is blocked, parallel over images, and in a fixed
// order.
#include "kernels/image/conv2d_wide.h"

#include "kernels/matrix/gemm_wide.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Integers are added as unsigned numbers: they wrap.
RAMET_INLINE double plus(double a, double b) { return a + b; }
RAMET_INLINE int64_t plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <class T> struct Slot {
  T *column, *pixels, *pack_b, *pack_a;
  Slot(const Conv2dShape& s, T* base, int slot) {
    const Conv2dWidePlan p = conv2d_wide_plan(s);
    column = base + slot * conv2d_wide_slot(s);
    pixels = column + p.column, pack_b = pixels + p.pixels, pack_a = pack_b + p.pack_b;
  }
};

// Calls f(column element, image element) for every tap of output rows y0 .. y0+rows of group g that
// is inside the image. Column elements are in [pixel][c][r][s] order. Calls `outside` for the
// others.
template <class F, class G>
RAMET_INLINE void for_taps(const Conv2dShape& s, const ImageView& x, int64_t g, int64_t y0,
                           int64_t rows, const F& f, const G& outside) {
  const int64_t cig = s.ci / s.groups;
  int64_t at = 0;
  for (int64_t y = y0; y < y0 + rows; ++y)
    for (int64_t i = 0; i < s.ow; ++i)
      for (int64_t c = 0; c < cig; ++c)
        for (int64_t r = 0; r < s.kh; ++r)
          for (int64_t q = 0; q < s.kw; ++q, ++at) {
            const int64_t iy = y * s.sh - s.ph + r * s.dh, ix = i * s.sw - s.pw + q * s.dw;
            if (iy >= 0 && iy < s.h && ix >= 0 && ix < s.w)
              f(at, (g * cig + c) * x.c + iy * x.h + ix * x.w);
            else outside(at);
          }
}

template <class T>
void load_columns(const Conv2dShape& s, const ImageView& x, const T* image, int64_t g, int64_t y0,
                  int64_t rows, T* column) {
  for_taps(
      s, x, g, y0, rows, [&](int64_t at, int64_t from) { column[at] = image[from]; },
      [&](int64_t at) { column[at] = 0; });
}

// out[pixel][o] of group g from the image, rows y0 .. y0+rows.
template <class T>
void load_pixels(const Conv2dShape& s, const ImageView& y, const T* image, int64_t g, int64_t y0,
                 int64_t rows, T* out) {
  const int64_t cog = s.co / s.groups;
  for (int64_t r = y0; r < y0 + rows; ++r)
    for (int64_t i = 0; i < s.ow; ++i)
      for (int64_t o = 0; o < cog; ++o) *out++ = image[(g * cog + o) * y.c + r * y.h + i * y.w];
}

template <class T> void forward(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  const int64_t cog = s.co / s.groups, k = s.ci / s.groups * s.kh * s.kw,
                step = conv2d_wide_plan(s).rows;
  parallel_tasks(s.n, [&](int64_t n, int index) {
    const Slot<T> slot(s, static_cast<T*>(a.workspace), index);
    const T* x = static_cast<const T*>(a.x.data) + n * a.x.n;
    T* y = static_cast<T*>(a.y.data) + n * a.y.n;
    for (int64_t g = 0; g < s.groups; ++g)
      for (int64_t y0 = 0; y0 < s.oh; y0 += step) {
        const int64_t rows = imin(step, s.oh - y0);
        load_columns(s, a.x, x, g, y0, rows, slot.column);
        const T* w = static_cast<const T*>(a.weight) + g * cog * k;
        const T* bias = a.bias ? static_cast<const T*>(a.bias) + g * cog : nullptr;
        wide_gemm(WideGemm<T>{rows * s.ow, cog, k, slot.column, k, 1, w, 1, k, slot.pixels, cog,
                              bias, 1, 0, a.dtype, slot.pack_b, slot.pack_a, false});
        const T* p = slot.pixels;
        for (int64_t r = y0; r < y0 + rows; ++r)
          for (int64_t i = 0; i < s.ow; ++i)
            for (int64_t o = 0; o < cog; ++o)
              y[(g * cog + o) * a.y.c + r * a.y.h + i * a.y.w] = *p++;
      }
  });
}

template <class T> void backward_input(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  const int64_t cog = s.co / s.groups, k = s.ci / s.groups * s.kh * s.kw,
                step = conv2d_wide_plan(s).rows;
  parallel_tasks(s.n, [&](int64_t n, int index) {
    const Slot<T> slot(s, static_cast<T*>(a.workspace), index);
    T* x = static_cast<T*>(a.x.data) + n * a.x.n;
    const T* dy = static_cast<const T*>(a.y.data) + n * a.y.n;
    for (int64_t c = 0; c < s.ci; ++c)
      for (int64_t i = 0; i < s.h; ++i)
        for (int64_t j = 0; j < s.w; ++j) x[c * a.x.c + i * a.x.h + j * a.x.w] = 0;
    for (int64_t g = 0; g < s.groups; ++g)
      for (int64_t y0 = 0; y0 < s.oh; y0 += step) {
        const int64_t rows = imin(step, s.oh - y0);
        load_pixels(s, a.y, dy, g, y0, rows, slot.pixels);
        const T* w = static_cast<const T*>(a.weight) + g * cog * k;
        wide_gemm(WideGemm<T>{rows * s.ow, k, cog, slot.pixels, cog, 1, w, k, 1, slot.column, k,
                              nullptr, 1, 0, a.dtype, slot.pack_b, slot.pack_a, false});
        for_taps(
            s, a.x, g, y0, rows,
            [&](int64_t at, int64_t to) { x[to] = plus(x[to], slot.column[at]); }, [](int64_t) {});
      }
  });
}

template <class T> void backward_weight(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  const Conv2dWeightPlan plan = conv2d_backward_weight_plan(s);
  const int64_t cog = s.co / s.groups, k = s.ci / s.groups * s.kh * s.kw,
                step = conv2d_wide_plan(s).rows;
  const int64_t weights = s.co * k, partial = plan.weights + plan.bias;
  T* partials = static_cast<T*>(a.workspace);
  T* slots = partials + plan.parts * partial;
  parallel_tasks(plan.parts, [&](int64_t part, int index) {
    const Slot<T> slot(s, slots, index);
    T* dw = partials + part * partial;
    T* db = dw + plan.weights;
    for (int64_t i = 0; i < weights; ++i) dw[i] = 0;
    for (int64_t o = 0; o < s.co; ++o) db[o] = 0;
    for (int64_t n = part * plan.per; n < imin(s.n, (part + 1) * plan.per); ++n) {
      const T* x = static_cast<const T*>(a.x.data) + n * a.x.n;
      const T* dy = static_cast<const T*>(a.y.data) + n * a.y.n;
      for (int64_t g = 0; g < s.groups; ++g)
        for (int64_t y0 = 0; y0 < s.oh; y0 += step) {
          const int64_t rows = imin(step, s.oh - y0), pixels = rows * s.ow;
          load_columns(s, a.x, x, g, y0, rows, slot.column);
          load_pixels(s, a.y, dy, g, y0, rows, slot.pixels);
          wide_gemm(WideGemm<T>{cog, k, pixels, slot.pixels, 1, cog, slot.column, k, 1,
                                dw + g * cog * k, k, nullptr, 1, 1, a.dtype, slot.pack_b,
                                slot.pack_a, false});
          for (int64_t i = 0; i < pixels; ++i)
            for (int64_t o = 0; o < cog; ++o)
              db[g * cog + o] = plus(db[g * cog + o], slot.pixels[i * cog + o]);
        }
    }
  });
  const auto fold = [&](T* out, int64_t count, int64_t from) {
    for (int64_t i = 0; i < count; ++i) {
      T sum = 0;
      for (int64_t part = 0; part < plan.parts; ++part)
        sum = plus(sum, partials[part * partial + from + i]);
      out[i] = sum;
    }
  };
  fold(static_cast<T*>(a.weight), weights, 0);
  if (a.bias) fold(static_cast<T*>(a.bias), s.co, plan.weights);
}

}  // namespace

void conv2d_wide_forward(const Conv2dArgs& a) {
  by_dtype<double, int64_t>(a.dtype, [&](auto t) { forward<decltype(t)>(a); });
}
void conv2d_wide_backward_input(const Conv2dArgs& a) {
  by_dtype<double, int64_t>(a.dtype, [&](auto t) { backward_input<decltype(t)>(a); });
}
void conv2d_wide_backward_weight(const Conv2dArgs& a) {
  by_dtype<double, int64_t>(a.dtype, [&](auto t) { backward_weight<decltype(t)>(a); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
