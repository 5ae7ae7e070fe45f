#include "autograd/ops/make/copy.h"

#include <algorithm>

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/shape/view.h"
#include "kernels/copy/coalesce.h"
#include "kernels/copy/copy.h"
#include "kernels/copy/fill.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/gpu.h"
#include "runtime/observe/observer.h"
#include "runtime/tensor/pinned.h"

namespace ramet {

using namespace autograd;

namespace autograd {
namespace {

// The low bytes of `value` as an element of type t.
uint64_t bits_of(const Scalar& value, ScalarType t) {
  uint64_t bits = 0;
  auto put = [&bits](auto x) { std::memcpy(&bits, &x, sizeof x); };
  switch (t) {
    case kBool: put(value.toBool()); break;
    case kByte: put(value.to<uint8_t>()); break;
    case kChar: put(value.to<int8_t>()); break;
    case kShort: put(value.to<int16_t>()); break;
    case kInt: put(value.to<int32_t>()); break;
    case kLong: put(value.to<int64_t>()); break;
    case kUInt16: put(value.to<uint16_t>()); break;
    case kUInt32: put(value.to<uint32_t>()); break;
    case kHalf: put(value.to<Half>()); break;
    case kBFloat16: put(value.to<BFloat16>()); break;
    case kFloat: put(value.toFloat()); break;
    default: put(value.toDouble());
  }
  return bits;
}

// Calls run(rank, sizes, strides, offsets) with at most kMaxKernelRank dimensions. Loops over the
// outer ones here.
template <int N, class Run>
void over_blocks(int rank, int64_t* sizes, int64_t (*strides)[kernels::kMaxTensorRank], Run&& run) {
  rank = kernels::coalesce<N>(rank, sizes, strides);
  const int outer = std::max(rank - kernels::kMaxKernelRank, 0);
  kernels::over_outer<N>(outer, sizes, strides, [&](const int64_t* offset) {
    run(rank - outer, sizes + outer, outer, offset);
  });
}

void* at(void* p, int64_t elements, ScalarType t) {
  return static_cast<char*>(p) + elements * static_cast<int64_t>(item_size(t));
}

// Copies between devices, at least one of which is a GPU. A conversion of the dtype, layout or
// shape runs before or after the transfer, so that fewer bytes travel. Transferred memory is
// contiguous.
enum class Copy : uint8_t { kNow, kLater, kLaterFresh };
[[gnu::cold, gnu::noinline]] void copy_between(const TensorBase& dst, const TensorBase& src,
                                               Copy when) {
  TensorBase sent = src;
  const bool smaller = item_size(dst.scalar_type()) < item_size(src.scalar_type());
  const ScalarType type = smaller ? dst.scalar_type() : src.scalar_type();
  if (!src.raw_contiguous() || src.scalar_type() != type) {
    sent = TensorBase::empty(src.sizes(), type, src.device());
    copy_values(sent, src);
  }
  const bool at_once = dst.raw_contiguous() && dst.scalar_type() == type && same_sizes(dst, src);
  const TensorBase arrived = at_once ? dst : TensorBase::empty(src.sizes(), type, dst.device());
  const Device gpu = dst.is_cpu() ? src.device() : dst.device();
  const bool queued = when != Copy::kNow && !capture::active() &&
                      gpu::copy_later(arrived, sent, when == Copy::kLaterFresh || !at_once);
  if (!queued) {
    std::optional<RecordWait> wait;
    if (dst.is_cpu() && !capture::active()) wait.emplace("copy", gpu, src.impl(), dst.impl());
    capture::in_turn([&gpus = gpu::required("copy", gpu), to = arrived.ptr(), there = dst.device(),
                      from = sent.ptr(), here = src.device(),
                      bytes = arrived.nbytes()] { gpus.copy(to, there, from, here, bytes); });
  }
  if (!at_once) copy_values(dst, arrived);
}

// dst[index] = the element at that index, with these strides from the address `from`.
void copy_walk(const TensorBase& dst, void* from, ScalarType from_type,
               const int64_t* from_strides) {
  int64_t sizes[kernels::kMaxTensorRank], strides[2][kernels::kMaxTensorRank];
  const int rank = static_cast<int>(dst.dim());
  for (int d = 0; d < rank; ++d)
    sizes[d] = dst->sizes()[d], strides[0][d] = dst->strides()[d], strides[1][d] = from_strides[d];
  void* to = dst.ptr();
  over_blocks<2>(rank, sizes, strides,
                 [&](int r, const int64_t* extents, int skip, const int64_t* offset) {
                   kernels::CopyStridedArgs k;
                   k.in = at(from, offset[1], from_type);
                   k.out = at(to, offset[0], dst.scalar_type());
                   k.in_type = from_type;
                   k.out_type = dst.scalar_type();
                   k.rank = r;
                   for (int d = 0; d < r; ++d) {
                     k.sizes[d] = extents[d];
                     k.out_strides[d] = strides[0][skip + d];
                     k.in_strides[d] = strides[1][skip + d];
                   }
                   kernels::copy_strided(dst.stream(), k);
                 });
}

void copy_as_they_lie(const TensorBase& dst, const TensorBase& src) {
  const bool same_layout =
      same_sizes(dst, src) && ((dst.raw_contiguous() && src.raw_contiguous()) ||
                               (same_strides(dst, src) && non_overlapping_and_dense(dst)));
  if (same_layout) {
    return kernels::copy_dense(
        dst.stream(), {src.ptr(), dst.ptr(), dst.numel(), src.scalar_type(), dst.scalar_type()});
  }
  int64_t strides[kernels::kMaxTensorRank];
  const int rank = static_cast<int>(dst.dim()), lead = rank - static_cast<int>(src.dim());
  for (int d = 0; d < rank; ++d)
    strides[d] = d < lead || (src->sizes()[d - lead] == 1 && dst->sizes()[d] != 1)
                     ? 0
                     : src->strides()[d - lead];
  copy_walk(dst, src.ptr(), src.scalar_type(), strides);
}

}  // namespace

void copy_values(const TensorBase& dst, const TensorBase& src) {
  if (dst.numel() == 0) return;
  if (RAMET_UNLIKELY(dst->device != src->device) && !(dst.is_cpu() && src.is_cpu()))
    return copy_between(dst, src.steady(), Copy::kNow);
  if (RAMET_LIKELY(!src->is(TensorImpl::kInternalLayout))) copy_as_they_lie(dst, src);
  else copy_as_they_lie(dst, src.steady());
}

void copy_reversed(const TensorBase& dst, const TensorBase& src, uint64_t dims) {
  if (dst.numel() == 0) return;
  const TensorBase x = src.steady();
  int64_t strides[kernels::kMaxTensorRank], last = 0;
  for (int d = 0; d < static_cast<int>(x.dim()); ++d) {
    const bool turned = dims >> d & 1;
    const int64_t stride = x->strides()[d];
    strides[d] = turned ? -stride : stride;
    if (turned) last += (x->sizes()[d] - 1) * stride;
  }
  copy_walk(dst, at(x.ptr(), last, x.scalar_type()), x.scalar_type(), strides);
}

void copy_values_later(const TensorBase& dst, const TensorBase& src, bool fresh) {
  if (dst->device == src->device || (dst.is_cpu() && src.is_cpu()) || dst.numel() == 0)
    return copy_values(dst, src);
  copy_between(dst, src.steady(), fresh ? Copy::kLaterFresh : Copy::kLater);
}

void check_fits(const Scalar& value, ScalarType dtype) { bits_of(value, dtype); }

void fill_values(const TensorBase& dst, const Scalar& value) {
  const uint64_t bits = bits_of(value, dst.scalar_type());
  if (dst.numel() == 0) return;
  const auto width = static_cast<int32_t>(item_size(dst.scalar_type()));
  if (dst.raw_contiguous() || non_overlapping_and_dense(dst)) {
    return kernels::fill_dense(dst.stream(), {dst.ptr(), dst.numel(), bits, width});
  }
  int64_t sizes[kernels::kMaxTensorRank], strides[1][kernels::kMaxTensorRank];
  const int rank = static_cast<int>(dst.dim());
  for (int d = 0; d < rank; ++d) {
    sizes[d] = dst->sizes()[d];
    strides[0][d] = dst->strides()[d];
  }
  void* to = dst.ptr();
  over_blocks<1>(rank, sizes, strides,
                 [&](int r, const int64_t* extents, int skip, const int64_t* offset) {
                   kernels::FillStridedArgs k;
                   k.out = at(to, offset[0], dst.scalar_type());
                   k.bits = bits;
                   k.item_size = width;
                   k.rank = r;
                   for (int d = 0; d < r; ++d) {
                     k.sizes[d] = extents[d];
                     k.strides[d] = strides[0][skip + d];
                   }
                   kernels::fill_strided(dst.stream(), k);
                 });
}

Scalar value_of(const TensorBase& t) {
  capture::refuse("item", "the host reads a value");
  const void* p = t.ptr();
  uint64_t host;
  if (RAMET_UNLIKELY(!t.is_cpu())) {
    const RecordWait wait("item", t.device(), t.impl());
    gpu::required("item", t.device())
        .copy(&host, Device(kCPU, 0), p, t.device(), item_size(t.scalar_type()));
    p = &host;
  }
  switch (t.scalar_type()) {
    case kBool: return *static_cast<const bool*>(p);
    case kByte: return *static_cast<const uint8_t*>(p);
    case kChar: return *static_cast<const int8_t*>(p);
    case kShort: return *static_cast<const int16_t*>(p);
    case kInt: return *static_cast<const int32_t*>(p);
    case kLong: return *static_cast<const int64_t*>(p);
    case kUInt16: return *static_cast<const uint16_t*>(p);
    case kUInt32: return *static_cast<const uint32_t*>(p);
    case kHalf: return *static_cast<const Half*>(p);
    case kBFloat16: return *static_cast<const BFloat16*>(p);
    case kFloat: return *static_cast<const float*>(p);
    default: return *static_cast<const double*>(p);
  }
}

}  // namespace autograd

Scalar Tensor::item() const {
  check_defined("item", *this);
  RAMET_CHECK(numel() == 1, "item", "a Tensor with ", numel(),
              " elements cannot be converted to Scalar: got ", describe(*this));
  return value_of(*this);
}

namespace {

// An uninitialised tensor for a copy of x in this format.
Tensor empty_for_copy(const char* op, const Tensor& x, ScalarType dtype, Device device,
                      std::optional<MemoryFormat> format) {
  switch (format.value_or(MemoryFormat::Preserve)) {
    case MemoryFormat::Preserve:
      if (device == x.device()) return empty_like_layout(x, dtype);
      if (x->is(TensorImpl::kInternalLayout) || !non_overlapping_and_dense(x)) break;
      return Tensor(TensorBase::empty_strided(x.sizes(), x.raw_strides(), dtype, device));
    case MemoryFormat::ChannelsLast: {
      RAMET_CHECK(x.dim() == 4, op, "required rank 4 tensor to use channels_last format: got ",
                  describe(x));
      Tensor out = empty_channels_last(x.size(0), x.size(1), x.size(2), x.size(3), dtype, device);
      out->set(TensorImpl::kInternalLayout, false);  // the caller asked for it, so it is visible
      return out;
    }
    default: break;
  }
  return Tensor(TensorBase::empty(x.sizes(), dtype, device));
}

// Channels-last because the user made it so.
bool shows_channels_last(const Tensor& x) {
  return !x->is(TensorImpl::kInternalLayout) && is_channels_last(x);
}

}  // namespace

bool Tensor::is_contiguous(MemoryFormat format) const {
  settle();
  return format == MemoryFormat::ChannelsLast ? is_channels_last(*this) : raw_contiguous();
}

Tensor clone(const Tensor& self, std::optional<MemoryFormat> format) {
  check_defined("clone", self);
  Tensor out = empty_for_copy("clone", self, self.scalar_type(), self.device(), format);
  copy_values(out, self);
  if (!recording(self)) return out;
  return record("CloneBackward0", {self}, std::move(out),
                [](const Node&, const Tensor& g) { return g; });
}

Tensor Tensor::clone(std::optional<MemoryFormat> format) const {
  return ramet::clone(*this, format);
}

Tensor Tensor::contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::ChannelsLast) {
    check_defined("contiguous", *this);
    return shows_channels_last(*this) ? *this : clone(format);
  }
  settle();
  return raw_contiguous() || format == MemoryFormat::Preserve ? *this
                                                              : clone(MemoryFormat::Contiguous);
}

