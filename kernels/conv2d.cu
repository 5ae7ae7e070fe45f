// Convolutions as products of matrices that are read where the images lie (kernels/gemm_gpu.h).
// Depth k of the forward is (row of the filter, its column, channel), the channel fastest.
#include "kernels/finish_gpu.h"
#include "kernels/gemm_gpu.h"
#include "kernels/row_sums_gpu.h"
#include "runtime/cuda/blas.h"
#include "runtime/cuda/measured.h"
#include "runtime/gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/conv2d.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T>
RAMET_INLINE T at_image(const ImageView& v, int64_t n, int64_t c, int64_t y, int64_t x) {
  return static_cast<const T*>(v.data)[n * v.n + c * v.c + y * v.h + x * v.w];
}
struct Pixel {
  int64_t n, group, y, x;
};
struct Tap {
  int64_t r, s, c;
};
RAMET_INLINE Tap tap_of(int64_t k, int64_t channels, int64_t kw) {
  return {k / (channels * kw), k / channels % kw, k % channels};
}

/// Rows: pixels of the output. Columns: channels of the output. One batch a group.
template <class T> struct Forward {
  using Value = T;
  using Row = Pixel;
  using Column = int64_t;  // channel of the output
  using Depth = Tap;
  Conv2dArgs g;
  int64_t batch, m, n, k;
  bool rows_adjacent, columns_adjacent = false;
  explicit Forward(const Conv2dArgs& args) : g(args) {
    const Conv2dShape& s = g.shape;
    batch = s.groups, m = s.n * s.oh * s.ow, n = s.co / s.groups, k = s.ci / s.groups * s.kh * s.kw;
    rows_adjacent = g.x.c != 1;
  }
  RAMET_INLINE Row row(int64_t group, int64_t i) const {
    const Conv2dShape& s = g.shape;
    return {i / (s.oh * s.ow), group, i / s.ow % s.oh * s.sh - s.ph, i % s.ow * s.sw - s.pw};
  }
  RAMET_INLINE Column column(int64_t group, int64_t j) const { return group * n + j; }
  RAMET_INLINE Depth depth(int64_t at) const {
    return tap_of(at, g.shape.ci / g.shape.groups, g.shape.kw);
  }
  RAMET_INLINE T a(const Row& p, const Depth& d) const {
    const Conv2dShape& s = g.shape;
    const int64_t y = p.y + d.r * s.dh, x = p.x + d.s * s.dw;
    if (y < 0 || y >= s.h || x < 0 || x >= s.w) return T(0);
    return at_image<T>(g.x, p.n, p.group * (s.ci / s.groups) + d.c, y, x);
  }
  RAMET_INLINE T b(const Depth& d, Column o) const {
    const Conv2dShape& s = g.shape;
    return static_cast<const T*>(
        g.weight)[((o * (s.ci / s.groups) + d.c) * s.kh + d.r) * s.kw + d.s];
  }
  RAMET_INLINE void put(int64_t group, int64_t i, int64_t j, T sum) const {
    const Conv2dShape& s = g.shape;
    const int64_t o = group * n + j;
    if (g.bias) sum = vadd(sum, static_cast<const T*>(g.bias)[o]);
    const int64_t image = i / (s.oh * s.ow), y = i / s.ow % s.oh, x = i % s.ow;
    static_cast<T*>(g.y.data)[image * g.y.n + o * g.y.c + y * g.y.h + x * g.y.w] = sum;
  }
};

