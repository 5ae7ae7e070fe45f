// How many bits positions have on a GPU: never fewer than the largest one needs, which the test
// finds by going through all of them. They are not 64 bits long before that is needed.
#include "kernels/image/reach.h"

#include <algorithm>
#include <functional>

#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

ImageView planes(int64_t c, int64_t h, int64_t w) { return {nullptr, c * h * w, h * w, w, 1}; }
ImageView channels_last(int64_t c, int64_t h, int64_t w) {
  return {nullptr, h * w * c, 1, w * c, c};
}
ImageView there(ImageView v) {
  static double some;
  v.data = &some;
  return v;
}
int64_t far(int64_t a) { return a < 0 ? -a : a; }

/// The largest position of n images, of which pixels and taps name these rows and columns.
int64_t largest_place(const ImageView& v, int64_t n, int64_t channels, int64_t row,
                      int64_t column) {
  return (n - 1) * far(v.n) + (channels - 1) * far(v.c) + row * far(v.h) + column * far(v.w);
}
/// The largest row that a pixel of the output, a tap, or both name, in the image or not.
int64_t largest_row(int64_t outputs, int64_t step, int64_t taps, int64_t dilation, int64_t pad,
                    int64_t extent) {
  int64_t most = std::max(extent, outputs) - 1;
  for (int64_t i = 0; i < outputs; ++i)
    for (int64_t r = 0; r < taps; ++r)
      most = std::max(
          {most, far(i * step - pad), far(i * step - pad + r * dilation), r * dilation, i * step});
  // Backwards: from a pixel of the input to the output.
  for (int64_t y = 0; y < extent; ++y)
    for (int64_t r = 0; r < taps; ++r)
      most = std::max({most, y + pad, far(y + pad - r * dilation)});
  return most;
}

int64_t largest_number(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  const int64_t row = largest_row(s.oh, s.sh, s.kh, s.dh, s.ph, s.h),
                column = largest_row(s.ow, s.sw, s.kw, s.dw, s.pw, s.w);
  return std::max({largest_place(a.x, s.n, s.ci, row, column),
                   largest_place(a.y, s.n, s.co, s.oh - 1, s.ow - 1), row, column,
                   s.n * s.oh * s.ow, s.n * s.h * s.w, s.co * (s.ci / s.groups) * s.kh * s.kw});
}
int64_t largest_number(const Pool2dShape& s, const ImageView& x, const ImageView& y) {
  const int64_t row = largest_row(s.oh, s.sh, s.kh, s.dh, s.ph, s.h),
                column = largest_row(s.ow, s.sw, s.kw, s.dw, s.pw, s.w);
  // Adaptive windows: output times extent.
  return std::max({largest_place(x, s.n, s.c, s.h - 1, s.w - 1),
                   largest_place(y, s.n, s.c, s.oh - 1, s.ow - 1), row, column,
                   s.n * s.c * s.h * s.w, s.n * s.c * s.oh * s.ow, s.h * s.w, s.h * s.oh,
                   s.w * s.ow});
}

