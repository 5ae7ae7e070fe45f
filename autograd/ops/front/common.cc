#include "autograd/ops/front/common_internal.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/make/factory.h"

using ramet::detail::tls;

namespace ramet {
namespace autograd {

Device common_device(const char* op, const Tensor& a, const Tensor& b) {
  check_defined(op, a);
  check_defined(op, b);
  if (RAMET_LIKELY(a->device == b->device)) return a.device();
  if (is_host_number(a)) return b.device();
  if (is_host_number(b)) return a.device();
  refuse_devices(op, a, b, "");
}
void refuse_devices(const char* op, const Tensor& a, const Tensor& b, const char* name) {
  fail(op, "Expected all tensors to be on the same device, but found at least two devices, ",
       a.device(), " and ", b.device(), "! Got ", describe(a), " and ", name, *name ? " " : "",
       describe(b));
}
void refuse_undefined(const char* op) {
  fail(op,
       "undefined tensor: got Tensor(), or the grad() of a tensor that no backward has reached, "
       "expected a tensor with values");
}
void refuse_gradient(const char* op, const char* name) {
  throw NotImplementedError(
      detail::join("[", op, "] the derivative for '", name, "' is not implemented"));
}

namespace {

bool any_recording(ArrayRef<Tensor> inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Tensor& x) { return x.defined() && recording(x); });
}

}  // namespace

Tensor without_derivative(const char* op, ArrayRef<Tensor> inputs, Tensor out) {
  if (!any_recording(inputs)) return out;
  return record_list("NotImplemented", inputs, std::move(out),
                     [op](const Node&, const Tensor&, std::vector<Tensor>&) {
                       throw NotImplementedError(detail::join("[", op, "] the derivative for ", op,
                                                              " is not implemented"));
                     });
}
Tensor drawn_from(const char* node, ArrayRef<Tensor> inputs, Tensor out) {
  if (!any_recording(inputs)) return out;
  std::vector<std::vector<int64_t>> sizes;
  for (const Tensor& x : inputs) sizes.push_back(x.sizes().vec());
  return record_list(
      node, inputs, std::move(out),
      [sizes = std::move(sizes)](const Node& self, const Tensor& g, std::vector<Tensor>& out) {
        const NoGradGuard off;
        for (size_t i = 0; i < sizes.size(); ++i)
          if (self.needs(static_cast<int>(i))) out[i] = zeros(sizes[i], g.options());
      });
}

namespace {

// 0 for bool, 1 for integers, 2 for floating point.
int category(ScalarType t) { return t == kBool ? 0 : is_integral(t) ? 1 : 2; }

// `strong` decides unless `weak` is of a higher category.
ScalarType combine(ScalarType strong, ScalarType weak) {
  if (strong == ScalarType::Undefined) return weak;
  if (weak == ScalarType::Undefined || category(weak) <= category(strong)) return strong;
  return promote_types(strong, weak);
}

ScalarType of_number(ScalarType kind) { return kind == kDouble ? tls.default_dtype : kind; }

ScalarType type_of(ArrayRef<const Tensor*> operands) {
  // of tensors with dimensions, of 0-dim tensors, of numbers
  ScalarType by_rank[3] = {ScalarType::Undefined, ScalarType::Undefined, ScalarType::Undefined};
  for (const Tensor* t : operands) {
    const bool number = (*t)->is(TensorImpl::kWrappedNumber);
    ScalarType& at = by_rank[t->dim() > 0 ? 0 : number ? 2 : 1];
    const ScalarType type = number ? of_number(t->scalar_type()) : t->scalar_type();
    at = at == ScalarType::Undefined ? type : promote_types(at, type);
  }
  return combine(combine(by_rank[0], by_rank[1]), by_rank[2]);
}

}  // namespace

ScalarType result_type(const Tensor& a, const Tensor& b, const Tensor& c) {
  return type_of({&a, &b, &c});
}
ScalarType result_type(TensorList list) {
  std::vector<const Tensor*> operands;
  for (const Tensor& x : list) operands.push_back(&x);
  return type_of(operands);
}

Tensor sum_to(const Tensor& x, IntArrayRef sizes) {
  if (x.sizes() == sizes) return x;
  const int64_t lead = x.dim() - static_cast<int64_t>(sizes.size());
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d < lead || (sizes[static_cast<size_t>(d - lead)] == 1 && x.size(d) != 1))
      dims.push_back(d);
  const Tensor s = dims.empty() ? x : x.sum(OptionalIntArrayRef(dims), /*keepdim=*/true);
  return lead > 0 ? s.reshape(sizes) : s;
}

Tensor Meta::reduce_slow(const Tensor& g) const {
  Tensor r = sum_to(g, shape());
  if (r.scalar_type() != dtype) r = r.to(dtype);
  return r.device() == device ? r : r.to(device);
}

}  // namespace autograd

ScalarType result_type(const Tensor& a, const Tensor& b) {
  autograd::check_defined("result_type", a);
  autograd::check_defined("result_type", b);
  return a.scalar_type() == b.scalar_type() &&
                 !((a->all_flags() | b->all_flags()) & TensorImpl::kWrappedNumber)
             ? a.scalar_type()
             : autograd::type_of({&a, &b});
}
ScalarType result_type(const Tensor& a, const Scalar& b) {
  autograd::check_defined("result_type", a);
  return autograd::combine(a.scalar_type(), autograd::of_number(b.type()));
}
ScalarType result_type(const Scalar& a, const Tensor& b) { return result_type(b, a); }
ScalarType result_type(const Scalar& a, const Scalar& b) {
  return promote_types(autograd::of_number(a.type()), autograd::of_number(b.type()));
}

}  // namespace ramet