/// Rows: pixels of the input. Columns: channels of the input. Depth: taps and channels of the
/// output.
template <class T> struct BackwardInput {
  using Value = T;
  using Row = Pixel;
  using Column = int64_t;  // channel of the input within the group, and the group
  using Depth = Tap;
  Conv2dArgs g;
  int64_t batch, m, n, k;
  bool rows_adjacent, columns_adjacent = false;
  explicit BackwardInput(const Conv2dArgs& args) : g(args) {
    const Conv2dShape& s = g.shape;
    batch = s.groups, m = s.n * s.h * s.w, n = s.ci / s.groups, k = s.co / s.groups * s.kh * s.kw;
    rows_adjacent = g.y.c != 1;
  }
  RAMET_INLINE Row row(int64_t group, int64_t i) const {
    const Conv2dShape& s = g.shape;
    return {i / (s.h * s.w), group, i / s.w % s.h + s.ph, i % s.w + s.pw};
  }
  RAMET_INLINE Column column(int64_t group, int64_t j) const { return group * n + j; }
  RAMET_INLINE Depth depth(int64_t at) const {
    return tap_of(at, g.shape.co / g.shape.groups, g.shape.kw);
  }
  RAMET_INLINE T a(const Row& p, const Depth& d) const {
    const Conv2dShape& s = g.shape;
    const int64_t y = p.y - d.r * s.dh, x = p.x - d.s * s.dw;
    if (y < 0 || x < 0 || y % s.sh != 0 || x % s.sw != 0) return T(0);
    if (y / s.sh >= s.oh || x / s.sw >= s.ow) return T(0);
    return at_image<T>(g.y, p.n, p.group * (s.co / s.groups) + d.c, y / s.sh, x / s.sw);
  }
  RAMET_INLINE T b(const Depth& d, Column channel) const {
    const Conv2dShape& s = g.shape;
    const int64_t group = channel / n, o = group * (s.co / s.groups) + d.c;
    return static_cast<const T*>(g.weight)[((o * n + channel % n) * s.kh + d.r) * s.kw + d.s];
  }
  RAMET_INLINE void put(int64_t group, int64_t i, int64_t j, T sum) const {
    const Conv2dShape& s = g.shape;
    const int64_t image = i / (s.h * s.w), y = i / s.w % s.h, x = i % s.w;
    static_cast<T*>(g.x.data)[image * g.x.n + (group * n + j) * g.x.c + y * g.x.h + x * g.x.w] =
        sum;
  }
};

/// How the gradient of the weight is cut: a part has some images, or one of the `bands` of one.
struct WeightParts {
  int64_t images, bands, pixels, parts;
  explicit WeightParts(const Conv2dShape& s) {
    // As many as keep a large GPU busy, where a tile then still has enough to add up.
    constexpr int64_t kBlocks = 512, kLeast = 512;
    const int64_t of_image = s.oh * s.ow,
                  tiles = s.groups * ceil_div(s.co / s.groups, kTileRows) *
                          ceil_div(s.ci / s.groups * s.kh * s.kw, kTileColumns),
                  wanted =
                      imax(1, imin(ceil_div(s.n * of_image, kLeast), ceil_div(kBlocks, tiles)));
    images = imax(1, s.n / wanted), bands = ceil_div(wanted, imax(1, s.n)), pixels = of_image;
    if (bands > 1) {
      const int64_t steps = ceil_div(ceil_div(of_image, bands), kTileDepth);  // of a tile, whole
      pixels = imin(of_image, steps * kTileDepth);
      bands = ceil_div(of_image, pixels);
    }
    parts = ceil_div(s.n, images) * bands;
  }
};

