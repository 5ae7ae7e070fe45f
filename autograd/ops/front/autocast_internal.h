// How a function casts its tensors under autocast. Private to autograd/ops.
//
// Note [Autocast]
// A row with RAMET_AUTOCAST makes the public function in definitions.inc. It tests one byte of the
// thread's state and calls the function's body, name_body in the family's .cc. Under autocast the
// body gets cast arguments, and autocast is off, so that nothing inside is cast twice.
// Functions without the word cost nothing; those that they call may cast.
//
// The body checks shapes, of cast tensors. So an Error comes after the casts. They are all that was
// done: a parameter's stays for the next call, others are gone.
#pragma once
#include <optional>
#include <vector>

#include "autograd/autocast.h"
#include "kernels/pointwise/row.h"

namespace ramet {
namespace autograd {

/// What autocast does with a function's tensors.
enum class CastPolicy : uint8_t {
  kNone,          ///< nothing; what the function calls may cast
  kAsIs,          ///< nothing, inside neither
  kLower,         ///< to autocast's dtype
  kFloat32,       ///< to float32
  kFloat32Dtype,  ///< to float32 unless an argument asks for a dtype: its dtype becomes float32
  kWidest,        ///< to float32 where one is float32, else to autocast's dtype
  kRefused,       ///< an Error
};
/// The same for a row of kernels/pointwise/rows, on GPUs.
constexpr CastPolicy policy_of(kernels::Autocast a) {
  return a == kernels::Autocast::kFloat32  ? CastPolicy::kFloat32
         : a == kernels::Autocast::kWidest ? CastPolicy::kWidest
                                           : CastPolicy::kNone;
}
constexpr bool any_casts(CastPolicy cpu, CastPolicy cuda) {
  return cpu != CastPolicy::kNone || cuda != CastPolicy::kNone;
}

/// Autocast is off during its lifetime: in-place and out forms, as LibTorch's, are not cast.
struct NoAutocast : ScopedValue<uint8_t> {
  NoAutocast() : ScopedValue<uint8_t>(ramet::detail::tls.autocast, 0) {}
};

/// Casts the arguments of one call. First it sees them all.
class Casting {
 public:
  void see(const Tensor& x);
  void see(const std::optional<Tensor>& x) {
    if (x) see(*x);
  }
  void see(TensorList list) {
    for (const Tensor& x : list) see(x);
  }
  template <class T> void see(const T&) {}

  /// Chooses the dtype. False: the call is not cast. An Error where no dtype fits.
  bool begin(const char* op, CastPolicy cpu, CastPolicy cuda);

  Tensor operator()(const Tensor& x) const;
  std::optional<Tensor> operator()(const std::optional<Tensor>& x) const {
    return x ? std::optional<Tensor>((*this)(*x)) : std::nullopt;
  }
  std::vector<Tensor> operator()(TensorList list) const {
    std::vector<Tensor> cast;
    for (const Tensor& x : list) cast.push_back((*this)(x));
    return cast;
  }
  std::optional<ScalarType> operator()(const std::optional<ScalarType>& dtype) const {
    return dtype || !as_result_ ? dtype : kFloat;
  }
  template <class T> const T& operator()(const T& other) const { return other; }

  /// In a handler: throws the body's exception again. An Error shows cast tensors, so it also says
  /// to what they were cast.
  [[noreturn]] void rethrow() const;

 private:
  enum Seen : uint8_t { kSeen = 1, kSeenFloat = 2, kSeenHalf = 4, kSeenBFloat16 = 8 };
  uint8_t cpu_ = 0, cuda_ = 0;  // what was seen on devices of this type
  DeviceType device_type_ = kCPU;
  std::optional<ScalarType> to_;  // of tensors
  bool as_result_ = false;        // the result is float32
};

/// body(args...), with cast arguments and autocast off where a policy says so. A body without
/// captures takes no place in the caller's frame, so a caller without autocast needs none.
template <class R, class F, class... A>
[[gnu::cold, gnu::noinline]] R cast_call(const char* op, CastPolicy cpu, CastPolicy cuda, F body,
                                         const A&... args) {
  Casting casting;
  (casting.see(args), ...);
  if (!casting.begin(op, cpu, cuda)) return body(args...);
  const auto call = [&](const auto&... cast) -> R {
    const NoAutocast off;
    try {
      return body(cast...);
    } catch (...) { casting.rethrow(); }
  };
  return call(casting(args)...);
}

}  // namespace autograd
}  // namespace ramet
