#include "autograd/ops/front/pointwise_internal.h"

#include <algorithm>

#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "kernels/copy/coalesce.h"
#include "runtime/capture/capture.h"

using ramet::detail::tls;

namespace ramet {
namespace autograd {
namespace {

using kernels::kMaxTensorRank;

void* moved(void* p, int64_t elements, ScalarType t) {
  return static_cast<char*>(p) + elements * static_cast<int64_t>(item_size(t));
}

// Does `in` share memory with `out`, except element by element? Then the kernel must read a copy.
bool hazard(const TensorBase& out, const TensorBase& in) {
  if (!out.may_overlap(in)) return false;
  return !(out->data == in->data && same_sizes(out, in) && same_strides(out, in));
}

// What a kernel reads of one operand.
struct Prepared {
  const TensorBase* tensor = nullptr;
  TensorBase own;  // a copy, where the operand itself cannot be read

  void read_own(TensorBase copy) {
    own = std::move(copy);  // *tensor may be the copy before this one
    tensor = &own;
  }
};

// A kernel's operands, in memory that it can read while it writes `out`.
class Operands {
 public:
  Operands(const PointwiseKernel& kernel, const TensorBase& out,
           const Operand* const (&operands)[3], const std::optional<Scalar>& second)
      : second_(second ? *second : Scalar(0)), taken_(second.has_value()) {
    for (int i = 0; i < 3; ++i)
      if (operands[i]->given) take(kernel, *operands[i], in_[i]);
    for (Prepared& in : in_)
      if (in.tensor) prepare(in, out);
  }

  const TensorBase* tensor(int i) const { return in_[i].tensor; }
  void* pointer(int i) const { return in_[i].tensor ? in_[i].tensor->ptr() : nullptr; }
  ScalarType type(int i, ScalarType number) const {
    return in_[i].tensor ? in_[i].tensor->scalar_type() : number;
  }
  // The row's second number, or the operand that is a number.
  const Scalar& second() const { return second_; }

  // Have all tensors the elements of `out` in the order of memory?
  bool dense(const TensorBase& out) const {
    bool dense = non_overlapping_and_dense(out);
    for (const Prepared& in : in_) {
      if (!in.tensor) continue;
      dense =
          dense && same_sizes(*in.tensor, out) &&
          ((in.tensor->raw_contiguous() && out.raw_contiguous()) || same_strides(*in.tensor, out));
    }
    return dense;
  }

 private:
  void take(const PointwiseKernel& kernel, const Operand& o, Prepared& in) {
    if (!o.tensor) {
      RAMET_CHECK(!taken_, kernel.dense.name, "got two numbers, expected at most one");
      second_ = o.value;
      taken_ = true;
    } else if (RAMET_UNLIKELY((*o.tensor)->is(TensorImpl::kInternalLayout))) {
      in.read_own(o.tensor->steady());
    } else {
      in.tensor = o.tensor;
    }
  }
  void prepare(Prepared& in, const TensorBase& out) {
    const TensorBase& x = *in.tensor;
    const bool elsewhere = x.is_cpu() && !out.is_cpu();  // a host's number among a GPU's tensors
    // A capture does not know the number, so it treats this as any tensor.
    if (x.dim() == 0 && (out.dim() > 0 || elsewhere) && !taken_ && x.is_cpu() &&
        !capture::active()) {
      second_ = value_of(x);
      taken_ = true;
      in.tensor = nullptr;
    } else if (RAMET_UNLIKELY(elsewhere) || hazard(out, x)) {
      TensorBase copy = TensorBase::empty(x.sizes(), x.scalar_type(), out.device());
      copy_values(copy, x);
      in.read_own(std::move(copy));
    }
  }

