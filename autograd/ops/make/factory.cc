#include "autograd/ops/make/factory.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/make/copy.h"
#include "kernels/copy/fill.h"
#include "runtime/base/checked_size.h"
#include "runtime/capture/capture.h"
#include "runtime/tensor/pinned.h"
#include "runtime/tensor/storage_ref.h"

using ramet::detail::tls;

namespace ramet {

using namespace autograd;

namespace {

// Uninitialised t, moved to pinned memory where `options` ask for that.
Tensor placed(Tensor t, const TensorOptions& options) {
  if (RAMET_LIKELY(!options.pinned_memory())) return t;
  return Tensor(empty_pinned(t));
}
Tensor finished(Tensor t, const TensorOptions& options) {
  if (options.requires_grad()) t.requires_grad_(true);
  return t;
}
Tensor fresh(const char* op, IntArrayRef size, const TensorOptions& options) {
  for (int64_t s : size)
    RAMET_CHECK(s >= 0, op, "Trying to create tensor with negative dimension ", s, ": got sizes ",
                size);
  return placed(Tensor(TensorBase::empty(size, options.dtype(), resolve(options.device()))),
                options);
}
Tensor filled(const char* op, IntArrayRef size, const Scalar& value, const TensorOptions& options) {
  Tensor t = fresh(op, size, options);
  fill_values(t, value);
  return finished(std::move(t), options);
}
// `options`, completed by self's.
TensorOptions like(const char* op, const Tensor& self, const TensorOptions& options) {
  check_defined(op, self);
  return self.options().merge_in(options);
}
Tensor fresh_like(const char* op, const Tensor& self, const TensorOptions& options,
                  std::optional<MemoryFormat> format) {
  const TensorOptions o = like(op, self, options);
  const MemoryFormat wanted = format.value_or(
      options.has_memory_format() ? options.memory_format_opt().value() : MemoryFormat::Preserve);
  const Device device = resolve(o.device());
  if (o.pinned_memory()) settle(self);
  if (wanted == MemoryFormat::Preserve && device == self.device())
    return placed(empty_like_layout(self, o.dtype()), o);
  return empty(self.sizes(), o.requires_grad(std::nullopt),
               wanted == MemoryFormat::ChannelsLast ? wanted : MemoryFormat::Contiguous);
}
Tensor filled_like(const char* op, const Tensor& self, const Scalar& value,
                   const TensorOptions& options, std::optional<MemoryFormat> format) {
  Tensor t = fresh_like(op, self, options, format);
  fill_values(t, value);
  return finished(std::move(t), options);
}
// The dtype of a tensor of numbers: int64, bool or the default dtype.
ScalarType natural(ScalarType t) {
  return t == kBool ? kBool : is_integral(t) ? kLong : get_default_dtype();
}

}  // namespace

Tensor empty(IntArrayRef size, const TensorOptions& options, std::optional<MemoryFormat> format) {
  if (format.value_or(options.memory_format_opt().value_or(MemoryFormat::Contiguous)) ==
      MemoryFormat::ChannelsLast) {
    RAMET_CHECK(size.size() == 4, "empty",
                "required rank 4 tensor to use channels_last format: got sizes ", size);
    Tensor t = empty_channels_last(size[0], size[1], size[2], size[3], options.dtype(),
                                   resolve(options.device()));
    t->set(TensorImpl::kInternalLayout, false);  // the caller asked for it, so it is visible
    return finished(placed(std::move(t), options), options);
  }
  return finished(fresh("empty", size, options), options);
}
Tensor& empty_out(Tensor& out, IntArrayRef size, std::optional<MemoryFormat> format) {
  check_defined("empty_out", out);
  check_out_history("empty_out", out, false);
  RAMET_CHECK(!format, "empty_out",
              "'memory_format' argument is incompatible with 'out' tensor argument");
  return out.resize_(size);
}
Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& options) {
  Tensor t(TensorBase::empty_strided(size, stride, options.dtype(), resolve(options.device())));
  return finished(placed(std::move(t), options), options);
}
Tensor zeros(IntArrayRef size, const TensorOptions& options) {
  return filled("zeros", size, 0, options);
}
Tensor ones(IntArrayRef size, const TensorOptions& options) {
  return filled("ones", size, 1, options);
}
Tensor full(IntArrayRef size, const Scalar& value, const TensorOptions& options) {
  return filled("full", size, value,
                options.has_dtype() ? options : options.dtype(natural(value.type())));
}
Tensor scalar_tensor(const Scalar& s, const TensorOptions& options) {
  return filled("scalar_tensor", {}, s, options);
}

