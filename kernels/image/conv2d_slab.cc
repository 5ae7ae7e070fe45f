#include "kernels/image/conv2d_slab.h"

#include "kernels/matrix/gemm.h"
#include "kernels/simd/vec.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

RAMET_INLINE void zero(float* p, int64_t n) {
  if (n > 0) std::memset(p, 0, static_cast<size_t>(n) * sizeof(float));
}
RAMET_INLINE void copy(float* dst, const float* src, int64_t n) {
  std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
}

// Copies one row of c channels x w pixels to dst[w][c]. May set up to 15 floats after it to zero.
void load_row(const float* src, int64_t sc, int64_t sw, int64_t c, int64_t w, float* dst) {
  if (sc == 1 || c == 1) {
    if (sw == c) return copy(dst, src, c * w);
    if (c >= 4) {
      for (int64_t j = 0; j < w; ++j) copy(dst + j * c, src + j * sw, c);
      return;
    }
  }
  if (sw == 1 || w == 1) return pack_transposed(src, sc, c, w, dst, c);
  for (int64_t j = 0; j < w; ++j)
    for (int64_t i = 0; i < c; ++i) dst[j * c + i] = src[i * sc + j * sw];
}

// Copies one row of c channels x w pixels to dst[c][w], with channels `plane` apart. May set up to
// 15 floats after each to zero.
void load_planes(const float* src, int64_t sc, int64_t sw, int64_t c, int64_t w, float* dst,
                 int64_t plane) {
  if (sc == 1 && sw != 1) return pack_transposed(src, sw, w, c, dst, plane);
  for (int64_t i = 0; i < c; ++i)
    if (sw == 1) copy(dst + i * plane, src + i * sc, w);
    else
      for (int64_t j = 0; j < w; ++j) dst[i * plane + j] = src[i * sc + j * sw];
}

// Transposes s[r*ld + p], r < rows, p < k: row_of(p)[r] = s[r*ld + p]. It calls row_of with p
// ascending, and writes nothing after a row. Reads are `rows` streams, which a processor prefetches
// if there are few.
template <class F>
RAMET_INLINE void transpose_rows(const float* s, int64_t ld, int64_t rows, int64_t k, F&& row_of) {
  for (int64_t k0 = 0; k0 < k; k0 += VL) {
    const int64_t nk = imin(k - k0, VL);
    float* row[VL];
    for (int i = 0; i < VL && i < nk; ++i) row[i] = row_of(k0 + i);
    for (int64_t r0 = 0; r0 < rows; r0 += VL) {
      const int64_t nr = imin(rows - r0, VL);
      const float* from = s + r0 * ld + k0;
      vf v[VL];
      if (nr == VL && nk == VL) {
#pragma GCC unroll 16
        for (int i = 0; i < VL; ++i) v[i] = load(from + i * ld);
        transpose(v);
#pragma GCC unroll 16
        for (int i = 0; i < VL; ++i) store(row[i] + r0, v[i]);
        continue;
      }
#pragma GCC unroll 16
      for (int i = 0; i < VL; ++i) v[i] = i < nr ? loadn(from + i * ld, nk) : vf{};
      transpose(v);
#pragma GCC unroll 16
      for (int i = 0; i < VL; ++i)
        if (i < nk) storen(row[i] + r0, v[i], nr);
    }
  }
}

}  // namespace

void load_slab(const float* image, const ImageView& v, int64_t h, int64_t w, int64_t c,
               int64_t first, int64_t rows, int64_t left, int64_t columns, float* dst) {
  const int64_t skip = imax(-left, 0), lead = imax(left, 0), n = imin(w - skip, columns - lead);
  for (int64_t r = 0; r < rows; ++r, dst += columns * c) {
    const int64_t y = first + r;
    if (y < 0 || y >= h || n <= 0) {
      zero(dst, columns * c);
      continue;
    }
    zero(dst, lead * c);
    load_row(image + y * v.h + skip * v.w, v.c, v.w, c, n, dst + lead * c);
    zero(dst + (lead + n) * c, (columns - lead - n) * c);
  }
}

