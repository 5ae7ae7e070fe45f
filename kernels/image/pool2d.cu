// A thread has one element of the result and finds all its contributions. So no sum depends on the
// order of threads.
#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/image/images_gpu.h"
#include "kernels/image/pool2d_window.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class I> struct Geometry {
  I c, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw;
  Divisor<I> by_c, by_h, by_w, by_oh, by_ow, by_sh, by_sw, by_dh, by_dw;
  bool inside;  // channels of the result
  Geometry(const Pool2dShape& s, const ImageView& result)
      : c(static_cast<I>(s.c)),
        h(static_cast<I>(s.h)),
        w(static_cast<I>(s.w)),
        oh(static_cast<I>(s.oh)),
        ow(static_cast<I>(s.ow)),
        kh(static_cast<I>(s.kh)),
        kw(static_cast<I>(s.kw)),
        sh(static_cast<I>(s.sh)),
        sw(static_cast<I>(s.sw)),
        ph(static_cast<I>(s.ph)),
        pw(static_cast<I>(s.pw)),
        dh(static_cast<I>(s.dh)),
        dw(static_cast<I>(s.dw)),
        by_c(s.c),
        by_h(s.h),
        by_w(s.w),
        by_oh(s.oh),
        by_ow(s.ow),
        by_sh(s.sh),
        by_sw(s.sw),
        by_dh(s.dh),
        by_dw(s.dw),
        inside(result.c == 1) {}
};

template <class I> struct Place { I n, c, y, x; };
// The item-th element of images of c channels, h x w. If channels are innermost, the channel varies
// fastest, so that neighbouring threads read neighbours.
template <class I>
RAMET_INLINE Place<I> place_of(I item, const Geometry<I>& g, const Divisor<I>& h,
                               const Divisor<I>& w) {
  Place<I> p;
  if (g.inside) p.c = g.by_c.take(item);
  p.x = w.take(item);
  p.y = h.take(item);
  if (!g.inside) p.c = g.by_c.take(item);
  p.n = item;
  return p;
}
template <class T, class I>
RAMET_INLINE T& element(const Images<T, I>& v, const Place<I>& p, I y, I x) {
  return v.data[p.n * v.n + p.c * v.c + y * v.h + x * v.w];
}

// Outputs with windows that reach position `at` of an axis: first..last.
template <class I> struct Reach { I first, last; };
template <class I>
RAMET_INLINE Reach<I> reach_of(I at, I kernel, const Divisor<I>& stride, I pad, I dilation,
                               I outputs) {
  const I below = at + pad - (kernel - 1) * dilation;
  return {steps_to(below, stride), least<I>(stride(at + pad), outputs - 1)};
}

template <class T, class I>
__global__ void max_forward_kernel(Geometry<I> g, Images<const T, I> from, Images<T, I> to,
                                   Images<int64_t, I> index, I items) {
  for (I i = static_cast<I>(first_item()); i < items; i += static_cast<I>(item_step())) {
    const Place<I> p = place_of(i, g, g.by_oh, g.by_ow);
    T best = T(0);
    I where = -1;
    const TapsOf<I> rows(p.y, g.sh, g.ph, g.by_dh, g.kh, g.h),
        columns(p.x, g.sw, g.pw, g.by_dw, g.kw, g.w);
    for (I r = rows.from; r < rows.to; ++r) {
      const I y = rows.origin + r * g.dh;
      for (I q = columns.from; q < columns.to; ++q) {
        const I x = columns.origin + q * g.dw;
        const T v = element(from, p, y, x);
        if (where < 0 || v > best || v != v) best = v, where = y * g.w + x;
      }
    }
    element(to, p, p.y, p.x) = best;
    if (index.data) element(index, p, p.y, p.x) = where;
  }
}

template <class T, class I>
__global__ void max_backward_kernel(Geometry<I> g, Images<const T, I> from,
                                    Images<const int64_t, I> index, Images<T, I> to, I items) {
  for (I i = static_cast<I>(first_item()); i < items; i += static_cast<I>(item_step())) {
    const Place<I> p = place_of(i, g, g.by_h, g.by_w);
    const int64_t own = p.y * g.w + p.x;
    const Reach<I> rows = reach_of(p.y, g.kh, g.by_sh, g.ph, g.dh, g.oh),
                   columns = reach_of(p.x, g.kw, g.by_sw, g.pw, g.dw, g.ow);
    T sum = T(0);
    for (I y = rows.first; y <= rows.last; ++y)
      for (I x = columns.first; x <= columns.last; ++x)
        if (element(index, p, y, x) == own) sum = vadd(sum, element(from, p, y, x));
    element(to, p, p.y, p.x) = sum;
  }
}

template <class T, class I>
__global__ void max_gather_kernel(Geometry<I> g, Images<const T, I> from,
                                  Images<const int64_t, I> index, Images<T, I> to, I items) {
  for (I i = static_cast<I>(first_item()); i < items; i += static_cast<I>(item_step())) {
    const Place<I> p = place_of(i, g, g.by_oh, g.by_ow);
    I y = static_cast<I>(element(index, p, p.y, p.x));
    const I x = g.by_w.take(y);
    element(to, p, p.y, p.x) = element(from, p, y, x);
  }
}

template <class I>
RAMET_INLINE RangeOf<I> rows_of(const AvgPool2dArgs& a, const Geometry<I>& g, I i) {
  return {a.adaptive, i, g.by_oh, g.sh, g.ph, g.kh, g.h};
}
template <class I>
RAMET_INLINE RangeOf<I> columns_of(const AvgPool2dArgs& a, const Geometry<I>& g, I j) {
  return {a.adaptive, j, g.by_ow, g.sw, g.pw, g.kw, g.w};
}

