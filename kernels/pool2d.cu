// A thread has an element of what is written and looks for what goes into it: no sum depends on the
// order in which threads come.
#include "kernels/gpu_elements.h"
#include "kernels/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/pool2d_window.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

struct Place {
  int64_t n, c, y, x;
};
// The item-th element of images of c channels, h x w: the channel varies fastest where channels lie
// innermost, so that neighbouring threads read neighbours.
RAMET_INLINE Place place_of(int64_t item, int64_t c, int64_t h, int64_t w, bool channels_inside) {
  Place p;
  if (channels_inside) {
    p.c = item % c, item /= c;
    p.x = item % w, item /= w;
    p.y = item % h, p.n = item / h;
  } else {
    p.x = item % w, item /= w;
    p.y = item % h, item /= h;
    p.c = item % c, p.n = item / c;
  }
  return p;
}
template <class T>
RAMET_INLINE T* element(const ImageView& v, int64_t n, int64_t c, int64_t y, int64_t x) {
  return static_cast<T*>(v.data) + n * v.n + c * v.c + y * v.h + x * v.w;
}
RAMET_INLINE bool inside(const ImageView& v) { return v.c == 1; }

// Outputs whose windows reach position `at` of an axis: first..last.
struct Reach {
  int64_t first, last;
};
RAMET_INLINE Reach reach_of(int64_t at, int64_t kernel, int64_t stride, int64_t pad,
                            int64_t dilation, int64_t outputs) {
  const int64_t below = at + pad - (kernel - 1) * dilation;
  return {steps_to(below, stride), imin((at + pad) / stride, outputs - 1)};
}

template <class T> __global__ void max_forward_kernel(MaxPool2dArgs a, int64_t items) {
  const Pool2dShape& s = a.shape;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    const Place p = place_of(i, s.c, s.oh, s.ow, inside(a.y));
    T best = T(0);
    int64_t where = -1;
    const Taps rows(p.y, s.sh, s.ph, s.dh, s.kh, s.h), columns(p.x, s.sw, s.pw, s.dw, s.kw, s.w);
    for (int64_t r = rows.from; r < rows.to; ++r) {
      const int64_t y = rows.origin + r * s.dh;
      for (int64_t q = columns.from; q < columns.to; ++q) {
        const int64_t x = columns.origin + q * s.dw;
        const T v = *element<T>(a.x, p.n, p.c, y, x);
        if (where < 0 || v > best || v != v) best = v, where = y * s.w + x;
      }
    }
    *element<T>(a.y, p.n, p.c, p.y, p.x) = best;
    if (a.index.data) *element<int64_t>(a.index, p.n, p.c, p.y, p.x) = where;
  }
}

template <class T> __global__ void max_backward_kernel(MaxPool2dArgs a, int64_t items) {
  const Pool2dShape& s = a.shape;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    const Place p = place_of(i, s.c, s.h, s.w, inside(a.x));
    const int64_t own = p.y * s.w + p.x;
    const Reach rows = reach_of(p.y, s.kh, s.sh, s.ph, s.dh, s.oh),
                columns = reach_of(p.x, s.kw, s.sw, s.pw, s.dw, s.ow);
    T sum = T(0);
    for (int64_t y = rows.first; y <= rows.last; ++y)
      for (int64_t x = columns.first; x <= columns.last; ++x)
        if (*element<int64_t>(a.index, p.n, p.c, y, x) == own)
          sum = vadd(sum, *element<T>(a.y, p.n, p.c, y, x));
    *element<T>(a.x, p.n, p.c, p.y, p.x) = sum;
  }
}

template <class T> __global__ void max_gather_kernel(MaxPool2dArgs a, int64_t items) {
  const Pool2dShape& s = a.shape;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    const Place p = place_of(i, s.c, s.oh, s.ow, inside(a.y));
    const int64_t from = *element<int64_t>(a.index, p.n, p.c, p.y, p.x);
    *element<T>(a.y, p.n, p.c, p.y, p.x) = *element<T>(a.x, p.n, p.c, from / s.w, from % s.w);
  }
}

