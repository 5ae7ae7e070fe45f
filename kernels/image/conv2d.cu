// Convolutions as products of matrices: implicit ones (conv2d_gpu.h), or by columns and cuBLASLt.
#include "kernels/image/conv2d_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/reduce/finish_gpu.h"
#include "kernels/rows/row_sums_gpu.h"
#include "runtime/cuda/blas.h"
#include "runtime/cuda/measured.h"
#include "runtime/devices/gpu.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T, class I>
void weight_product(const char* name, const Conv2dArgs& a, Stream where) {
  const Conv2dShape& s = a.shape;
  const ConvWeightCut cut(s);
  const int64_t weights = s.co * (s.ci / s.groups) * s.kh * s.kw;
  const ::ramet::cuda::Scratch memory(
      where.device.index(),
      cut.parts == 1 ? 0 : static_cast<size_t>(cut.parts * weights) * sizeof(T));
  T* partials = static_cast<T*>(cut.parts == 1 ? a.weight : memory.get());
  multiply(name, where, BackwardWeight<T, I>(a, cut, partials));
  if (cut.parts != 1)
    sum_rows_of<T, T>(name, where,
                      row_sums(partials, {{cut.parts, weights}}, weights, 1, a.weight, a.dtype));
}
template <class T> void bias_sums(const char* name, const Conv2dArgs& a, Stream where) {
  const Conv2dShape& s = a.shape;
  sum_rows_of<T, T>(name, where,
                    row_sums(a.y.data, {{s.n, a.y.n}, {s.oh, a.y.h}, {s.ow, a.y.w}}, s.co, a.y.c,
                             a.bias, a.dtype));
}

// ---- by columns (im2col) and cuBLASLt -----------------------------------------------------------

// columns[pixel of the output][channel][row of the filter][its column]: in the order of the weight.
template <class T, class I> struct Columns {
  ConvGeometry<I> g;
  Images<const T, I> from;
  Divisor<I> by_k;
  T* to;
  I items;
  Columns(const Conv2dArgs& a, void* columns, int64_t m, int64_t k)
      : g(a.shape),
        from(a.x),
        by_k(k),
        to(static_cast<T*>(columns)),
        items(static_cast<I>(m * k)) {}
};
template <class T, class I> __global__ void columns_kernel(Columns<T, I> a) {
  const ConvGeometry<I>& g = a.g;
  for (I i = static_cast<I>(first_item()); i < a.items; i += static_cast<I>(item_step())) {
    I pixel = i, tap = a.by_k.take(pixel);
    const I x = g.by_ow.take(pixel) * g.sw - g.pw + g.by_kw.take(tap) * g.dw,
            y = g.by_oh.take(pixel) * g.sh - g.ph + g.by_kh.take(tap) * g.dh;
    const bool inside = y >= 0 && y < g.h && x >= 0 && x < g.w;
    a.to[i] = inside ? a.from.data[pixel * a.from.n + tap * a.from.c + y * a.from.h + x * a.from.w]
                     : T(0);
  }
}

// The opposite direction. An element of the images' gradient is the sum of all columns' elements
// that were read from it, in the order of the taps.
template <class T, class I> struct ColumnSums {
  ConvGeometry<I> g;
  Images<T, I> to;
  Divisor<I> by_c;
  const T* columns;
  I k, items;
  bool inside;  // channels are innermost
  ColumnSums(const Conv2dArgs& a, const void* memory, int64_t taps)
      : g(a.shape),
        to(a.x),
        by_c(a.shape.ci),
        columns(static_cast<const T*>(memory)),
        k(static_cast<I>(taps)),
        items(static_cast<I>(a.shape.n * a.shape.ci * a.shape.h * a.shape.w)),
        inside(a.x.c == 1) {}
};
template <class T, class I> __global__ void column_sums_kernel(ColumnSums<T, I> a) {
  const ConvGeometry<I>& g = a.g;
  for (I item = static_cast<I>(first_item()); item < a.items; item += static_cast<I>(item_step())) {
    I n = item, c = 0;
    if (a.inside) c = a.by_c.take(n);
    const I x = g.by_w.take(n), y = g.by_h.take(n);
    if (!a.inside) c = a.by_c.take(n);
    T sum = T(0);
    for (I r = 0; r < g.kh; ++r) {
      const I down = y + g.ph - r * g.dh;
      if (down < 0) break;
      const I i = g.by_sh(down);
      if (i * g.sh != down || i >= g.oh) continue;
      const T* const line = a.columns + (((n * g.oh + i) * g.ow) * a.k + (c * g.kh + r) * g.kw);
      for (I s = 0; s < g.kw; ++s) {
        const I across = x + g.pw - s * g.dw;
        if (across < 0) break;
        const I j = g.by_sw(across);
        if (j * g.sw == across && j < g.ow) sum += line[j * a.k + s];
      }
    }
    a.to.data[n * a.to.n + c * a.to.c + y * a.to.h + x * a.to.w] = sum;
  }
}

