#include "autograd/ops/layers/layer_norm.h"

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "kernels/rows/layer_norm.h"
#include "runtime/base/thread_pool.h"

using ramet::detail::tls;

namespace ramet {

using namespace autograd;

namespace {

struct Shape {
  int64_t rows, cols;
  double eps;
};

// t itself where it is contiguous: any access to a sharded parameter's values would gather them.
Tensor dense(const Tensor& t) {
  return !t.defined() || t.raw_contiguous() ? t : t.shallow().contiguous();
}

// The rows of x, normalised; differentiable.
Tensor normalised(const Tensor& x, const Shape& s) {
  const Tensor rows = x.reshape({s.rows, s.cols}), d = rows.sub(rows.mean(1, true));
  return d.mul(d.square().mean(1, true).add(s.eps).rsqrt());
}
// rstd (g w - mean(g w) - h mean(g w h)): the fused dx, written with operations.
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

// Which of the gradients of x, weight and bias the caller wants.
using Wanted = std::array<bool, 3>;

// Computes all three gradients in one pass; each is a recorded operation of its own. Adds `dsum`,
// which may be undefined, to the gradient of x.
std::array<Tensor, 3> layer_norm_backward(const Wanted& wanted, const Tensor& g, const Tensor& x,
                                          const Tensor& w, const Tensor& mean, const Tensor& rstd,
                                          const Shape& s, const std::vector<int64_t>& normalized,
                                          const Tensor& dsum = {}) {
  const ScalarType t = x.scalar_type();
  const Tensor gd = dense(g), xd = dense(x), wd = dense(w), dd = dense(dsum);
  std::array<Tensor, 3> r;
  if (wanted[0]) r[0] = Tensor(TensorBase::empty(x.sizes(), t, x.device()));
  for (size_t i : {1, 2})
    if (wanted[i]) r[i] = Tensor(TensorBase::empty(normalized, t, x.device()));
  const Tensor workspace = scratch(
      kernels::layer_norm_backward_workspace(t, s.rows, s.cols, max_parallel_slots()), x.device());
  kernels::layer_norm_backward(x.stream(), {xd.ptr(), pointer(wd), gd.ptr(), mean.ptr(), rstd.ptr(),
                                            pointer(r[0]), pointer(r[1]), pointer(r[2]),
                                            pointer(workspace), s.rows, s.cols, t, pointer(dd)});
  const bool again = recording(g, x, w);
  if (!again) return r;
  if (r[0].defined())
    r[0] = record_composed(
        "LayerNormBackwardDataBackward0", std::move(r[0]),
        [s](const std::vector<Tensor>& in) { return composed_dx(in[0], in[1], in[2], s); }, g, x,
        w);
  if (r[1].defined() && recording(g, x))
    r[1] = record_composed(
        "LayerNormBackwardWeightBackward0", std::move(r[1]),
        [s, normalized](const std::vector<Tensor>& in) {
          return composed_dw(in[0], in[1], s, normalized);
        },
        g, x);
  if (r[2].defined() && recording(g)) {
    r[2] = record("SumBackward1", {g}, std::move(r[2]),
                  saves_nothing([sizes = x.sizes().vec()](const Node&, const Tensor& v) {
                    return expand(v, sizes);
                  }));
  }
  return r;
}

void check_parameter(const char* op, const char* name, const Tensor& p, const Tensor& x,
                     IntArrayRef shape) {
  if (!p.defined()) return;
  RAMET_CHECK(p.sizes() == shape, op, "Expected ", name,
              " to be of same shape as normalized_shape, but got ", name, " of shape ", p.sizes(),
              " and normalized_shape = ", shape);
  RAMET_CHECK(p.scalar_type() == x.scalar_type(), op, name, ": got ", describe(p),
              ", expected the dtype of input ", describe(x));
  check_same_device(op, x, p, name);
}

// Checks the arguments; returns rows and columns.
Shape shape_of(const char* op, const Tensor& x, IntArrayRef normalized_shape, const Tensor& w,
               const Tensor& b, double eps) {
  RAMET_CHECK(
      !normalized_shape.empty(), op,
      "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
      "element: got ",
      normalized_shape);
  const int64_t lead = x.dim() - static_cast<int64_t>(normalized_shape.size());
  RAMET_CHECK(lead >= 0 && x.sizes().slice(static_cast<size_t>(lead)) == normalized_shape, op,
              "Given normalized_shape=", normalized_shape,
              ", expected input with shape [*, ...] ending in it, but got input of size ",
              x.sizes());
  RAMET_CHECK(is_floating(x.scalar_type()), op, "not implemented for '", name_of(x.scalar_type()),
              "': got ", describe(x));
  check_parameter(op, "weight", w, x, normalized_shape);
  check_parameter(op, "bias", b, x, normalized_shape);
  Shape s{1, 1, eps};
  for (int64_t d = 0; d < x.dim(); ++d) (d < lead ? s.rows : s.cols) *= x->sizes()[d];
  return s;
}

// Slots: the gradients of the normalised rows and of the sum. Edges: input, residual, weight, bias.
class ResidualLayerNormBackward final : public Node {
 public:
  ResidualLayerNormBackward(const Tensor& x, const Tensor& r, const Tensor& w, const Tensor& b,
                            const Tensor& sum, Tensor mean, Tensor rstd, const Shape& shape,
                            std::vector<int64_t> normalized)
      : Node("ResidualLayerNormBackward0", 4, 2, sizeof(ResidualLayerNormBackward)),
        edge_{edge_of(x.impl()), edge_of(r.impl()), edge_of(w.impl()), edge_of(b.impl())},
        sum_(sum.shallow()),
        weight_(save_if(w.defined(), w)),
        mean_(std::move(mean)),
        rstd_(std::move(rstd)),
        shape_(shape),
        normalized_(std::move(normalized)) {
    device = static_cast<uint8_t>(x.device().ordinal());
    follow_edges();
  }
  ~ResidualLayerNormBackward() override {
    for (RawEdge& e : edge_) release(e.node);
  }
  RawEdge* edges() override { return edge_; }
  void release_saved() override {
    flags |= kReleased;
    sum_ = weight_ = Saved();
    mean_ = rstd_ = Tensor();
  }
  void apply(Tensor* in, Tensor* out) override {
    if (RAMET_UNLIKELY((flags & kReleased) != 0)) backward_twice(*this);
    const bool of_rows = needs(0) || needs(1);
    Tensor dx = in[1];
    if (in[0].defined()) {
      Tensor sum = sum_.get(*this);
      const Tensor& w = weight_.get(*this);
      const bool again = tls.grad_mode;  // then every gradient is recorded
      if (again) {
        sum = sum.shallow();
        attach(sum, this, 1);
      }
      std::array<Tensor, 3> r =
          layer_norm_backward({of_rows, needs(2), needs(3)}, in[0], sum, w, mean_, rstd_, shape_,
                              normalized_, again ? Tensor() : in[1]);
      dx = !r[0].defined() ? in[1] : again && in[1].defined() ? r[0].add(in[1]) : r[0];
      out[2] = std::move(r[1]);
      out[3] = std::move(r[2]);
    }
    if (needs(0)) out[0] = dx;
    if (needs(1)) out[1] = std::move(dx);
  }

