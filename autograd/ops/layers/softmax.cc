#include "autograd/ops/layers/softmax.h"

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "kernels/rows/softmax.h"
#include "runtime/base/thread_pool.h"

namespace ramet {

using namespace autograd;

namespace {

// A form that kernels take: the axis last and dense, or on a CPU vectors of `inner` neighbours,
// which are as fast without a copy. The choice does not depend on the number of neighbours, so
// parts of a tensor give the bits of the whole.
struct Rows {
  Tensor x;
  int64_t cols, inner = 0;
  bool turned = false;  // the axis comes first

  Rows(const Tensor& given, int64_t dim) {
    const NoGradGuard off;
    x = given.shallow();
    cols = x.dim() == 0 ? 1 : x.size(dim);
    if (RAMET_LIKELY(x.raw_contiguous() && (x.dim() == 0 || dim == x.dim() - 1))) return;
    if (!x.is_cpu() || is_narrow(x.scalar_type()) || dim == x.dim() - 1 || x.numel() == 0) {
      x = transpose(x, dim, -1).contiguous();
      return;
    }
    inner = 1;
    for (int64_t d = dim + 1; d < x.dim(); ++d) inner *= x.size(d);
    x = x.contiguous();
    if (inner >= 16) return;
    turned = true;
    x = x.view({x.numel() / cols / inner, cols, inner}).transpose(0, 1).contiguous();
    inner = x.numel() / cols;
  }
  // The kernel's result for x, in the shape of the given tensor, with the axis at `dim`.
  Tensor back(const Tensor& made, int64_t dim, IntArrayRef sizes) const {
    if (inner == 0 && (made.dim() == 0 || dim == made.dim() - 1)) return made;
    const NoGradGuard off;
    if (turned) return own(made.transpose(0, 1).contiguous().view(sizes));
    return inner == 0 ? own(transpose(made, dim, -1).contiguous()) : made;
  }
};
Tensor workspace_of(const Tensor& x, int64_t cols) {
  return scratch(kernels::softmax_workspace(x.scalar_type(), cols, max_parallel_slots()),
                 x.device());
}

Tensor softmax_any(const char* op, const char* node, const Tensor& self, int64_t dim,
                   std::optional<ScalarType> dtype, bool log) {
  check_defined(op, self);
  const Tensor x = dtype && *dtype != self.scalar_type() ? self.to(*dtype) : self;
  // Any dtype is allowed for an empty tensor, as in LibTorch.
  RAMET_CHECK(is_floating(x.scalar_type()) || x.numel() == 0, op, "not implemented for '",
              name_of(x.scalar_type()), "': got ", describe(x),
              ", expected a floating point dtype");
  const int64_t d = wrap_dim(op, dim, x.dim());
  const Rows in(x, d);
  Tensor y(TensorBase::empty(in.x.sizes(), x.scalar_type(), x.device()));
  if (x.numel()) {
    const Tensor workspace = workspace_of(x, in.cols);
    kernels::softmax_forward(x.stream(),
                             {in.x.ptr(), y->data, pointer(workspace), x.numel() / in.cols, in.cols,
                              x.scalar_type(), log, in.inner});
  }
  Tensor out = in.back(y, d, x.sizes());
  if (!recording(x)) return out;
  return record(node, {x}, std::move(out),
                [d, log, sy = save_output(out)](const Node& node, const Tensor& g) {
                  return softmax_backward(g, sy.get(node), d, log);
                },
                [&](Arguments& to) { to("dim", d); });
}

}  // namespace

namespace autograd {

Tensor softmax_backward(const Tensor& g, const Tensor& y, int64_t d, bool log) {
  const Rows gr(g, d), yr(y, d);
  Tensor dx(TensorBase::empty(yr.x.sizes(), y.scalar_type(), y.device()));
  if (y.numel()) {
    const Tensor workspace = workspace_of(y, yr.cols);
    kernels::softmax_backward(
        y.stream(), {yr.x.ptr(), gr.x.ptr(), dx->data, pointer(workspace), y.numel() / yr.cols,
                     yr.cols, y.scalar_type(), log, yr.inner});
  }
  Tensor out = yr.back(dx, d, y.sizes());
  if (!recording(g, y)) return out;
  return record(log ? "LogSoftmaxBackwardDataBackward0" : "SoftmaxBackwardDataBackward0", {g, y},
                std::move(out),
                [d, log, sg = save(g), sy = save(y)](const Node& self, const Tensor& v) {
                  const Tensor &g = sg.get(self), &y = sy.get(self);
                  std::array<Tensor, 2> r;
                  if (log) {  // dx = g - exp(y) sum g
                    if (self.needs(0)) r[0] = v.sub(v.mul(y.exp()).sum(d, true));
                    if (self.needs(1)) r[1] = v.mul(y.exp()).mul(g.sum(d, true)).neg();
                  } else {  // dx = y (g - sum y g)
                    if (self.needs(0)) r[0] = softmax_backward(v, y, d, false);
                    if (self.needs(1))
                      r[1] = v.mul(g.sub(y.mul(g).sum(d, true))).sub(g.mul(v.mul(y).sum(d, true)));
                  }
                  return r;
                });
}

}  // namespace autograd

static Tensor softmax_body(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return softmax_any("softmax", "SoftmaxBackward0", self, dim, dtype, false);
}
static Tensor log_softmax_body(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return softmax_any("log_softmax", "LogSoftmaxBackward0", self, dim, dtype, true);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/softmax.inc"

}  // namespace ramet
