// Rows of the operation table: convolution, pools.
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

// Images [n, c, h, w], with 1 for the dimensions that the input leaves out.
Plain as_images(Plain x, bool lines) {
  if (lines) x.sizes.insert(x.sizes.end() - 1, 1);
  if (x.rank() == 3) x.sizes.insert(x.sizes.begin(), 1);
  return x;
}
Plain from_images(Plain y, int64_t rank, bool lines) {
  if (lines) y.sizes.erase(y.sizes.end() - 2);
  if (y.rank() > rank) y.sizes.erase(y.sizes.begin());
  return y;
}

struct Window {
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1};
  bool ceil = false;
  int64_t groups = 1;

  int64_t extent(int64_t in, int d) const {
    const int64_t room = in + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
    int64_t out = (room + (ceil ? stride[d] - 1 : 0)) / stride[d] + 1;
    if (ceil && (out - 1) * stride[d] >= in + padding[d]) --out;  // starts in the padding
    return out;
  }
  Index sizes(const Plain& x, int64_t channels) const {
    return {x.size(0), channels, extent(x.size(2), 0), extent(x.size(3), 1)};
  }
  // Calls f(y, x, a, b) for every place of the window at output (i, j). (y, x) is the place in the
  // image or outside of it, and (a, b) in the kernel.
  template <class F> void each(int64_t i, int64_t j, F f) const {
    for (int64_t a = 0; a < kernel[0]; ++a)
      for (int64_t b = 0; b < kernel[1]; ++b)
        f(i * stride[0] - padding[0] + a * dilation[0],
          j * stride[1] - padding[1] + b * dilation[1], a, b);
  }
};
bool inside(const Plain& x, int64_t i, int64_t j) {
  return i >= 0 && i < x.size(2) && j >= 0 && j < x.size(3);
}

Plain convolved(P in, Window w, bool lines) {
  const Plain x = as_images(in[0], lines);
  Plain k = in[1];
  if (lines) k.sizes.insert(k.sizes.end() - 1, 1);
  w.kernel[0] = k.size(2);
  w.kernel[1] = k.size(3);
  const int64_t per = k.size(1), of_group = k.size(0) / w.groups;
  return from_images(
      made(w.sizes(x, k.size(0)),
           [&](const Index& o) {
             double s = in.size() > 2 ? in[2].at({o[1]}) : 0;
             for (int64_t c = 0; c < per; ++c)
               w.each(o[2], o[3], [&](int64_t y, int64_t z, int64_t a, int64_t b) {
                 if (inside(x, y, z))
                   s += k.at({o[1], c, a, b}) * x.at({o[0], o[1] / of_group * per + c, y, z});
               });
             return s;
           }),
      in[0].rank(), lines);
}

void add_convolutions(Table& t) {
  const auto sample = [](Index image, Index kernel, bool bias) {
    Sample s = {real(image), real(kernel)};
    if (bias) s.push_back(real({kernel[0]}));
    return s;
  };
  const auto bias_of = [](V x) {
    return x.size() > 2 ? std::optional<Tensor>(x[2]) : std::nullopt;
  };
  // Sums of a few dozen products.
  t.row("conv2d", kNumbers,
        {sample({2, 3, 5, 4}, {4, 3, 3, 2}, true), sample({3, 5, 5}, {2, 3, 1, 1}, true),
         sample({0, 3, 5, 5}, {2, 3, 3, 3}, true)},
        CALL(conv2d, x[0], x[1], bias_of(x)), [](P x) { return convolved(x, {}, false); })
      .products()
      .big(sample({70, 3, 9, 9}, {5, 3, 3, 3}, true), 1)
      .slim(sample({4, 3, 144, 144}, {3, 3, 3, 3}, true))
      .within(4);
  Window wide;
  wide.stride[0] = 2;
  wide.padding[0] = 1, wide.padding[1] = 2;
  t.row("conv2d.padded", kNumbers,
        {sample({2, 2, 5, 6}, {3, 2, 3, 3}, false), sample({1, 2, 1, 1}, {3, 2, 3, 3}, false),
         sample({0, 2, 5, 6}, {3, 2, 3, 3}, false)},
        CALL(conv2d, x[0], x[1], {}, {2, 1}, {1, 2}),
        [=](P x) { return convolved(x, wide, false); })
      .products()
      .big(sample({70, 3, 9, 9}, {5, 3, 3, 3}, false), 1)
      .within(4)
      .partly_tame(2, "an infinite weight times padding is NaN or left out");
  Window apart;
  apart.dilation[0] = apart.dilation[1] = 2;
  apart.padding[0] = apart.padding[1] = 2;
  apart.groups = 2;
  t.row("conv2d.groups", kFloats | set_of(kLong),
        {sample({2, 4, 5, 6}, {6, 2, 3, 2}, true), sample({0, 4, 5, 6}, {6, 2, 3, 2}, true)},
        CALL(conv2d, x[0], x[1], bias_of(x), 1, 2, 2, 2),
        [=](P x) { return convolved(x, apart, false); })
      .products()
      .big(sample({70, 4, 9, 9}, {6, 2, 3, 3}, true), 1)
      .also(kInts)
      .within(4)
      .partly_tame(2, "an infinite weight times padding is NaN or left out");
  t.row("conv1d", kNumbers,
        {sample({2, 3, 6}, {4, 3, 3}, true), sample({3, 6}, {4, 3, 1}, true),
         sample({0, 3, 6}, {4, 3, 2}, true)},
        CALL(conv1d, x[0], x[1], bias_of(x)), [](P x) { return convolved(x, {}, true); })
      .products()
      .big(sample({70, 3, 90}, {5, 3, 3}, true), 1)
      .within(4);
}

