#include "autograd/ops/shape/cat.h"

#include <algorithm>

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/view.h"
#include "runtime/base/checked_size.h"

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

static Tensor cat_body(TensorList tensors, int64_t dim) {
  const Join j = plan("cat", tensors, dim);
  Tensor out(TensorBase::empty(j.shape, j.dtype, j.device));
  write(j, tensors, out);
  if (!any_records(tensors)) return out;
  std::vector<Meta> inputs;
  for (const Tensor& t : tensors) inputs.emplace_back(t);
  return record_list(
      "CatBackward0", tensors, std::move(out),
      saves_nothing(
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
          }),
      [&](Arguments& to) { to("dim", j.dim); });
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

static Tensor stack_body(TensorList tensors, int64_t dim) {
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
  return record_list(
      "StackBackward0", tensors, std::move(out),
      saves_nothing([d, dtypes](const Node& node, const Tensor& g, std::vector<Tensor>& grads) {
        for (size_t i = 0; i < dtypes.size(); ++i)
          if (node.needs(static_cast<int>(i)))
            grads[i] = g.select(d, static_cast<int64_t>(i)).to(dtypes[i]);
      }),
      [&](Arguments& to) { to("dim", d); });
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

Tensor dstack(TensorList tensors) {
  RAMET_CHECK(!tensors.empty(), "dstack", "expects a non-empty TensorList");
  return cat(atleast_3d(tensors), 2);
}

Tensor column_stack(TensorList tensors) {
  RAMET_CHECK(!tensors.empty(), "column_stack", "expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    check_defined("column_stack", t);
    parts.push_back(t.dim() < 2 ? t.reshape({t.numel(), 1}) : t);
  }
  return hstack(parts);
}

Tensor block_diag(TensorList tensors) {
  const char* op = "block_diag";
  if (tensors.empty()) return empty({1, 0});
  std::vector<Meta> inputs;
  std::vector<int64_t> corners;  // of each block: first row and column, and end row and column
  int64_t rows = 0, cols = 0;
  for (const Tensor& t : tensors) {
    check_defined(op, t);
    RAMET_CHECK(t.dim() <= 2, op, "Input tensors must have 2 or fewer dimensions. Input ",
                &t - tensors.data(), " has ", t.dim(), " dimensions");
    RAMET_CHECK(t->device == tensors[0]->device, op,
                "input tensors must all be on the same device. Input 0 is on device ",
                tensors[0].device(), " and input ", &t - tensors.data(), " is on device ",
                t.device());
    inputs.emplace_back(t);
    corners.push_back(rows), corners.push_back(cols);
    rows = checked_add(op, "rows", rows, t.dim() == 2 ? t.size(0) : 1);
    cols = checked_add(op, "columns", cols, t.dim() ? t.size(-1) : 1);
    corners.push_back(rows), corners.push_back(cols);
  }
  const auto block = [corners](const Tensor& of, size_t i) {
    const int64_t* c = &corners[4 * i];
    return of.slice(0, c[0], c[2]).slice(1, c[1], c[3]);
  };
  Tensor out(TensorBase::empty({rows, cols}, result_type(tensors), tensors[0].device()));
  {
    const NoGradGuard off;
    out.zero_();
    for (size_t i = 0; i < tensors.size(); ++i) block(out, i).copy_(tensors[i].shallow());
  }
  if (!any_records(tensors)) return out;
  return record_list(
      "BlockDiagBackward0", tensors, std::move(out),
      saves_nothing([block, inputs](const Node& node, const Tensor& g, std::vector<Tensor>& grads) {
        for (size_t i = 0; i < inputs.size(); ++i)
          if (node.needs(static_cast<int>(i)))
            grads[i] = inputs[i].reduce(block(g, i).reshape(inputs[i].shape()));
      }));
}

Tensor atleast_1d(const Tensor& self) {
  check_defined("atleast_1d", self);
  return self.dim() == 0 ? self.reshape({1}) : self;
}
Tensor atleast_2d(const Tensor& self) {
  check_defined("atleast_2d", self);
  return self.dim() >= 2 ? self : atleast_1d(self).unsqueeze(0);
}
Tensor atleast_3d(const Tensor& self) {
  check_defined("atleast_3d", self);
  return self.dim() >= 3 ? self : atleast_2d(self).unsqueeze(-1);
}

namespace {
std::vector<Tensor> of_each(TensorList tensors, Tensor (*f)(const Tensor&)) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(f(t));
  return out;
}
}  // namespace

std::vector<Tensor> atleast_1d(TensorList tensors) { return of_each(tensors, atleast_1d); }
std::vector<Tensor> atleast_2d(TensorList tensors) { return of_each(tensors, atleast_2d); }
std::vector<Tensor> atleast_3d(TensorList tensors) { return of_each(tensors, atleast_3d); }

#include "autograd/forms/definitions.inc"
#include "autograd/ops/shape/cat.inc"

}  // namespace ramet
