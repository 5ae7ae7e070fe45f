// Convolution and its two gradients: three functions, each linear in two of (input, weight,
// result), each other's derivatives.
#include "autograd/ops/conv.h"

#include "autograd/ops/copy.h"
#include "autograd/ops/image_front.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/view.h"
#include "kernels/conv2d.h"
#include "runtime/thread_pool.h"

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
  } else if (tls.grad_mode) {
    r[1] = convolve_weight(g, x.get(self), s);
    if (bias) r[2] = g.sum({0, 2, 3});
  } else {
    weight_and_bias(self, g, x.get(self), s, r[1], r[2]);
  }
  return r;
}

Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dShape& s) {
  Tensor y = empty_image(result_layout(x), s.n, s.co, s.oh, s.ow, x.scalar_type(), x.device());
  run(kernels::conv2d_forward, kernels::conv2d_forward_workspace, s, readable(x), y, dense(w),
      bias.defined() ? dense(bias) : bias);
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
  run(kernels::conv2d_backward_input, kernels::conv2d_backward_input_workspace, s, dx, readable(g),
      dense(w), Tensor());
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
  run(kernels::conv2d_backward_weight, kernels::conv2d_backward_weight_workspace, s, readable(x),
      readable(g), dw, Tensor());
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

Tensor convolution(const char* op, const Tensor& x, const Tensor& w, const Tensor& bias,
                   std::array<int64_t, 2> stride, std::array<int64_t, 2> padding,
                   std::array<int64_t, 2> dilation, int64_t groups) {
  RAMET_CHECK(groups > 0, op, "groups: got ", groups, ", expected a positive number");
  for (int d : {0, 1}) {
    const auto i = static_cast<size_t>(d);
    RAMET_CHECK(stride[i] > 0, op, "stride: got ", stride[i], ", expected a positive number");
    RAMET_CHECK(padding[i] >= 0, op, "padding: got ", padding[i], ", expected no negative number");
    RAMET_CHECK(dilation[i] > 0, op, "dilation: got ", dilation[i], ", expected a positive number");
  }
  check_operand(op, "weight", w, x);
  Conv2dShape s{x.size(0),  x.size(1),   x.size(2),   x.size(3), w.size(0), 0,
                0,          w.size(2),   w.size(3),   stride[0], stride[1], padding[0],
                padding[1], dilation[0], dilation[1], groups};
  RAMET_CHECK(s.ci > 0 && s.co > 0 && s.kh > 0 && s.kw > 0 && s.h > 0 && s.w > 0, op, "got input ",
              describe(x), " and weight ", describe(w),
              ", expected extents above 0 (of the input, all but the batch)");
  RAMET_CHECK(s.co % groups == 0 && w.size(1) * groups == s.ci, op, "Given groups=", groups,
              ", weight of size ", w.sizes(), ", expected input to have ", w.size(1) * groups,
              " channels and groups to divide ", s.co, ": got input ", describe(x));
  if (bias.defined()) {
    check_operand(op, "bias", bias, x);
    RAMET_CHECK(bias.dim() == 1 && bias.size(0) == s.co, op, "bias: got ", describe(bias),
                ", expected [", s.co, "]");
  }
  const int64_t room_h = s.h + 2 * s.ph - s.dh * (s.kh - 1) - 1,
                room_w = s.w + 2 * s.pw - s.dw * (s.kw - 1) - 1;
  RAMET_CHECK(room_h >= 0 && room_w >= 0, op, "Calculated padded input size per channel: (",
              s.h + 2 * s.ph, " x ", s.w + 2 * s.pw, "). Kernel size: (", s.dh * (s.kh - 1) + 1,
              " x ", s.dw * (s.kw - 1) + 1,
              "). Kernel size can't be greater than actual input size: got input ", describe(x),
              " and weight ", describe(w));
  s.oh = room_h / s.sh + 1, s.ow = room_w / s.sw + 1;
  const ScalarType t = x.scalar_type();
  if (t == kFloat || t == kDouble || t == kLong) return convolve(x, w, bias, s);
  if (t == kBool)
    throw NotImplementedError(
        detail::join("[", op, "] not implemented for bool: got ", describe(x)));
  const ScalarType wide = compute_type(t);
  return convolve(x.to(wide), w.to(wide), bias.defined() ? bias.to(wide) : bias, s).to(t);
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
        if (padding == "valid") return convolution(op, image, filter, b, st, {0, 0}, di, groups);
        RAMET_CHECK(st[0] == 1 && st[1] == 1, op,
                    "padding='same' is not supported for strided convolutions: got stride [", st[0],
                    ", ", st[1], "]");
        const int64_t th = di[0] * (filter.size(2) - 1), tw = di[1] * (filter.size(3) - 1);
        // An odd total: padded by the larger half on every side, then cut at the top and on the
        // left.
        const Tensor y =
            convolution(op, image, filter, b, st, {(th + 1) / 2, (tw + 1) / 2}, di, groups);
        const Tensor lower = th % 2 ? y.narrow(2, 1, image.size(2)) : y;
        return tw % 2 ? lower.narrow(3, 1, image.size(3)) : lower;
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
