// Autocast: operations compute in 16 bits where that is safe, from float32 parameters and inputs.
//
//   Tensor loss;
//   {
//     AutocastGuard autocast(kCPU);  // bfloat16; float16 for kCUDA
//     loss = cross_entropy_loss(net->forward(x), y);
//   }
//   loss.backward();
//
// Each operation has a policy for CPUs and one for GPUs, LibTorch's: RAMET_AUTOCAST in its row
// (autograd/forms/rows.inc). lower: tensors are cast to the 16-bit dtype. float32: to float32.
// widest: to float32 where one is float32. none: it runs as it is. Only floating-point tensors of
// the device type are cast, and never float64 ones. In-place and out forms are not cast.
//
// - A cast is recorded, so a float32 parameter has a float32 gradient. The backward pass runs in
//   the dtypes of the forward pass, with autocast off, wherever backward() is called.
// - Casts of parameters are kept until the outermost guard ends. A parameter that was written since
//   is cast again. A capture, each call of a replica, and a checkpoint's function that runs again
//   keep their own.
// - The state belongs to the thread. Replicas, devices' tasks and loaders' workers have the
//   caller's. A checkpoint's function runs again under the state of its forward pass. A capture is
//   used only under the state that it was made under.
#pragma once
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {

/// LibTorch's names for the state of autocast. Device types are kCPU and kCUDA; another one is an
/// Error where it would be switched on, or asked for its dtype.
namespace autocast {

/// Does autocast exist for this device type?
RAMET_API bool is_autocast_available(DeviceType device_type);
/// Does this thread cast for this device type? Inside of an operation that is cast it does not.
RAMET_API bool is_autocast_enabled(DeviceType device_type);
/// Switches it on or off in this thread.
RAMET_API void set_autocast_enabled(DeviceType device_type, bool enabled);
/// The 16-bit dtype: kBFloat16 for CPUs and kHalf for GPUs, unless another one was set.
RAMET_API ScalarType get_autocast_dtype(DeviceType device_type);
/// Sets it in this thread. An Error unless it is kBFloat16 or kHalf.
RAMET_API void set_autocast_dtype(DeviceType device_type, ScalarType dtype);
/// Enters a region in which casts of parameters are kept. Returns how many there are now.
RAMET_API int increment_nesting();
/// Leaves it. Returns how many are left; at 0 the caller calls clear_cache().
RAMET_API int decrement_nesting();
/// Drops this thread's casts of parameters.
RAMET_API void clear_cache();
/// Are casts of parameters kept in this thread's regions? They are by default.
RAMET_API bool is_autocast_cache_enabled();
/// Switches that on or off.
RAMET_API void set_autocast_cache_enabled(bool enabled);

/// `tensor` as to_type, as autocast would cast it: itself where it is no floating-point tensor of
/// the device type, or is float64. Recorded, and kept if it is a parameter.
RAMET_API Tensor cached_cast(ScalarType to_type, const Tensor& tensor,
                             DeviceType device_type = kCUDA);

/// The same for GPUs or CPUs, under LibTorch's older names:
inline bool is_enabled() { return is_autocast_enabled(kCUDA); }
inline void set_enabled(bool enabled) { set_autocast_enabled(kCUDA, enabled); }
inline ScalarType get_autocast_gpu_dtype() { return get_autocast_dtype(kCUDA); }
inline void set_autocast_gpu_dtype(ScalarType dtype) { set_autocast_dtype(kCUDA, dtype); }
inline bool is_cpu_enabled() { return is_autocast_enabled(kCPU); }
inline void set_cpu_enabled(bool enabled) { set_autocast_enabled(kCPU, enabled); }
inline ScalarType get_autocast_cpu_dtype() { return get_autocast_dtype(kCPU); }
inline void set_autocast_cpu_dtype(ScalarType dtype) { set_autocast_dtype(kCPU, dtype); }

}  // namespace autocast

/// During its lifetime this thread casts for a device type, as in Python's torch.autocast.
class RAMET_API AutocastGuard {
 public:
  /// dtype: kBFloat16 or kHalf, by default the one in force. Another one is an Error, unless
  /// `enabled` is false. Then operations inside are not cast. cache_enabled: are casts of
  /// parameters kept? By default as before.
  explicit AutocastGuard(DeviceType device_type, std::optional<ScalarType> dtype = std::nullopt,
                         bool enabled = true, std::optional<bool> cache_enabled = std::nullopt);
  /// Restores the former state. The end of the outermost guard drops the casts of parameters.
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  const uint8_t on_, choices_;
};

namespace autograd {
class AutogradContext;
}

namespace detail {
// During its lifetime the thread keeps other casts of parameters. A capture has one, each call of a
// replica, and a checkpoint's function that runs again.
class RAMET_API OwnCasts {
 public:
  OwnCasts();
  ~OwnCasts();
  OwnCasts(const OwnCasts&) = delete;
  OwnCasts& operator=(const OwnCasts&) = delete;

 private:
  const int nesting_;
  void* const kept_;
};
// The state that custom_fwd finds, and custom_bwd brings back.
struct RAMET_API CustomForward {
  bool enabled;
  ScalarType dtype;
  // Notes the state. Is forward to run with cast inputs?
  static bool begin(autograd::AutogradContext* ctx, DeviceType device_type, bool cast_inputs);
  static CustomForward of(const autograd::AutogradContext* ctx);
};

RAMET_API Tensor custom_input(const Tensor& x, DeviceType device_type, ScalarType dtype);
inline std::optional<Tensor> custom_input(const std::optional<Tensor>& x, DeviceType device_type,
                                          ScalarType dtype) {
  return x ? std::optional<Tensor>(custom_input(*x, device_type, dtype)) : std::nullopt;
}
RAMET_API std::vector<Tensor> custom_input(const std::vector<Tensor>& list, DeviceType device_type,
                                           ScalarType dtype);
template <class T> const T& custom_input(const T& other, DeviceType, ScalarType) { return other; }
}  // namespace detail

/// For the forward of a user's Function: calls forward(args...). With cast_inputs, under autocast
/// for the device type, it casts tensors among `args` and calls forward with autocast off. It casts
/// floating-point tensors of the device type, but not float64 ones. Otherwise forward's operations
/// are cast as everywhere. Python's torch.amp.custom_fwd.
template <class F, class... Args>
auto custom_fwd(autograd::AutogradContext* ctx, DeviceType device_type,
                std::optional<ScalarType> cast_inputs, F&& forward, const Args&... args) {
  if (!detail::CustomForward::begin(ctx, device_type, cast_inputs.has_value()))
    return std::forward<F>(forward)(args...);
  const AutocastGuard off(device_type, std::nullopt, false);
  return std::forward<F>(forward)(detail::custom_input(args, device_type, *cast_inputs)...);
}
/// For the backward of such a Function: calls backward() under the autocast that custom_fwd found,
/// or without if that cast the inputs. Python's torch.amp.custom_bwd.
template <class F>
auto custom_bwd(autograd::AutogradContext* ctx, DeviceType device_type, F&& backward) {
  const auto forward = detail::CustomForward::of(ctx);
  const AutocastGuard as(device_type, forward.dtype, forward.enabled);
  return std::forward<F>(backward)();
}

}  // namespace ramet
