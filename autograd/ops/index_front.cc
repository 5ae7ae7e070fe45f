#include "autograd/ops/index_front.h"

#include <algorithm>

namespace ramet {
namespace autograd {

Tensor index_as_long(const char* op, const Tensor& index) {
  check_defined(op, index);
  if (RAMET_LIKELY(index.scalar_type() == kLong)) return index;
  RAMET_CHECK(index.scalar_type() == kInt, op, "index dtype: got ", name_of(index.scalar_type()),
              ", expected Long or Int");
  return index.to(kLong);
}

Tensor index_apart(const Tensor& index, const Tensor& self, bool in_place) {
  if (RAMET_LIKELY(!in_place || !index.may_overlap(self))) return index;
  const NoGradGuard off;
  return index.clone(MemoryFormat::Contiguous);
}

void check_indices(const char* op, const Tensor& index, int64_t low, int64_t size, const char* what,
                   int64_t ignored) {
  if (index.numel() == 0) return;
  const Tensor dense = index.contiguous();
  const auto* values = static_cast<const int64_t*>(dense.ptr());
  int64_t bad = -1;
  kernels::check_index(index.stream(), {values, index.numel(), 1, low, size, ignored, &bad});
  if (RAMET_LIKELY(bad < 0)) return;
  throw IndexError(detail::join("[", op, "] index out of range: got ", values[bad], " at position ",
                                bad, " of ", describe(index), ", expected [", low, ", ", size,
                                ") (", what, ")"));
}

void IndexLoop::run(kernels::IndexMode mode, const TensorBase& tx, const TensorBase& ty,
                    int64_t skipped) {
  for (int d = 0; d < rank; ++d)
    if (sizes[d] == 0) return;
  merge();
  // A kernel takes the last dimensions; those before are walked here, in the same order.
  const int outer = std::max(rank - kernels::kMaxKernelRank, 0);
  kernels::IndexArgs a;
  a.dtype = tx.scalar_type();
  a.mode = mode;
  a.rank = rank - outer;
  a.indices = indices;
  a.skipped = skipped;
  for (int d = 0; d < a.rank; ++d) {
    a.sizes[d] = sizes[outer + d];
    a.x_strides[d] = x[outer + d], a.y_strides[d] = y[outer + d];
    for (int k = 0; k < indices; ++k) a.index_strides[k][d] = at[k][outer + d];
  }
  for (int k = 0; k < indices; ++k)
    a.index_size[k] = index_size[k], a.index_step[k] = index_step[k];
  const auto bytes = static_cast<int64_t>(item_size(a.dtype));
  char *const px = static_cast<char*>(tx.ptr()), *const py = static_cast<char*>(ty.ptr());
  int64_t tuple[kMaxRank] = {};
  for (;;) {
    int64_t in_x = 0, in_y = 0, in_index[kernels::kMaxIndexTensors] = {};
    for (int d = 0; d < outer; ++d) {
      in_x += tuple[d] * x[d], in_y += tuple[d] * y[d];
      for (int k = 0; k < indices; ++k) in_index[k] += tuple[d] * at[k][d];
    }
    a.x = px + in_x * bytes, a.y = py + in_y * bytes;
    for (int k = 0; k < indices; ++k) a.index[k] = index[k] + in_index[k];
    kernels::index_elements(tx.stream(), a);
    int d = outer - 1;
    while (d >= 0 && ++tuple[d] == sizes[d]) tuple[d--] = 0;
    if (d < 0) return;
  }
}

void IndexLoop::merge() {
  int r = 0;
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] == 1) continue;
    bool joins = r > 0;
    if (joins) {
      joins = x[r - 1] == x[d] * sizes[d] && y[r - 1] == y[d] * sizes[d];
      for (int k = 0; k < indices; ++k) joins = joins && at[k][r - 1] == at[k][d] * sizes[d];
    }
    const int64_t before = joins ? sizes[--r] : 1;
    sizes[r] = sizes[d] * before, x[r] = x[d], y[r] = y[d];
    for (int k = 0; k < indices; ++k) at[k][r] = at[k][d];
    ++r;
  }
  if (r == 0) {
    sizes[0] = 1, x[0] = y[0] = 0;
    for (int k = 0; k < indices; ++k) at[k][0] = 0;
    r = 1;
  }
  rank = r;
}

void gather_loop(kernels::IndexMode mode, const Tensor& x, int64_t dim, const Tensor& index,
                 const Tensor& y) {
  IndexLoop loop;
  for (int64_t d = 0; d < index.dim(); ++d) {
    loop.push(index->sizes()[d], d == dim ? 0 : x->strides()[d], y->strides()[d]);
    loop.at[0][d] = index->strides()[d];
  }
  loop.add_index(index, x.dim() == 0 ? 1 : x->sizes()[dim], x.dim() == 0 ? 0 : x->strides()[dim]);
  loop.run(mode, x, y);
}

void select_loop(kernels::IndexMode mode, const Tensor& x, int64_t dim, const Tensor& index,
                 const Tensor& y, int64_t skipped) {
  IndexLoop loop;
  if (x.dim() == 0) {
    loop.push(index.numel(), 0, y.dim() == 0 ? 0 : y->strides()[0]);
    loop.at[0][0] = index.dim() == 0 ? 0 : index->strides()[0];
    loop.add_index(index, 1, 0);
    return loop.run(mode, x, y, skipped);
  }
  for (int64_t d = 0; d < x.dim(); ++d) {
    const bool here = d == dim;
    loop.push(here ? index.numel() : x->sizes()[d], here ? 0 : x->strides()[d], y->strides()[d]);
    if (here) loop.at[0][d] = index.dim() == 0 ? 0 : index->strides()[0];
  }
  loop.add_index(index, x->sizes()[dim], x->strides()[dim]);
  loop.run(mode, x, y, skipped);
}

}  // namespace autograd
}  // namespace ramet
