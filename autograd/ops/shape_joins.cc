#include "autograd/ops/shape_joins.h"

#include <algorithm>

#include "autograd/ops/copy.h"
#include "autograd/ops/front/common.h"
#include "autograd/ops/front/out_front.h"
#include "autograd/ops/view.h"
#include "runtime/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

bool skipped(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

struct Join {
  int64_t dim = 0;
  std::vector<int64_t> shape;
  ScalarType dtype = kFloat;
  Device device = Device(kCPU, 0);
};

Join plan(const char* op, TensorList tensors, int64_t dim) {
  RAMET_CHECK(!tensors.empty(), op, "expected a non-empty list of Tensors");
  Join j;
  const Tensor* model = nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    check_defined(op, t);
    RAMET_CHECK(t.dim() > 0, op, "zero-dimensional tensor (at position ", i,
                ") cannot be concatenated");
    RAMET_CHECK(t->device == tensors[0]->device, op,
                "Expected all tensors to be on the same device, but found at least two devices, ",
                tensors[0].device(), " and ", t.device(), "! Got ", describe(t), " at position ",
                i);
    j.dtype = i == 0 ? t.scalar_type() : promote_types(j.dtype, t.scalar_type());
    if (!model && !skipped(t)) model = &t;
  }
  j.device = tensors[0].device();
  if (!model) {
    j.shape = {0};
    return j;
  }
  j.dim = wrap_dim(op, dim, model->dim());
  j.shape = model->sizes().vec();
  j.shape[static_cast<size_t>(j.dim)] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (skipped(t)) continue;
    RAMET_CHECK(t.dim() == model->dim(), op, "Tensors must have same number of dimensions: got ",
                model->dim(), " and ", t.dim(), " at position ", i);
    for (int64_t d = 0; d < t.dim(); ++d)
      RAMET_CHECK(d == j.dim || t.size(d) == model->size(d), op,
                  "Sizes of tensors must match except in dimension ", j.dim, ". Expected size ",
                  model->size(d), " but got size ", t.size(d), " for tensor number ", i,
                  " in the list.");
    int64_t& joined = j.shape[static_cast<size_t>(j.dim)];
    joined = checked_add(op, "sizes of the joined dimension", joined, t.size(j.dim));
  }
  return j;
}

void write(const Join& j, TensorList tensors, const TensorBase& out) {
  int64_t start = 0;
  const int64_t step = out->strides()[j.dim];
  std::vector<int64_t> sizes = j.shape;
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    sizes[static_cast<size_t>(j.dim)] = t.size(j.dim);
    copy_values(TensorBase(out.view_impl(sizes, out.raw_strides(), start * step)), t);
    start += t.size(j.dim);
  }
}

bool any_records(TensorList tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return recording(t); });
}

}  // namespace

Tensor cat(TensorList tensors, int64_t dim) {
  const Join j = plan("cat", tensors, dim);
  Tensor out(TensorBase::empty(j.shape, j.dtype, j.device));
  write(j, tensors, out);
  if (!any_records(tensors)) return out;
  std::vector<Meta> inputs;
  for (const Tensor& t : tensors) inputs.emplace_back(t);
  return record_list(
      "CatBackward0", tensors, std::move(out),
      [d = j.dim, inputs](const Node& node, const Tensor& g, std::vector<Tensor>& grads) {
        int64_t start = 0;
        for (size_t i = 0; i < inputs.size(); ++i) {
          const Meta& m = inputs[i];
          const bool skip = m.rank == 1 && m.sizes[0] == 0;
          const int64_t n = skip ? 0 : m.shape()[static_cast<size_t>(d)];
          if (node.needs(static_cast<int>(i)))
            grads[i] = m.reduce(skip ? g.reshape(-1).narrow(0, 0, 0) : g.narrow(d, start, n));
          start += n;
        }
      });
}

Tensor& cat_out(Tensor& out, TensorList tensors, int64_t dim) {
  const Join j = plan("cat", tensors, dim);
  check_out_device("cat_out", out, j.device);
  for (const Tensor& t : tensors)
    RAMET_CHECK(!t.may_overlap(out), "cat_out",
                "unsupported operation: the input tensors cannot refer to any of the "
                "output memory locations. Got ",
                describe(t));
  prepare_out("cat_out", out, j.shape, j.dtype, any_records(tensors));
  write(j, tensors, out);
  wrote("cat_out", out);
  return out;
}

Tensor concat(TensorList tensors, int64_t dim) { return cat(tensors, dim); }

Tensor stack(TensorList tensors, int64_t dim) {
  RAMET_CHECK(!tensors.empty(), "stack", "expects a non-empty TensorList");
  for (const Tensor& t : tensors) {
    check_defined("stack", t);
    RAMET_CHECK(t.sizes() == tensors[0].sizes(), "stack",
                "expects each tensor to be equal size, but got ", tensors[0].sizes(),
                " at entry 0 and ", t.sizes(), " at entry ", &t - tensors.data());
  }
  const int64_t d = wrap_dim("stack", dim, tensors[0].dim() + 1);
  std::vector<Tensor> parts;
  parts.reserve(tensors.size());
  if (!any_records(tensors)) {
    const NoGradGuard off;
    for (const Tensor& t : tensors) parts.push_back(t.unsqueeze(d));
    return cat(parts, d);
  }
  Tensor out;
  {
    const NoGradGuard off;
    for (const Tensor& t : tensors) parts.push_back(t.shallow().unsqueeze(d));
    out = cat(parts, d);
  }
  std::vector<ScalarType> dtypes;
  for (const Tensor& t : tensors) dtypes.push_back(t.scalar_type());
  return record_list("StackBackward0", tensors, std::move(out),
                     [d, dtypes](const Node& node, const Tensor& g, std::vector<Tensor>& grads) {
                       for (size_t i = 0; i < dtypes.size(); ++i)
                         if (node.needs(static_cast<int>(i)))
                           grads[i] = g.select(d, static_cast<int64_t>(i)).to(dtypes[i]);
                     });
}

Tensor hstack(TensorList tensors) {
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    check_defined("hstack", t);
    parts.push_back(t.dim() == 0 ? t.reshape({1}) : t);
  }
  RAMET_CHECK(!parts.empty(), "hstack", "expects a non-empty TensorList");
  return cat(parts, parts[0].dim() == 1 ? 0 : 1);
}

Tensor vstack(TensorList tensors) {
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    check_defined("vstack", t);
    parts.push_back(t.dim() < 2 ? t.reshape({1, -1}) : t);
  }
  return cat(parts, 0);
}

Tensor& concat_out(Tensor& out, TensorList tensors, int64_t dim) {
  return cat_out(out, tensors, dim);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/shape_joins.inc"

}  // namespace ramet
