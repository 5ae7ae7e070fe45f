#include "autograd/ops/pool.h"

#include "autograd/ops/copy.h"
#include "autograd/ops/front/image_front.h"
#include "autograd/ops/view.h"
#include "kernels/image/pool2d.h"
#include "runtime/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

using kernels::Pool2dShape;

constexpr int64_t kOne = 1;  // a list borrows its number

kernels::ImageView no_image() { return {nullptr, 0, 0, 0, 0}; }
Tensor image_of(ImageLayout layout, const Pool2dShape& s, bool output, ScalarType t, Device d) {
  return empty_image(layout, s.n, s.c, output ? s.oh : s.h, output ? s.ow : s.w, t, d);
}

// ---- maximum: scatter and gather by the indices are each other's derivative ---------------------

Tensor max_gather(const Tensor& x, const Tensor& index, const Pool2dShape& s, ImageLayout layout);

Tensor max_scatter(const Tensor& g, const Tensor& index, const Pool2dShape& s, ImageLayout layout) {
  Tensor dx = image_of(layout, s, false, g.scalar_type(), g.device());
  kernels::max_pool2d_backward(
      g.stream(), {s, image_view(dx), image_view(g), image_view(index), g.scalar_type()});
  if (!recording(g)) return dx;
  return record("MaxPool2DWithIndicesBackwardBackward0", {g}, std::move(dx),
                [index = save(index), s, layout](const Node& self, const Tensor& v) {
                  return max_gather(v, index.get(self), s, layout);
                });
}
Tensor max_gather(const Tensor& x, const Tensor& index, const Pool2dShape& s, ImageLayout layout) {
  Tensor y = image_of(layout, s, true, x.scalar_type(), x.device());
  kernels::max_pool2d_gather(x.stream(),
                             {s, image_view(x), image_view(y), image_view(index), x.scalar_type()});
  if (!recording(x)) return y;
  return record("MaxPool2DWithIndicesBackward0", {x}, std::move(y),
                [index = save(index), s, layout](const Node& self, const Tensor& v) {
                  return max_scatter(v, index.get(self), s, layout);
                });
}

// x: 4 dimensions; float, double or int64. With `index`, that too.
Tensor max_pool(const Tensor& x, const Pool2dShape& s, Tensor* index) {
  const auto layout = layout_of(x);
  Tensor y = image_of(layout, s, true, x.scalar_type(), x.device()), places;
  const bool history = recording(x);
  if (history || index) places = image_of(layout, s, true, kLong, x.device());
  kernels::max_pool2d_forward(
      x.stream(), {s, image_view(x), image_view(y),
                   places.defined() ? image_view(places) : no_image(), x.scalar_type()});
  if (index) *index = places;
  if (!history) return y;
  return record("MaxPool2DWithIndicesBackward0", {x}, std::move(y),
                [index = save(places), s, layout](const Node& self, const Tensor& g) {
                  return max_scatter(g, index.get(self), s, layout);
                });
}

// ---- average: linear, forward and backward are each other's derivative --------------------------

struct Average {
  Pool2dShape shape;
  bool adaptive, count_include_pad;
  int64_t divisor_override;
  ImageLayout layout;
  const char *forward, *backward;
};

Tensor average_backward(const Tensor& g, const Average& a);
Tensor average(const Tensor& x, const Average& a) {
  Tensor y = image_of(a.layout, a.shape, true, x.scalar_type(), x.device());
  // An adaptive pool may give rows of no columns, as many as one likes.
  if (y.numel() > 0)
    kernels::avg_pool2d_forward(x.stream(), {a.shape, image_view(x), image_view(y), x.scalar_type(),
                                             a.adaptive, a.count_include_pad, a.divisor_override});
  if (!recording(x)) return y;
  return record(a.forward, {x}, std::move(y),
                [a](const Node&, const Tensor& g) { return average_backward(g, a); });
}
Tensor average_backward(const Tensor& g, const Average& a) {
  Tensor dx = image_of(a.layout, a.shape, false, g.scalar_type(), g.device());
  if (g.numel() == 0) fill_values(dx, 0);
  else
    kernels::avg_pool2d_backward(
        g.stream(), {a.shape, image_view(dx), image_view(g), g.scalar_type(), a.adaptive,
                     a.count_include_pad, a.divisor_override});
  if (!recording(g)) return dx;
  return record(a.backward, {g}, std::move(dx),
                [a](const Node&, const Tensor& v) { return average(v, a); });
}