Tensor scalar_to_tensor(const Scalar& value, Device device) {
  Tensor t(TensorBase::empty({}, value.type(), device));
  fill_values(t, value);
  t->flags |= TensorImpl::kWrappedNumber;
  return t;
}

Tensor& Tensor::copy_(const Tensor& src, bool non_blocking) const {
  check_defined("copy_", *this);
  check_defined("copy_", src);
  check_inplace("copy_", *this, src);
  if (is_same(src)) return as_mutable(*this);
  RAMET_CHECK(broadcast_sizes("copy_", sizes(), src.sizes()) == sizes(), "copy_", "shapes: got ",
              describe(src),
              ", expected one that "
              "broadcasts to ",
              describe(*this));
  if (may_overlap(src) &&
      !(ptr() == src.ptr() && same_sizes(*this, src) && same_strides(*this, src))) {
    copy_values(*this, src.detach().clone());  // views of one memory may overlap
  } else if (non_blocking) {
    copy_values_later(*this, src, /*fresh=*/false);
  } else {
    copy_values(*this, src);
  }
  wrote("copy_", *this);
  // Whole numbers that are copied from floating-point ones are constants.
  if (!is_floating(scalar_type()) || !recording(*this, src)) return as_mutable(*this);
  record_inplace(
      "CopyBackwards", {src}, *this,
      saves_nothing([from = Meta(src)](const Node&, const Tensor& g) { return from.reduce(g); }));
  if (src->device != p_->device) static_cast<Node*>(p_->node)->flags |= Node::kSpans;
  return as_mutable(*this);
}

