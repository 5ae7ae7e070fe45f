#include "autograd/ops/front/sort_internal.h"

#include "autograd/ops/index/gather_scatter.h"
#include "kernels/index/sort.h"
#include "runtime/base/thread_pool.h"

namespace ramet {
namespace autograd {

using kernels::OrderPick;

Tensor sorted_positions(const Tensor& keys, int bits) {
  const int64_t rows = keys.size(0), n = keys.size(1);
  const Tensor positions(TensorBase::empty({rows, n}, kLong, keys.device()));
  const TensorBase workspace =
      TensorBase::empty({kernels::sort_workspace(rows, n)}, kByte, keys.device());
  if (keys.numel())
    kernels::sort_pairs(keys.stream(),
                        {static_cast<uint64_t*>(keys.ptr()), static_cast<int64_t*>(positions.ptr()),
                         rows, n, bits, workspace.ptr()});
  return positions;
}

std::tuple<Tensor, Tensor> ordered(const Tensor& x, int64_t dim, OrderPick pick, int64_t count,
                                   bool descending, bool keepdim, Want want) {
  std::vector<int64_t> shape = x.sizes().vec();
  if (!shape.empty()) {
    const auto at = shape.begin() + dim;
    if (pick == OrderPick::kFirst || keepdim) *at = pick == OrderPick::kFirst ? count : 1;
    else shape.erase(at);
  }
  Tensor values, positions;
  if (want != Want::kPositions)
    values = Tensor(TensorBase::empty(shape, x.scalar_type(), x.device()));
  if (want != Want::kValues) positions = Tensor(TensorBase::empty(shape, kLong, x.device()));
  if (x.numel() == 0 || (pick == OrderPick::kFirst && count == 0)) return {values, positions};
  const NoGradGuard off;
  const Tensor in = x.shallow().contiguous();
  const Axis axis(x, dim);
  kernels::OrderArgs a{in.ptr(),
                       pointer(values),
                       static_cast<int64_t*>(pointer(positions)),
                       axis.outer,
                       axis.n,
                       axis.inner,
                       count,
                       x.scalar_type(),
                       pick,
                       descending,
                       max_parallel_slots(),
                       nullptr};
  const Tensor workspace = scratch(kernels::order_workspace(a, x.is_cpu()), x.device());
  a.workspace = pointer(workspace);
  kernels::order_lines(x.stream(), a);
  return {values, positions};
}

Tensor taken(const char* node, const Tensor& x, int64_t dim, Tensor values, const Tensor& positions,
             bool lost) {
  if (!recording(x)) return values;
  return record(node, {x}, std::move(values),
                [dim, lost, m = Meta(x), at = save(positions)](const Node& self, const Tensor& g) {
                  if (m.rank == 0) return g;
                  const Tensor& index = at.get(self);
                  return move_to_zeros(m.shape(), dim, lost ? index.unsqueeze(dim) : index,
                                       lost ? g.unsqueeze(dim) : g);
                },
                [&](Arguments& to) {
                  to("dim", x.dim() == 0 ? std::vector<int64_t>() : std::vector<int64_t>{dim});
                  to("keepdim", !lost);
                });
}

std::tuple<Tensor, Tensor> ordered_recorded(const char* node, const Tensor& x, int64_t dim,
                                            OrderPick pick, int64_t count, bool descending,
                                            bool keepdim) {
  auto [values, positions] = ordered(x, dim, pick, count, descending, keepdim);
  return {taken(node, x, dim, std::move(values), positions, pick != OrderPick::kFirst && !keepdim),
          positions};
}

}  // namespace autograd
}  // namespace ramet