// ---- shapes -------------------------------------------------------------------------------------

// Numbers of which users gave the terms.
using Int128 = __int128;

int64_t extent_of(int64_t in, int64_t k, int64_t stride, int64_t pad, int64_t dilation,
                  bool ceil_mode) {
  const Int128 room = in + Int128{pad} * 2 - Int128{dilation} * (k - 1) - 1;
  const Int128 up = room + (ceil_mode ? stride - 1 : 0);
  if (up < 0) return 0;
  Int128 out = 1 + (up <= INT64_MAX ? static_cast<int64_t>(up) / stride : up / stride);
  // no window starts in the padding on the right
  if (ceil_mode && (out - 1) * stride >= Int128{in} + pad) --out;
  return static_cast<int64_t>(out);  // at most in + 1, as the padding is at most half of the kernel
}

struct Window {
  IntArrayRef kernel, stride, padding, dilation;
  bool ceil_mode;
};

// Whether each window that begins in the padding on the left has an element: those further right
// begin inside. Taps closer than the input is large find one, for at most half of a window is
// padding.
bool reach_inside(int64_t in, int64_t out, int64_t stride, int64_t pad, int64_t dilation) {
  if (dilation <= in) return true;
  for (Int128 o = 0; o < out && o * stride < pad;) {
    // The first tap that is not in the padding on the left.
    const Int128 tap = (dilation - (pad - o * stride) % dilation) % dilation;
    if (tap >= in) return false;
    o += (in - tap - 1) / stride + 1;  // to where that is beyond the input
  }
  return true;
}

Pool2dShape shape_of(const char* op, const Tensor& x, const Window& w) {
  const auto k = pair_of(op, "kernel_size", w.kernel), p = pair_of(op, "padding", w.padding),
             d = pair_of(op, "dilation", w.dilation);
  const auto st = w.stride.empty() ? k : pair_of(op, "stride", w.stride);
  for (size_t i : {0, 1}) {
    RAMET_CHECK(k[i] > 0, op, "kernel_size: got ", k[i], ", expected a positive number");
    RAMET_CHECK(st[i] > 0, op, "stride: got ", st[i], ", expected a positive number");
    RAMET_CHECK(d[i] > 0, op, "dilation: got ", d[i], ", expected a positive number");
    RAMET_CHECK(p[i] >= 0 && p[i] <= (Int128{d[i]} * (k[i] - 1) + 1) / 2, op,
                "pad should be at most half of effective kernel size: got padding ", p[i],
                ", kernel_size ", k[i], " and dilation ", d[i]);
  }
  // What kernels compute with places in the padded image.
  for (int i : {0, 1}) {
    const int64_t pad = p[static_cast<size_t>(i)];
    RAMET_CHECK(pad <= INT64_MAX - x.size(i + 2), op, "padding: got ", pad, " around ", describe(x),
                ", expected places that an int64 holds");
  }
  Pool2dShape s{x.size(0), x.size(1), x.size(2), x.size(3), 0,    0,    k[0],
                k[1],      st[0],     st[1],     p[0],      p[1], d[0], d[1]};
  s.oh = extent_of(s.h, s.kh, s.sh, s.ph, s.dh, w.ceil_mode),
  s.ow = extent_of(s.w, s.kw, s.sw, s.pw, s.dw, w.ceil_mode);
  RAMET_CHECK(s.c > 0 && s.h > 0 && s.w > 0, op, "got ", describe(x),
              ", expected extents above 0 (but for the batch)");
  RAMET_CHECK(s.oh > 0 && s.ow > 0, op, "Given input size: (", s.c, "x", s.h, "x", s.w,
              "). Calculated output size: (", s.c, "x", s.oh, "x", s.ow,
              "). Output size is too small: got ", describe(x));
  RAMET_CHECK(
      reach_inside(s.h, s.oh, s.sh, s.ph, s.dh) && reach_inside(s.w, s.ow, s.sw, s.pw, s.dw), op,
      "a window of padding alone: got ", describe(x), ", kernel_size ", k[0], " x ", k[1],
      ", padding ", p[0], " x ", p[1], " and dilation ", d[0], " x ", d[1]);
  return s;
}

