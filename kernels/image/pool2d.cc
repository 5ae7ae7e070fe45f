#include "kernels/image/pool2d.h"

#include "kernels/image/pool2d_window.h"
#include "kernels/simd/vec.h"
#include "kernels/util.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T> RAMET_INLINE T* image(const ImageView& v, int64_t n) {
  return static_cast<T*>(v.data) + n * v.n;
}

// Integers are added as unsigned numbers: they wrap.
template <class T> RAMET_INLINE T plus(T a, T b) { return a + b; }
template <> RAMET_INLINE int64_t plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// f(image, first channel, end) for pieces of the batch: whole images, or blocks of channels where
// there are few images.
template <class F> RAMET_INLINE void for_pieces(const Pool2dShape& s, const F& f) {
  // An expanded input may have any extents.
  const bool small =
      4.0 * static_cast<double>(s.n * s.c) * static_cast<double>(s.h) * static_cast<double>(s.w) <
      static_cast<double>(parallel_grain());
  const int64_t block = s.n >= 16 || small ? imax(s.c, 1) : 64, blocks = ceil_div(s.c, block);
  const auto task = [&](int64_t t, int) {
    const int64_t c0 = t % blocks * block;
    f(t / blocks, c0, imin(s.c, c0 + block));
  };
  if (s.c <= 0) return;
  if (!small) return parallel_tasks(s.n * blocks, task);
  for (int64_t t = 0; t < s.n * blocks; ++t) task(t, 0);
}

// ---- maximum ------------------------------------------------------------------------------------

constexpr int64_t kRow = 256;  // results of a row that are computed together

template <class T> RAMET_INLINE T lowest();
template <> RAMET_INLINE float lowest() { return -__builtin_inff(); }
template <> RAMET_INLINE double lowest() { return -__builtin_inf(); }
template <> RAMET_INLINE int64_t lowest() { return INT64_MIN; }

// Results j0 .. j0+count of a row, and the taps that may be inside the input for one of them. If
// there are few taps, all are tried; of many, only those. If windows are farther apart than the
// input is wide, a block is one result: no tap between those of two windows is tried.
struct Block {
  int64_t j0, count, from, to;
  RAMET_INLINE Block(const Pool2dShape& s, int64_t first, int64_t dilation)
      : j0(first), count(s.sw > s.w ? 1 : imin(kRow, s.ow - first)), from(0), to(s.kw) {
    if (s.kw <= 16) return;
    from = Taps(j0 + count - 1, s.sw, s.pw, dilation, s.kw, s.w).from;
    to = Taps(j0, s.sw, s.pw, dilation, s.kw, s.w).to;
  }
};
// The results of a block with the tap at j * stride + shift in the input: from .. to relative to
// j0.
struct Reach {
  int64_t from, to;
  RAMET_INLINE Reach(const Block& b, int64_t stride, int64_t shift, int64_t extent) {
    from = imax(0, steps_to(-shift, stride) - b.j0);
    to = imin(b.count, extent <= shift ? 0 : (extent - shift - 1) / stride + 1 - b.j0);
  }
};

