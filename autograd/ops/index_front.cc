#include "autograd/ops/index_front.h"

#include <algorithm>
#include <cstring>

#include "runtime/capture.h"
#include "runtime/gpu.h"

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

namespace {

// Queues the kernel that looks, on a GPU.
void look(const Tensor& dense, int64_t ignored, const gpu::DataCheck& check) {
  gpu::Library& gpus = gpu::required(check.op, dense.device());
  const gpu::DataFault fault = gpus.fault(dense.device().index(), check);
  kernels::check_index(dense.stream(),
                       {static_cast<const int64_t*>(dense.ptr()), dense.numel(), 1, check.low,
                        check.high, ignored, nullptr, fault.word, fault.check});
}

}  // namespace

void report_where(const char* op, const Tensor& bad, const char* what) {
  if (bad.numel() == 0) return;
  if (bad.is_cpu()) {
    return capture::in_turn([op, what, seen = bad.contiguous()] {
      RAMET_CHECK(!std::memchr(seen.ptr(), 1, static_cast<size_t>(seen.numel())), op, what);
    });
  }
  look(bad.to(kLong).contiguous(), kernels::kNoIndex, {op, what, false, 0, 1});
}

void check_indices(const char* op, const Tensor& index, int64_t low, int64_t size, const char* what,
                   int64_t ignored) {
  if (index.numel() == 0) return;
  const Tensor dense = index.contiguous();
  if (RAMET_UNLIKELY(!index.is_cpu())) return look(dense, ignored, {op, what, true, low, size});
  const auto* values = static_cast<const int64_t*>(dense.ptr());
  if (RAMET_UNLIKELY(capture::active())) {
    // Ours, so that it lives as long as the list does.
    const Tensor seen = dense.shallow();
    capture::host_work([op, seen, low, size, what = std::string(what), ignored] {
      check_indices(op, seen, low, size, what.c_str(), ignored);
    });
    return;
  }
  int64_t bad = -1;
  kernels::check_index(index.stream(),
                       {values, index.numel(), 1, low, size, ignored, &bad, nullptr, 0});
  if (RAMET_LIKELY(bad < 0)) return;
  throw IndexError(detail::join("[", op, "] index out of range: got ", values[bad], " at position ",
                                bad, " of ", describe(index), ", expected [", low, ", ", size,
                                ") (", what, ")"));
}

void IndexLoop::run(kernels::IndexMode mode, const TensorBase& tx, const TensorBase& ty,
                    int64_t skipped) {
  for (int d = 0; d < rank; ++d)
    if (sizes[d] == 0) return;
  // Order matters where tuples meet, so dimensions keep theirs.
  rank = kernels::merge_neighbours(kIndices + indices, rank, sizes, strides);
  if (rank == 0) push(1, 0, 0);
  const int outer = std::max(rank - kernels::kMaxKernelRank, 0);
  kernels::IndexArgs a;
  a.dtype = tx.scalar_type();
  a.mode = mode;
  a.rank = rank - outer;
  a.indices = indices;
  a.skipped = skipped;
  for (int d = 0; d < a.rank; ++d) {
    a.sizes[d] = sizes[outer + d];
    a.x_strides[d] = strides[kX][outer + d], a.y_strides[d] = strides[kY][outer + d];
    for (int k = 0; k < indices; ++k) a.index_strides[k][d] = strides[kIndices + k][outer + d];
  }
  for (int k = 0; k < indices; ++k)
    a.index_size[k] = index_size[k], a.index_step[k] = index_step[k];
  TensorBase workspace;
  a.workspace = nullptr;
  if (RAMET_UNLIKELY(!tx.is_cpu()))
    if (const int64_t needed = kernels::index_workspace(a)) {
      workspace = TensorBase::empty({needed}, kByte, tx.device());
      a.workspace = workspace.ptr();
    }
  const auto bytes = static_cast<int64_t>(item_size(a.dtype));
  char *const x = static_cast<char*>(tx.ptr()), *const y = static_cast<char*>(ty.ptr());
  kernels::over_outer<kOperands>(outer, sizes, strides, [&](const int64_t* offset) {
    a.x = x + offset[kX] * bytes, a.y = y + offset[kY] * bytes;
    for (int k = 0; k < indices; ++k) a.index[k] = index[k] + offset[kIndices + k];
    kernels::index_elements(tx.stream(), a);
  });
}

void gather_loop(kernels::IndexMode mode, const Tensor& x, int64_t dim, const Tensor& index,
                 const Tensor& y) {
  IndexLoop loop;
  for (int64_t d = 0; d < index.dim(); ++d) {
    loop.push(index->sizes()[d], d == dim ? 0 : x->strides()[d], y->strides()[d]);
    loop.strides[IndexLoop::kIndices][d] = index->strides()[d];
  }
  loop.add_index(index, x.dim() == 0 ? 1 : x->sizes()[dim], x.dim() == 0 ? 0 : x->strides()[dim]);
  loop.run(mode, x, y);
}

void select_loop(kernels::IndexMode mode, const Tensor& x, int64_t dim, const Tensor& index,
                 const Tensor& y, int64_t skipped) {
  IndexLoop loop;
  if (x.dim() == 0) {
    loop.push(index.numel(), 0, y.dim() == 0 ? 0 : y->strides()[0]);
    loop.strides[IndexLoop::kIndices][0] = index.dim() == 0 ? 0 : index->strides()[0];
    loop.add_index(index, 1, 0);
    return loop.run(mode, x, y, skipped);
  }
  for (int64_t d = 0; d < x.dim(); ++d) {
    const bool here = d == dim;
    loop.push(here ? index.numel() : x->sizes()[d], here ? 0 : x->strides()[d], y->strides()[d]);
    if (here) loop.strides[IndexLoop::kIndices][d] = index.dim() == 0 ? 0 : index->strides()[0];
  }
  loop.add_index(index, x->sizes()[dim], x->strides()[dim]);
  loop.run(mode, x, y, skipped);
}

}  // namespace autograd
}  // namespace ramet