/// The first number of images for which `is_too_far`.
int64_t first_of(const std::function<bool(int64_t)>& is_too_far) {
  int64_t low = 1, high = int64_t{1} << 33;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (is_too_far(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
/// The choice turns at the last number of images that is safe, or a little before.
template <class Largest, class Reach>
void expect_turns_in_time(const Largest& largest, const Reach& reach) {
  for (int64_t n : {1, 2, 1000})
    EXPECT_GE(reach(n), static_cast<double>(largest(n))) << n << " images";
  const int64_t must = first_of(
                    [&](int64_t n) { return static_cast<double>(largest(n)) > kNarrowMost; }),
                does = first_of([&](int64_t n) { return reach(n) > kNarrowMost; });
  EXPECT_LE(does, must);
  EXPECT_GT(static_cast<double>(does), 0.99 * static_cast<double>(must));
}

TEST(GpuReach, Convolutions) {
  const Conv2dShape shapes[] = {
      {0, 3, 7, 5, 4, 7, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1},
      {0, 4, 9, 8, 6, 4, 9, 3, 2, 2, 1, 1, 2, 1, 3, 2},
      {0, 1, 6, 6, 1, 6, 6, 3, 3, 1, 1, 40, 50, 40, 50, 1},
      {0, 8, 2, 2, 64, 1, 1, 2, 2, 5, 5, 0, 0, 1, 1, 1},
  };
  for (const Conv2dShape& shape : shapes)
    for (const auto& layout : {planes, channels_last}) {
      SCOPED_TRACE(&shape - shapes);
      Conv2dArgs a{};
      a.shape = shape;
      a.x = layout(shape.ci, shape.h, shape.w), a.y = layout(shape.co, shape.oh, shape.ow);
      const auto with = [&](int64_t n) {
        a.shape.n = n;
        return a;
      };
      expect_turns_in_time([&](int64_t n) { return largest_number(with(n)); },
                           [&](int64_t n) { return conv2d_reach(with(n)); });
    }
}

// Each large size in turn: the weight, a step beyond the image, a stride of memory.
TEST(GpuReach, ConvolutionsOfFewImages) {
  const auto narrow = [](Conv2dShape s, int64_t stride = 1) {
    Conv2dArgs a{};
    a.shape = s, a.x = planes(s.ci, s.h, s.w), a.y = planes(s.co, s.oh, s.ow);
    a.x.w *= stride;
    EXPECT_GE(conv2d_reach(a), static_cast<double>(largest_number(a)));
    return conv2d_reach(a) <= kNarrowMost;
  };
  const int64_t k15 = 1 << 15, k16 = 1 << 16;
  EXPECT_TRUE(narrow({1, k15, 1, 1, k15, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1}));
  EXPECT_FALSE(narrow({1, k16, 1, 1, k15, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1}));
  const auto padded = [](int64_t far) {
    return Conv2dShape{1, 1, 3, 3, 1, 3, 3, 3, 3, 1, 1, far, 1, far, 1, 1};
  };
  EXPECT_TRUE(narrow(padded(int64_t{1} << 26)));
  EXPECT_FALSE(narrow(padded(int64_t{1} << 31)));
  EXPECT_FALSE(narrow(padded(int64_t{1} << 30))) << "taps of three rows of three";
  EXPECT_TRUE(narrow(padded(1), int64_t{1} << 24));
  EXPECT_FALSE(narrow(padded(1), int64_t{1} << 31));
  EXPECT_FALSE(narrow(padded(1), -(int64_t{1} << 31))) << "backwards";
}

TEST(GpuReach, Pools) {
  const Pool2dShape shapes[] = {
      {0, 3, 7, 5, 3, 2, 2, 2, 2, 2, 0, 0, 1, 1},
      {0, 2, 9, 8, 5, 7, 3, 2, 2, 1, 1, 0, 1, 2},
      {0, 1, 6, 6, 7, 7, 1000, 1000, 1, 1, 500, 500, 1, 1},
      {0, 5, 3, 4, 30, 40, 0, 0, 0, 0, 0, 0, 0, 0},  // adaptive
  };
  for (const Pool2dShape& shape : shapes)
    for (const auto& layout : {planes, channels_last}) {
      SCOPED_TRACE(&shape - shapes);
      Pool2dShape s = shape;
      const ImageView x = there(layout(s.c, s.h, s.w)), y = there(layout(s.c, s.oh, s.ow));
      const auto with = [&](int64_t n) {
        s.n = n;
        return s;
      };
      expect_turns_in_time([&](int64_t n) { return largest_number(with(n), x, y); },
                           [&](int64_t n) {
                             return pool2d_reach(with(n), {x, y, ImageView{}});
                           });
    }
  // Rows or columns outermost in memory, and more results than inputs.
  const Pool2dShape up{4, 2, 3, 3, 9, 9, 1, 1, 1, 1, 0, 0, 1, 1};
  for (const ImageView& v :
       {ImageView{nullptr, 1, 4, 8 << 20, 8}, ImageView{nullptr, 1, 4, 8, 9 << 20}})
    EXPECT_GE(pool2d_reach(up, {there(v)}), static_cast<double>(largest_place(v, 4, 2, 8, 8)));
  EXPECT_GE(pool2d_reach(up, {}), 4 * 2 * 9 * 9);
  // One image: an adaptive pool's products, a kernel, padding.
  const auto narrow = [](const Pool2dShape& s) {
    const double reach = pool2d_reach(s, {});
    EXPECT_GE(reach, static_cast<double>(largest_number(s, {}, {})));
    return reach <= kNarrowMost;
  };
  EXPECT_TRUE(narrow({1, 1, 1 << 15, 1, 1 << 15, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(narrow({1, 1, 1 << 16, 1, 1 << 15, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(narrow({1, 1, 1, 1 << 16, 1, 1 << 15, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(narrow({1, 1, 6, 6, 7, 7, 9, 4, 1, 1, 4, 2, 1, 1 << 20}));
  EXPECT_FALSE(narrow({1, 1, 6, 6, 7, 7, 9, 4, 1, 1, 4, 2, 1, 1 << 30}));
}

TEST(GpuReach, BatchNorm) {
  const auto reach = [](int64_t n, ChannelView v, ChannelView w) {
    return batch_norm_reach(n, 6, 35, {v, w});
  };
  const ChannelView dense{nullptr, 210, 35, 1}, inside{nullptr, 210, 1, 6},
      apart{nullptr, 1000, 100, 1};
  for (const ChannelView& v : {dense, inside, apart})
    for (const ChannelView& w : {dense, apart})
      expect_turns_in_time(
          [&](int64_t n) {
            int64_t most = n * 6 * 35;
            for (const ChannelView& one : {v, w})
              for (int64_t c = 0; c < 6; ++c)
                for (int64_t l = 0; l < 35; ++l)
                  most = std::max(most, (n - 1) * one.n + c * one.c + l * one.l);
            return most;
          },
          [&](int64_t n) { return reach(n, v, w); });
}

TEST(GpuReach, BatchNormOfValuesFarApart) {
  EXPECT_GE(batch_norm_reach(2, 3, 4, {{nullptr, 1, 2, 1 << 30}}), 3.0 * (1 << 30));
  EXPECT_GE(batch_norm_reach(2, 3, 4, {{nullptr, 1, 1 << 30, 2}}), 2.0 * (1 << 30));
  EXPECT_GE(batch_norm_reach(2, 3, 4, {{nullptr, 1, 1, 1}}), 2 * 3 * 4);
}

// A thread adds a grid, and a tile its rows, before it checks whether the position is too far.
TEST(GpuReach, RoomBelowThirtyTwoBits) {
  EXPECT_LE(kNarrowMost + 65536 * 256.0, 2147483647.0);
  EXPECT_GE(kNarrowMost, 0.98 * 0x1p31) << "and wastes little";
}

}  // namespace
}  // namespace ramet::kernels