// A row of results at a time: every tap is one loop over the row.
template <class T, class Index> void max_forward_rows(const MaxPool2dArgs& a) {
  const Pool2dShape& s = a.shape;
  for_pieces(s, [&](int64_t n, int64_t c0, int64_t c1) {
    T best[kRow];
    Index at[kRow];
    for (int64_t c = c0; c < c1; ++c)
      for (int64_t i = 0; i < s.oh; ++i) {
        const Taps rows(i, s.sh, s.ph, s.dh, s.kh, s.h);
        for (int64_t j0 = 0; j0 < s.ow;) {
          const Block block(s, j0, s.dw);
          const int64_t count = block.count, first_row = (rows.origin + rows.from * s.dh) * s.w;
          for (int64_t j = 0; j < count; ++j) {
            const Taps columns(j0 + j, s.sw, s.pw, s.dw, s.kw, s.w);
            best[j] = lowest<T>(),
            at[j] = static_cast<Index>(first_row + columns.origin + columns.from * s.dw);
          }
          for (int64_t r = rows.from; r < rows.to; ++r)
            for (int64_t q = block.from; q < block.to; ++q) {
              const int64_t y = rows.origin + r * s.dh, shift = q * s.dw - s.pw,
                            step = count == 1 ? 1 : s.sw * a.x.w;
              const Reach reach(block, s.sw, shift, s.w);
              if (reach.from >= reach.to) continue;
              const int64_t column = (j0 + reach.from) * s.sw + shift;
              const T* x = image<const T>(a.x, n) + c * a.x.c + y * a.x.h + column * a.x.w;
              const auto place = static_cast<Index>(y * s.w + column),
                         sw = static_cast<Index>(s.sw);
              const auto loop = [&](int64_t by) __attribute__((always_inline)) {
                for (int64_t j = reach.from; j < reach.to; ++j) {
                  const int64_t on = j - reach.from;
                  const T v = x[on * by];
                  const bool wins = v > best[j] || v != v;
                  best[j] = wins ? v : best[j];
                  at[j] = wins ? static_cast<Index>(place + static_cast<Index>(on) * sw) : at[j];
                }
              };
              step == 1 ? loop(1) : step == 2 ? loop(2) : loop(step);
            }
          T* y = image<T>(a.y, n) + c * a.y.c + i * a.y.h + j0 * a.y.w;
          for (int64_t j = 0; j < count; ++j) y[j * a.y.w] = best[j];
          if (a.index.data) {
            int64_t* index =
                image<int64_t>(a.index, n) + c * a.index.c + i * a.index.h + j0 * a.index.w;
            for (int64_t j = 0; j < count; ++j) index[j * a.index.w] = at[j];
          }
          j0 += count;
        }
      }
  });
}

// Do positions in a plane fit 32 bits?
bool small_plane(const Pool2dShape& s) { return s.h < INT32_MAX && s.w < INT32_MAX / s.h; }

template <class T> void max_forward(const MaxPool2dArgs& a) {
  small_plane(a.shape) ? max_forward_rows<T, int32_t>(a) : max_forward_rows<T, int64_t>(a);
}

// Channels-last floats: a vector of channels at a time. Indices are kept as 32-bit lanes.
void max_forward_lanes(const MaxPool2dArgs& a) {
  const Pool2dShape& s = a.shape;
  for_pieces(s, [&](int64_t n, int64_t c0, int64_t c1) {
    for (int64_t i = 0; i < s.oh; ++i) {
      const Taps rows(i, s.sh, s.ph, s.dh, s.kh, s.h);
      for (int64_t j = 0; j < s.ow; ++j) {
        const Taps columns(j, s.sw, s.pw, s.dw, s.kw, s.w);
        const int64_t taps = columns.to - columns.from, across = taps > 1 ? s.dw : 0,
                      row = rows.origin + rows.from * s.dh,
                      column = columns.origin + columns.from * s.dw, step = across * a.x.w;
        for (int64_t c = c0; c < c1; c += VL) {
          const int64_t left = c1 - c;
          const float* x = image<const float>(a.x, n) + c + column * a.x.w;
          const auto lanes_of = [](int64_t place) {
            return float_of(seti(static_cast<int>(place)));
          };
          vf best = set1(lowest<float>()), at = lanes_of(row * s.w + column);
          for (int64_t r = rows.from; r < rows.to; ++r) {
            const int64_t iy = rows.origin + r * s.dh;
            const float* from = x + iy * a.x.h;
            int64_t here = iy * s.w + column;
            for (int64_t q = 0; q < taps; ++q, from += step, here += across) {
              const vf v = loadn(from, left), place = lanes_of(here);
              const vm more = lt(best, v), number = eq(v, v);
              at = pick(number, pick(more, place, at), place);
              best = pick(number, pick(more, v, best), v);
            }
          }
          storen(image<float>(a.y, n) + i * a.y.h + j * a.y.w + c, best, left);
          if (a.index.data) {
            alignas(64) int32_t lanes[VL];
            std::memcpy(lanes, &at, sizeof lanes);
            int64_t* index = image<int64_t>(a.index, n) + i * a.index.h + j * a.index.w + c;
            for (int64_t l = 0; l < imin(left, VL); ++l) index[l] = lanes[l];
          }
        }
      }
    }
  });
}

// Element `at` = y * w + x of a plane.
RAMET_INLINE int64_t offset_of(const ImageView& v, int64_t w, int64_t at) {
  return v.h == w * v.w ? at * v.w : at / w * v.h + at % w * v.w;
}

