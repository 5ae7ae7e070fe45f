// scatter and gather.
#include <algorithm>
#include <numeric>

#include "autograd/graph/graph_observer.h"
#include "autograd/graph/inplace.h"
#include "autograd/graph/layout.h"
#include "autograd/ops/make/copy.h"
#include "parallel/move/comm.h"
#include "parallel/move/movement_internal.h"
#include "parallel/move/pieces_internal.h"
#include "runtime/base/checked_size.h"

using ramet::detail::tls;

namespace ramet {
namespace parallel {
namespace detail {

std::vector<int64_t> scatter_sizes(const Tensor& t, size_t devices, const ScatterOptions& options,
                                   int64_t& dim) {
  RAMET_CHECK(t.defined(), "scatter", "undefined tensor");
  RAMET_CHECK(devices != 0, "scatter", "Expected at least one device to scatter to");
  RAMET_CHECK(t.dim() > 0, "scatter", "chunk expects at least a 1-dimensional tensor: got ",
              describe(t));
  dim = wrap_dim("scatter", options.dim, t.dim());
  return options.split.cut("scatter", t.size(dim), devices, options.parity);
}

Tensor scatter_piece(const Tensor& x, Device device, int64_t dim, int64_t start, int64_t length,
                     Own own) {
  const bool here = device == x.device() && own != Own::kCopy;
  if (here) autograd::settle(x);  // before any other code sees its memory
  const Tensor piece = narrowed(x, dim, start, length);
  if (here) return own == Own::kShared ? shared(piece) : piece;
  Tensor out = empty_in_layout_of(x, piece.sizes(), device);
  copy(out, piece);
  return out;
}

std::vector<Tensor> scatter_pieces(const Tensor& x, ArrayRef<Device> devices,
                                   ArrayRef<int64_t> sizes, int64_t dim, Own own) {
  const uint64_t begun = autograd::movement_begins();
  std::vector<Tensor> out;
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); start += sizes[i++])
    out.push_back(scatter_piece(x, devices[i], dim, start, sizes[i], own));
  if (begun) autograd::tell_moved("scatter", x, out, begun);
  return out;
}

Concatenation plan_gather(ArrayRef<Tensor> tensors, int64_t dim, bool promote) {
  RAMET_CHECK(!tensors.empty(), "gather", "Expected at least one tensor to gather from");
  Concatenation plan;
  std::vector<size_t> scalars;
  for (size_t i = 0; i < tensors.size(); ++i) {
    RAMET_CHECK(tensors[i].defined(), "gather", "tensor at index ", i, " is undefined");
    if (tensors[i].dim() == 0) scalars.push_back(i);
  }
  plan.scalars = scalars.size() == tensors.size();
  RAMET_CHECK(plan.scalars || scalars.empty(), "gather",
              "got 0-dim tensors among others, expected all or none of them to be 0-dim; 0-dim at ",
              ArrayRef<size_t>(scalars));
  const Tensor& first = tensors[0];
  RAMET_CHECK(!plan.scalars || dim == 0 || dim == -1, "gather", "dim: got ", dim,
              ", expected 0 as all input tensors are 0-dim");
  plan.dim = plan.scalars ? 0 : wrap_dim("gather", dim, first.dim());
  plan.dtype = first.scalar_type();
  plan.sizes = plan.scalars ? std::vector<int64_t>{0} : first.sizes().vec();
  const auto d = static_cast<size_t>(plan.dim);
  plan.sizes[d] = 0;
  plan.channels_last = !plan.scalars;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    RAMET_CHECK(
        t.dim() == first.dim(), "gather",
        "Expected all input tensors to have the same number of dimensions, but tensor at index ", i,
        " has ", t.dim(), " dimensions, (expected ", first.dim(), ")");
    std::vector<int64_t> expected = plan.sizes;
    if (!plan.scalars) {
      expected[d] = t.size(plan.dim);
      RAMET_CHECK(t.sizes() == IntArrayRef(expected), "gather", "Input tensor at index ", i,
                  " has invalid shape ", t.sizes(), ", but expected ", IntArrayRef(expected));
    }
    if (t.scalar_type() != plan.dtype) {
      RAMET_CHECK(promote, "gather",
                  "Expected all input tensors to have the same dtype, but tensor at index ", i,
                  " has ", name_of(t.scalar_type()), ", expected ", name_of(plan.dtype));
      plan.dtype = promote_types(plan.dtype, t.scalar_type());
    }
    plan.extents.push_back(plan.scalars ? 1 : t.size(plan.dim));
    plan.sizes[d] = checked_add("gather", "sum of extents", plan.sizes[d], plan.extents.back());
    // In this order: t may be settled between the two, and is no longer channels-last then.
    plan.internal = plan.internal && t->is(TensorImpl::kInternalLayout);
    plan.channels_last = plan.channels_last && !t.raw_contiguous() && autograd::is_channels_last(t);
  }
  return plan;
}

Tensor gather_result(const Concatenation& p, Device device) {
  if (!p.channels_last) return Tensor(TensorBase::empty(p.sizes, p.dtype, device));
  Tensor t = autograd::empty_channels_last(p.sizes[0], p.sizes[1], p.sizes[2], p.sizes[3], p.dtype,
                                           device);
  if (!p.internal) t->set(TensorImpl::kInternalLayout, false);
  return t;
}