// ---- pools

// The first of equals, but the last NaN.
bool larger(double a, double b) { return std::isnan(a) || a > b; }
Plain max_pooled(const Plain& in, const Window& w, bool lines, bool positions) {
  const Plain x = as_images(in, lines);
  return from_images(made(w.sizes(x, x.size(1)),
                          [&](const Index& o) {
                            double best = 0;
                            int64_t at = -1;
                            w.each(o[2], o[3], [&](int64_t y, int64_t z, int64_t, int64_t) {
                              if (!inside(x, y, z)) return;
                              const double v = x.at({o[0], o[1], y, z});
                              if (at >= 0 && !larger(v, best)) return;
                              best = v;
                              at = y * x.size(3) + z;
                            });
                            return positions ? static_cast<double>(at) : best;
                          }),
                     in.rank(), lines);
}
Plain averaged(const Plain& in, const Window& w, bool lines, bool with_padding) {
  const Plain x = as_images(in, lines);
  return from_images(made(w.sizes(x, x.size(1)),
                          [&](const Index& o) {
                            double s = 0, n = 0;
                            w.each(o[2], o[3], [&](int64_t y, int64_t z, int64_t, int64_t) {
                              const bool in_image = inside(x, y, z);
                              if (in_image) s += x.at({o[0], o[1], y, z});
                              n += with_padding || in_image;
                            });
                            return s / n;
                          }),
                     in.rank(), lines);
}
Plain adaptive(const Plain& in, int64_t height, int64_t width, bool lines) {
  const Plain x = as_images(in, lines);
  const int64_t h = x.size(2), w = x.size(3);
  return from_images(made({x.size(0), x.size(1), height, width},
                          [&](const Index& o) {
                            double s = 0;
                            int64_t n = 0;
                            for (int64_t i = o[2] * h / height; i * height < (o[2] + 1) * h; ++i)
                              for (int64_t j = o[3] * w / width; j * width < (o[3] + 1) * w;
                                   ++j, ++n)
                                s += x.at({o[0], o[1], i, j});
                            return s / static_cast<double>(n);
                          }),
                     in.rank(), lines);
}