Tensor& Tensor::fill_(const Scalar& value) const {
  check_defined("fill_", *this);
  check_inplace("fill_", *this);
  fill_values(*this, value);
  wrote("fill_", *this);
  if (recording(*this)) cut_history("FillBackward0", *this);
  return as_mutable(*this);
}

Tensor& Tensor::fill_(const Tensor& value) const {
  check_defined("fill_", value);
  RAMET_CHECK(value.dim() == 0, "fill_", "only supports a 0-dimension value tensor: got ",
              describe(value));
  return copy_(value);
}

Tensor& Tensor::zero_() const { return fill_(0); }

namespace {

// A copy with another dtype or device, recorded. Between devices it is a movement: its backward
// needs the general pass.
Tensor converted(const Tensor& x, ScalarType dtype, Device device,
                 std::optional<MemoryFormat> format, bool non_blocking) {
  Tensor out = empty_for_copy("to", x, dtype, device, format);
  // As LibTorch: the copy is asynchronous, so its result is in pinned memory.
  if (non_blocking && x.is_cuda() && device.is_cpu() && !capture::active())
    out = Tensor(empty_pinned(out));
  if (non_blocking) copy_values_later(out, x, /*fresh=*/true);
  else copy_values(out, x);
  if (!is_floating(dtype) || !recording(x)) return out;
  out = record(
      "ToCopyBackward0", {x}, std::move(out),
      saves_nothing([from = Meta(x)](const Node&, const Tensor& g) { return from.reduce(g); }));
  if (device != x.device()) static_cast<Node*>(out->node)->flags |= Node::kSpans;
  return out;
}

}  // namespace