/// Rows: channels of the output. Columns: taps. Depth: pixels of the output in a part. One batch a
/// group and part; the parts are added afterwards.
template <class T> struct BackwardWeight {
  using Value = T;
  struct Row {
    int64_t image, pixel, o;  // where the part begins; channel
  };
  struct Column {
    Tap tap;
    int64_t image, pixel, channel;
  };
  struct Depth {
    int64_t image, pixel;
  };
  Conv2dArgs g;
  WeightParts cut;
  int64_t batch, m, n, k;
  T* out;  // [part][co][ci / groups][kh][kw]
  bool rows_adjacent, columns_adjacent = false;
  BackwardWeight(const Conv2dArgs& args, const WeightParts& parts, T* partials)
      : g(args), cut(parts), out(partials) {
    const Conv2dShape& s = g.shape;
    batch = s.groups * cut.parts, m = s.co / s.groups, n = s.ci / s.groups * s.kh * s.kw;
    k = cut.images * cut.pixels;
    rows_adjacent = g.y.c == 1;
  }
  RAMET_INLINE Row row(int64_t item, int64_t i) const {
    const int64_t part = item / g.shape.groups;
    return {part / cut.bands * cut.images, part % cut.bands * cut.pixels,
            item % g.shape.groups * m + i};
  }
  RAMET_INLINE Column column(int64_t item, int64_t j) const {
    const Conv2dShape& s = g.shape;
    // In the order of the weight's memory.
    const Tap tap{j / s.kw % s.kh, j % s.kw, j / (s.kh * s.kw)};
    const Row begin = row(item, 0);
    return {tap, begin.image, begin.pixel, item % s.groups * (s.ci / s.groups) + tap.c};
  }
  RAMET_INLINE Depth depth(int64_t at) const { return {at / cut.pixels, at % cut.pixels}; }
  // The last part of the images, and the last band of an image, may have less.
  RAMET_INLINE bool outside(int64_t image, int64_t pixel) const {
    return image >= g.shape.n || pixel >= g.shape.oh * g.shape.ow;
  }
  RAMET_INLINE T a(const Row& r, const Depth& d) const {
    const int64_t image = r.image + d.image, pixel = r.pixel + d.pixel;
    if (outside(image, pixel)) return T(0);
    return at_image<T>(g.y, image, r.o, pixel / g.shape.ow, pixel % g.shape.ow);
  }
  RAMET_INLINE T b(const Depth& d, const Column& c) const {
    const Conv2dShape& s = g.shape;
    const int64_t image = c.image + d.image, pixel = c.pixel + d.pixel,
                  y = pixel / s.ow * s.sh - s.ph + c.tap.r * s.dh,
                  x = pixel % s.ow * s.sw - s.pw + c.tap.s * s.dw;
    if (outside(image, pixel) || y < 0 || y >= s.h || x < 0 || x >= s.w) return T(0);
    return at_image<T>(g.x, image, c.channel, y, x);
  }
  RAMET_INLINE void put(int64_t item, int64_t i, int64_t j, T sum) const {
    const int64_t o = item % g.shape.groups * m + i;
    out[(item / g.shape.groups * g.shape.co + o) * n + j] = sum;
  }
};

template <class T> void backward_weight(const Conv2dArgs& a, Stream where) {
  const char* name = "conv2d_backward_weight";
  const Conv2dShape& s = a.shape;
  const WeightParts cut(s);
  const int64_t weights = s.co * (s.ci / s.groups) * s.kh * s.kw;
  const ::ramet::cuda::Scratch memory(
      where.device.index(),
      cut.parts == 1 ? 0 : static_cast<size_t>(cut.parts * weights) * sizeof(T));
  T* partials = static_cast<T*>(cut.parts == 1 ? a.weight : memory.get());
  multiply(name, where, BackwardWeight<T>(a, cut, partials));
  if (cut.parts != 1)
    sum_rows_of<T, T>(name, where,
                      row_sums(partials, {{cut.parts, weights}}, weights, 1, a.weight, a.dtype));
  if (!a.bias) return;
  sum_rows_of<T, T>(name, where,
                    row_sums(a.y.data, {{s.n, a.y.n}, {s.oh, a.y.h}, {s.ow, a.y.w}}, s.co, a.y.c,
                             a.bias, a.dtype));
}

// ---- by columns (im2col) and cuBLASLt -----------------------------------------------------------

// columns[pixel of the output][channel][row of the filter][its column]: the weight's own order.
template <class T>
__global__ void columns_kernel(Conv2dArgs g, T* columns, int64_t k, int64_t items) {
  const Conv2dShape& s = g.shape;
  for (int64_t i = first_item(); i < items; i += item_step()) {
    const int64_t pixel = i / k, tap = i % k, c = tap / (s.kh * s.kw);
    const int64_t y = pixel / s.ow % s.oh * s.sh - s.ph + tap / s.kw % s.kh * s.dh,
                  x = pixel % s.ow * s.sw - s.pw + tap % s.kw * s.dw;
    const bool inside = y >= 0 && y < s.h && x >= 0 && x < s.w;
    columns[i] = inside ? at_image<T>(g.x, pixel / (s.oh * s.ow), c, y, x) : T(0);
  }
}

constexpr int64_t kMostColumnBytes = int64_t{256} << 20;