void load_plane_slab(const float* image, const ImageView& v, int64_t h, int64_t w, int64_t c,
                     int64_t first, int64_t rows, int64_t left, int64_t columns, int64_t step,
                     int64_t plane, float* dst) {
  zero(dst, c * plane);
  const int64_t each = columns / step;
  for (int64_t y = imax(first, 0); y < imin(first + rows, h); ++y)
    for (int64_t i = 0; i < step; ++i) {
      // Every step-th column, from the first in the image on.
      const int64_t j = imax(0, ceil_div(left - i, step)), x = i + j * step - left,
                    n = imin(ceil_div(w - x, step), each - j);
      if (n > 0)
        load_planes(image + y * v.h + x * v.w, v.c, v.w * step, c, n,
                    dst + (y - first) * columns + i * each + j, plane);
    }
}

void store_row(const float* src, int64_t c, int64_t w, float* dst, int64_t sc, int64_t sw) {
  if (sw == 1 || w == 1)
    return transpose_rows(src, c, w, c, [&](int64_t i) { return dst + i * sc; });
  for (int64_t j = 0; j < w; ++j)
    for (int64_t i = 0; i < c; ++i) dst[i * sc + j * sw] = src[j * c + i];
}

// The address of element (row k, column j) of a tap's matrix of `columns` columns.
RAMET_INLINE float* packed(float* dst, const TapPlace& tap, int64_t k, int64_t j, int64_t columns) {
  const int64_t sliver = j / kNR * kNR;
  return dst + tap.base + sliver * tap.rows + (tap.row + k) * imin(kNR, columns - sliver) + j -
         sliver;
}

void pack_filter(const float* weight, int64_t groups, int64_t cog, int64_t cig, int64_t taps,
                 const TapPlace* place, float* dst) {
  const int64_t group = taps * cig * cog, slivers = ceil_div(cog, kNR);
  // A task is a sliver of some channels: it reads up to kNR rows of the weight from first to last.
  const int64_t block = imax(1, 4096 / taps), blocks = ceil_div(cig, block);
  const auto task = [&](int64_t t, int) {
    const int64_t g = t / (slivers * blocks), j = t / blocks % slivers * kNR;
    const int64_t c0 = t % blocks * block, n = imin(block, cig - c0), width = imin(kNR, cog - j);
    float* to = dst + g * group;
    int64_t tap = 0, c = c0;
    transpose_rows(weight + g * group + j * cig * taps + c0 * taps, cig * taps, width, n * taps,
                   [&](int64_t) {
                     float* row = packed(to, place[tap], c, j, cog);
                     if (++tap == taps) tap = 0, ++c;
                     return row;
                   });
  };
  const int64_t tasks = groups * slivers * blocks;
  if (groups * group * 4 >= 2 * parallel_grain()) return parallel_tasks(tasks, task);
  for (int64_t t = 0; t < tasks; ++t) task(t, 0);
}

void pack_filter_transposed(const float* weight, int64_t groups, int64_t cog, int64_t cig,
                            int64_t taps, const TapPlace* place, float* dst) {
  const int64_t group = taps * cig * cog, outputs = groups * cog;
  const auto one = [&](int64_t o) {
    float* d = dst + o / cog * group;
    const float* w = weight + o * cig * taps;
    for (int64_t c = 0; c < cig; c += kNR) {
      const int64_t n = imin(kNR, cig - c);
      if (taps == 1) copy(packed(d, place[0], o % cog, c, cig), w + c, n);
      else
        transpose_rows(w + c * taps, taps, n, taps,
                       [&](int64_t p) { return packed(d, place[p], o % cog, c, cig); });
    }
  };
  const int64_t per =
      outputs * cig * taps * 4 >= 2 * parallel_grain() ? ceil_div(outputs, 16) : outputs;
  parallel_tasks(ceil_div(outputs, imax(per, 1)), [&](int64_t t, int) {
    for (int64_t o = t * per; o < imin(outputs, (t + 1) * per); ++o) one(o);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
