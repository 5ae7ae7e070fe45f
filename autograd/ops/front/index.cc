#include "autograd/ops/front/index_internal.h"

#include <algorithm>
#include <cstring>

#include "autograd/ops/make/copy.h"
#include "autograd/ops/shape/view.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/gpu.h"

namespace ramet {
namespace autograd {

void same_place(const char* op, const Tensor& a, const Tensor& b) {
  check_defined(op, b);
  check_same_device(op, a, b);
}

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

// On a GPU, queues the kernel that checks the indices.
void look(const Tensor& dense, std::optional<int64_t> ignored, const gpu::DataCheck& check) {
  gpu::Library& gpus = gpu::required(check.op, dense.device());
  const gpu::DataFault fault = gpus.fault(dense.device().index(), check);
  kernels::check_index(dense.stream(), {static_cast<const int64_t*>(dense.ptr()), dense.numel(), 1,
                                        check.low, check.high, ignored.value_or(0),
                                        ignored.has_value(), nullptr, fault.word, fault.check});
}

}  // namespace

void report_where(const char* op, const Tensor& bad, const char* what) {
  if (bad.numel() == 0) return;
  if (bad.is_cpu()) {
    return capture::in_turn([op, what, seen = bad.contiguous()] {
      RAMET_CHECK(!std::memchr(seen.ptr(), 1, static_cast<size_t>(seen.numel())), op, what);
    });
  }
  look(bad.to(kLong).contiguous(), std::nullopt, {op, what, false, 0, 1});
}

void report_unless(const char* op, const Tensor& fine, const Tensor& values, const char* what) {
  if (fine.numel() == 0) return;
  if (!fine.is_cpu())
    return look(fine.to(kLong).contiguous(), std::nullopt, {op, what, false, 1, 2});
  Tensor of = values;
  if (RAMET_UNLIKELY(capture::active())) {
    of = values.contiguous().shallow();
    of.ptr();  // the capture owns its memory from here on
  }
  capture::in_turn([op, what, of, seen = fine.contiguous()] {
    const auto* first = static_cast<const char*>(seen.ptr());
    const void* fault = std::memchr(first, 0, static_cast<size_t>(seen.numel()));
    if (RAMET_LIKELY(!fault)) return;
    const NoGradGuard off;
    const int64_t position = static_cast<const char*>(fault) - first;
    fail(op, what, ": got ", of.reshape({-1}).select(0, position).item(), " at position ", position,
         " of ", describe(of));
  });
}

namespace {

// The position in memory of the first index that is out of range, or -1.
int64_t first_bad(const Tensor& dense, int64_t low, int64_t size, std::optional<int64_t> ignored) {
  int64_t bad = -1;
  kernels::check_index(dense.stream(),
                       {static_cast<const int64_t*>(dense.ptr()), dense.numel(), 1, low, size,
                        ignored.value_or(0), ignored.has_value(), &bad, nullptr, 0});
  return bad;
}

// An expanded index without its repetitions: the index of rows, used for all of their columns.
Tensor unrepeated(const Tensor& index) {
  Tensor once = index;
  for (int64_t d = 0; d < index.dim(); ++d)
    if (index->strides()[d] == 0 && index->sizes()[d] > 1) once = once.narrow(d, 0, 1);
  return once;
}

}  // namespace

void check_indices(const char* op, const Tensor& index, int64_t low, int64_t size, const char* what,
                   std::optional<int64_t> ignored) {
  if (index.numel() == 0) return;
  if (RAMET_UNLIKELY(!index.is_cpu()))
    return look(index.contiguous(), ignored, {op, what, true, low, size});
  if (RAMET_UNLIKELY(capture::active())) {
    // A handle of this function's own, so that the index lives as long as the capture's list.
    const Tensor seen = index.contiguous().shallow();
    seen.ptr();  // the capture owns its memory from here on
    capture::host_work([op, seen, low, size, what = std::string(what), ignored] {
      check_indices(op, seen, low, size, what.c_str(), ignored);
    });
    return;
  }
  if (RAMET_LIKELY(first_bad(unrepeated(index).contiguous(), low, size, ignored) < 0)) return;
  const Tensor dense = index.contiguous();  // the whole index, to report the position
  const int64_t bad = first_bad(dense, low, size, ignored);
  const auto* values = static_cast<const int64_t*>(dense.ptr());
  throw IndexError(detail::join("[", op, "] index out of range: got ", values[bad], " at position ",
                                bad, " of ", describe(index), ", expected [", low, ", ", size,
                                ") (", what, ")"));
}

int64_t check_gather(const char* op, const Tensor& self, int64_t dim, const Tensor& index) {
  check_defined(op, self);
  check_defined(op, index);
  same_place(op, self, index);
  const int64_t d = wrap_dim(op, dim, self.dim());
  if (index.numel() == 0) return d;
  RAMET_CHECK(index.scalar_type() == kLong || index.scalar_type() == kInt, op,
              "Expected dtype int64 for index: got ", describe(index));
  RAMET_CHECK(std::max<int64_t>(index.dim(), 1) == std::max<int64_t>(self.dim(), 1), op,
              "Index tensor must have the same number of dimensions as self tensor: got ",
              describe(index), ", expected rank ", self.dim());
  for (int64_t i = 0; i < index.dim(); ++i)
    RAMET_CHECK(i == d || index.size(i) <= (self.dim() == 0 ? 1 : self.size(i)), op,
                "Size does not match at dimension ", i, ": got index ", index.sizes(),
                ", expected no larger than self ", self.sizes(), " apart from dimension ", d);
  check_indices(op, index.scalar_type() == kLong ? index : index.to(kLong), 0,
                self.dim() == 0 ? 1 : self.size(d), "extent of the dimension");
  return d;
}
Tensor gather_index(const char* op, const Tensor& index) {
  return index.numel() ? index_as_long(op, index) : index.to(kLong);
}
Tensor at_least_1d(const Tensor& t) { return t.dim() == 0 ? t.reshape({1}) : t; }

Tensor corner(const char* op, const Tensor& src, const Tensor& index) {
  Tensor s = at_least_1d(src);
  if (index.numel() == 0) return s;
  RAMET_CHECK(s.dim() == std::max<int64_t>(index.dim(), 1), op,
              "Index tensor must have the same number of dimensions as src tensor: got ",
              describe(index), " and ", describe(src));
  for (int64_t d = 0; d < index.dim(); ++d) {
    RAMET_CHECK(index.size(d) <= s.size(d), op, "Expected index ", index.sizes(),
                " to be no larger than src ", src.sizes());
    if (index.size(d) < s.size(d)) s = s.narrow(d, 0, index.size(d));
  }
  return s;
}

int64_t check_select(const char* op, const Tensor& self, int64_t dim, const Tensor& index) {
  check_defined(op, self);
  check_defined(op, index);
  same_place(op, self, index);
  const int64_t d = wrap_dim(op, dim, self.dim());
  RAMET_CHECK(index.dim() <= 1, op, "Index is supposed to be a vector: got ", describe(index));
  check_indices(op, index_as_long(op, index), 0, self.dim() == 0 ? 1 : self.size(d),
                "extent of the dimension");
  return d;
}

// Should 16-bit sums be computed in a float copy of x, so that each is rounded once? Yes, where the
// loop is split into several. Also on a CPU, where x is hardly larger than the values added.
// (Elsewhere the kernel sorts. Sorting takes as long as some columns, whatever the size of x.)
bool IndexLoop::widens(kernels::IndexMode mode, const TensorBase& x) const {
  constexpr double kSorting = 16;
  if (mode != kernels::IndexMode::kAdd || item_size(x.scalar_type()) != 2 ||
      !is_floating(x.scalar_type()))
    return false;
  double meetings = 1, places = 1, columns = 1;
  for (int d = 0; d < rank; ++d) {
    bool moves = false;
    for (int k = 0; k < indices; ++k) moves = moves || strides[kIndices + k][d] != 0;
    if (strides[kX][d] == 0) meetings *= static_cast<double>(sizes[d]);
    else if (!moves) columns *= static_cast<double>(sizes[d]);
  }
  for (int k = 0; k < indices; ++k) places *= static_cast<double>(index_size[k]);
  return meetings > 1 && (rank > kernels::kMaxKernelRank ||
                          (x.is_cpu() && places * columns <= meetings * (columns + kSorting)));
}

// Copies the part of x that the loop may reach into a dense float tensor. That part has the
// dimensions that the index tensors choose from, and those in which x moves. Runs the loop there,
// and copies the part back.
void IndexLoop::run_wide(const TensorBase& x, const TensorBase& y, std::optional<int64_t> skipped) {
  std::vector<int64_t> extents(index_size, index_size + indices),
      steps(index_step, index_step + indices);
  for (int d = 0; d < rank; ++d)
    if (strides[kX][d] != 0) extents.push_back(sizes[d]), steps.push_back(strides[kX][d]);
  const TensorBase part(x.view_impl(extents, steps, 0));
  const TensorBase wide = TensorBase::empty(extents, kFloat, x.device());
  copy_values(wide, part);
  IndexLoop loop = *this;
  const int64_t* step = wide->strides();
  for (int k = 0; k < indices; ++k) loop.index_step[k] = *step++;
  for (int d = 0; d < rank; ++d)
    if (strides[kX][d] != 0) loop.strides[kX][d] = *step++;
  loop.run(kernels::IndexMode::kAdd, wide, y, skipped);
  copy_values(part, wide);
}

void IndexLoop::run(kernels::IndexMode mode, const TensorBase& tx, const TensorBase& ty,
                    std::optional<int64_t> skipped) {
  for (int d = 0; d < rank; ++d)
    if (sizes[d] == 0) return;
  // The order matters where several tuples name one element, so dimensions keep their order.
  rank = kernels::merge_neighbours(kIndices + indices, rank, sizes, strides);
  if (rank == 0) push(1, 0, 0);
  if (widens(mode, tx)) return run_wide(tx, ty, skipped);
  const int outer = std::max(rank - kernels::kMaxKernelRank, 0);
  kernels::IndexArgs a;
  a.dtype = tx.scalar_type();
  a.y_dtype = ty.scalar_type();
  a.mode = mode;
  a.rank = rank - outer;
  a.indices = indices;
  a.skipped = skipped.value_or(indices > 0 ? index_size[0] : 0);
  for (int d = 0; d < a.rank; ++d) {
    a.sizes[d] = sizes[outer + d];
    a.x_strides[d] = strides[kX][outer + d], a.y_strides[d] = strides[kY][outer + d];
    for (int k = 0; k < indices; ++k) a.index_strides[k][d] = strides[kIndices + k][outer + d];
  }
  for (int k = 0; k < indices; ++k)
    a.index_size[k] = index_size[k], a.index_step[k] = index_step[k];
  const Tensor workspace = scratch(kernels::index_workspace(a, tx.is_cpu()), tx.device());
  a.workspace = pointer(workspace);
  const auto bytes = static_cast<int64_t>(item_size(a.dtype)),
             y_bytes = static_cast<int64_t>(item_size(a.y_dtype));
  char *const x = static_cast<char*>(tx.ptr()), *const y = static_cast<char*>(ty.ptr());
  kernels::over_outer<kOperands>(outer, sizes, strides, [&](const int64_t* offset) {
    a.x = x + offset[kX] * bytes, a.y = y + offset[kY] * y_bytes;
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
                 const Tensor& y, std::optional<int64_t> skipped) {
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
