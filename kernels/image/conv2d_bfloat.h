// Shared parts of the convolutions in bfloat16: Note [Convolution in pairs] in conv2d.h. Not for
// fronts.
#pragma once
#include "kernels/image/conv2d.h"
#include "kernels/matrix/bfloat_pack.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {

/// Images with channels innermost, each group's padded to an even number. Strides in elements.
struct BfloatImages {
  const uint16_t* data;
  int64_t image, row, pixel, group;
};
/// The images of `v` as such: where they are, if they may be read there, or as a copy. `channels`
/// per group become `padded`.
BfloatImages bfloat_images(const ImageView& v, int64_t n, int64_t h, int64_t w, int64_t groups,
                           int64_t channels, int64_t padded, uint16_t* copy, bool in_place = true);

/// Tap r of result t reads place t * stride + first + r * step of `size` places.
struct BfloatAxis {
  int64_t results, size, taps, first, step, stride;
};

/// What the pixels of a result read.
struct BfloatWindow {
  BfloatImages from;
  BfloatAxis rows, columns;
  int64_t channels;  // of a group, even
  int64_t k() const { return rows.taps * columns.taps * channels; }
};

// `n` elements, an even number: as they are, or each pair as floats, the odd one first.
template <bool kPairs>
RAMET_INLINE void put_run(float* line, int64_t at, const uint16_t* p, int64_t n) {
  if constexpr (kPairs) {
    auto* to = reinterpret_cast<char*>(line) + 2 * at;
    const auto* from = reinterpret_cast<const char*>(p);
    const int64_t bytes = 2 * n;
    int64_t i = 0;
    for (; i + 64 <= bytes; i += 64) __builtin_memcpy(to + i, from + i, 64);
    if (bytes & 32) __builtin_memcpy(to + i, from + i, 32), i += 32;
    if (bytes & 16) __builtin_memcpy(to + i, from + i, 16), i += 16;
    if (bytes & 8) __builtin_memcpy(to + i, from + i, 8), i += 8;
    if (bytes & 4) __builtin_memcpy(to + i, from + i, 4);
  } else {
    float* to = line + at;
    for (int64_t i = 0; i < n; i += 2) {
      uint32_t pair;
      __builtin_memcpy(&pair, p + i, 4);
      const uint32_t odd = pair & 0xffff0000u, even = pair << 16;
      __builtin_memcpy(to + i, &odd, 4), __builtin_memcpy(to + i + 1, &even, 4);
    }
  }
}
template <bool kPairs> RAMET_INLINE void put_zeros(float* line, int64_t at, int64_t n) {
  if (n <= 0) return;
  char* to = reinterpret_cast<char*>(line) + (kPairs ? 2 : 4) * at;
  __builtin_memset(to, 0, static_cast<size_t>(n) * (kPairs ? 2 : 4));
}

/// The operands of `count` results from number `first` on (images, rows, columns): a line for each,
/// `line` floats apart, with row taps r0 .. r1 of group g as (row tap, column tap, channel). Zeros
/// are outside the images.
template <bool kPairs>
void bfloat_columns(const BfloatWindow& w, int64_t g, int64_t r0, int64_t r1, int64_t first,
                    int64_t count, float* to, int64_t line) {
  const BfloatAxis &rows = w.rows, &columns = w.columns;
  const int64_t run = columns.taps * w.channels, step = columns.stride * w.from.pixel;
  const bool neighbours = columns.step == 1 && w.from.pixel == w.channels;
  // Results x0 .. x1 of a row have all taps in the image.
  const int64_t x0 = imax(0, ceil_div(imax(0, -columns.first), columns.stride)),
                last = columns.size - columns.taps - columns.first,
                x1 = last < 0 ? x0 : imax(x0, last / columns.stride + 1);
  const auto border = [&](float* line_to, int64_t at, const uint16_t* p, int64_t x) {
    for (int64_t q = 0; q < columns.taps; ++q, at += w.channels) {
      const int64_t column = x * columns.stride + columns.first + q * columns.step;
      if (column < 0 || column >= columns.size) put_zeros<kPairs>(line_to, at, w.channels);
      else put_run<kPairs>(line_to, at, p + column * w.from.pixel, w.channels);
    }
  };
  int64_t x = first % columns.results, y = first / columns.results % rows.results,
          n = first / columns.results / rows.results;
  while (count > 0) {  // the results of a row
    const int64_t end = imin(columns.results, x + count);
    const uint16_t* image = w.from.data + n * w.from.image + g * w.from.group;
    for (int64_t r = r0; r < r1; ++r) {
      const int64_t at = (r - r0) * run, row = y * rows.stride + rows.first + r * rows.step;
      float* line_to = to;
      if (row < 0 || row >= rows.size) {
        for (int64_t i = x; i < end; ++i, line_to += line) put_zeros<kPairs>(line_to, at, run);
        continue;
      }
      const uint16_t* p = image + row * w.from.row;
      int64_t i = x;
      const int64_t from = neighbours ? imin(end, x0) : end, until = imin(end, x1);
      for (; i < from; ++i, line_to += line) border(line_to, at, p, i);
      const uint16_t* q = p + (i * columns.stride + columns.first) * w.from.pixel;
      for (; i < until; ++i, line_to += line, q += step) put_run<kPairs>(line_to, at, q, run);
      for (; i < end; ++i, line_to += line) border(line_to, at, p, i);
    }
    count -= end - x, to += (end - x) * line;
    x = 0;
    if (++y == rows.results) y = 0, ++n;
  }
}

void conv2d_bfloat_forward(const Conv2dArgs& a);
void conv2d_bfloat_backward_input(const Conv2dArgs& a);
void conv2d_bfloat_backward_weight(const Conv2dArgs& a);

}  // namespace ramet::kernels::RAMET_VARIANT
