// Convolution and its two gradients: three functions, each linear in two of (input, weight,
// result), each other's derivatives.
#include "autograd/ops/conv.h"

#include <algorithm>

#include "autograd/ops/copy.h"
#include "autograd/ops/front/conv_front.h"
#include "autograd/ops/front/image_front.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/view.h"
#include "kernels/image/conv2d.h"
#include "runtime/thread_pool.h"

using ramet::detail::tls;

namespace ramet {

using namespace autograd;

namespace {

using kernels::Conv2dArgs;
using kernels::Conv2dShape;

// Result, gradient of the input, gradient of the weight. Recorded; operands of one dtype: float,
// double or int64.
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dShape& s);
Tensor convolve_input(const Tensor& g, const Tensor& w, const Conv2dShape& s, ImageLayout layout);
Tensor convolve_weight(const Tensor& g, const Tensor& x, const Conv2dShape& s);

Tensor dense(const Tensor& t) { return t.raw_contiguous() ? t : t.contiguous(); }
// Broadcast gradients (of a sum) have strides of 0, which only the slow way reads.
Tensor readable(const Tensor& t) {
  const Tensor look = t.shallow();
  return non_overlapping_and_dense(look) ? look : look.contiguous();
}

template <class Kernel, class Bytes>
void run(const Kernel& kernel, const Bytes& bytes, const Conv2dShape& s, const Tensor& x,
         const Tensor& y, const Tensor& weight, const Tensor& bias) {
  Conv2dArgs a{s,
               image_view(x),
               image_view(y),
               weight.ptr(),
               bias.defined() ? bias.ptr() : nullptr,
               x.scalar_type(),
               nullptr};
  kernels::conv2d_simplify(a);
  Tensor work;
  if (x.device().is_cpu()) {  // those of GPUs take scratch memory, where they need some
    work =
        Tensor(TensorBase::empty(bytes(a.shape, a.dtype, max_parallel_slots()), kByte, x.device()));
    a.workspace = work.ptr();
  }
  kernel(x.stream(), a);
}

// Where the register tile runs on floats its results come channels-last.
ImageLayout result_layout(const Tensor& x) {
  const ImageLayout layout = layout_of(x);
  return layout == ImageLayout::kRows && x.scalar_type() == kFloat ? ImageLayout::kInternal
                                                                   : layout;
}

// ---- in parts: Note [Taps that meet the image] --------------------------------------------------

Tensor result_in_parts(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dShape& s) {
  const NoGradGuard raw;
  const std::vector<ConvParts> parts = conv_parts(s);
  const bool covered =
      parts.size() == 1 && parts[0].row.axis.out == s.oh && parts[0].column.axis.out == s.ow;
  // Windows of an internal layout would settle it.
  const ImageLayout as_x = layout_of(x), layout = covered ? result_layout(x)
                                                  : as_x == ImageLayout::kInternal
                                                      ? ImageLayout::kRows
                                                      : as_x;
  Tensor y = empty_image(layout, s.n, s.co, s.oh, s.ow, x.scalar_type(), x.device());
  if (!covered && bias.defined()) y.copy_(bias.reshape({1, s.co, 1, 1}).expand_as(y));
  else if (!covered) y.zero_();
  const Tensor in = readable(x), b = bias.defined() ? dense(bias) : bias;
  for (const ConvParts& part : parts)
    run(kernels::conv2d_forward, kernels::conv2d_forward_workspace, part.shape(s),
        part.of_input(in), part.of_output(y), dense(part.of_weight(w)), b);
  return y;
}

void input_in_parts(const Tensor& dx, const Tensor& g, const Tensor& w, const Conv2dShape& s) {
  const NoGradGuard raw;
  const std::vector<ConvParts> parts = conv_parts(s);
  const Tensor dy = readable(g);
  const auto one = [&](const ConvParts& part, const Tensor& to) {
    run(kernels::conv2d_backward_input, kernels::conv2d_backward_input_workspace, part.shape(s), to,
        part.of_output(dy), dense(part.of_weight(w)), Tensor());
  };
  const bool covered =
      parts.size() == 1 && parts[0].row.axis.in == s.h && parts[0].column.axis.in == s.w;
  if (covered) return one(parts[0], dx);
  dx.zero_();
  for (const ConvParts& part : parts) {
    const Tensor to = part.of_input(dx);
    if (parts.size() == 1) return one(part, to);
    const Tensor term(TensorBase::empty(to.sizes(), to.scalar_type(), to.device()));
    one(part, term);
    to.add_(term);
  }
}

void weight_in_parts(const Tensor& dw, const Tensor& g, const Tensor& x, const Conv2dShape& s) {
  const NoGradGuard raw;
  const Tensor in = readable(x), dy = readable(g);
  dw.zero_();
  for (const ConvParts& part : conv_parts(s)) {
    const Tensor to = part.of_weight(dw),
                 taps(TensorBase::empty(to.sizes(), to.scalar_type(), to.device()));
    run(kernels::conv2d_backward_weight, kernels::conv2d_backward_weight_workspace, part.shape(s),
        part.of_input(in), part.of_output(dy), taps, Tensor());
    to.copy_(taps);
  }
}

// ---- recorded -----------------------------------------------------------------------------------

// Gradients of weight and bias by one pass over the images.
void weight_and_bias(const Node& self, const Tensor& g, const Tensor& x, const Conv2dShape& s,
                     Tensor& dw, Tensor& db) {
  const ScalarType t = x.scalar_type();
  const int64_t sizes[] = {s.co, s.ci / s.groups, s.kh, s.kw};
  dw = self.output_for(1, sizes, t, x.device());
  if (self.edge_count > 2 && self.needs(2)) db = self.output_for(2, s.co, t, x.device());
  run(kernels::conv2d_backward_weight, kernels::conv2d_backward_weight_workspace, s, readable(x),
      readable(g), dw, db);
}

std::array<Tensor, 3> gradients(const Node& self, const Tensor& g, const Saved& x, const Saved& w,
                                const Conv2dShape& s, ImageLayout layout) {
  std::array<Tensor, 3> r;
  if (self.needs(0)) r[0] = convolve_input(g, w.get(self), s, layout);
  const bool bias = self.edge_count > 2 && self.needs(2);
  if (!self.needs(1)) {
    if (bias) r[2] = g.sum({0, 2, 3});
  } else if (tls.grad_mode || !is_near(s)) {
    r[1] = convolve_weight(g, x.get(self), s);
    if (bias) r[2] = g.sum({0, 2, 3});
  } else {
    weight_and_bias(self, g, x.get(self), s, r[1], r[2]);
  }
  return r;
}

Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dShape& s) {
  Tensor y;
  if (RAMET_LIKELY(is_near(s))) {
    y = empty_image(result_layout(x), s.n, s.co, s.oh, s.ow, x.scalar_type(), x.device());
    run(kernels::conv2d_forward, kernels::conv2d_forward_workspace, s, readable(x), y, dense(w),
        bias.defined() ? dense(bias) : bias);
  } else {
    y = result_in_parts(x, w, bias, s);
  }
  if (!recording(x, w, bias)) return y;
  const auto layout = layout_of(x);
  if (!bias.defined())
    return record("ConvolutionBackward0", {x, w}, std::move(y),
                  [sx = save_if(wants_grad(w), x), sw = save_if(wants_grad(x), w), s, layout](
                      const Node& self, const Tensor& g) {
                    auto r = gradients(self, g, sx, sw, s, layout);
                    return std::array<Tensor, 2>{std::move(r[0]), std::move(r[1])};
                  });
  return record(
      "ConvolutionBackward0", {x, w, bias}, std::move(y),
      [sx = save_if(wants_grad(w), x), sw = save_if(wants_grad(x), w), s, layout](
          const Node& self, const Tensor& g) { return gradients(self, g, sx, sw, s, layout); });
}

