// Convolutions of images and their gradients, without history: in one call of a kernel, or in
// parts.
#include "autograd/ops/front/conv_internal.h"
#include "autograd/ops/front/convolve_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/shape/view.h"
#include "runtime/base/thread_pool.h"

namespace ramet {
namespace autograd {

namespace {

using kernels::Conv2dArgs;

Tensor dense(const Tensor& t) { return t.raw_contiguous() ? t : t.contiguous(); }
// Broadcast gradients (of a sum) have strides of 0, which only the slow path reads.
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
  if (x.device().is_cpu()) {  // GPUs take scratch memory where their kernels need it
    work = Tensor(TensorBase::empty(bytes(a, max_parallel_slots()), kByte, x.device()));
    a.workspace = work.ptr();
  }
  kernel(x.stream(), a);
}

// ---- in parts: Note [Taps that meet the image] --------------------------------------------------

Tensor result_in_parts(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dShape& s,
                       ImageLayout layout) {
  const NoGradGuard raw;
  const std::vector<ConvParts> parts = conv_parts(s);
  const bool covered =
      parts.size() == 1 && parts[0].row.axis.out == s.oh && parts[0].column.axis.out == s.ow;
  // A window of a tensor with internal layout would settle the tensor.
  if (!covered && layout == ImageLayout::kInternal) layout = ImageLayout::kRows;
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

}  // namespace

// Where the register tile runs on floats or pairs, results are channels-last.
ImageLayout result_layout(const Tensor& x) {
  const ImageLayout layout = layout_of(x);
  const bool tiles = x.scalar_type() == kFloat || x.scalar_type() == kBFloat16;
  return layout == ImageLayout::kRows && tiles ? ImageLayout::kInternal : layout;
}

Tensor raw_result(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dShape& s,
                  ImageLayout layout) {
  if (RAMET_UNLIKELY(!is_near(s))) return result_in_parts(x, w, bias, s, layout);
  Tensor y = empty_image(layout, s.n, s.co, s.oh, s.ow, x.scalar_type(), x.device());
  run(kernels::conv2d_forward, kernels::conv2d_forward_workspace, s, readable(x), y, dense(w),
      bias.defined() ? dense(bias) : bias);
  return y;
}

Tensor raw_input(const Tensor& g, const Tensor& w, const Conv2dShape& s, ImageLayout layout,
                 const Tensor& bias) {
  Tensor dx = empty_image(layout, s.n, s.ci, s.h, s.w, g.scalar_type(), g.device());
  if (RAMET_LIKELY(is_near(s)))
    run(kernels::conv2d_backward_input, kernels::conv2d_backward_input_workspace, s, dx,
        readable(g), dense(w), bias.defined() ? dense(bias) : bias);
  else input_in_parts(dx, g, w, s);
  return dx;
}

Tensor raw_weight(const Tensor& g, const Tensor& x, const Conv2dShape& s) {
  Tensor dw(TensorBase::empty({s.co, s.ci / s.groups, s.kh, s.kw}, g.scalar_type(), g.device()));
  if (RAMET_LIKELY(is_near(s)))
    run(kernels::conv2d_backward_weight, kernels::conv2d_backward_weight_workspace, s, readable(x),
        readable(g), dw, Tensor());
  else weight_in_parts(dw, g, x, s);
  return dw;
}

void raw_weight_and_bias(const Node& self, const Tensor& g, const Tensor& x, const Conv2dShape& s,
                         Tensor& dw, Tensor& db) {
  const ScalarType t = x.scalar_type();
  const int64_t sizes[] = {s.co, s.ci / s.groups, s.kh, s.kw};
  dw = self.output_for(1, sizes, t, x.device());
  if (self.edge_count > 2 && self.needs(2)) db = self.output_for(2, s.co, t, x.device());
  run(kernels::conv2d_backward_weight, kernels::conv2d_backward_weight_workspace, s, readable(x),
      readable(g), dw, db);
}

}  // namespace autograd
}  // namespace ramet
