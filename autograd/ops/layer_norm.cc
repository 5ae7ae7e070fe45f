#include "autograd/ops/layer_norm.h"

#include "autograd/ops/common.h"
#include "autograd/ops/composed.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/view.h"
#include "kernels/layer_norm.h"
#include "runtime/thread_pool.h"

namespace ramet {

using namespace autograd;

namespace {

struct Shape {
  int64_t rows, cols;
  double eps;
};

Tensor bytes(int64_t n, Device device) {
  return n ? Tensor(TensorBase::empty(n, kByte, device)) : Tensor();
}
void* pointer(const Tensor& t) { return t.defined() ? t.ptr() : nullptr; }
Tensor dense(const Tensor& t) { return t.defined() ? t.shallow().contiguous() : t; }

// x as rows, normalised; differentiable.
Tensor normalised(const Tensor& x, const Shape& s) {
  const Tensor rows = x.reshape({s.rows, s.cols}), d = rows.sub(rows.mean(1, true));
  return d.mul(d.square().mean(1, true).add(s.eps).rsqrt());
}
// rstd (g w - mean(g w) - h mean(g w h)): the fused dx with operations.
Tensor composed_dx(const Tensor& g, const Tensor& x, const Tensor& w, const Shape& s) {
  const Tensor rows = x.reshape({s.rows, s.cols}), d = rows.sub(rows.mean(1, true)),
               rstd = d.square().mean(1, true).add(s.eps).rsqrt();
  const Tensor h = d.mul(rstd), gr = g.reshape({s.rows, s.cols}),
               gw = w.defined() ? gr.mul(w.reshape({s.cols})) : gr;
  return rstd.mul(gw.sub(gw.mean(1, true)).sub(h.mul(gw.mul(h).mean(1, true)))).reshape(x.sizes());
}
Tensor composed_dw(const Tensor& g, const Tensor& x, const Shape& s, IntArrayRef shape) {
  return g.reshape({s.rows, s.cols}).mul(normalised(x, s)).sum(0).reshape(shape);
}

std::array<Tensor, 3> pick3(std::vector<Tensor> t) {
  return {std::move(t[0]), std::move(t[1]), std::move(t[2])};
}

// All three gradients from one pass; each is a recorded operation of its own.
std::array<Tensor, 3> layer_norm_backward(const Node& self, const Tensor& g, const Tensor& x,
                                          const Tensor& w, const Tensor& mean, const Tensor& rstd,
                                          const Shape& s, const std::vector<int64_t>& normalized) {
  const ScalarType t = x.scalar_type();
  const Tensor gd = dense(g), xd = dense(x), wd = dense(w);
  std::array<Tensor, 3> r;
  if (self.needs(0)) r[0] = Tensor(TensorBase::empty(x.sizes(), t, x.device()));
  for (int i : {1, 2})
    if (self.needs(i))
      r[static_cast<size_t>(i)] = Tensor(TensorBase::empty(normalized, t, x.device()));
  const Tensor workspace = bytes(
      kernels::layer_norm_backward_workspace(t, s.rows, s.cols, max_parallel_slots()), x.device());
  kernels::layer_norm_backward(
      x.stream(), {xd.ptr(), pointer(wd), gd.ptr(), mean.ptr(), rstd.ptr(), pointer(r[0]),
                   pointer(r[1]), pointer(r[2]), pointer(workspace), s.rows, s.cols, t});
  const bool again = recording(g, x, w);
  if (!again) return r;
  if (r[0].defined()) {
    r[0] = record(
        "LayerNormBackwardDataBackward0", {g, x, w}, std::move(r[0]),
        [s, sg = save(g), sx = save(x), sw = save_if(w.defined(), w)](const Node& node,
                                                                      const Tensor& v) {
          return pick3(composed_gradients(
              node,
              [&](const std::vector<Tensor>& in) { return composed_dx(in[0], in[1], in[2], s); },
              {sg.get(node), sx.get(node), sw.get(node)}, v));
        });
  }
  if (r[1].defined() && recording(g, x)) {
    r[1] = record("LayerNormBackwardWeightBackward0", {g, x}, std::move(r[1]),
                  [s, normalized, sg = save(g), sx = save(x)](const Node& node, const Tensor& v) {
                    std::vector<Tensor> t = composed_gradients(
                        node,
                        [&](const std::vector<Tensor>& in) {
                          return composed_dw(in[0], in[1], s, normalized);
                        },
                        {sg.get(node), sx.get(node)}, v);
                    return std::array{t[0], t[1]};
                  });
  }
  if (r[2].defined() && recording(g)) {
    r[2] = record(
        "SumBackward1", {g}, std::move(r[2]),
        [sizes = x.sizes().vec()](const Node&, const Tensor& v) { return expand(v, sizes); });
  }
  return r;
}

void check_parameter(const char* name, const Tensor& p, const Tensor& x, IntArrayRef shape) {
  if (!p.defined()) return;
  RAMET_CHECK(p.sizes() == shape, "layer_norm", "Expected ", name,
              " to be of same shape as normalized_shape, but got ", name, " of shape ", p.sizes(),
              " and normalized_shape = ", shape);
  RAMET_CHECK(p.scalar_type() == x.scalar_type(), "layer_norm", name, ": got ", describe(p),
              ", expected the dtype of input ", describe(x));
  RAMET_CHECK(p->device == x->device, "layer_norm",
              "Expected all tensors to be on the same device, but found at least two devices, ",
              x.device(), " and ", p.device(), "! Got ", describe(x), " and ", name, " ",
              describe(p));
}

}  // namespace

Tensor layer_norm(const Tensor& x, IntArrayRef normalized_shape,
                  const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                  double eps, bool) {
  check_defined("layer_norm", x);
  const Tensor w = weight.value_or(Tensor()), b = bias.value_or(Tensor());
  RAMET_CHECK(
      !normalized_shape.empty(), "layer_norm",
      "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
      "element: got ",
      normalized_shape);
  const int64_t lead = x.dim() - static_cast<int64_t>(normalized_shape.size());
  RAMET_CHECK(lead >= 0 && x.sizes().slice(static_cast<size_t>(lead)) == normalized_shape,
              "layer_norm", "Given normalized_shape=", normalized_shape,
              ", expected input with shape [*, ...] ending in it, but got input of size ",
              x.sizes());
  RAMET_CHECK(is_floating(x.scalar_type()), "layer_norm", "not implemented for '",
              name_of(x.scalar_type()), "': got ", describe(x));
  check_parameter("weight", w, x, normalized_shape);
  check_parameter("bias", b, x, normalized_shape);
  Shape s{1, 1, eps};
  for (int64_t d = 0; d < x.dim(); ++d) (d < lead ? s.rows : s.cols) *= x->sizes()[d];
  const ScalarType t = x.scalar_type(), stat = t == kDouble ? kDouble : kFloat;
  const Tensor xd = dense(x), wd = dense(w), bd = dense(b);
  Tensor y(TensorBase::empty(x.sizes(), t, x.device())),
      mean(TensorBase::empty(s.rows, stat, x.device())),
      rstd(TensorBase::empty(s.rows, stat, x.device()));
  const Tensor workspace =
      bytes(kernels::layer_norm_workspace(t, s.cols, max_parallel_slots()), x.device());
  kernels::layer_norm_forward(x.stream(), {xd.ptr(), pointer(wd), pointer(bd), y->data, mean->data,
                                           rstd->data, pointer(workspace), s.rows, s.cols, eps, t});
  if (!recording(x, w, b)) return y;
  return record("NativeLayerNormBackward0", {x, w, b}, std::move(y),
                [s, shape = normalized_shape.vec(), sx = save(x), sw = save_if(w.defined(), w),
                 mean, rstd](const Node& self, const Tensor& g) {
                  return layer_norm_backward(self, g, sx.get(self), sw.get(self), mean, rstd, s,
                                             shape);
                });
}

}  // namespace ramet