Tensor convolve_input(const Tensor& g, const Tensor& w, const Conv2dShape& s, ImageLayout layout) {
  if (layout == ImageLayout::kRows && layout_of(g) == ImageLayout::kInternal)
    layout = ImageLayout::kInternal;
  Tensor dx = empty_image(layout, s.n, s.ci, s.h, s.w, g.scalar_type(), g.device());
  if (RAMET_LIKELY(is_near(s)))
    run(kernels::conv2d_backward_input, kernels::conv2d_backward_input_workspace, s, dx,
        readable(g), dense(w), Tensor());
  else input_in_parts(dx, g, w, s);
  if (!recording(g, w)) return dx;
  return record("ConvolutionBackwardInputBackward0", {g, w}, std::move(dx),
                [sg = save_if(wants_grad(w), g), sw = save_if(wants_grad(g), w), s](
                    const Node& self, const Tensor& v) {
                  return std::array<Tensor, 2>{
                      self.needs(0) ? convolve(v, sw.get(self), Tensor(), s) : Tensor(),
                      self.needs(1) ? convolve_weight(sg.get(self), v, s) : Tensor()};
                });
}

Tensor convolve_weight(const Tensor& g, const Tensor& x, const Conv2dShape& s) {
  Tensor dw(TensorBase::empty({s.co, s.ci / s.groups, s.kh, s.kw}, g.scalar_type(), g.device()));
  if (RAMET_LIKELY(is_near(s)))
    run(kernels::conv2d_backward_weight, kernels::conv2d_backward_weight_workspace, s, readable(x),
        readable(g), dw, Tensor());
  else weight_in_parts(dw, g, x, s);
  if (!recording(g, x)) return dw;
  return record("ConvolutionBackwardWeightBackward0", {g, x}, std::move(dw),
                [sg = save_if(wants_grad(x), g), sx = save_if(wants_grad(g), x), s,
                 layout = layout_of(x)](const Node& self, const Tensor& v) {
                  return std::array<Tensor, 2>{
                      self.needs(0) ? convolve(sx.get(self), v, Tensor(), s) : Tensor(),
                      self.needs(1) ? convolve_input(sg.get(self), v, s, layout) : Tensor()};
                });
}

