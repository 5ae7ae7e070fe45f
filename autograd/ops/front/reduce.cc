#include "autograd/ops/front/reduce_internal.h"

#include "autograd/graph/view.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "kernels/reduce/reduce_plan.h"

namespace ramet {
namespace autograd {

ReducedDims reduced_dims(const char* op, const Tensor& x, OptionalIntArrayRef dim, bool keepdim) {
  check_defined(op, x);
  const int64_t rank = x.dim();
  ReducedDims dims;
  dims.keepdim = keepdim;
  if (!dim.has_value() || dim.value().empty()) {
    dims.mask = rank == 64 ? ~uint64_t{0} : (uint64_t{1} << rank) - 1;
    return dims;
  }
  for (int64_t d : dim.value()) {
    const uint64_t bit = uint64_t{1} << wrap_dim(op, d, rank);
    RAMET_CHECK(!(dims.mask & bit), op, "dim ", d,
                " appears multiple times in the list of dims: got ", dim.value());
    dims.mask |= bit;
  }
  if (rank == 0) dims.mask = 0;
  return dims;
}

void add_dims(Arguments& to, ReducedDims dims, const Tensor& x) {
  std::vector<int64_t> list;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (dims.has(d)) list.push_back(d);
  to("dim", list);
  to("keepdim", dims.keepdim);
}

int64_t reduced_count(const Tensor& x, ReducedDims dims) {
  int64_t n = 1;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (dims.has(d)) n *= x->sizes()[d];
  return n;
}

void check_not_empty(const char* op, const Tensor& x, ReducedDims dims, bool one_dim) {
  if (RAMET_LIKELY(x.numel() > 0)) return;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (!dims.has(d) || x->sizes()[d] != 0) continue;
    if (one_dim)
      throw IndexError(detail::join("[", op, "] Expected reduction dim ", d,
                                    " to have non-zero size: got ", describe(x)));
    fail(op,
         "Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
         "with the 'dim' argument. Got ",
         describe(x));
  }
}

namespace {

// For more than 8 dimensions that do not merge: a copy with the reduced ones last has only two.
[[gnu::noinline]] Tensor reduced_last(const Tensor& x, ReducedDims dims, bool* gone) {
  std::vector<int64_t> order;
  for (int pass = 0; pass < 2; ++pass)
    for (int64_t d = 0; d < x.dim(); ++d)
      if (dims.has(d) == (pass == 1)) {
        gone[order.size()] = pass == 1;
        order.push_back(d);
      }
  const NoGradGuard off;
  return permute(x.shallow(), order).contiguous();
}

}  // namespace

Tensor run_reduce(kernels::ReduceOp op, const Tensor& x, ReducedDims dims, ScalarType dtype,
                  double parameter, Tensor* extra, bool only_extra) {
  kernels::ReduceArgs a;
  bool gone[kMaxRank];
  int64_t sizes[kMaxRank];
  const int rank = static_cast<int>(x.dim());
  size_t kept = 0;
  for (int d = 0; d < rank; ++d) {
    gone[d] = dims.has(d);
    if (!gone[d] || dims.keepdim) sizes[kept++] = gone[d] ? 1 : x->sizes()[d];
  }
  a.op = op;
  a.parameter = parameter;
  TensorBase in = x.steady();
  const bool gpu = !x.is_cpu();
  if (RAMET_UNLIKELY(!kernels::plan_reduce(a, rank, in->sizes(), in->strides(), gone, gpu))) {
    in = reduced_last(x, dims, gone);
    kernels::plan_reduce(a, rank, in->sizes(), in->strides(), gone, gpu);
  }
  const IntArrayRef shape(sizes, kept);
  const bool places = op == kernels::ReduceOp::kMaxIndex || op == kernels::ReduceOp::kMinIndex;
  const Tensor workspace = scratch(a.workspace_bytes, x.device());
  Tensor out;
  if (!only_extra) out = Tensor(TensorBase::empty(shape, dtype, x.device()));
  if (extra) *extra = Tensor(TensorBase::empty(shape, places ? kLong : dtype, x.device()));
  a.in = in.ptr();
  a.out = only_extra ? nullptr : out->data;
  a.extra = extra ? (*extra)->data : nullptr;
  a.workspace = pointer(workspace);
  a.in_dtype = x.scalar_type();
  a.out_dtype = dtype;
  kernels::reduce(x.stream(), a);
  return out;
}

Tensor even_shares(const Tensor& winners, ReducedDims dims, ScalarType dtype) {
  const Tensor w = winners.to(dtype);
  dims.keepdim = true;
  return w.div(run_reduce(kernels::ReduceOp::kSum, w, dims, compute_type(dtype)));
}

Tensor spread(const Tensor& g, IntArrayRef sizes, ReducedDims dims) {
  int64_t strides[kMaxRank];
  const IntArrayRef from = g.strides();
  size_t at = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool gone = dims.has(static_cast<int64_t>(d));
    strides[d] = gone ? 0 : from[at];
    at += !gone || dims.keepdim;
  }
  Tensor v = make_view(g, sizes, {strides, sizes.size()}, 0);
  if (!recording(g)) return v;
  return record("ExpandBackward0", {g}, std::move(v), [dims](const Node&, const Tensor& gg) {
    if (dims.mask == 0) return gg;  // of a 0-dim tensor
    int64_t list[kMaxRank];
    size_t n = 0;
    for (int64_t d = 0; d < gg.dim(); ++d)
      if (dims.has(d)) list[n++] = d;
    return sum(gg, IntArrayRef(list, n), dims.keepdim);
  });
}

}  // namespace autograd
}  // namespace ramet