Tensor empty_like(const Tensor& self, const TensorOptions& options,
                  std::optional<MemoryFormat> format) {
  return finished(fresh_like("empty_like", self, options, format), options);
}
Tensor zeros_like(const Tensor& self, const TensorOptions& options,
                  std::optional<MemoryFormat> format) {
  return filled_like("zeros_like", self, 0, options, format);
}
Tensor ones_like(const Tensor& self, const TensorOptions& options,
                 std::optional<MemoryFormat> format) {
  return filled_like("ones_like", self, 1, options, format);
}
Tensor full_like(const Tensor& self, const Scalar& value, const TensorOptions& options,
                 std::optional<MemoryFormat> format) {
  return filled_like("full_like", self, value, options, format);
}

Tensor Tensor::new_empty(IntArrayRef size, const TensorOptions& o) const {
  return ramet::empty(size, like("new_empty", *this, o));
}
Tensor Tensor::new_empty_strided(IntArrayRef size, IntArrayRef stride,
                                 const TensorOptions& o) const {
  return ramet::empty_strided(size, stride, like("new_empty_strided", *this, o));
}
Tensor Tensor::new_zeros(IntArrayRef size, const TensorOptions& o) const {
  return ramet::zeros(size, like("new_zeros", *this, o));
}
Tensor Tensor::new_ones(IntArrayRef size, const TensorOptions& o) const {
  return ramet::ones(size, like("new_ones", *this, o));
}
Tensor Tensor::new_full(IntArrayRef size, const Scalar& value, const TensorOptions& o) const {
  return ramet::full(size, value, like("new_full", *this, o));
}

// ---- sequences ----------------------------------------------------------------------------------

Tensor arange(const Scalar& end, const TensorOptions& options) {
  return arange(0, end, 1, options);
}
Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options) {
  return arange(start, end, 1, options);
}
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
              const TensorOptions& options) {
  const bool whole = start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true);
  const ScalarType dtype = options.has_dtype() ? options.dtype()
                           : whole             ? kLong
                                               : get_default_dtype();
  const double a = start.toDouble(), b = end.toDouble(), d = step.toDouble();
  RAMET_CHECK(dtype != kBool, "arange", "not implemented for bool");
  RAMET_CHECK(d != 0, "arange", "step must be nonzero");
  RAMET_CHECK(std::isfinite(a) && std::isfinite(b) && std::isfinite(d), "arange",
              "unsupported range: ", a, " -> ", b, " by ", d);
  RAMET_CHECK(d > 0 ? b >= a : b <= a, "arange",
              "upper bound and lower bound inconsistent with step sign: got ", start, " to ", end,
              " by ", step);
  int64_t n;
  if (whole) {
    // Doubles are rounded: 2^63 - 1 may lie after an end of 2^63 - 2 that looks equal.
    __int128 gap = static_cast<__int128>(end.toLong()) - start.toLong(), stride = step.toLong();
    if (stride < 0) gap = -gap, stride = -stride;
    RAMET_CHECK(gap >= 0, "arange", "upper bound and lower bound inconsistent with step sign: got ",
                start, " to ", end, " by ", step);
    const __int128 count = gap / stride + (gap % stride != 0);
    RAMET_CHECK(count <= INT64_MAX, "arange", "invalid size, possible overflow: got ", start,
                " to ", end, " by ", step);
    n = static_cast<int64_t>(count);
  } else {
    const double count = std::ceil((b - a) / d);
    RAMET_CHECK(count < 0x1p63, "arange", "invalid size, possible overflow: got ", start, " to ",
                end, " by ", step);
    n = static_cast<int64_t>(count);
  }
  // An Error where a number does not fit in an int64.
  const int64_t first = is_integral(dtype) ? start.to<int64_t>() : 0,
                apart = is_integral(dtype) ? step.to<int64_t>() : 0;
  Tensor t = fresh("arange", {n}, options.dtype(dtype));
  const kernels::ArangeArgs k{t.ptr(), n, a, d, first, apart, dtype};
  if (n) kernels::arange(t.stream(), k);
  return finished(std::move(t), options);
}

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps,
                const TensorOptions& options) {
  RAMET_CHECK(steps >= 0, "linspace", "number of steps must be non-negative: got ", steps);
  Tensor t = fresh("linspace", {steps}, options);
  RAMET_CHECK(t.scalar_type() != kBool, "linspace", "not implemented for bool");
  // First convert both ends to values of the dtype, as LibTorch does.
  const auto end_value = [whole = is_integral(t.scalar_type())](const Scalar& v) {
    return whole ? std::trunc(v.toDouble()) : v.toDouble();
  };
  if (steps)
    kernels::linspace(t.stream(),
                      {t.ptr(), steps, end_value(start), end_value(end), t.scalar_type()});
  return finished(std::move(t), options);
}