void check_operand(const char* op, const char* name, const Tensor& t, const Tensor& x) {
  check_same_device(op, x, t, name);
  RAMET_CHECK(t.scalar_type() == x.scalar_type(), op, name, ": got ", describe(t),
              ", expected the dtype of input ", describe(x));
}

// Numbers of which users gave the factors.
using Int128 = __int128;
std::string text_of(Int128 x) {
  if (x > INT64_MAX) return "more than " + std::to_string(INT64_MAX);
  return std::to_string(static_cast<int64_t>(x));
}

// Zeros before and after; none: "same".
using Padding = std::optional<std::array<int64_t, 2>>;

Tensor convolution(const char* op, const Tensor& x, const Tensor& w, const Tensor& bias,
                   std::array<int64_t, 2> stride, const Padding& padding,
                   std::array<int64_t, 2> dilation, int64_t groups) {
  RAMET_CHECK(groups > 0, op, "groups: got ", groups, ", expected a positive number");
  for (size_t i : {0, 1}) {
    RAMET_CHECK(stride[i] > 0, op, "stride: got ", stride[i], ", expected a positive number");
    if (padding)
      RAMET_CHECK((*padding)[i] >= 0, op, "padding: got ", (*padding)[i],
                  ", expected no negative number");
    RAMET_CHECK(dilation[i] > 0, op, "dilation: got ", dilation[i], ", expected a positive number");
  }
  check_operand(op, "weight", w, x);
  Tensor cut;  // a part of the weight, where that is all that matters
  Conv2dShape s{x.size(0), x.size(1), x.size(2), x.size(3), w.size(0),   0,           0,     0, 0,
                stride[0], stride[1], 0,         0,         dilation[0], dilation[1], groups};
  RAMET_CHECK(s.ci > 0 && s.co > 0 && w.size(2) > 0 && w.size(3) > 0 && s.h > 0 && s.w > 0, op,
              "got input ", describe(x), " and weight ", describe(w),
              ", expected extents above 0 (of the input, all but the batch)");
  RAMET_CHECK((groups == 1 || (s.co % groups == 0 && s.ci % groups == 0)) &&
                  w.size(1) == (groups == 1 ? s.ci : s.ci / groups),
              op, "Given groups=", groups, ", weight of size ", w.sizes(),
              ", expected input to have ", text_of(Int128{w.size(1)} * groups),
              " channels and groups to divide ", s.co, ": got input ", describe(x));
  if (bias.defined()) {
    check_operand(op, "bias", bias, x);
    RAMET_CHECK(bias.dim() == 1 && bias.size(0) == s.co, op, "bias: got ", describe(bias),
                ", expected [", s.co, "]");
  }
  Int128 padded[2], filter[2];
  for (int d : {0, 1}) {
    const auto i = static_cast<size_t>(d);
    const int64_t in = x.size(d + 2), k = w.size(d + 2), step = dilation[i];
    const Int128 between = Int128{step} * (k - 1),
                 both = padding ? Int128{(*padding)[i]} * 2 : between;
    padded[d] = in + both, filter[d] = between + 1;
    // "same" of more than an int64: pairs of taps that meet no pixel go, one at either end.
    int64_t left_out = 0;
    if (both / 2 > INT64_MAX) {
      left_out = static_cast<int64_t>(std::min<Int128>((both / 2 - in) / step + 1, (k - 1) / 2));
      cut = (cut.defined() ? cut : w).narrow(d + 2, left_out, k - 2 * left_out);
    }
    (d ? s.kw : s.kh) = k - 2 * left_out;
    // With "same" the odd pixel goes right and below.
    (d ? s.pw : s.ph) = static_cast<int64_t>(both / 2 - Int128{step} * left_out);
  }
  RAMET_CHECK(padded[0] >= filter[0] && padded[1] >= filter[1], op,
              "Calculated padded input size per channel: (", text_of(padded[0]), " x ",
              text_of(padded[1]), "). Kernel size: (", text_of(filter[0]), " x ",
              text_of(filter[1]),
              "). Kernel size can't be greater than actual input size: got input ", describe(x),
              " and weight ", describe(w));
  const auto extent = [](Int128 room, int64_t step) {
    return Int128{1} + (room <= INT64_MAX ? static_cast<int64_t>(room) / step : room / step);
  };
  const Int128 oh = extent(padded[0] - filter[0], s.sh), ow = extent(padded[1] - filter[1], s.sw);
  RAMET_CHECK(oh <= INT64_MAX && ow <= INT64_MAX, op, "got a result of ", text_of(oh), " x ",
              text_of(ow), ", expected extents that an int64 holds: got input ", describe(x),
              " and padding [", s.ph, ", ", s.pw, "]");
  s.oh = static_cast<int64_t>(oh), s.ow = static_cast<int64_t>(ow);
  const ScalarType t = x.scalar_type();
  const Tensor& taps = RAMET_UNLIKELY(cut.defined()) ? cut : w;
  if (t == kFloat || t == kDouble || t == kLong) return convolve(x, taps, bias, s);
  if (t == kBool)
    throw NotImplementedError(
        detail::join("[", op, "] not implemented for bool: got ", describe(x)));
  const ScalarType wide = compute_type(t);
  return convolve(x.to(wide), taps.to(wide), bias.defined() ? bias.to(wide) : bias, s).to(t);
}

