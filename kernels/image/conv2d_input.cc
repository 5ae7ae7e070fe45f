// The gradient of the input of a convolution.
#include "kernels/image/conv2d_bfloat.h"
#include "kernels/image/conv2d_taps.h"
#include "kernels/image/conv2d_wide.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// The gradient of the input. The pixels of x fall into sh * sw residues. Those of one residue see
// the same taps, so each pair of residues is a convolution of dy with a stride of 1.
class BackwardInput {
 public:
  explicit BackwardInput(const Conv2dArgs& a)
      : a_(a),
        s_(a.shape),
        p_(conv2d_backward_input_plan(a.shape)),
        weights_(static_cast<float*>(a.workspace)),
        offset_(reinterpret_cast<int64_t*>(weights_ + p_.weights)),
        place_(reinterpret_cast<TapPlace*>(offset_ + conv2d_round(s_.kh * s_.kw))),
        slots_(reinterpret_cast<float*>(place_ + conv2d_round(s_.kh * s_.kw))) {}

  void run() const {
    place_taps();
    pack_filter_transposed(static_cast<const float*>(a_.weight), s_.groups, cog_, cig_,
                           s_.kh * s_.kw, place_, weights_);
    if (p_.by_images)
      return by_images(p_, s_.n, a_.y, s_.oh, s_.ow, s_.co, a_.x, s_.h, s_.w, s_.ci, nullptr,
                       slots_,
                       [this](int64_t y, int64_t x, int64_t line) { return window(y, x, line); });
    const int64_t blocks = ceil_div(s_.h, p_.rows);
    parallel_tasks(s_.n * blocks, [&](int64_t task, int slot) {
      block(task / blocks, task % blocks * p_.rows, slots_ + slot * (p_.slab + p_.out));
    });
  }

 private:
  Phase rows_of(int64_t y) const { return phase_of(y % s_.sh, s_.kh, s_.sh, s_.ph, s_.dh); }
  Phase columns_of(int64_t x) const { return phase_of(x % s_.sw, s_.kw, s_.sw, s_.pw, s_.dw); }

  // For each pair of residues: a matrix of weights, (r, q, o) x c, and a table of runs.
  void place_taps() const {
    int64_t next = 0;
    for (int64_t i = 0; i < s_.sh; ++i)
      for (int64_t j = 0; j < s_.sw; ++j) {
        const Phase rows = rows_of(i), columns = columns_of(j);
        const int64_t first = next, taps = rows.taps * columns.taps;
        for (int64_t r = 0; r < rows.taps; ++r)
          for (int64_t q = 0; q < columns.taps; ++q, ++next) {
            place_[(rows.first_tap - r * rows.tap_step) * s_.kw + columns.first_tap -
                   q * columns.tap_step] = {first * cog_ * cig_, taps * cog_,
                                            (next - first) * cog_};
            offset_[next] = (rows.first + r * rows.step) * slab_row_ +
                            (columns.first + q * columns.step - left_) * pixel_;
          }
      }
  }

  // What pixel (y, x) sees of dy, where columns are not dilated.
  Window window(int64_t y, int64_t x, int64_t line) const {
    const Phase rows = rows_of(y), columns = columns_of(x);
    if (rows.taps == 0 || columns.taps == 0) return Window{};
    const int64_t y0 = y / s_.sh + rows.first, x0 = x / s_.sw + columns.first;
    const Inside r(y0, rows.step, rows.taps, s_.oh), q(x0, 1, columns.taps, s_.ow);
    const TapPlace& tap = place_[rows.first_tap * s_.kw + columns.first_tap];
    return Window{(y0 + r.from * rows.step) * line + (x0 + q.from) * s_.co,
                  weights_ + tap.base,
                  tap.rows,
                  (r.from * columns.taps + q.from) * s_.co,
                  r.to - r.from,
                  rows.step * line,
                  columns.taps * s_.co,
                  (q.to - q.from) * s_.co};
  }