void add_pools(Table& t) {
  const Sample images = {real({70, 3, 9, 9}, -9, 9)}, lines = {real({70, 3, 90}, -9, 9)};
  const Samples few = shapes({{2, 3, 5, 6}, {3, 4, 4}, {0, 3, 4, 4}}, -9, 9),
                few_lines = shapes({{2, 3, 7}, {3, 6}, {0, 3, 6}}, -9, 9);
  Window two;
  two.kernel[0] = two.kernel[1] = two.stride[0] = two.stride[1] = 2;
  Window odd;  // 3 x 2, stride 2 x 1, padding 1 x 1, the last windows hang over
  odd.kernel[0] = 3, odd.kernel[1] = 2;
  odd.stride[0] = 2;
  odd.padding[0] = odd.padding[1] = 1;
  odd.ceil = true;
  Window dilated;  // 2 x 3, stride 1 x 2, padding 1 x 1, dilation 2 x 1
  dilated.kernel[0] = 2, dilated.kernel[1] = 3;
  dilated.stride[1] = 2;
  dilated.padding[0] = dilated.padding[1] = 1;
  dilated.dilation[0] = 2;
  Window line;
  line.kernel[1] = 3;
  line.stride[1] = 2;
  line.padding[1] = 1;
  t.row("max_pool2d", kNumbers, few, CALL(max_pool2d, x[0], 2), [=](P x) {
     return max_pooled(x[0], two, false, false);
   }).big(images, 1);
  t.row("max_pool2d.odd", kNumbers, few, CALL(max_pool2d, x[0], {3, 2}, {2, 1}, 1, 1, true),
        [=](P x) { return max_pooled(x[0], odd, false, false); })
      .big(images, 1);
  t.row("max_pool2d.dilated", kNumbers, few, CALL(max_pool2d, x[0], {2, 3}, {1, 2}, 1, {2, 1}),
        [=](P x) { return max_pooled(x[0], dilated, false, false); })
      .big(images, 1);
  t.row("max_pool2d_with_indices.values", kNumbers, few,
        FIRST_OUT(kLong, max_pool2d_with_indices, x[0], 2),
        [=](P x) { return max_pooled(x[0], two, false, false); })
      .big(images, 1);
  t.row("max_pool2d_with_indices.positions", kNumbers, few,
        SECOND_OUT(max_pool2d_with_indices, x[0], {3, 2}, {2, 1}, 1, 1, true),
        [=](P x) { return max_pooled(x[0], odd, false, true); })
      .big(images, 1)
      .gives(positions)
      .no_gradient();
  t.row("max_pool1d", kFloats, few_lines, CALL(max_pool1d, x[0], 3, 2, 1),
        [=](P x) { return max_pooled(x[0], line, true, false); })
      .big(lines, 1)
      .also(kInts);
  t.row("max_pool1d_with_indices.values", kNumbers, few_lines,
        FIRST(max_pool1d_with_indices, x[0], 3, 2, 1),
        [=](P x) { return max_pooled(x[0], line, true, false); })
      .big(lines, 1);
  t.row("max_pool1d_with_indices.positions", kNumbers, few_lines,
        SECOND(max_pool1d_with_indices, x[0], 3, 2, 1),
        [=](P x) { return max_pooled(x[0], line, true, true); })
      .big(lines, 1)
      .gives(positions)
      .no_gradient();
  // Integers divide towards zero.
  constexpr uint16_t kAverages = kFloats | set_of(kLong);
  t.row("avg_pool2d", kAverages, few, CALL_OUT(avg_pool2d, x[0], 2),
        [=](P x) { return averaged(x[0], two, false, true); })
      .big(images, 1)
      .also(kInts);
  t.row("avg_pool2d.odd", kAverages, shapes({{2, 3, 5, 6}, {3, 5, 4}, {0, 3, 5, 4}}),
        CALL(avg_pool2d, x[0], {3, 2}, {2, 1}, 1, false, false),
        [=](P x) {
          Window w = odd;
          w.ceil = false;
          return averaged(x[0], w, false, false);
        })
      .big(images, 1)
      .also(kInts);
  t.row("avg_pool1d", kAverages, few_lines, CALL(avg_pool1d, x[0], 3, 2, 1),
        [=](P x) { return averaged(x[0], line, true, true); })
      .big(lines, 1)
      .also(kInts);
  t.row("adaptive_avg_pool2d", kFloats, few, CALL_OUT(adaptive_avg_pool2d, x[0], {3, 2}), [](P x) {
     return adaptive(x[0], 3, 2, false);
   }).big(images, 1);
  t.row("adaptive_avg_pool1d", kFloats, few_lines, CALL(adaptive_avg_pool1d, x[0], 4), [](P x) {
     return adaptive(x[0], 1, 4, true);
   }).big(lines, 1);
}

std::vector<Row> rows() {
  Table t;
  add_convolutions(t);
  add_pools(t);
  return t.rows();
}
RAMET_OP_TABLE(rows());

}  // namespace
}  // namespace op_table
}  // namespace ramet