template <class T> void max_backward(const MaxPool2dArgs& a) {
  const Pool2dShape& s = a.shape;
  for_pieces(s, [&](int64_t n, int64_t c0, int64_t c1) {
    T* x = image<T>(a.x, n);
    const T* y = image<const T>(a.y, n);
    const int64_t* index = image<const int64_t>(a.index, n);
    if (a.x.c == 1) {  // channels innermost
      for (int64_t i = 0; i < s.h; ++i)
        for (int64_t j = 0; j < s.w; ++j)
          for (int64_t c = c0; c < c1; ++c) x[i * a.x.h + j * a.x.w + c] = 0;
      for (int64_t i = 0; i < s.oh; ++i)
        for (int64_t j = 0; j < s.ow; ++j)
          for (int64_t c = c0; c < c1; ++c) {
            const int64_t at = index[c * a.index.c + i * a.index.h + j * a.index.w];
            T& to = x[offset_of(a.x, s.w, at) + c];
            to = plus(to, y[c * a.y.c + i * a.y.h + j * a.y.w]);
          }
      return;
    }
    for (int64_t c = c0; c < c1; ++c) {
      for (int64_t i = 0; i < s.h; ++i)
        for (int64_t j = 0; j < s.w; ++j) x[c * a.x.c + i * a.x.h + j * a.x.w] = 0;
      for (int64_t i = 0; i < s.oh; ++i)
        for (int64_t j = 0; j < s.ow; ++j) {
          const int64_t at = index[c * a.index.c + i * a.index.h + j * a.index.w];
          T& to = x[c * a.x.c + offset_of(a.x, s.w, at)];
          to = plus(to, y[c * a.y.c + i * a.y.h + j * a.y.w]);
        }
    }
  });
}

template <class T> void max_gather(const MaxPool2dArgs& a) {
  const Pool2dShape& s = a.shape;
  for_pieces(s, [&](int64_t n, int64_t c0, int64_t c1) {
    const T* x = image<const T>(a.x, n);
    T* y = image<T>(a.y, n);
    const int64_t* index = image<const int64_t>(a.index, n);
    for (int64_t c = c0; c < c1; ++c)
      for (int64_t i = 0; i < s.oh; ++i)
        for (int64_t j = 0; j < s.ow; ++j) {
          const int64_t at = index[c * a.index.c + i * a.index.h + j * a.index.w];
          y[c * a.y.c + i * a.y.h + j * a.y.w] = x[c * a.x.c + offset_of(a.x, s.w, at)];
        }
  });
}

// ---- average ------------------------------------------------------------------------------------

template <class T> void adaptive_forward(const AvgPool2dArgs& a) {
  const Pool2dShape& s = a.shape;
  for_pieces(s, [&](int64_t n, int64_t c0, int64_t c1) {
    for (int64_t c = c0; c < c1; ++c) {
      const T* x = image<const T>(a.x, n) + c * a.x.c;
      T* y = image<T>(a.y, n) + c * a.y.c;
      for (int64_t i = 0; i < s.oh; ++i) {
        const Range rows = rows_of(a, i);
        for (int64_t j = 0; j < s.ow; ++j) {
          const Range columns = columns_of(a, j);
          T sum = 0;
          for (int64_t iy = rows.from; iy < rows.to; ++iy)
            for (int64_t ix = columns.from; ix < columns.to; ++ix)
              sum = plus(sum, x[iy * a.x.h + ix * a.x.w]);
          y[i * a.y.h + j * a.y.w] = divided(sum, divisor_of<T>(a, rows, columns));
        }
      }
    }
  });
}