// Any rank the public functions accept, as 4 dimensions and back. `dimensions`: spatial ones, 1
// or 2.
template <class Padding>
Tensor of_rank(int dimensions, const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias,
               IntArrayRef stride, IntArrayRef dilation, const Padding& padding) {
  const char* op = dimensions == 1 ? "conv1d" : "conv2d";
  check_defined(op, x);
  check_defined(op, w);
  RAMET_CHECK(w.dim() == dimensions + 2, op, "weight: got ", describe(w), ", expected ",
              dimensions + 2, " dimensions");
  RAMET_CHECK(x.dim() == dimensions + 1 || x.dim() == dimensions + 2, op, "Expected ",
              dimensions + 1, "D (unbatched) or ", dimensions + 2,
              "D (batched) input, but got input ", describe(x));
  const auto numbers = [&](const char* name, IntArrayRef list,
                           int64_t other) -> std::array<int64_t, 2> {
    if (dimensions == 2) return pair_of(op, name, list);
    RAMET_CHECK(list.size() == 1, op, name, ": got ", list, ", expected one number");
    return {other, list[0]};
  };
  const bool batched = x.dim() == dimensions + 2;
  const Tensor with_batch = batched ? x : x.unsqueeze(0);
  const Tensor image = dimensions == 2 ? with_batch : with_batch.unsqueeze(2),
               filter = dimensions == 2 ? w : w.unsqueeze(2);
  const auto st = numbers("stride", stride, 1), di = numbers("dilation", dilation, 1);
  const Tensor b = bias ? *bias : Tensor();
  Tensor y = padding(op, image, filter, b, st, di, numbers);
  if (dimensions == 1) y = y.squeeze(2);
  return batched ? y : y.squeeze(0);
}

Tensor with_numbers(int dimensions, const Tensor& x, const Tensor& w,
                    const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                    IntArrayRef dilation, int64_t groups) {
  return of_rank(dimensions, x, w, bias, stride, dilation,
                 [&](const char* op, const Tensor& image, const Tensor& filter, const Tensor& b,
                     auto st, auto di, const auto& numbers) {
                   return convolution(op, image, filter, b, st, numbers("padding", padding, 0), di,
                                      groups);
                 });
}

}  // namespace

namespace detail {

Tensor conv_named(int dimensions, const Tensor& x, const Tensor& w,
                  const std::optional<Tensor>& bias, IntArrayRef stride, const std::string& padding,
                  IntArrayRef dilation, int64_t groups) {
  return of_rank(
      dimensions, x, w, bias, stride, dilation,
      [&](const char* op, const Tensor& image, const Tensor& filter, const Tensor& b, auto st,
          auto di, const auto&) {
        RAMET_CHECK(padding == "valid" || padding == "same", op, "padding: got \"", padding,
                    "\", expected \"valid\" or \"same\"");
        if (padding == "valid")
          return convolution(op, image, filter, b, st, std::array<int64_t, 2>{}, di, groups);
        RAMET_CHECK(st[0] == 1 && st[1] == 1, op,
                    "padding='same' is not supported for strided convolutions: got stride [", st[0],
                    ", ", st[1], "]");
        return convolution(op, image, filter, b, st, std::nullopt, di, groups);
      });
}

}  // namespace detail

Tensor conv2d(const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias,
              IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return with_numbers(2, x, w, bias, stride, padding, dilation, groups);
}
Tensor conv1d(const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias,
              IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return with_numbers(1, x, w, bias, stride, padding, dilation, groups);
}

}  // namespace ramet
