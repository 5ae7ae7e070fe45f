#include "autograd/ops/softmax.h"

#include "autograd/ops/copy.h"
#include "autograd/ops/front/common.h"
#include "autograd/ops/front/out_front.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/view.h"
#include "kernels/rows/softmax.h"
#include "runtime/thread_pool.h"

namespace ramet {

using namespace autograd;

namespace {

// The axis last and dense: x itself, or a copy.
Tensor rows_of(const Tensor& x, int64_t dim) {
  if (RAMET_LIKELY(x.raw_contiguous() && (x.dim() == 0 || dim == x.dim() - 1))) return x;
  const NoGradGuard off;
  const Tensor plain = x.shallow();
  return (x.dim() == 0 ? plain : transpose(plain, dim, -1)).contiguous();
}
// The other way: rows as a contiguous tensor with the axis at `dim`.
Tensor from_rows(const Tensor& rows, int64_t dim) {
  if (rows.dim() == 0 || dim == rows.dim() - 1) return rows;
  const NoGradGuard off;
  return transpose(rows, dim, -1).contiguous();
}
int64_t columns_of(const Tensor& rows) {
  return rows.dim() == 0 ? 1 : rows->sizes()[rows.dim() - 1];
}
Tensor workspace_of(const Tensor& x, int64_t cols) {
  return scratch(kernels::softmax_workspace(x.scalar_type(), cols, max_parallel_slots()),
                 x.device());
}

Tensor softmax_any(const char* op, const char* node, const Tensor& self, int64_t dim,
                   std::optional<ScalarType> dtype, bool log) {
  check_defined(op, self);
  const Tensor x = dtype && *dtype != self.scalar_type() ? self.to(*dtype) : self;
  // Of nothing, whatever the dtype: as in LibTorch.
  RAMET_CHECK(is_floating(x.scalar_type()) || x.numel() == 0, op, "not implemented for '",
              name_of(x.scalar_type()), "': got ", describe(x),
              ", expected a floating point dtype");
  const int64_t d = wrap_dim(op, dim, x.dim());
  const Tensor in = rows_of(x, d);
  Tensor y(TensorBase::empty(in.sizes(), x.scalar_type(), x.device()));
  if (x.numel()) {
    const int64_t cols = columns_of(in);
    const Tensor workspace = workspace_of(x, cols);
    kernels::softmax_forward(x.stream(), {in.ptr(), y->data, pointer(workspace), x.numel() / cols,
                                          cols, x.scalar_type(), log});
  }
  Tensor out = from_rows(y, d);
  if (!recording(x)) return out;
  return record(node, {x}, std::move(out),
                [d, log, sy = save_output(out)](const Node& node, const Tensor& g) {
                  return softmax_backward(g, sy.get(node), d, log);
                });
}

}  // namespace

namespace autograd {

Tensor softmax_backward(const Tensor& g, const Tensor& y, int64_t d, bool log) {
  const Tensor gr = rows_of(g, d), yr = rows_of(y, d);
  Tensor dx(TensorBase::empty(yr.sizes(), y.scalar_type(), y.device()));
  if (y.numel()) {
    const int64_t cols = columns_of(yr);
    const Tensor workspace = workspace_of(y, cols);
    kernels::softmax_backward(y.stream(), {yr.ptr(), gr.ptr(), dx->data, pointer(workspace),
                                           y.numel() / cols, cols, y.scalar_type(), log});
  }
  Tensor out = from_rows(dx, d);
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

Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return softmax_any("softmax", "SoftmaxBackward0", self, dim, dtype, false);
}
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return softmax_any("log_softmax", "LogSoftmaxBackward0", self, dim, dtype, true);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/softmax.inc"

}  // namespace ramet