template <class T, class I>
__global__ void avg_forward_kernel(Geometry<I> g, AvgPool2dArgs a, Images<const T, I> from,
                                   Images<T, I> to, I items) {
  for (I i = static_cast<I>(first_item()); i < items; i += static_cast<I>(item_step())) {
    const Place<I> p = place_of(i, g, g.by_oh, g.by_ow);
    const RangeOf<I> rows = rows_of(a, g, p.y), columns = columns_of(a, g, p.x);
    T sum = T(0);
    for (I y = rows.from; y < rows.to; ++y)
      for (I x = columns.from; x < columns.to; ++x) sum = vadd(sum, element(from, p, y, x));
    element(to, p, p.y, p.x) =
        rows.empty() || columns.empty() ? T(0) : divided(sum, divisor_of<T>(a, rows, columns));
  }
}

template <class T, class I>
__global__ void avg_backward_kernel(Geometry<I> g, AvgPool2dArgs a, Images<const T, I> from,
                                    Images<T, I> to, I items) {
  for (I i = static_cast<I>(first_item()); i < items; i += static_cast<I>(item_step())) {
    const Place<I> p = place_of(i, g, g.by_h, g.by_w);
    // Windows of an adaptive pool begin at floor(output * size / outputs).
    const Reach<I> rows = a.adaptive
                              ? Reach<I>{g.by_h(p.y * g.oh),
                                         least<I>(over_up<I>((p.y + 1) * g.oh, g.by_h), g.oh) - 1}
                              : reach_of<I>(p.y, g.kh, g.by_sh, g.ph, 1, g.oh),
                   columns =
                       a.adaptive
                           ? Reach<I>{g.by_w(p.x * g.ow),
                                      least<I>(over_up<I>((p.x + 1) * g.ow, g.by_w), g.ow) - 1}
                           : reach_of<I>(p.x, g.kw, g.by_sw, g.pw, 1, g.ow);
    T sum = T(0);
    for (I y = rows.first; y <= rows.last; ++y)
      for (I x = columns.first; x <= columns.last; ++x) {
        const RangeOf<I> of_y = rows_of(a, g, y), of_x = columns_of(a, g, x);
        if (p.y < of_y.from || p.y >= of_y.to || p.x < of_x.from || p.x >= of_x.to) continue;
        sum = vadd(sum, divided(element(from, p, y, x), divisor_of<T>(a, of_y, of_x)));
      }
    element(to, p, p.y, p.x) = sum;
  }
}

double reach_of(const MaxPool2dArgs& a) { return pool2d_reach(a.shape, {a.x, a.y, a.index}); }
double reach_of(const AvgPool2dArgs& a) { return pool2d_reach(a.shape, {a.x, a.y}); }

// Calls f(T{}, I{}, start). f calls start(kernel, arguments...), with a thread for each element of
// the inputs, or of the outputs.
enum class Over { kInputs, kOutputs };
template <class Args, class F>
void start_pool(const char* name, const Args& a, Stream where, Over over, const F& f) {
  const Pool2dShape& s = a.shape;
  const bool inputs = over == Over::kInputs;
  const int64_t items = s.n * s.c * (inputs ? s.h * s.w : s.oh * s.ow);
  by_types(a.dtype, reach_of(a), [&](auto t, auto i) {
    using I = decltype(i);
    f(t, i, [&](auto* kernel, const auto&... arguments) {
      start_for(name, where, items, kernel, Geometry<I>(s, inputs ? a.x : a.y), arguments...,
                static_cast<I>(items));
    });
  });
}

}  // namespace

void max_pool2d_forward(const MaxPool2dArgs& a, Stream where) {
  start_pool("max_pool2d", a, where, Over::kOutputs, [&](auto t, auto i, const auto& start) {
    using T = decltype(t);
    using I = decltype(i);
    start(max_forward_kernel<T, I>, Images<const T, I>(a.x), Images<T, I>(a.y),
          Images<int64_t, I>(a.index));
  });
}
void max_pool2d_backward(const MaxPool2dArgs& a, Stream where) {
  start_pool("max_pool2d_backward", a, where, Over::kInputs,
             [&](auto t, auto i, const auto& start) {
               using T = decltype(t);
               using I = decltype(i);
               start(max_backward_kernel<T, I>, Images<const T, I>(a.y),
                     Images<const int64_t, I>(a.index), Images<T, I>(a.x));
             });
}
void max_pool2d_gather(const MaxPool2dArgs& a, Stream where) {
  start_pool("max_pool2d_gather", a, where, Over::kOutputs, [&](auto t, auto i, const auto& start) {
    using T = decltype(t);
    using I = decltype(i);
    start(max_gather_kernel<T, I>, Images<const T, I>(a.x), Images<const int64_t, I>(a.index),
          Images<T, I>(a.y));
  });
}
void avg_pool2d_forward(const AvgPool2dArgs& a, Stream where) {
  start_pool("avg_pool2d", a, where, Over::kOutputs, [&](auto t, auto i, const auto& start) {
    using T = decltype(t);
    using I = decltype(i);
    start(avg_forward_kernel<T, I>, a, Images<const T, I>(a.x), Images<T, I>(a.y));
  });
}
void avg_pool2d_backward(const AvgPool2dArgs& a, Stream where) {
  start_pool("avg_pool2d_backward", a, where, Over::kInputs,
             [&](auto t, auto i, const auto& start) {
               using T = decltype(t);
               using I = decltype(i);
               start(avg_backward_kernel<T, I>, a, Images<const T, I>(a.y), Images<T, I>(a.x));
             });
}

}  // namespace ramet::kernels::RAMET_VARIANT
