#include "autograd/ops/index_front.h"

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
  if (RAMET_LIKELY(!in_place || index.storage_impl() != self.storage_impl())) return index;
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

void IndexLoop::run(const char* op, kernels::IndexMode mode, const TensorBase& tx,
                    const TensorBase& ty, int64_t skipped) {
  for (int d = 0; d < rank; ++d)
    if (sizes[d] == 0) return;
  kernels::IndexArgs a;
  int r = 0;
  const auto take = [&](int d) {
    a.sizes[r] = sizes[d], a.x_strides[r] = x[d], a.y_strides[r] = y[d];
    for (int k = 0; k < indices; ++k) a.index_strides[k][r] = at[k][d];
  };
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] == 1) continue;
    bool joins = r > 0;
    if (joins) {
      --r;
      joins = a.x_strides[r] == x[d] * sizes[d] && a.y_strides[r] == y[d] * sizes[d];
      for (int k = 0; k < indices; ++k)
        joins = joins && a.index_strides[k][r] == at[k][d] * sizes[d];
      if (joins) {
        const int64_t before = a.sizes[r];
        take(d);
        a.sizes[r] *= before;
      }
      ++r;
    }
    if (joins) continue;
    if (r == kernels::kMaxKernelRank)
      throw NotImplementedError(
          detail::join("[", op, "] more than ", r, " dimensions that do not merge"));
    take(d);
    ++r;
  }
  if (r == 0) {
    a.sizes[0] = 1, a.x_strides[0] = a.y_strides[0] = 0;
    for (int k = 0; k < indices; ++k) a.index_strides[k][0] = 0;
    r = 1;
  }
  a.x = tx.ptr();
  a.y = ty.ptr();
  a.dtype = tx.scalar_type();
  a.mode = mode;
  a.rank = r;
  a.indices = indices;
  a.skipped = skipped;
  for (int k = 0; k < indices; ++k)
    a.index[k] = index[k], a.index_size[k] = index_size[k], a.index_step[k] = index_step[k];
  kernels::index_elements(tx.stream(), a);
}

void gather_loop(const char* op, kernels::IndexMode mode, const Tensor& x, int64_t dim,
                 const Tensor& index, const Tensor& y) {
  IndexLoop loop;
  for (int64_t d = 0; d < index.dim(); ++d) {
    loop.push(index->sizes()[d], d == dim ? 0 : x->strides()[d], y->strides()[d]);
    loop.at[0][d] = index->strides()[d];
  }
  loop.add_index(index, x.dim() == 0 ? 1 : x->sizes()[dim], x.dim() == 0 ? 0 : x->strides()[dim]);
  loop.run(op, mode, x, y);
}

void select_loop(const char* op, kernels::IndexMode mode, const Tensor& x, int64_t dim,
                 const Tensor& index, const Tensor& y, int64_t skipped) {
  IndexLoop loop;
  if (x.dim() == 0) {
    loop.push(index.numel(), 0, y.dim() == 0 ? 0 : y->strides()[0]);
    loop.at[0][0] = index.dim() == 0 ? 0 : index->strides()[0];
    loop.add_index(index, 1, 0);
    return loop.run(op, mode, x, y, skipped);
  }
  for (int64_t d = 0; d < x.dim(); ++d) {
    const bool here = d == dim;
    loop.push(here ? index.numel() : x->sizes()[d], here ? 0 : x->strides()[d], y->strides()[d]);
    if (here) loop.at[0][d] = index.dim() == 0 ? 0 : index->strides()[0];
  }
  loop.add_index(index, x->sizes()[dim], x->strides()[dim]);
  loop.run(op, mode, x, y, skipped);
}

}  // namespace autograd
}  // namespace ramet