Tensor Tensor::to(const TensorOptions& options, bool non_blocking, bool copy,
                  std::optional<MemoryFormat> format) const {
  check_defined("to", *this);
  RAMET_CHECK(!options.requires_grad(), "to",
              "to(options) expects unset requires_grad flag: got true, expected false or nothing");
  const ScalarType dtype = options.has_dtype() ? options.dtype() : scalar_type();
  const Device device = options.has_device() ? resolve(options.device()) : this->device();
  // LibTorch's rule: a tensor that is not channels-last counts as contiguous here.
  const MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  const bool lies_so =
      wanted == MemoryFormat::Preserve ||
      (wanted == MemoryFormat::ChannelsLast ? shows_channels_last(*this)
                                            : raw_contiguous() || !shows_channels_last(*this));
  if (!copy && dtype == scalar_type() && device == this->device() && lies_so) return *this;
  return converted(*this, dtype, device, format, non_blocking);
}

bool Tensor::is_pinned(std::optional<Device>) const {
  check_defined("is_pinned", *this);
  return ramet::is_pinned(*this);
}

Tensor Tensor::pin_memory(std::optional<Device>) const {
  check_defined("pin_memory", *this);
  RAMET_CHECK(is_cpu(), "pin_memory", "only dense CPU tensors can be pinned: got ",
              describe(*this));
  if (ramet::is_pinned(*this) || !cuda::is_available()) return *this;
  const TensorBase x = steady();
  const bool as_it_lies = !x->is(TensorImpl::kInternalLayout) && non_overlapping_and_dense(x);
  Tensor out(
      empty_pinned(as_it_lies ? x : TensorBase::empty(x.sizes(), x.scalar_type(), x.device())));
  copy_values(out, x);
  if (!recording(*this)) return out;
  return record("PinMemoryBackward0", {*this}, std::move(out),
                [](const Node&, const Tensor& g) { return g; });
}
Tensor Tensor::to(Device device, ScalarType dtype, bool non_blocking, bool copy,
                  std::optional<MemoryFormat> format) const {
  return to(TensorOptions(dtype).device(device), non_blocking, copy, format);
}
Tensor Tensor::to(ScalarType dtype, bool non_blocking, bool copy,
                  std::optional<MemoryFormat> format) const {
  return to(TensorOptions(dtype), non_blocking, copy, format);
}
Tensor Tensor::to(const Tensor& other, bool non_blocking, bool copy,
                  std::optional<MemoryFormat> format) const {
  check_defined("to", other);
  return to(TensorOptions(other.scalar_type()).device(other.device()), non_blocking, copy, format);
}

}  // namespace ramet