 private:
  RawEdge edge_[4];
  Saved sum_, weight_;
  Tensor mean_, rstd_;
  Shape shape_;
  std::vector<int64_t> normalized_;
};

}  // namespace

static Tensor layer_norm_body(const Tensor& x, IntArrayRef normalized_shape,
                              const std::optional<Tensor>& weight,
                              const std::optional<Tensor>& bias, double eps, bool) {
  if (RAMET_UNLIKELY(tls.autocast != 0) && x.defined() && is_narrow(x.scalar_type())) {
    // As LibTorch's kernel for CPUs, it takes parameters of float32, which autocast leaves.
    const NoAutocast uncast;
    const auto fitting = [&x](const std::optional<Tensor>& t) {
      return t && t->defined() ? std::optional<Tensor>(t->to(x.scalar_type())) : std::nullopt;
    };
    return layer_norm_body(x, normalized_shape, fitting(weight), fitting(bias), eps, true);
  }
  check_defined("layer_norm", x);
  const Tensor w = weight.value_or(Tensor()), b = bias.value_or(Tensor());
  const Shape s = shape_of("layer_norm", x, normalized_shape, w, b, eps);
  const ScalarType t = x.scalar_type(), stat = t == kDouble ? kDouble : kFloat;
  const Tensor xd = dense(x), wd = dense(w), bd = dense(b);
  Tensor y(TensorBase::empty(x.sizes(), t, x.device())),
      mean(TensorBase::empty(s.rows, stat, x.device())),
      rstd(TensorBase::empty(s.rows, stat, x.device()));
  const Tensor workspace =
      scratch(kernels::layer_norm_workspace(t, s.cols, max_parallel_slots()), x.device());
  kernels::layer_norm_forward(x.stream(), {xd.ptr(), pointer(wd), pointer(bd), y->data, mean->data,
                                           rstd->data, pointer(workspace), s.rows, s.cols, eps, t});
  if (!recording(x, w, b)) return y;
  return record("NativeLayerNormBackward0", {x, w, b}, std::move(y),
                [s, shape = normalized_shape.vec(), sx = save(x), sw = save_if(w.defined(), w),
                 mean, rstd](const Node& self, const Tensor& g) {
                  return layer_norm_backward({self.needs(0), self.needs(1), self.needs(2)}, g,
                                             sx.get(self), sw.get(self), mean, rstd, s, shape);
                },
                [&](Arguments& to) { to("normalized_shape", normalized_shape), to("eps", eps); });
}

std::tuple<Tensor, Tensor> residual_layer_norm(const Tensor& x, const Tensor& residual,
                                               IntArrayRef normalized_shape,
                                               const std::optional<Tensor>& weight,
                                               const std::optional<Tensor>& bias, double eps) {
  const char* op = "residual_layer_norm";
  check_defined(op, x);
  check_defined(op, residual);
  if (RAMET_UNLIKELY(tls.autocast != 0)) {  // each operation by its own policy
    Tensor sum = x.add(residual), y = layer_norm(sum, normalized_shape, weight, bias, eps);
    return {y, sum};
  }
  RAMET_CHECK(x.sizes() == residual.sizes() && x->key() == residual->key(), op, "residual: got ",
              describe(residual), ", expected the shape, dtype and device of input ", describe(x));
  const Tensor w = weight.value_or(Tensor()), b = bias.value_or(Tensor());
  const Shape s = shape_of(op, x, normalized_shape, w, b, eps);
  const ScalarType t = x.scalar_type(), stat = t == kDouble ? kDouble : kFloat;
  const Tensor xd = dense(x), rd = dense(residual), wd = dense(w), bd = dense(b);
  const auto fresh = [&](IntArrayRef sizes, ScalarType dtype) {
    return Tensor(TensorBase::empty(sizes, dtype, x.device()));
  };
  Tensor y = fresh(x.sizes(), t), sum = fresh(x.sizes(), t), mean = fresh(s.rows, stat),
         rstd = fresh(s.rows, stat);
  const Tensor workspace =
      scratch(kernels::layer_norm_workspace(t, s.cols, max_parallel_slots()), x.device());
  kernels::layer_norm_forward(x.stream(),
                              {xd.ptr(), pointer(wd), pointer(bd), y->data, mean->data, rstd->data,
                               pointer(workspace), s.rows, s.cols, eps, t, rd.ptr(), sum->data});
  if (!recording(x, residual, w, b)) return {y, sum};
  Node* node = new_node<ResidualLayerNormBackward>(x, residual, w, b, sum, mean, rstd, s,
                                                   normalized_shape.vec());
  attach(y, node, 0);
  if (recording(x, residual)) attach(sum, node, 1);
  if (RAMET_UNLIKELY(tls.watching)) tell_made(*node, {x, residual, w, b}, {y, sum});
  release(node);
  return {y, sum};
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/layer_norm.inc"

}  // namespace ramet