// Calls f on x as 4 dimensions of a type the kernels know, and takes rank and type of the results
// back. `spatial`: 1 or 2.
template <class F> auto on_images(const char* op, int spatial, const Tensor& x, const F& f) {
  check_defined(op, x);
  RAMET_CHECK(x.dim() == spatial + 1 || x.dim() == spatial + 2, op, "Expected ", spatial + 1,
              "D or ", spatial + 2, "D input: got ", describe(x));
  if (x.scalar_type() == kBool)
    throw NotImplementedError(
        detail::join("[", op, "] not implemented for bool: got ", describe(x)));
  const ScalarType wide = compute_type(x.scalar_type());
  const bool batched = x.dim() == spatial + 2;
  Tensor image = batched ? x : x.unsqueeze(0);
  if (spatial == 1) image = image.unsqueeze(2);
  if (wide != x.scalar_type()) image = image.to(wide);
  return f(image, [&, spatial, batched](Tensor y, bool keep_type) {
    if (!keep_type && y.scalar_type() != x.scalar_type()) y = y.to(x.scalar_type());
    if (spatial == 1) y = y.squeeze(2);
    return batched ? y : y.squeeze(0);
  });
}

// One spatial dimension as two.
struct Wide {
  std::array<int64_t, 2> two;
  Wide(const char* op, const char* name, IntArrayRef list, int64_t other) {
    RAMET_CHECK(list.size() == 1, op, name, ": got ", list, ", expected one number");
    two = {other, list[0]};
  }
  operator IntArrayRef() const { return two; }
};

std::tuple<Tensor, Tensor> max_pool_any(const char* op, int spatial, const Tensor& x,
                                        const Window& w, bool with_index) {
  return on_images(op, spatial, x, [&](const Tensor& image, const auto& back) {
    Tensor index;
    Pool2dShape s = shape_of(op, image, w);
    // Taps that no window has in the input, for they lie beyond it in the first one.
    if (Int128{s.dh} * (s.kh - 1) >= s.h + s.ph) s.kh = (s.h + s.ph - 1) / s.dh + 1;
    if (Int128{s.dw} * (s.kw - 1) >= s.w + s.pw) s.kw = (s.w + s.pw - 1) / s.dw + 1;
    const Tensor y = max_pool(image, s, with_index ? &index : nullptr);
    return std::tuple<Tensor, Tensor>(back(y, false), with_index ? back(index, true) : index);
  });
}
std::tuple<Tensor, Tensor> max_pool_line(const char* op, const Tensor& x, IntArrayRef kernel,
                                         IntArrayRef stride, IntArrayRef padding,
                                         IntArrayRef dilation, bool ceil_mode, bool with_index) {
  const Wide k(op, "kernel_size", kernel, 1), s(op, "stride", stride.empty() ? kernel : stride, 1),
      p(op, "padding", padding, 0), d(op, "dilation", dilation, 1);
  return max_pool_any(op, 1, x, {k, s, p, d, ceil_mode}, with_index);
}
Tensor avg_pool_any(const char* op, const char* forward, const char* backward, int spatial,
                    const Tensor& x, const Window& w, bool count_include_pad,
                    std::optional<int64_t> divisor) {
  RAMET_CHECK(!divisor || *divisor != 0, op, "divisor must be not zero: got ", *divisor);
  return on_images(op, spatial, x, [&](const Tensor& image, const auto& back) {
    return back(average(image, {shape_of(op, image, w), false, count_include_pad,
                                divisor.value_or(0), layout_of(image), forward, backward}),
                false);
  });
}
Tensor adaptive_any(const char* op, int spatial, const Tensor& x, std::array<int64_t, 2> out) {
  return on_images(op, spatial, x, [&](const Tensor& image, const auto& back) {
    RAMET_CHECK(out[0] >= 0 && out[1] >= 0, op, "output_size: got [", out[0], ", ", out[1],
                "], expected no negative number");
    RAMET_CHECK(image.size(1) > 0 && image.size(2) > 0 && image.size(3) > 0, op, "got ",
                describe(x), ", expected extents above 0 (but for the batch)");
    RAMET_CHECK(is_floating(x.scalar_type()), op, "not implemented for '", name_of(x.scalar_type()),
                "': got ", describe(x));
    // Kernels find a window's ends by products of the two.
    for (int i : {0, 1})
      checked_mul(op, "output_size by the input's extent", image.size(i + 2) + 1,
                  checked_add(op, "output_size", out[static_cast<size_t>(i)], 1));
    const Pool2dShape s{image.size(0),
                        image.size(1),
                        image.size(2),
                        image.size(3),
                        out[0],
                        out[1],
                        1,
                        1,
                        1,
                        1,
                        0,
                        0,
                        1,
                        1};
    return back(average(image, {s, true, false, 0, layout_of(image), "AdaptiveAvgPool2DBackward0",
                                "AdaptiveAvgPool2DBackwardBackward0"}),
                false);
  });
}

}  // namespace