constexpr int64_t kMostColumnBytes = int64_t{256} << 20;

enum class Pass { kForward, kInput, kWeight };

// The comparison of columns with the implicit product. The products use the images' columns [m, k],
// the result or its gradient [m, n] and the weight [n, k]. y = columns weight^T, the gradient of
// the columns = dy weight, and that of the weight = dy^T columns.
struct Ways {
  const Pass pass;
  const Conv2dArgs& a;
  Stream where;
  int64_t m, n, k;
  Ways(Pass what, const Conv2dArgs& args, Stream stream)
      : pass(what),
        a(args),
        where(stream),
        m(a.shape.n * a.shape.oh * a.shape.ow),
        n(a.shape.co),
        k(a.shape.ci * a.shape.kh * a.shape.kw) {}

  const char* name() const {
    return pass == Pass::kForward ? "conv2d"
           : pass == Pass::kInput ? "conv2d_backward_input"
                                  : "conv2d_backward_weight";
  }
  // Is this dense channels-last memory?
  static bool dense(const ImageView& v, int64_t channels, int64_t h, int64_t w) {
    return v.c == 1 && v.w == channels && v.h == w * channels && v.n == h * w * channels;
  }
  // Are the images their own columns? True for filters of one pixel that meet each pixel once.
  bool are_columns() const {
    const Conv2dShape& s = a.shape;
    return s.kh == 1 && s.kw == 1 && s.sh == 1 && s.sw == 1 && s.ph == 0 && s.pw == 0 &&
           s.oh == s.h && s.ow == s.w && dense(a.x, s.ci, s.h, s.w);
  }
  // One group, floats or doubles.
  bool columns_fit() const {
    const Conv2dShape& s = a.shape;
    return where.id == gpu::kCompute && a.dtype != ScalarType::Long && s.groups == 1 && m > 0 &&
           n > 0 && k > 0 && m <= kMostColumnBytes / bytes_of(a.dtype) / k &&
           (pass != Pass::kForward || reinterpret_cast<uintptr_t>(a.bias) % 16 == 0) &&
           dense(a.y, n, s.oh, s.ow);
  }
  // An estimate. The implicit product reads each pixel kh kw times through the caches and writes
  // nothing in between. Writing and reading columns pays where many channels of the output use each
  // of them.
  // Note [Measured choices] in runtime/cuda/measured.h.
  bool columns_may_pay() const {
    return n >= 32 && static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) >=
                          static_cast<double>(1 << 24);
  }
  bool columns_are_quicker() const {
    const bool measured = ::ramet::cuda::has_measurements();
    if ((!measured && !columns_may_pay()) || !::ramet::cuda::blas_enabled() ||
        !::ramet::cuda::blas_why_none().empty())
      return false;
    if (!measured) return true;
    const Conv2dShape& s = a.shape;
    const int64_t shape[] = {s.n,
                             s.ci,
                             s.h,
                             s.w,
                             s.co,
                             s.kh,
                             s.kw,
                             s.sh,
                             s.sw,
                             s.ph,
                             s.pw,
                             s.dh,
                             s.dw,
                             s.oh,
                             s.ow,
                             a.x.c == 1,
                             pass == Pass::kForward && a.bias != nullptr};
    const auto queue = [](void* ways) { static_cast<const Ways*>(ways)->implicit(); };
    const auto queue_columns = [](void* ways) {
      const Ways& w = *static_cast<const Ways*>(ways);
      if (!w.columns()) w.implicit();
    };
    void* const self = const_cast<Ways*>(this);
    return ::ramet::cuda::second_is_quicker(
        {name(), static_cast<int>(where.device.index()), a.dtype, shape,
         static_cast<int>(sizeof shape / sizeof *shape)},
        columns_may_pay(), {queue, self}, {queue_columns, self});
  }
  void take_one() const {
    if (!columns_fit() || !columns_are_quicker() || !columns()) implicit();
  }

  void implicit() const {
    by_types(a.dtype, conv2d_reach(a), [&](auto t, auto i) {
      using T = decltype(t);
      using I = decltype(i);
      if (pass == Pass::kForward) multiply(name(), where, Forward<T, I>(a));
      else if (pass == Pass::kInput) multiply(name(), where, BackwardInput<T, I>(a));
      else weight_product<T, I>(name(), a, where);
    });
  }
  // False if cuBLASLt cannot do it. Then nothing is written to the result.
  bool columns() const {
    const int device = static_cast<int>(where.device.index());
    const bool own = are_columns();
    const ::ramet::cuda::Scratch memory(device,
                                        own ? 0 : static_cast<size_t>(m * k * bytes_of(a.dtype)));
    void* const at = own ? a.x.data : memory.get();
    const auto by_own_types = [&](const auto& f) {
      by_index(conv2d_reach(a),
               [&](auto i) { by_dtype<float, double>(a.dtype, [&](auto t) { f(t, i); }); });
    };
    const auto write = [&] {
      if (own || pass == Pass::kInput) return;
      by_own_types([&](auto t, auto i) {
        using T = decltype(t);
        using I = decltype(i);
        start_for(name(), where, m * k, columns_kernel<T, I>, Columns<T, I>(a, at, m, k));
      });
    };
    const auto done = ::ramet::cuda::blas_multiply(name(), device, product_with(at), write);
    if (done == ::ramet::cuda::BlasResult::kNone) return false;
    if (!own && pass == Pass::kInput)
      by_own_types([&](auto t, auto i) {
        using T = decltype(t);
        using I = decltype(i);
        const ColumnSums<T, I> sums(a, at, k);
        start_for(name(), where, sums.items, column_sums_kernel<T, I>, sums);
      });
    if (done == ::ramet::cuda::BlasResult::kWithoutBias)
      finish_product(name(), where, {a.y.data, a.bias, 1, m, n, 0, n, a.dtype, false});
    return true;
  }
  ::ramet::cuda::BlasProduct product_with(void* columns) const {
    ::ramet::cuda::BlasProduct p{};
    p.batch = 1, p.alpha = 1, p.dtype = a.dtype;
    if (pass == Pass::kForward) {
      p.a = columns, p.b = a.weight, p.bias = a.bias, p.c = a.y.data, p.tb = true;
      p.m = m, p.n = n, p.k = k, p.lda = k, p.ldb = k, p.ldc = n;
    } else if (pass == Pass::kInput) {
      p.a = a.y.data, p.b = a.weight, p.c = columns;
      p.m = m, p.n = k, p.k = n, p.lda = n, p.ldb = k, p.ldc = k;
    } else {
      p.a = a.y.data, p.b = columns, p.c = a.weight, p.ta = true;
      p.m = n, p.n = k, p.k = m, p.lda = n, p.ldb = k, p.ldc = k;
    }
    return p;
  }
};

}  // namespace

void conv2d_forward(const Conv2dArgs& a, Stream where) {
  Ways(Pass::kForward, a, where).take_one();
}
void conv2d_backward_input(const Conv2dArgs& a, Stream where) {
  Ways(Pass::kInput, a, where).take_one();
}
void conv2d_backward_weight(const Conv2dArgs& a, Stream where) {
  const Ways ways(Pass::kWeight, a, where);
  ways.take_one();
  if (a.bias)
    by_compute_type(a.dtype, [&](auto t) { bias_sums<decltype(t)>(ways.name(), a, where); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