template <class T> void avg_forward(const AvgPool2dArgs& a) {
  if (a.adaptive) return adaptive_forward<T>(a);
  const Pool2dShape& s = a.shape;
  for_pieces(s, [&](int64_t n, int64_t c0, int64_t c1) {
    T sum[kRow];
    for (int64_t c = c0; c < c1; ++c)
      for (int64_t i = 0; i < s.oh; ++i) {
        const Range rows = rows_of(a, i);
        for (int64_t j0 = 0; j0 < s.ow;) {
          const Block block(s, j0, 1);
          const int64_t count = block.count;
          for (int64_t j = 0; j < count; ++j) sum[j] = 0;
          for (int64_t iy = rows.from; iy < rows.to; ++iy)
            for (int64_t q = block.from; q < block.to; ++q) {
              const int64_t shift = q - s.pw, step = count == 1 ? 1 : s.sw * a.x.w;
              const Reach reach(block, s.sw, shift, s.w);
              if (reach.from >= reach.to) continue;
              const T* x = image<const T>(a.x, n) + c * a.x.c + iy * a.x.h +
                           ((j0 + reach.from) * s.sw + shift) * a.x.w;
              const auto loop = [&](int64_t by) __attribute__((always_inline)) {
                T* to = sum + reach.from;
                for (int64_t j = 0; j < reach.to - reach.from; ++j) to[j] = plus(to[j], x[j * by]);
              };
              step == 1 ? loop(1) : step == 2 ? loop(2) : loop(step);
            }
          T* y = image<T>(a.y, n) + c * a.y.c + i * a.y.h + j0 * a.y.w;
          for (int64_t j = 0; j < count; ++j) {
            const Range columns = columns_of(a, j0 + j);
            const bool empty = rows.empty() || columns.empty();
            y[j * a.y.w] = empty ? T{0} : divided(sum[j], divisor_of<T>(a, rows, columns));
          }
          j0 += count;
        }
      }
  });
}

void avg_forward_lanes(const AvgPool2dArgs& a) {
  const Pool2dShape& s = a.shape;
  for_pieces(s, [&](int64_t n, int64_t c0, int64_t c1) {
    for (int64_t i = 0; i < s.oh; ++i) {
      const Range rows = rows_of(a, i);
      for (int64_t j = 0; j < s.ow; ++j) {
        const Range columns = columns_of(a, j);
        const bool empty = rows.empty() || columns.empty();
        const vf divisor = set1(empty ? 1.0f : divisor_of<float>(a, rows, columns));
        for (int64_t c = c0; c < c1; c += VL) {
          const int64_t left = c1 - c;
          const float* x = image<const float>(a.x, n) + c;
          vf sum{};
          for (int64_t iy = rows.from; iy < rows.to; ++iy)
            for (int64_t ix = columns.from; ix < columns.to; ++ix)
              sum += loadn(x + iy * a.x.h + ix * a.x.w, left);
          storen(image<float>(a.y, n) + i * a.y.h + j * a.y.w + c, sum / divisor, left);
        }
      }
    }
  });
}

// Channels innermost: all of a piece at once.
template <class T> void avg_backward_inside(const AvgPool2dArgs& a) {
  const Pool2dShape& s = a.shape;
  for_pieces(s, [&](int64_t n, int64_t c0, int64_t c1) {
    const int64_t lanes = c1 - c0;
    T* x = image<T>(a.x, n) + c0;
    const T* y = image<const T>(a.y, n) + c0;
    for (int64_t i = 0; i < s.h; ++i)
      for (int64_t j = 0; j < s.w; ++j)
        for (int64_t c = 0; c < lanes; ++c) x[i * a.x.h + j * a.x.w + c] = 0;
    for (int64_t i = 0; i < s.oh; ++i) {
      const Range rows = rows_of(a, i);
      for (int64_t j = 0; j < s.ow; ++j) {
        const Range columns = columns_of(a, j);
        if (rows.empty() || columns.empty()) continue;
        const T divisor = divisor_of<T>(a, rows, columns);
        const T* dy = y + i * a.y.h + j * a.y.w;
        for (int64_t iy = rows.from; iy < rows.to; ++iy)
          for (int64_t ix = columns.from; ix < columns.to; ++ix) {
            T* dx = x + iy * a.x.h + ix * a.x.w;
            for (int64_t c = 0; c < lanes; ++c) dx[c] = plus(dx[c], divided(dy[c], divisor));
          }
      }
    }
  });
}

