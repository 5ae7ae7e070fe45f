#include "autograd/ops/index/mask.h"

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/view.h"
#include "kernels/index/mask.h"
#include "runtime/base/checked_size.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;

namespace {

void check_mask(const char* op, const Tensor& x, const Tensor& mask) {
  check_defined(op, x);
  check_defined(op, mask);
  RAMET_CHECK(mask.scalar_type() == kBool, op, "only supports boolean masks: got mask ",
              describe(mask));
  if (!is_host_number(mask)) check_same_device(op, x, mask);
}

void fill_into(const Tensor& out, const Tensor& x, const Tensor& mask, const Operand& value) {
  // Converted to bool, a fraction is true; computed with whole numbers it would be 0.
  if (x.scalar_type() == kBool) {
    const Tensor as_bool = value.tensor ? value.tensor->detach().to(kBool) : Tensor();
    const Operand v = value.tensor ? Operand(as_bool) : Operand(Scalar(value.value.toBool()));
    return pointwise_into(RAMET_POINTWISE(where), out, kLong, mask, v, x);
  }
  pointwise_into(RAMET_POINTWISE(where), out, compute_type(x.scalar_type()), mask, value, x);
}

void check_value(const char* op, const Tensor& value) {
  check_defined(op, value);
  RAMET_CHECK(value.dim() == 0, op, "only supports a 0-dimensional value tensor: got ",
              describe(value));
}

// The gradient of a tensor `value`: the sum over the elements that it replaced.
Tensor value_gradient(const Tensor& g, const Tensor& mask, const Meta& value) {
  return value.reduce(g.masked_fill(mask.logical_not(), 0).sum());
}

// The prefix counts of a dense mask; the last one is the total.
Tensor counts_of(const Tensor& mask) {
  Tensor counts(TensorBase::empty(kernels::mask_offsets(mask.numel()), kLong, mask.device()));
  kernels::mask_count(mask.stream(),
                      {mask.ptr(), mask.numel(), static_cast<int64_t*>(counts->data)});
  return counts;
}
const int64_t* values(const Tensor& counts) { return static_cast<const int64_t*>(counts->data); }
void refuse_size(const char* op) {
  capture::refuse(op, "the size of the result depends on values");
}
int64_t total(const char* op, const Tensor& counts) {
  refuse_size(op);
  return value_of(counts.select(0, counts.numel() - 1)).toLong();
}

void move(const Tensor& mask, const Tensor& counts, void* dense, void* packed, ScalarType t,
          bool scatter) {
  kernels::mask_move(mask.stream(), {mask.ptr(), values(counts), dense, packed, mask.numel(),
                                     static_cast<int64_t>(item_size(t)), scatter});
}

Tensor select_dense(const Tensor& x, const Tensor& mask);

// Puts g's elements where the mask is true, in zeros of the mask's shape: the adjoint of
// select_dense().
Tensor place_dense(const Tensor& g, const Tensor& mask) {
  Tensor out(TensorBase::empty(mask.sizes(), g.scalar_type(), g.device()));
  fill_values(out, 0);
  const Tensor packed = g.contiguous();
  move(mask, counts_of(mask), out->data, packed.ptr(), g.scalar_type(), true);
  if (!recording(g)) return out;
  return record("MaskedSelectBackward0", {g}, std::move(out),
                [sm = save(mask)](const Node& node, const Tensor& gg) {
                  return select_dense(gg, sm.get(node));
                });
}

// Selects elements; x and the dense mask have the same sizes.
Tensor select_dense(const Tensor& x, const Tensor& mask) {
  const Tensor dense = x.shallow().contiguous(), counts = counts_of(mask);
  Tensor out(TensorBase::empty(total("masked_select", counts), x.scalar_type(), x.device()));
  move(mask, counts, dense.ptr(), out->data, x.scalar_type(), false);
  if (!recording(x)) return out;
  return record("MaskedSelectBackward0", {x}, std::move(out),
                [sm = save(mask)](const Node& node, const Tensor& g) {
                  return place_dense(g, sm.get(node));
                });
}

// The mask on the device of the kernels that read it: a 0-dim mask may be on the host.
Tensor expanded_mask(const Tensor& mask, IntArrayRef sizes, Device device) {
  return expand(mask.to(device), sizes).contiguous();
}

}  // namespace

Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value) {
  check_mask("masked_fill", self, mask);
  check_fits(value, self.scalar_type());
  Tensor out = pointwise_result("masked_fill", self.scalar_type(), self, &mask);
  fill_into(out, self, mask, value);
  if (!recording(self)) return out;
  return record(
      "MaskedFillBackward0", {self}, std::move(out),
      [m = Meta(self), sm = save(mask)](const Node& node, const Tensor& g) {
        return m.reduce(g.masked_fill(sm.get(node), 0));
      },
      [&](Arguments& to) { to("mask", mask), to("value", value); });
}

Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  check_mask("masked_fill", self, mask);
  check_value("masked_fill", value);
  Tensor out = pointwise_result("masked_fill", self.scalar_type(), self, &mask);
  fill_into(out, self, mask, value);
  if (!recording(self, value)) return out;
  return record(
      "MaskedFillBackward1", {self, value}, std::move(out),
      [m = Meta(self), mv = Meta(value), sm = save(mask)](const Node& node, const Tensor& g) {
        return std::array{node.needs(0) ? m.reduce(g.masked_fill(sm.get(node), 0)) : Tensor(),
                          node.needs(1) ? value_gradient(g, sm.get(node), mv) : Tensor()};
      },
      [&](Arguments& to) { to("mask", mask); });
}