namespace {
Scalar end_of(const Tensor& t) {
  check_defined("linspace", t);
  RAMET_CHECK(t.dim() == 0, "linspace", "only supports 0-dimensional start and end tensors: got ",
              describe(t));
  capture::refuse("linspace", "the host reads the ends; give numbers");
  return t.item();
}
}  // namespace
Tensor linspace(const Tensor& start, const Tensor& end, int64_t steps,
                const TensorOptions& options) {
  return linspace(end_of(start), end_of(end), steps, options);
}
Tensor linspace(const Tensor& start, const Scalar& end, int64_t steps,
                const TensorOptions& options) {
  return linspace(end_of(start), end, steps, options);
}
Tensor linspace(const Scalar& start, const Tensor& end, int64_t steps,
                const TensorOptions& options) {
  return linspace(start, end_of(end), steps, options);
}

Tensor eye(int64_t n, const TensorOptions& options) { return eye(n, n, options); }
Tensor eye(int64_t n, int64_t m, const TensorOptions& options) {
  RAMET_CHECK(n >= 0 && m >= 0, "eye", "n and m must be greater or equal to 0: got ", n, " and ",
              m);
  Tensor t = fresh("eye", {n, m}, options);
  fill_values(t, 0);
  if (t.numel() == 0) return finished(std::move(t), options);
  const int64_t length[] = {std::min(n, m)}, stride[] = {m + 1};
  fill_values(TensorBase(t.view_impl(length, stride, 0)), 1);
  return finished(std::move(t), options);
}

// ---- from numbers -------------------------------------------------------------------------------

namespace detail {

TensorData::TensorData(std::initializer_list<TensorData> list)
    : sizes_{static_cast<int64_t>(list.size())}, type_(ScalarType::Undefined) {
  if (list.size() == 0) return;
  const TensorData& first = *list.begin();
  type_ = first.type_;
  sizes_.insert(sizes_.end(), first.sizes_.begin(), first.sizes_.end());
  for (const TensorData& item : list) {
    RAMET_CHECK(item.sizes_ == first.sizes_, "tensor",
                "Expected all sub-lists to have sizes: ", IntArrayRef(first.sizes_),
                ", but got a list with sizes: ", IntArrayRef(item.sizes_));
    RAMET_CHECK(item.type_ == first.type_, "tensor",
                "Expected all elements of the tensor to have the same scalar type: ",
                name_of(first.type_), ", but got element of scalar type: ", name_of(item.type_));
    values_.insert(values_.end(), item.values_.begin(), item.values_.end());
  }
}

Tensor TensorData::to_tensor(const TensorOptions& options) const {
  ScalarType dtype = options.dtype();
  if (!options.has_dtype() && type_ != ScalarType::Undefined)
    dtype = type_ == kInt || type_ == kLong       ? kLong
            : type_ == kFloat || type_ == kDouble ? get_default_dtype()
                                                  : type_;
  const ScalarType exact = type_ == ScalarType::Undefined || type_ == kBool ? kBool
                           : is_integral(type_)                             ? kLong
                                                                            : kDouble;
  const Tensor host = [&] {
    const ScopedValue<uint8_t> apart(tls.capturing, 0);  // written now: not the capture's memory
    return Tensor(TensorBase::empty(sizes_, exact, Device(kCPU, 0)));
  }();
  for (size_t i = 0; i < values_.size(); ++i) {
    check_fits(values_[i], dtype);
    if (exact == kDouble) static_cast<double*>(host->data)[i] = values_[i].toDouble();
    else if (exact == kLong) static_cast<int64_t*>(host->data)[i] = values_[i].toLong();
    else static_cast<bool*>(host->data)[i] = values_[i].toBool();
  }
  Tensor t = placed(Tensor(TensorBase::empty(sizes_, dtype, resolve(options.device()))), options);
  copy_values(t, host);
  return finished(std::move(t), options);
}

}  // namespace detail