// share[j] to all columns of window j.
template <class T>
void add_ranges(const T* share, const Range* columns, int64_t count, T* x, int64_t step) {
  for (int64_t j = 0; j < count; ++j)
    for (int64_t ix = columns[j].from; ix < columns[j].to; ++ix)
      x[ix * step] = plus(x[ix * step], share[j]);
}
// The same, tap by tap, the last one first: a column gets its windows in their order.
template <class T>
void add_taps(const T* share, const Block& block, const Pool2dShape& s, T* x, int64_t step) {
  for (int64_t q = block.to; q-- > block.from;) {
    const int64_t shift = q - s.pw, by = block.count == 1 ? 1 : s.sw * step;
    const Reach reach(block, s.sw, shift, s.w);
    if (reach.from >= reach.to) continue;
    T* to = x + ((block.j0 + reach.from) * s.sw + shift) * step;
    const T* from = share + reach.from;
    const auto loop = [&](int64_t by) __attribute__((always_inline)) {
      for (int64_t j = 0; j < reach.to - reach.from; ++j) to[j * by] = plus(to[j * by], from[j]);
    };
    by == 1 ? loop(1) : by == 2 ? loop(2) : loop(by);
  }
}
// A block of a row of outputs at a time. Each output is divided once. It adds the same to a row of
// the input for all rows of the windows. An element gets its outputs in their order.
template <class T> void avg_backward(const AvgPool2dArgs& a) {
  if (a.x.c == 1 && a.y.c == 1) return avg_backward_inside<T>(a);
  const Pool2dShape& s = a.shape;
  for_pieces(s, [&](int64_t n, int64_t first, int64_t end) {
    T share[kRow];
    Range columns[kRow];
    const bool one_block = s.ow <= kRow && s.sw <= s.w;
    const auto find_columns = [&](int64_t j0, int64_t count) {
      for (int64_t j = 0; j < count; ++j) columns[j] = columns_of(a, j0 + j);
    };
    if (one_block) find_columns(0, s.ow);
    for (int64_t c = first; c < end; ++c) {
      T* x = image<T>(a.x, n) + c * a.x.c;
      for (int64_t i = 0; i < s.h; ++i)
        for (int64_t j = 0; j < s.w; ++j) x[i * a.x.h + j * a.x.w] = 0;
      for (int64_t i = 0; i < s.oh; ++i) {
        const Range rows = rows_of(a, i);
        if (rows.empty()) continue;
        for (int64_t j0 = 0; j0 < s.ow;) {
          const Block block(s, j0, 1);
          const int64_t count = block.count;
          if (!one_block) find_columns(j0, count);
          const T* y = image<const T>(a.y, n) + c * a.y.c + i * a.y.h + j0 * a.y.w;
          for (int64_t j = 0; j < count; ++j)
            share[j] = columns[j].empty()
                           ? T{0}
                           : divided(y[j * a.y.w], divisor_of<T>(a, rows, columns[j]));
          for (int64_t iy = rows.from; iy < rows.to; ++iy)
            a.adaptive ? add_ranges(share, columns, count, x + iy * a.x.h, a.x.w)
                       : add_taps(share, block, s, x + iy * a.x.h, a.x.w);
          j0 += count;
        }
      }
    }
  });
}

}  // namespace

void max_pool2d_forward(const MaxPool2dArgs& a) {
  if (a.dtype == ScalarType::Float && a.x.c == 1 && a.y.c == 1 &&
      (!a.index.data || a.index.c == 1) && a.shape.c > 1 && small_plane(a.shape))
    return max_forward_lanes(a);
  by_dtype<float, double, int64_t>(a.dtype, [&](auto t) { max_forward<decltype(t)>(a); });
}
void max_pool2d_backward(const MaxPool2dArgs& a) {
  by_dtype<float, double, int64_t>(a.dtype, [&](auto t) { max_backward<decltype(t)>(a); });
}
void max_pool2d_gather(const MaxPool2dArgs& a) {
  by_dtype<float, double, int64_t>(a.dtype, [&](auto t) { max_gather<decltype(t)>(a); });
}

void avg_pool2d_forward(const AvgPool2dArgs& a) {
  if (a.dtype == ScalarType::Float && a.x.c == 1 && a.y.c == 1 && a.shape.c > 1)
    return avg_forward_lanes(a);
  by_dtype<float, double, int64_t>(a.dtype, [&](auto t) { avg_forward<decltype(t)>(a); });
}
void avg_pool2d_backward(const AvgPool2dArgs& a) {
  by_dtype<float, double, int64_t>(a.dtype, [&](auto t) { avg_backward<decltype(t)>(a); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
