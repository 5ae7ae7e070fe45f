#include "autograd/graph/rethrow_internal.h"
#include "autograd/ops/front/autocast_internal.h"

namespace ramet {
namespace autograd {

void Casting::see(const Tensor& x) {
  if (!x.defined()) return;
  uint8_t& seen = x.is_cpu() ? cpu_ : cuda_;
  seen |= kSeen;
  if (x.scalar_type() == kFloat) seen |= kSeenFloat;
  if (x.scalar_type() == kHalf) seen |= kSeenHalf;
  if (x.scalar_type() == kBFloat16) seen |= kSeenBFloat16;
}

// A call with tensors of both kinds of devices is a GPU's, as in LibTorch.
bool Casting::begin(const char* op, CastPolicy cpu, CastPolicy cuda) {
  const bool on_gpu = cuda_ && autocast::is_autocast_enabled(kCUDA);
  if (!on_gpu && !(cpu_ && autocast::is_autocast_enabled(kCPU))) return false;
  device_type_ = on_gpu ? kCUDA : kCPU;
  const CastPolicy policy = on_gpu ? cuda : cpu;
  const uint8_t seen = on_gpu ? cuda_ : cpu_;
  const ScalarType lower = autocast::get_autocast_dtype(device_type_);
  switch (policy) {
    case CastPolicy::kNone: return false;
    case CastPolicy::kAsIs: break;
    case CastPolicy::kLower: to_ = lower; break;
    case CastPolicy::kFloat32: to_ = kFloat; break;
    case CastPolicy::kFloat32Dtype: as_result_ = (seen & ~kSeen) != 0; break;
    case CastPolicy::kWidest:
      to_ = seen & kSeenFloat ? kFloat : lower;
      RAMET_CHECK(seen & kSeenFloat || !(seen & (lower == kHalf ? kSeenBFloat16 : kSeenHalf)), op,
                  "got a tensor of ", name_of(lower == kHalf ? kBFloat16 : kHalf),
                  " under autocast to ", name_of(lower),
                  ", expected tensors of that dtype or Float: cast it, or set autocast's dtype");
      break;
    case CastPolicy::kRefused:
      fail(op, "unsafe under autocast: its result and gradient overflow in 16 bits. Use ", op,
           "_with_logits, which takes the values before the sigmoid, or switch autocast off here "
           "and cast the input to float32");
  }
  return true;
}

void Casting::rethrow() const {
  if (!to_) throw;
  const int had = *to_ == kFloat ? kSeenFloat : *to_ == kHalf ? kSeenHalf : kSeenBFloat16;
  if (((device_type_ == kCUDA ? cuda_ : cpu_) & ~(kSeen | had)) == 0) throw;  // nothing was cast
  rethrow_with(detail::join("\n  under autocast, which cast its tensors to ", name_of(*to_)));
}

Tensor Casting::operator()(const Tensor& x) const {
  return to_ ? autocast::cached_cast(*to_, x, device_type_) : x;
}

}  // namespace autograd
}  // namespace ramet