Tensor& Tensor::masked_fill_(const Tensor& mask, const Scalar& value) const {
  check_mask("masked_fill_", *this, mask);
  check_fits(value, scalar_type());
  check_inplace("masked_fill_", *this);
  check_output("masked_fill_", *this, broadcast_sizes("masked_fill_", sizes(), mask.sizes()),
               scalar_type());
  const Saved sm = save_if(recording(*this), mask);
  fill_into(*this, *this, mask, value);
  wrote("masked_fill_", *this);
  if (recording(*this)) {
    record_inplace(
        "MaskedFillBackward0", {*this}, *this,
        [sm](const Node& node, const Tensor& g) { return g.masked_fill(sm.get(node), 0); },
        [&](Arguments& to) { to("mask", mask), to("value", value); });
  }
  return as_mutable(*this);
}

Tensor& Tensor::masked_fill_(const Tensor& mask, const Tensor& value) const {
  check_mask("masked_fill_", *this, mask);
  check_value("masked_fill_", value);
  check_inplace("masked_fill_", *this, value);
  check_output("masked_fill_", *this, broadcast_sizes("masked_fill_", sizes(), mask.sizes()),
               scalar_type());
  const Saved sm = save_if(recording(*this, value), mask);
  fill_into(*this, *this, mask, value);
  wrote("masked_fill_", *this);
  if (recording(*this, value)) {
    record_inplace("MaskedFillBackward1", {*this, value}, *this,
                   [mv = Meta(value), sm](const Node& node, const Tensor& g) {
                     return std::array{
                         node.needs(0) ? g.masked_fill(sm.get(node), 0) : Tensor(),
                         node.needs(1) ? value_gradient(g, sm.get(node), mv) : Tensor()};
                   });
  }
  return as_mutable(*this);
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  check_mask("masked_select", self, mask);
  const std::vector<int64_t> shape = broadcast_sizes("masked_select", self.sizes(), mask.sizes());
  return select_dense(self.sizes() == shape ? self : expand(self, shape),
                      expanded_mask(mask, shape, self.device()));
}

