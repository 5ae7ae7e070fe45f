#include "autograd/ops/layers/pool.h"

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/front/pool_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/shape/view.h"
#include "kernels/image/pool2d.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

using kernels::Pool2dShape;

constexpr int64_t kOne = 1;  // a list borrows its number

kernels::ImageView no_image() { return {nullptr, 0, 0, 0, 0}; }
Tensor image_of(ImageLayout layout, const Pool2dShape& s, bool output, ScalarType t, Device d) {
  return empty_image(layout, s.n, s.c, output ? s.oh : s.h, output ? s.ow : s.w, t, d);
}

void add_window(Arguments& to, const Pool2dShape& s) {
  to("kernel_size", std::vector<int64_t>{s.kh, s.kw});
  to("stride", std::vector<int64_t>{s.sh, s.sw});
  to("padding", std::vector<int64_t>{s.ph, s.pw});
  to("dilation", std::vector<int64_t>{s.dh, s.dw});
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

// x: 4 dimensions; float, double or int64. With `index`, also stores the positions there.
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
                },
                [&](Arguments& to) { add_window(to, s); });
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
  // An adaptive pool's result may have any number of rows without columns.
  if (y.numel() > 0)
    kernels::avg_pool2d_forward(x.stream(), {a.shape, image_view(x), image_view(y), x.scalar_type(),
                                             a.adaptive, a.count_include_pad, a.divisor_override});
  if (!recording(x)) return y;
  return record(
      a.forward, {x}, std::move(y),
      [a](const Node&, const Tensor& g) { return average_backward(g, a); },
      [&](Arguments& to) {
        if (a.adaptive) return to("output_size", std::vector<int64_t>{a.shape.oh, a.shape.ow});
        add_window(to, a.shape);
        to("count_include_pad", a.count_include_pad), to("divisor_override", a.divisor_override);
      });
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

Pool2dShape shape_of(const char* op, const Tensor& x, const PoolWindow& w) {
  const auto [h, v] = pool_axes<2>(op, x, w);
  return {x.size(0), x.size(1), h.in,     v.in,  h.out, v.out,      h.kernel,
          v.kernel,  h.stride,  v.stride, h.pad, v.pad, h.dilation, v.dilation};
}

// For sums and products of numbers that users choose freely.
using Int128 = __int128;

// Calls f on x, with 4 dimensions and in a dtype that kernels support. Gives the results x's rank
// and dtype again. `spatial`: 1 or 2.
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

// A number for one spatial dimension, as two numbers.
struct Wide {
  std::array<int64_t, 2> two;
  Wide(const char* op, const char* name, IntArrayRef list, int64_t other) {
    RAMET_CHECK(list.size() == 1, op, name, ": got ", list, ", expected one number");
    two = {other, list[0]};
  }
  operator IntArrayRef() const { return two; }
};

std::tuple<Tensor, Tensor> max_pool_any(const char* op, int spatial, const Tensor& x,
                                        const PoolWindow& w, bool with_index) {
  return on_images(op, spatial, x, [&](const Tensor& image, const auto& back) {
    Tensor index;
    Pool2dShape s = shape_of(op, image, w);
    // Drop taps that meet the input in no window: they lie after it even in the first window.
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
                    const Tensor& x, const PoolWindow& w, bool count_include_pad,
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
    // Kernels find a window's ends by products of these two numbers.
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

#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/pool.inc"

}  // namespace ramet