template <class T> __global__ void avg_forward_kernel(AvgPool2dArgs a, int64_t items) {
  const Pool2dShape& s = a.shape;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    const Place p = place_of(i, s.c, s.oh, s.ow, inside(a.y));
    const Range rows = rows_of(a, p.y), columns = columns_of(a, p.x);
    T sum = T(0);
    for (int64_t y = rows.from; y < rows.to; ++y)
      for (int64_t x = columns.from; x < columns.to; ++x)
        sum = vadd(sum, *element<T>(a.x, p.n, p.c, y, x));
    *element<T>(a.y, p.n, p.c, p.y, p.x) =
        rows.empty() || columns.empty() ? T(0) : divided(sum, divisor_of<T>(a, rows, columns));
  }
}

template <class T> __global__ void avg_backward_kernel(AvgPool2dArgs a, int64_t items) {
  const Pool2dShape& s = a.shape;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    const Place p = place_of(i, s.c, s.h, s.w, inside(a.x));
    // Windows of an adaptive pool begin at floor(output * size / outputs).
    const Reach rows = a.adaptive ? Reach{p.y * s.oh / s.h,
                                          imin(ceil_div((p.y + 1) * s.oh, s.h), s.oh) - 1}
                                  : reach_of(p.y, s.kh, s.sh, s.ph, 1, s.oh),
                columns = a.adaptive ? Reach{p.x * s.ow / s.w,
                                             imin(ceil_div((p.x + 1) * s.ow, s.w), s.ow) - 1}
                                     : reach_of(p.x, s.kw, s.sw, s.pw, 1, s.ow);
    T sum = T(0);
    for (int64_t y = rows.first; y <= rows.last; ++y)
      for (int64_t x = columns.first; x <= columns.last; ++x) {
        const Range of_y = rows_of(a, y), of_x = columns_of(a, x);
        if (p.y < of_y.from || p.y >= of_y.to || p.x < of_x.from || p.x >= of_x.to) continue;
        sum = vadd(sum, divided(*element<T>(a.y, p.n, p.c, y, x), divisor_of<T>(a, of_y, of_x)));
      }
    *element<T>(a.x, p.n, p.c, p.y, p.x) = sum;
  }
}

int64_t inputs(const Pool2dShape& s) { return s.n * s.c * s.h * s.w; }
int64_t outputs(const Pool2dShape& s) { return s.n * s.c * s.oh * s.ow; }

// One thread for each of `items`, by the kernel that kernel_of(T{}) names for the compute type T.
template <class Args, class F>
void start_as(const char* name, Stream where, int64_t items, const Args& a, const F& kernel_of) {
  by_compute_type(a.dtype, [&](auto t) { start_for(name, where, items, kernel_of(t), a, items); });
}

}  // namespace

void max_pool2d_forward(const MaxPool2dArgs& a, Stream where) {
  start_as("max_pool2d", where, outputs(a.shape), a,
           [](auto t) { return max_forward_kernel<decltype(t)>; });
}
void max_pool2d_backward(const MaxPool2dArgs& a, Stream where) {
  start_as("max_pool2d_backward", where, inputs(a.shape), a,
           [](auto t) { return max_backward_kernel<decltype(t)>; });
}
void max_pool2d_gather(const MaxPool2dArgs& a, Stream where) {
  start_as("max_pool2d_gather", where, outputs(a.shape), a,
           [](auto t) { return max_gather_kernel<decltype(t)>; });
}
void avg_pool2d_forward(const AvgPool2dArgs& a, Stream where) {
  start_as("avg_pool2d", where, outputs(a.shape), a,
           [](auto t) { return avg_forward_kernel<decltype(t)>; });
}
void avg_pool2d_backward(const AvgPool2dArgs& a, Stream where) {
  start_as("avg_pool2d_backward", where, inputs(a.shape), a,
           [](auto t) { return avg_backward_kernel<decltype(t)>; });
}

}  // namespace ramet::kernels::RAMET_VARIANT