// What columns and the implicit product are compared by.
struct Ways {
  const Conv2dArgs& a;
  Stream where;
  int64_t m, n, k;  // of the product
  Ways(const Conv2dArgs& args, Stream stream)
      : a(args),
        where(stream),
        m(a.shape.n * a.shape.oh * a.shape.ow),
        n(a.shape.co),
        k(a.shape.ci * a.shape.kh * a.shape.kw) {}

  // One group, floats or doubles, a result of dense channels-last memory.
  bool columns_fit() const {
    const Conv2dShape& s = a.shape;
    return where.id == gpu::kCompute && a.dtype != ScalarType::Long && s.groups == 1 &&
           m > 0 && n > 0 && k > 0 && m <= kMostColumnBytes / bytes_of(a.dtype) / k &&
           reinterpret_cast<uintptr_t>(a.bias) % 16 == 0 && a.y.c == 1 && a.y.w == n &&
           a.y.h == s.ow * n && a.y.n == s.oh * s.ow * n;
  }
  // An estimate (the implicit product reads each pixel kh kw times through the caches and writes
  // nothing in between): columns are worth being written and read again where many channels of the
  // output use each of them. Note [Measured choices] in runtime/cuda/measured.h.
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
    const int64_t shape[] = {s.n, s.ci, s.h, s.w, s.co, s.kh, s.kw, s.sh, s.sw, s.ph, s.pw,
                             s.dh, s.dw, s.oh, s.ow, a.x.c == 1, a.bias != nullptr};
    const auto queue = [](void* ways) { static_cast<const Ways*>(ways)->implicit(); };
    const auto queue_columns = [](void* ways) {
      const Ways& w = *static_cast<const Ways*>(ways);
      if (!w.columns()) w.implicit();
    };
    void* const self = const_cast<Ways*>(this);
    return ::ramet::cuda::second_is_quicker(
        {"conv2d", static_cast<int>(where.device.index()), a.dtype, shape,
         static_cast<int>(sizeof shape / sizeof *shape)},
        columns_may_pay(), {queue, self}, {queue_columns, self});
  }

  void implicit() const {
    by_compute_type(a.dtype, [&](auto t) { multiply("conv2d", where, Forward<decltype(t)>(a)); });
  }
  // False where cuBLASLt cannot.
  bool columns() const {
    const int device = static_cast<int>(where.device.index());
    const ::ramet::cuda::Scratch memory(device, static_cast<size_t>(m * k * bytes_of(a.dtype)));
    ::ramet::cuda::BlasProduct product = {
        memory.get(), a.weight, a.bias, a.y.data, 1, m, n, k, k, k, n, 0, 0, 0, 1, 0,
        a.dtype,      false,    true,   false};
    // Asked first: columns that nobody reads are a quarter of the work.
    const auto can = [&] { return ::ramet::cuda::blas_can_multiply("conv2d", device, product); };
    bool bias_later = false;
    if (!can()) {
      if (!a.bias) return false;
      product.bias = nullptr;  // Note [Epilogues of cuBLASLt] in runtime/cuda/blas.h
      bias_later = true;
      if (!can()) return false;
    }
    const auto write = [&](auto t) {
      using T = decltype(t);
      start_for("conv2d", where, m * k, columns_kernel<T>, a, static_cast<T*>(memory.get()), k,
                m * k);
    };
    if (a.dtype == ScalarType::Double) write(double{});
    else write(float{});
    if (!::ramet::cuda::blas_multiply("conv2d", device, product)) return false;
    if (bias_later)
      finish_product("conv2d", where, {a.y.data, a.bias, 1, m, n, 0, n, a.dtype, false});
    return true;
  }
};

}  // namespace

void conv2d_forward(const Conv2dArgs& a, Stream where) {
  const Ways ways(a, where);
  if (ways.columns_fit() && ways.columns_are_quicker() && ways.columns()) return;
  ways.implicit();
}
void conv2d_backward_input(const Conv2dArgs& a, Stream where) {
  by_compute_type(a.dtype, [&](auto t) {
    multiply("conv2d_backward_input", where, BackwardInput<decltype(t)>(a));
  });
}
void conv2d_backward_weight(const Conv2dArgs& a, Stream where) {
  by_compute_type(a.dtype, [&](auto t) { backward_weight<decltype(t)>(a, where); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
