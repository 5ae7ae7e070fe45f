// Float convolution. See Note [Convolution without im2col] in conv2d.h.
#include "kernels/image/conv2d_bfloat.h"
#include "kernels/image/conv2d_taps.h"
#include "kernels/image/conv2d_wide.h"
#include "kernels/matrix/gemm.h"

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

constexpr int64_t kPixels = 6;  // of a tile at most: with the weight they fit 16 registers

// What the pixels of a row of the result see.
struct Row {
  const float *x, *weight;  // of its first row tap: column 0 of the image; [column taps][channels]
  int64_t taps, line;       // row taps, and the floats from one to the next
  int64_t channels;
  const float* bias;
};

RAMET_INLINE vf load_some(const float* p, int64_t n) { return n >= VL ? load(p) : loadn(p, n); }

// Convolutions of each channel by itself, with the channels of a pixel next to each other. A vector
// is channels of a pixel, so nothing is copied but the filter, tap by tap. An element is the same
// chain as in the other ways (Note [Convolution without im2col] in conv2d.h). Columns outside the
// image count as zeros there, and so they do here.
bool is_depthwise(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  return s.groups == s.ci && s.co == s.ci && s.ci >= 8 && a.x.c == 1 && a.y.c == 1;
}

class Depthwise {
 public:
  explicit Depthwise(const Conv2dArgs& a)
      : a_(a), s_(a.shape), weights_(static_cast<float*>(a.workspace)) {}

  void run() const {
    const int64_t taps = s_.kh * s_.kw;
    pack_transposed(static_cast<const float*>(a_.weight), taps, s_.ci, taps, weights_, s_.ci);
    const int64_t rows = conv2d_rows(s_.n, s_.oh, s_.ow * s_.ci), blocks = ceil_div(s_.oh, rows);
    parallel_tasks(s_.n * blocks, [&](int64_t task, int) {
      const int64_t first = task % blocks * rows;
      for (int64_t i = first; i < imin(first + rows, s_.oh); ++i) row(task / blocks, i);
    });
  }

 private:
  void row(int64_t n, int64_t i) const {
    const int64_t y0 = i * s_.sh - s_.ph;
    const Inside inside(y0, s_.dh, s_.kh, s_.h);
    const Row row{data_of(a_.x) + n * a_.x.n + (y0 + inside.from * s_.dh) * a_.x.h,
                  weights_ + inside.from * s_.kw * s_.ci,
                  inside.to - inside.from,
                  s_.dh * a_.x.h,
                  s_.ci,
                  static_cast<const float*>(a_.bias)};
    float* y = data_of(a_.y) + n * a_.y.n + i * a_.y.h;
    // Pixels lo .. hi see no column outside the image.
    const int64_t reach = s_.w - 1 - (s_.kw - 1) * s_.dw + s_.pw;
    const int64_t lo = imin(ceil_div(s_.pw, s_.sw), s_.ow),
                  hi = imax(lo, imin(reach < 0 ? 0 : reach / s_.sw + 1, s_.ow));
    for (int64_t j = 0; j < lo; ++j) at_border(row, j, y);
    if (lo < hi) {
      const Cut cut(hi - lo, kPixels);
      for (int64_t part = 0, j = lo; part < cut.parts; j += cut.size(part++))
        within(cut.size(part), row, j, y);
    }
    for (int64_t j = hi; j < s_.ow; ++j) at_border(row, j, y);
  }

  // P pixels from j on.
  template <int P> void tile(const Row& row, int64_t j, float* y) const {
    const float* x = row.x + (j * s_.sw - s_.pw) * a_.x.w;
    const int64_t step = s_.sw * a_.x.w, column = s_.dw * a_.x.w;
    for (int64_t c = 0; c < row.channels; c += VL) {
      const int64_t n = row.channels - c;
      vf acc[P];
      for (int p = 0; p < P; ++p) acc[p] = vf{};
      const auto taps = [&](auto&& read) __attribute__((always_inline)) {
        const float* w = row.weight + c;
        for (int64_t r = 0; r < row.taps; ++r) {
          const float* from = x + r * row.line + c;
          for (int64_t q = 0; q < s_.kw; ++q, w += row.channels, from += column) {
            const vf weight = read(w);
#pragma GCC unroll 8
            for (int p = 0; p < P; ++p) acc[p] = fma(read(from + p * step), weight, acc[p]);
          }
        }
      };
      if (n >= VL) taps([](const float* p) { return load(p); });
      else taps([n](const float* p) { return loadn(p, n); });
      for (int p = 0; p < P; ++p) put(row, acc[p], c, y + (j + p) * a_.y.w);
    }
  }
  void within(int64_t pixels, const Row& row, int64_t j, float* y) const {
    switch (pixels) {
      case 1: return tile<1>(row, j, y);
      case 2: return tile<2>(row, j, y);
      case 3: return tile<3>(row, j, y);
      case 4: return tile<4>(row, j, y);
      case 5: return tile<5>(row, j, y);
      default: return tile<6>(row, j, y);
    }
  }

  void at_border(const Row& row, int64_t j, float* y) const {
    const int64_t x0 = j * s_.sw - s_.pw;
    for (int64_t c = 0; c < row.channels; c += VL) {
      vf acc{};
      const float* w = row.weight + c;
      for (int64_t r = 0; r < row.taps; ++r)
        for (int64_t q = 0; q < s_.kw; ++q, w += row.channels) {
          const int64_t x = x0 + q * s_.dw, n = row.channels - c;
          const bool in = x >= 0 && x < s_.w;
          const vf value = in ? load_some(row.x + r * row.line + x * a_.x.w + c, n) : vf{};
          acc = fma(value, load_some(w, n), acc);
        }
      put(row, acc, c, y + j * a_.y.w);
    }
  }

  static RAMET_INLINE void put(const Row& row, vf value, int64_t c, float* y) {
    const int64_t n = imin(VL, row.channels - c);
    storen(y + c, row.bias ? value + load_some(row.bias + c, n) : value, n);
  }

  const Conv2dArgs& a_;
  const Conv2dShape& s_;
  float* const weights_;  // [taps][channels]
};

}  // namespace

void conv2d_forward(const Conv2dArgs& a) {
  if (a.dtype == ScalarType::BFloat16) return conv2d_bfloat_forward(a);
  if (a.dtype != ScalarType::Float) return conv2d_wide_forward(a);
  if (a.shape.n == 0 || a.shape.co == 0) return;
  is_depthwise(a) ? Depthwise(a).run() : forward(a);
}
void conv2d_backward_weight(const Conv2dArgs& a) {
  if (a.dtype == ScalarType::BFloat16) return conv2d_bfloat_backward_weight(a);
  if (a.dtype != ScalarType::Float) return conv2d_wide_backward_weight(a);
  conv2d_float_backward_weight(a);
}

}  // namespace ramet::kernels::RAMET_VARIANT