Tensor masked_scatter(const Tensor& self, const Tensor& mask_, const Tensor& source) {
  check_mask("masked_scatter", self, mask_);
  check_defined("masked_scatter", source);
  RAMET_CHECK(self.scalar_type() == source.scalar_type(), "masked_scatter",
              "expected self and source to have same dtypes but got ", describe(self), " and ",
              describe(source));
  check_same_device("masked_scatter", self, source);
  const std::vector<int64_t> shape = broadcast_sizes("masked_scatter", self.sizes(), mask_.sizes());
  const Tensor mask = expanded_mask(mask_, shape, self.device()), counts = counts_of(mask);
  const int64_t n = total("masked_scatter", counts);
  RAMET_CHECK(n <= source.numel(), "masked_scatter", "source: got ", source.numel(),
              " elements, expected at least ", n, ", one for each true of the mask");
  Tensor out(TensorBase::empty(shape, self.scalar_type(), self.device()));
  copy_values(out, self);
  const Tensor dense = source.shallow().contiguous();
  move(mask, counts, out->data, dense.ptr(), self.scalar_type(), true);
  if (!recording(self, source)) return out;
  return record("MaskedScatterBackward0", {self, source}, std::move(out),
                [m = Meta(self), ms = Meta(source), rest = source.numel() - n, sm = save(mask)](
                    const Node& node, const Tensor& g) {
                  const Tensor& mask = sm.get(node);
                  std::array<Tensor, 2> r;
                  if (node.needs(0)) r[0] = m.reduce(g.masked_fill(mask, 0));
                  if (node.needs(1)) {
                    Tensor unused(TensorBase::empty(rest, g.scalar_type(), g.device()));
                    fill_values(unused, 0);
                    r[1] = cat({select_dense(g, mask), unused}, 0).reshape(ms.shape());
                  }
                  return r;
                });
}

Tensor nonzero(const Tensor& self) {
  check_defined("nonzero", self);
  const Tensor mask = (self.scalar_type() == kBool ? self : self.ne(0)).contiguous(),
               counts = counts_of(mask);
  const int64_t n = total("nonzero", counts), rank = self.dim();
  Tensor out(TensorBase::empty({n, rank}, kLong, self.device()));
  if (n == 0 || rank == 0) return out;
  kernels::NonzeroArgs a;
  a.mask = mask.ptr();
  a.offsets = values(counts);
  if (rank <= kernels::kMaxKernelRank) {
    a.out = static_cast<int64_t*>(out->data);
    a.rank = static_cast<int32_t>(rank);
    for (int64_t d = 0; d < rank; ++d) a.sizes[d] = self->sizes()[d];
    kernels::nonzero_positions(self.stream(), a);
    return out;
  }
  Tensor flat(TensorBase::empty(n, kLong, self.device()));
  a.out = static_cast<int64_t*>(flat->data);
  a.rank = 1;
  a.sizes[0] = self.numel();
  kernels::nonzero_positions(self.stream(), a);
  for (int64_t d = rank - 1; d >= 0; --d) {
    out.select(1, d).copy_(flat.remainder(self->sizes()[d]));
    flat = flat.div(self->sizes()[d], "floor");
  }
  return out;
}

Tensor argwhere(const Tensor& self) {
  refuse_size("argwhere");
  return nonzero(self);
}

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  check_defined("nonzero_static", self);
  RAMET_CHECK(size >= 0, "nonzero_static", "'size' must be an non-negative integer: got ", size);
  const int64_t rank = self.dim(), n = self.numel();
  const bool any = n > 0 && rank > 0 && size > 0;
  const Tensor rows(TensorBase::empty(
      {any ? checked_add("nonzero_static", "size", size, 1) : size, rank}, kLong, self.device()));
  fill_values(rows, fill_value);
  if (!any) return rows;
  // Element i is the counts[i]-th. The row after the last one receives the elements that do not
  // count or exceed the size; -1 is before the first.
  const Tensor mask = self.ne(0).reshape({n}),
               nth = mask.cumsum(0).sub(1).clamp_max(size).masked_fill(mask.logical_not(), size);
  Tensor flat = arange(n, TensorOptions(kLong).device(self.device()));
  std::vector<Tensor> places(static_cast<size_t>(rank));
  for (int64_t d = rank - 1; d >= 0; --d) {
    places[static_cast<size_t>(d)] = flat.remainder(self->sizes()[d]);
    flat = flat.div(self->sizes()[d], "floor");
  }
  rows.index_copy_(0, nth, stack(places, 1));
  return rows.narrow(0, 0, size).contiguous();
}

std::vector<Tensor> nonzero_numpy(const Tensor& self) {
  check_defined("nonzero_numpy", self);
  refuse_size("nonzero_numpy");
  return unbind(nonzero(self.dim() == 0 ? self.unsqueeze(0) : self), 1);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/index/mask.inc"

}  // namespace ramet