  Prepared in_[3];
  Scalar second_;
  bool taken_;  // is `second_` taken: by the row's second number, or by one operand
};

// Calls the kernel for strided tensors. Operands are broadcast to `out`; dimensions beyond those
// of the kernel are a loop.
void run_strided(const PointwiseKernel& kernel, const TensorBase& out, ScalarType compute,
                 const Operands& in, const kernels::Number& s, const kernels::Number& t) {
  int64_t sizes[kMaxTensorRank], strides[4][kMaxTensorRank];
  int rank = static_cast<int>(out.dim());
  for (int d = 0; d < rank; ++d) {
    sizes[d] = out->sizes()[d];
    strides[0][d] = out->strides()[d];
  }
  for (int i = 0; i < 3; ++i)
    for (int d = 0; d < rank; ++d) {
      const TensorBase* x = in.tensor(i);
      const int at = x ? d - (rank - static_cast<int>(x->dim())) : -1;
      strides[i + 1][d] = at < 0 || (x->size(at) == 1 && sizes[d] != 1) ? 0 : (*x)->strides()[at];
    }
  rank = kernels::coalesce<4>(rank, sizes, strides);
  kernels::PointwiseStridedArgs k;
  k.compute = compute;
  k.s = s;
  k.t = t;
  k.type[0] = out.scalar_type();
  void* base[4] = {out.ptr(), in.pointer(0), in.pointer(1), in.pointer(2)};
  for (int i = 0; i < 3; ++i) k.type[i + 1] = in.type(i, compute);
  const int outer = std::max(rank - kernels::kMaxKernelRank, 0);
  k.rank = rank - outer;
  for (int d = 0; d < k.rank; ++d) {
    k.sizes[d] = sizes[outer + d];
    for (int o = 0; o < 4; ++o) k.strides[o][d] = strides[o][outer + d];
  }
  kernels::over_outer<4>(outer, sizes, strides, [&](const int64_t* offset) {
    for (int o = 0; o < 4; ++o)
      k.data[o] = base[o] ? moved(base[o], offset[o], k.type[o]) : nullptr;
    kernel.strided(out.stream(), k);
  });
}

}  // namespace

void pointwise_into(const PointwiseKernel& kernel, const TensorBase& out, ScalarType compute,
                    const Operand& a, const Operand& b, const Operand& c, const Scalar& s,
                    const std::optional<Scalar>& t) {
  if (out.numel() == 0) return;
  const Operands in(kernel, out, {&a, &b, &c}, t);
  const kernels::Number sn = number(s, compute), tn = number(in.second(), compute);
  if (!in.dense(out)) return run_strided(kernel, out, compute, in, sn, tn);
  kernel.dense(out.stream(), {in.pointer(0), in.pointer(1), in.pointer(2), out.ptr(), out.numel(),
                              sn, tn, in.type(0, compute), in.type(1, compute), in.type(2, compute),
                              out.scalar_type(), compute});
}

Tensor pointwise_result(const char* op, ScalarType dtype, const Tensor& a, const Tensor* b,
                        const Tensor* c) {
  Device device = a.device();
  std::vector<int64_t> shape = a.sizes().vec();
  const Tensor* like = &a;
  for (const Tensor* x : {b, c}) {
    if (!x) continue;
    device = common_device(op, *like, *x);
    shape = broadcast_sizes(op, shape, x->sizes());
    if (x->dim() > like->dim() || x->numel() > like->numel()) like = x;
  }
  if (like->sizes() == IntArrayRef(shape) && like->device() == device)
    return empty_like_layout(*like, dtype);
  return Tensor(TensorBase::empty(shape, dtype, device));
}

Tensor pointwise_gradient(const PointwiseKernel& kernel, const Tensor& g, const Tensor& x,
                          const Scalar& s, const std::optional<Scalar>& t) {
  if (RAMET_LIKELY(plain_float(g, x)))
    return plain_pointwise(kernel.dense, g, x, s.toDouble(), t ? t->toDouble() : 0);
  const char* op = kernel.dense.name;
  common_device(op, g, x);
  RAMET_CHECK(same_sizes(g, x), op, "shapes: got gradient ", describe(g), " for ", describe(x));
  const ScalarType dtype = result_type(g, x);
  RAMET_CHECK(is_floating(dtype), op, "only for floating-point dtypes: got ", describe(g), " and ",
              describe(x));
  Tensor out = pointwise_result(op, dtype, x, &g);
  pointwise_into(kernel, out, compute_type(dtype), g, x, {}, s, t);
  return out;
}

namespace {
void check_cast(const char* op, const Tensor& out, ScalarType result) {
  RAMET_CHECK(can_cast(result, out.scalar_type()), op, "result type ", name_of(result),
              " can't be cast to the desired output type ", name_of(out.scalar_type()));
}
}  // namespace

void check_output(const char* op, const Tensor& out, IntArrayRef shape, ScalarType result) {
  RAMET_CHECK(out.sizes() == shape, op, "output with shape ", out.sizes(),
              " doesn't match the broadcast shape ", shape);
  check_cast(op, out, result);
}

void check_out_history(const char* op, const Tensor& out, bool inputs_record) {
  RAMET_CHECK(!inputs_record && !(tls.grad_mode && out.requires_grad()), op,
              "functions with out=... arguments don't support automatic differentiation, but one "
              "of the arguments requires grad.");
}

void prepare_out(const char* op, const Tensor& out, IntArrayRef shape, ScalarType result,
                 bool inputs_record) {
  check_defined(op, out);
  check_out_history(op, out, inputs_record);
  check_cast(op, out, result);
  if (out.sizes() != shape) out.resize_(shape);
  check_inplace(op, out);
}

Tensor& pointwise_out(const char* op, const PointwiseKernel& kernel, Tensor& out, ScalarType dtype,
                      ScalarType compute, const Operand& a, const Operand& b, const Operand& c,
                      const Scalar& s, const std::optional<Scalar>& t) {
  const Tensor* largest = nullptr;
  Device device(kCPU);
  std::vector<int64_t> shape;
  bool records = false;
  for (const Operand* o : {&a, &b, &c}) {
    if (!o->tensor) continue;
    const Tensor& x = *o->tensor;
    check_defined(op, x);
    device = largest ? common_device(op, *largest, x) : x.device();
    shape = largest ? broadcast_sizes(op, shape, x.sizes()) : x.sizes().vec();
    if (!largest || x.dim() > largest->dim() || x.numel() > largest->numel()) largest = &x;
    records = records || recording(x);
  }
  check_out_device(op, out, device);
  for (const Operand* o : {&a, &b, &c})
    if (o->tensor) check_out_operand(op, out, shape, *o->tensor);
  // Truth values have no gradient.
  prepare_out(op, out, shape, dtype, records && dtype != kBool);
  if (dtype != compute_type(dtype) && out.scalar_type() != dtype) {
    // The function's result, which wraps around, is rounded or is true as `dtype` is; then it is
    // cast.
    const TensorBase result = TensorBase::empty(shape, dtype, device);
    pointwise_into(kernel, result, compute, a, b, c, s, t);
    copy_values(out, result);
  } else {
    pointwise_into(kernel, out, compute, a, b, c, s, t);
  }
  wrote(op, out);
  return out;
}

Tensor& deliver(const char* op, Tensor& out, const Tensor& value, OutType type) {
  check_out_device(op, out, value.device());
  RAMET_CHECK(type != OutType::kSame || out.scalar_type() == value.scalar_type(), op,
              "Expected out tensor to have dtype ", name_of(value.scalar_type()), ", but got ",
              name_of(out.scalar_type()));
  const ScalarType written = type == OutType::kAny ? out.scalar_type() : value.scalar_type();
  prepare_out(op, out, value.sizes(), written, false);
  copy_values(out, value);
  wrote(op, out);
  return out;
}

void check_divisor(const char* op, const Tensor& dividend, const Tensor& divisor,
                   ScalarType dtype) {
  if (is_floating(dtype) || divisor.numel() == 0 || dividend.numel() == 0) return;
  constexpr const char* kWhat = "ZeroDivisionError: integer division by 0";
  const TensorBase zero = TensorBase::empty(divisor.sizes(), kBool, divisor.device());
  pointwise_into(RAMET_POINTWISE(eq), zero, kLong, divisor, Scalar(0));
  if (RAMET_UNLIKELY(!zero.is_cpu() || capture::active()))
    return report_where(op, Tensor(zero), kWhat);
  RAMET_CHECK(!std::memchr(zero.ptr(), 1, static_cast<size_t>(zero.numel())), op, kWhat);
}

}  // namespace autograd

using namespace autograd;

Tensor& Tensor::resize_(IntArrayRef size, std::optional<MemoryFormat> format) const {
  check_defined("resize_", *this);
  RAMET_CHECK(!format || *format == MemoryFormat::Contiguous || *format == MemoryFormat::Preserve,
              "resize_", "memory_format: got ", *format, ", expected Contiguous or Preserve");
  check_normal("resize_", *this);
  RAMET_CHECK(!(tls.grad_mode && requires_grad()), "resize_",
              "cannot resize variables that require grad: got ", describe(*this));
  settle();
  if (sizes() == size) return as_mutable(*this);
  const Tensor fresh(TensorBase::empty(size, scalar_type(), device()));
  const int64_t kept = std::min(fresh.numel(), numel());
  if (kept > 0 && raw_contiguous()) {
    const int64_t n[] = {kept}, one[] = {1};
    copy_values(TensorBase(fresh.view_impl(n, one, 0)), TensorBase(view_impl(n, one, 0)));
  }
  set_data(fresh);
  return as_mutable(*this);
}
Tensor& Tensor::resize_as_(const Tensor& like, std::optional<MemoryFormat> format) const {
  check_defined("resize_as_", like);
  return resize_(like.sizes(), format);
}

}  // namespace ramet