// ---- over foreign memory ------------------------------------------------------------------------

namespace {

Tensor over_blob(void* data, IntArrayRef sizes, IntArrayRef strides, int64_t offset,
                 std::function<void(void*)> deleter, const TensorOptions& options) {
  const ScalarType dtype = options.dtype();
  const int64_t bytes = checked_extent("from_blob", sizes, strides, offset, dtype);
  for (int64_t stride : strides)
    RAMET_CHECK(stride >= 0, "from_blob", "got strides ", strides, ", expected none negative");
  RAMET_CHECK(data || bytes == 0, "from_blob", "got a null pointer for sizes ", sizes);
  const int64_t start = bytes ? offset * static_cast<int64_t>(item_size(dtype)) : 0;
  const StorageRef storage(StorageImpl::foreign(data, static_cast<size_t>(bytes),
                                                resolve(options.device()), std::move(deleter)));
  Tensor t(TensorBase::over(storage.get(), start, sizes, strides, dtype));
  return finished(std::move(t), options);
}

}  // namespace

Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return over_blob(data, sizes, contiguous_strides(sizes), 0, {}, options);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  return over_blob(data, sizes, strides, 0, {}, options);
}
Tensor from_blob(void* data, IntArrayRef sizes, const std::function<void(void*)>& deleter,
                 const TensorOptions& options, std::optional<Device> target) {
  return from_blob(data, sizes, contiguous_strides(sizes), 0, deleter, options, target);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                 const std::function<void(void*)>& deleter, const TensorOptions& options,
                 std::optional<Device> target) {
  return from_blob(data, sizes, strides, 0, deleter, options, target);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, int64_t offset,
                 const std::function<void(void*)>& deleter, const TensorOptions& options,
                 std::optional<Device> target) {
  return over_blob(data, sizes, strides, offset, deleter,
                   target ? options.device(*target) : options);
}

Tensor one_hot(const Tensor& self, int64_t classes) {
  check_defined("one_hot", self);
  RAMET_CHECK(self.scalar_type() == kLong, "one_hot",
              "is only applicable to index tensor of type int64: got ", describe(self));
  const NoGradGuard constants;
  RAMET_CHECK(classes >= -1, "one_hot", "num_classes: got ", classes,
              ", expected a positive number, or -1 for one behind the largest value");
  int64_t low = 0, high = classes - 1;
  // With a given number of classes it does not wait for a GPU: Note [Errors in data]. Nor does it
  // read a value that a capture will compute.
  const bool told = classes != -1 && (!self.is_cpu() || capture::active());
  if (self.numel() && !told) {
    capture::refuse("one_hot", "the size of the result depends on values; give num_classes");
    low = self.min().item<int64_t>(), high = self.max().item<int64_t>();
  }
  RAMET_CHECK(low >= 0, "one_hot", "Class values must be non-negative: got ", low);
  if (classes == -1) {
    RAMET_CHECK(self.numel() > 0, "one_hot",
                "Can not infer total number of classes from empty tensor.");
    classes = checked_add("one_hot", "number of classes", high, 1);
  }
  RAMET_CHECK(classes > 0, "one_hot", "num_classes should be positive: got ", classes);
  RAMET_CHECK(high < classes, "one_hot", "Class values must be smaller than num_classes: got ",
              high, " and ", classes);
  if (told) check_indices("one_hot", self, 0, classes, "num_classes");
  std::vector<int64_t> size = self.sizes().vec();
  size.push_back(classes);
  const Tensor out = zeros(size, TensorOptions(kLong).device(self.device()));
  return self.numel() ? out.scatter_(-1, self.unsqueeze(-1), 1) : out;
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/make/factory.inc"

}  // namespace ramet