Tensor max_pool2d(const Tensor& x, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                  IntArrayRef dilation, bool ceil_mode) {
  return std::get<0>(
      max_pool_any("max_pool2d", 2, x, {kernel, stride, padding, dilation, ceil_mode}, false));
}
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& x, IntArrayRef kernel,
                                                   IntArrayRef stride, IntArrayRef padding,
                                                   IntArrayRef dilation, bool ceil_mode) {
  return max_pool_any("max_pool2d_with_indices", 2, x,
                      {kernel, stride, padding, dilation, ceil_mode}, true);
}
Tensor max_pool1d(const Tensor& x, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                  IntArrayRef dilation, bool ceil_mode) {
  return std::get<0>(
      max_pool_line("max_pool1d", x, kernel, stride, padding, dilation, ceil_mode, false));
}
std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& x, IntArrayRef kernel,
                                                   IntArrayRef stride, IntArrayRef padding,
                                                   IntArrayRef dilation, bool ceil_mode) {
  return max_pool_line("max_pool1d_with_indices", x, kernel, stride, padding, dilation, ceil_mode,
                       true);
}
Tensor avg_pool2d(const Tensor& x, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                  bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override) {
  return avg_pool_any("avg_pool2d", "AvgPool2DBackward0", "AvgPool2DBackwardBackward0", 2, x,
                      {kernel, stride, padding, kOne, ceil_mode}, count_include_pad,
                      divisor_override);
}
Tensor avg_pool1d(const Tensor& x, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                  bool ceil_mode, bool count_include_pad) {
  const char* op = "avg_pool1d";
  const Wide k(op, "kernel_size", kernel, 1), s(op, "stride", stride.empty() ? kernel : stride, 1),
      p(op, "padding", padding, 0);
  return avg_pool_any(op, "AvgPool2DBackward0", "AvgPool2DBackwardBackward0", 1, x,
                      {k, s, p, kOne, ceil_mode}, count_include_pad, std::nullopt);
}
Tensor adaptive_avg_pool2d(const Tensor& x, IntArrayRef output_size) {
  return adaptive_any("adaptive_avg_pool2d", 2, x,
                      pair_of("adaptive_avg_pool2d", "output_size", output_size));
}
Tensor adaptive_avg_pool1d(const Tensor& x, IntArrayRef output_size) {
  const char* op = "adaptive_avg_pool1d";
  return adaptive_any(op, 1, x, Wide(op, "output_size", output_size, 1).two);
}

}  // namespace ramet