void gather_into(const Tensor& out, ArrayRef<Tensor> tensors, const Concatenation& p) {
  const uint64_t begun = autograd::movement_begins();
  std::vector<Tensor> from, to;
  int64_t start = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Tensor piece = narrowed(out, p.dim, start, p.extents[i]);
    start += p.extents[i];
    if (piece.numel() == 0) continue;
    const Tensor t(tensors[i].steady());
    if (t->data == piece->data && same_strides(t, piece) && t.scalar_type() == p.dtype)
      continue;  // it is there already
    count(Count::kTransfers);
    count(Count::kLaunches);
    count_bytes(t->device, out->device, t.nbytes());
    from.push_back(p.scalars ? Tensor(t.view_impl({1}, {1}, 0)) : t);
    to.push_back(std::move(piece));
  }
  if (from.empty()) return;
  move(out.device(), from, {out}, [from, to] {
    for (size_t i = 0; i < from.size(); ++i) autograd::copy_values(to[i], from[i]);
  });
  if (begun) autograd::tell_moved("gather", tensors, out, begun);
}

Device destination_of(const Tensor& first, std::optional<Device> asked) {
  return resolve(asked ? *asked : Device(first.device().type()));
}

void check_out(const char* op, const Tensor& out, size_t i) {
  RAMET_CHECK(out.defined(), op, "output tensor at index ", i, " is undefined");
  RAMET_CHECK(
      !tls.grad_mode || !out.requires_grad(), op,
      "functions with out=... arguments don't support automatic differentiation, but output ",
      "tensor at index ", i, " requires grad");
  autograd::check_inplace(op, out);
}

}  // namespace detail

namespace comm {

std::vector<Tensor> scatter(const Tensor& t, ArrayRef<Device> devices,
                            const ScatterOptions& options) {
  int64_t dim;
  const std::vector<int64_t> sizes = detail::scatter_sizes(t, devices.size(), options, dim);
  return detail::scatter_pieces(
      t, detail::resolved(devices), sizes, dim,
      options.alias == Alias::view ? detail::Own::kShared : detail::Own::kCopy);
}

std::vector<Tensor> scatter(const Tensor& t, ArrayRef<Device> devices,
                            const std::optional<std::vector<int64_t>>& chunk_sizes, int64_t dim) {
  ScatterOptions options;
  if (chunk_sizes) options.split = Split::sizes(*chunk_sizes);
  options.dim = dim;
  return comm::scatter(t, devices, options);
}

std::vector<Tensor>& scatter_out(const Tensor& t, std::vector<Tensor>& out, int64_t dim) {
  RAMET_CHECK(t.defined(), "scatter_out", "undefined tensor");
  RAMET_CHECK(!out.empty(), "scatter_out", "Expected at least one output tensor to scatter to");
  RAMET_CHECK(t.dim() > 0, "scatter_out", "expected at least a 1-dimensional tensor: got ",
              describe(t));
  dim = wrap_dim("scatter_out", dim, t.dim());
  int64_t total = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    detail::check_out("scatter_out", out[i], i);
    std::vector<int64_t> expected = t.sizes().vec();
    RAMET_CHECK(out[i].dim() == t.dim(), "scatter_out", "Output tensor at index ", i,
                " has incorrect number of dimensions: got ", out[i].dim(), ", expected ", t.dim());
    expected[static_cast<size_t>(dim)] = out[i].size(dim);
    RAMET_CHECK(out[i].sizes() == IntArrayRef(expected), "scatter_out", "Output tensor at index ",
                i, " has incorrect shape: ", out[i].sizes(),
                ". Expected same shape except for scatter dim ", dim,
                " as the source tensor: ", t.sizes());
    RAMET_CHECK(out[i].scalar_type() == t.scalar_type(), "scatter_out", "Output tensor at index ",
                i, " has incorrect dtype: got ", name_of(out[i].scalar_type()), ", expected ",
                name_of(t.scalar_type()));
    total += out[i].size(dim);
  }
  RAMET_CHECK(total == t.size(dim), "scatter_out",
              "Total size for output tensors along scatter dim ", dim,
              " does not match the source tensor size at dim ", dim, ". Expected ", t.size(dim),
              ", but got total size ", total);
  int64_t start = 0;
  for (Tensor& o : out) {
    const Tensor piece = detail::narrowed(t, dim, start, o.size(dim));
    start += o.size(dim);
    if (o->data == piece->data && same_strides(o, piece)) continue;
    detail::copy(o, piece);
    autograd::wrote("scatter_out", o);
  }
  return out;
}

Tensor gather(ArrayRef<Tensor> tensors, int64_t dim, std::optional<Device> destination,
              bool promote) {
  const detail::Concatenation plan = detail::plan_gather(tensors, dim, promote);
  Tensor out = detail::gather_result(plan, detail::destination_of(tensors[0], destination));
  detail::gather_into(out, tensors, plan);
  return out;
}

Tensor& gather_out(ArrayRef<Tensor> tensors, Tensor& out, int64_t dim) {
  const detail::Concatenation plan = detail::plan_gather(tensors, dim, false);
  detail::check_out("gather_out", out, 0);
  RAMET_CHECK(out.sizes() == IntArrayRef(plan.sizes), "gather_out",
              "Expected out tensor to have shape ", IntArrayRef(plan.sizes), ", but got ",
              out.sizes());
  RAMET_CHECK(out.scalar_type() == plan.dtype, "gather_out", "Expected out tensor to have dtype ",
              name_of(plan.dtype), ", but got ", name_of(out.scalar_type()));
  detail::gather_into(out, tensors, plan);
  autograd::wrote("gather_out", out);
  return out;
}

}  // namespace comm
}  // namespace parallel
}  // namespace ramet
