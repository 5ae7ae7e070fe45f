// The convolutions' histories, the same for images and volumes.
#include "autograd/ops/front/convolve_internal.h"

#include "autograd/ops/front/conv_internal.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"

using ramet::detail::tls;

namespace ramet {
namespace autograd {

namespace {

template <class Shape>
Tensor result(const Tensor& x, const Tensor& w, const Tensor& bias, const Shape& s);
template <class Shape>
Tensor of_input(const Tensor& g, const Tensor& w, const Shape& s, ImageLayout layout);
template <class Shape> Tensor of_weight(const Tensor& g, const Tensor& x, const Shape& s);

// The bias's gradient: the sum of g over all dimensions but dimension 1, the channels.
Tensor of_bias(const Tensor& g) { return g.dim() == 4 ? g.sum({0, 2, 3}) : g.sum({0, 2, 3, 4}); }

// May one pass compute both gradients? Only where neither is recorded.
bool one_pass(const Conv2dShape& s) { return !tls.grad_mode && is_near(s); }
bool one_pass(const VolumeShape&) { return false; }
void raw_weight_and_bias(const Node&, const Tensor&, const Tensor&, const VolumeShape&, Tensor&,
                         Tensor&) {}

void add_numbers(Arguments& to, const Conv2dShape& s, bool transposed) {
  to("stride", std::vector<int64_t>{s.sh, s.sw});
  to("padding", std::vector<int64_t>{s.ph, s.pw});
  to("dilation", std::vector<int64_t>{s.dh, s.dw});
  to("groups", s.groups);
  to("transposed", transposed);
}
// Those of volumes are not told.
void add_numbers(Arguments&, const VolumeShape&, bool) {}

// Does the kernel add the bias of a transposed convolution before it rounds?
bool adds_bias(const Tensor& x, const Conv2dShape& s) {
  return x.scalar_type() == kBFloat16 && is_near(s);
}
bool adds_bias(const Tensor&, const VolumeShape&) { return false; }
Tensor input_with_bias(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dShape& s) {
  return raw_input(x, w, s, result_layout(x), bias);
}
Tensor input_with_bias(const Tensor& x, const Tensor& w, const Tensor&, const VolumeShape& s) {
  return raw_input(x, w, s, result_layout(x));
}

template <class Shape>
std::array<Tensor, 3> gradients(const Node& self, const Tensor& g, const Saved& x, const Saved& w,
                                const Shape& s, ImageLayout layout) {
  std::array<Tensor, 3> r;
  if (self.needs(0)) r[0] = of_input(g, w.get(self), s, layout);
  const bool bias = self.edge_count > 2 && self.needs(2);
  if (self.needs(1) && one_pass(s)) {
    raw_weight_and_bias(self, g, x.get(self), s, r[1], r[2]);
    return r;
  }
  if (self.needs(1)) r[1] = of_weight(g, x.get(self), s);
  if (bias) r[2] = of_bias(g);
  return r;
}

template <class Shape>
Tensor result(const Tensor& x, const Tensor& w, const Tensor& bias, const Shape& s) {
  Tensor y = raw_result(x, w, bias, s, result_layout(x));
  if (!recording(x, w, bias)) return y;
  const auto layout = layout_of(x);
  if (!bias.defined())
    return record(
        "ConvolutionBackward0", {x, w}, std::move(y),
        [sx = save_if(wants_grad(w), x), sw = save_if(wants_grad(x), w), s, layout](
            const Node& self, const Tensor& g) {
          auto r = gradients(self, g, sx, sw, s, layout);
          return std::array<Tensor, 2>{std::move(r[0]), std::move(r[1])};
        },
        [&](Arguments& to) { add_numbers(to, s, false); });
  return record(
      "ConvolutionBackward0", {x, w, bias}, std::move(y),
      [sx = save_if(wants_grad(w), x), sw = save_if(wants_grad(x), w), s, layout](
          const Node& self, const Tensor& g) { return gradients(self, g, sx, sw, s, layout); },
      [&](Arguments& to) { add_numbers(to, s, false); });
}

// x's `layout`; but internal, as g's is, where x is row-major.
ImageLayout layout_for(const Tensor& g, ImageLayout layout) {
  return layout == ImageLayout::kRows && layout_of(g) == ImageLayout::kInternal
             ? ImageLayout::kInternal
             : layout;
}

template <class Shape>
Tensor of_input(const Tensor& g, const Tensor& w, const Shape& s, ImageLayout layout) {
  Tensor dx = raw_input(g, w, s, layout_for(g, layout));
  if (!recording(g, w)) return dx;
  return record("ConvolutionBackwardInputBackward0", {g, w}, std::move(dx),
                [sg = save_if(wants_grad(w), g), sw = save_if(wants_grad(g), w), s](
                    const Node& self, const Tensor& v) {
                  return std::array<Tensor, 2>{
                      self.needs(0) ? result(v, sw.get(self), Tensor(), s) : Tensor(),
                      self.needs(1) ? of_weight(sg.get(self), v, s) : Tensor()};
                });
}

template <class Shape> Tensor of_weight(const Tensor& g, const Tensor& x, const Shape& s) {
  Tensor dw = raw_weight(g, x, s);
  if (!recording(g, x)) return dw;
  return record("ConvolutionBackwardWeightBackward0", {g, x}, std::move(dw),
                [sg = save_if(wants_grad(x), g), sx = save_if(wants_grad(g), x), s,
                 layout = layout_of(x)](const Node& self, const Tensor& v) {
                  return std::array<Tensor, 2>{
                      self.needs(0) ? result(sx.get(self), v, Tensor(), s) : Tensor(),
                      self.needs(1) ? of_input(sg.get(self), v, s, layout) : Tensor()};
                });
}

template <class Shape>
Tensor transposed(const Tensor& x, const Tensor& w, const Tensor& bias, const Shape& s) {
  const bool fused = adds_bias(x, s);
  Tensor y = input_with_bias(x, w, fused ? bias : Tensor(), s);
  if (bias.defined() && !fused) {
    const NoGradGuard raw;
    std::vector<int64_t> sizes(static_cast<size_t>(y.dim()), 1);
    sizes[1] = bias.numel();
    y.add_(bias.reshape(sizes));
  }
  if (!recording(x, w, bias)) return y;
  const auto of_operands = [sx = save_if(wants_grad(w), x), sw = save_if(wants_grad(x), w), s](
                               const Node& self, const Tensor& g) {
    return std::array<Tensor, 2>{self.needs(0) ? result(g, sw.get(self), Tensor(), s) : Tensor(),
                                 self.needs(1) ? of_weight(sx.get(self), g, s) : Tensor()};
  };
  const auto numbers = [&](Arguments& to) { add_numbers(to, s, true); };
  if (!bias.defined())
    return record("ConvolutionBackward0", {x, w}, std::move(y), of_operands, numbers);
  return record(
      "ConvolutionBackward0", {x, w, bias}, std::move(y),
      [of_operands](const Node& self, const Tensor& g) {
        auto [dx, dw] = of_operands(self, g);
        return std::array<Tensor, 3>{std::move(dx), std::move(dw),
                                     self.needs(2) ? of_bias(g) : Tensor()};
      },
      numbers);
}

}  // namespace

Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dShape& s) {
  return result(x, w, bias, s);
}
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& bias, const VolumeShape& s) {
  return result(x, w, bias, s);
}
Tensor convolve_transposed(const Tensor& g, const Tensor& w, const Tensor& bias,
                           const Conv2dShape& s) {
  return transposed(g, w, bias, s);
}
Tensor convolve_transposed(const Tensor& g, const Tensor& w, const Tensor& bias,
                           const VolumeShape& s) {
  return transposed(g, w, bias, s);
}

}  // namespace autograd
}  // namespace ramet