  // Rows y0 and on of image n, by way of a copy of the rows of dy that they see.
  void block(int64_t n, int64_t y0, float* slab) const {
    const int64_t y1 = imin(s_.h, y0 + p_.rows);
    const int64_t lo = conv2d_lowest(y0, s_.kh, s_.sh, s_.ph, s_.dh),
                  seen = conv2d_floor_div(y1 - 1 + s_.ph, s_.sh) - lo + 1;
    const float* dy = data_of(a_.y) + n * a_.y.n;
    if (p_.plane)
      load_plane_slab(dy, a_.y, s_.oh, s_.ow, s_.co, lo, seen, -left_, p_.slab_columns, 1, p_.plane,
                      slab);
    else load_slab(dy, a_.y, s_.oh, s_.ow, s_.co, lo, seen, -left_, p_.slab_columns, slab);
    const bool direct = p_.plane || a_.x.c == 1 || s_.ci == 1;
    float* x = data_of(a_.x) + n * a_.x.n + y0 * a_.x.h;
    const Result out =
        direct ? Result{x, a_.x.h, a_.x.w, a_.x.c} : Result{slab + p_.slab, s_.w * s_.ci, s_.ci, 1};
    const float* weights = weights_;
    const int64_t* table = offset_;
    for (int64_t i = 0; i < s_.sh; ++i)
      for (int64_t j = 0; j < s_.sw; ++j) {
        const int64_t taps = residue(i, j, weights, table, slab, lo, y0, y1, out);
        weights += taps * cog_ * cig_;
        table += taps;
      }
    if (!direct)
      for (int64_t r = 0; r < y1 - y0; ++r)
        store_row(out.data + r * out.row, s_.ci, s_.w, x + r * a_.x.h, a_.x.c, a_.x.w);
  }

  // The pixels of residues (i, j) in rows y0 to y1. Returns how many taps they see.
  int64_t residue(int64_t i, int64_t j, const float* weights, const int64_t* table,
                  const float* slab, int64_t lo, int64_t y0, int64_t y1,
                  const Result& whole) const {
    const Phase rows = rows_of(i), columns = columns_of(j);
    const int64_t t0 = imax(0, -conv2d_floor_div(i - y0, s_.sh)),
                  t1 = imax(t0, -conv2d_floor_div(i - y1, s_.sh));
    const int64_t pixels = j < s_.w ? (s_.w - j - 1) / s_.sw + 1 : 0;
    const bool neighbours =
        s_.groups == 1 && p_.plane == 0 && columns.step == 1 && columns.taps > 1;
    // A merged row of taps starts at its first tap. Its table is read with a step.
    int64_t merged[64];
    const bool merge = neighbours && rows.taps <= 64;
    if (merge)
      for (int64_t r = 0; r < rows.taps; ++r) merged[r] = table[r * columns.taps];
    const Taps taps{merge ? merged : table,
                    weights,
                    s_.kh * s_.kw * cig_ * cog_,
                    rows.taps,
                    merge ? 1 : columns.taps,
                    merge ? columns.taps * cog_ : cog_,
                    rows.first,
                    rows.step,
                    1,
                    p_.plane};
    const Result out{whole.data + (t0 * s_.sh + i - y0) * whole.row + j * whole.pixel,
                     s_.sh * whole.row, s_.sw * whole.pixel, whole.channel};
    convolve(taps, slab, lo, slab_row_, s_.oh, s_.co, cog_, s_.groups, cig_, nullptr, out, t0,
             t1 - t0, pixels);
    return rows.taps * columns.taps;
  }

  const Conv2dArgs& a_;
  const Conv2dShape& s_;
  const Conv2dPlan p_;
  const int64_t cig_ = s_.ci / s_.groups, cog_ = s_.co / s_.groups;
  const int64_t pixel_ = p_.plane ? 1 : s_.co, slab_row_ = p_.slab_columns * pixel_;
  const int64_t left_ = conv2d_lowest(0, s_.kw, s_.sw, s_.pw, s_.dw);  // source of slab column 0
  float* const weights_;
  int64_t* const offset_;
  TapPlace* const place_;
  float* const slots_;
};

}  // namespace

void conv2d_backward_input(const Conv2dArgs& a) {
  if (a.dtype == ScalarType::BFloat16) return conv2d_bfloat_backward_input(a);
  if (a.dtype != ScalarType::Float) return conv2d_wide_backward_input(a);
  if (a.shape.n > 0 && a.shape.ci > 0) BackwardInput(a).run();
}

}  // namespace ramet::kernels::RAMET_VARIANT
