// Scoped switches of the calling thread: what is recorded, and how.
#pragma once
#include "runtime/base/context.h"

namespace ramet {

/// Grad mode: are the thread's operations recorded? In InferenceMode it is always off.
struct GradMode {
  /// Are this thread's operations recorded?
  static bool is_enabled() { return ramet::detail::tls.grad_mode; }
  /// Turns grad mode on or off. In InferenceMode operations are not recorded, whatever is set.
  static void set_enabled(bool on) {
    ramet::detail::tls.grad_mode = on && !ramet::detail::tls.inference_mode;
  }
};
/// Sets grad mode during its lifetime.
struct AutoGradMode : ScopedValue<bool> {
  explicit AutoGradMode(bool on)
      : ScopedValue<bool>(ramet::detail::tls.grad_mode, on && !ramet::detail::tls.inference_mode) {}
};
/// During its lifetime nothing is recorded.
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};
/// During its lifetime operations are recorded, inside NoGradGuard too.
struct EnableGradGuard : AutoGradMode {
  EnableGradGuard() : AutoGradMode(true) {}
};
/// As NoGradGuard; and a tensor allocated inside is an inference tensor, as is any view of one,
/// made inside or outside. An inference tensor tracks neither versions nor views. All other tensors
/// are normal ones, inside as well, and stay normal: writes inside raise their versions, and their
/// views made inside are normal tensors.
///
/// Outside, any operation that does not save an inference tensor for a backward may read it.
/// clone() it for one that does: the clone is a normal tensor. The inference tensor must not be
/// written in place there. It can begin to require a gradient only inside; one that requires a
/// gradient is refused where something is recorded. A view made inside of a normal tensor is
/// refused where it is written in place with history. InferenceMode(false) inside is the normal
/// mode, with grad mode on.
struct InferenceMode {
  explicit InferenceMode(bool enabled = true)
      : grad_(ramet::detail::tls.grad_mode, enabled ? false : true),
        inference_(ramet::detail::tls.inference_mode, enabled) {}
  /// Is this thread inside one?
  static bool is_enabled() { return ramet::detail::tls.inference_mode; }

 private:
  ScopedValue<bool> grad_, inference_;
};

namespace autograd {
using ramet::AutoGradMode;
using ramet::GradMode;
using ramet::InferenceMode;
using ramet::NoGradGuard;

/// For debugging. An error in a backward names the scopes around the forward call that made the
/// failing node. With `check_nan` a NaN in a gradient is an error that names the operation.
struct DetectAnomalyGuard {
  explicit DetectAnomalyGuard(bool check_nan = true);
  /// Restores the former setting.
  ~DetectAnomalyGuard();
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;
  DetectAnomalyGuard& operator=(const DetectAnomalyGuard&) = delete;

 private:
  const bool mode_;
  ScopedValue<bool> nan_;
};
/// The switch of DetectAnomalyGuard: errors of a backward say where the operation's forward was
/// called.
struct AnomalyMode {
  /// Is it on in this thread?
  static bool is_enabled() { return ramet::detail::tls.watching & Context::kAnomaly; }
  /// Turns it on or off. With check_nan a NaN in a gradient is an Error, too.
  static void set_enabled(bool on, bool check_nan = true) {
    uint8_t& watching = ramet::detail::tls.watching;
    watching =
        static_cast<uint8_t>(on ? watching | Context::kAnomaly : watching & ~Context::kAnomaly);
    ramet::detail::tls.anomaly_check_nan = check_nan;
  }
};
inline DetectAnomalyGuard::DetectAnomalyGuard(bool check_nan)
    : mode_(AnomalyMode::is_enabled()), nan_(ramet::detail::tls.anomaly_check_nan, check_nan) {
  AnomalyMode::set_enabled(true, check_nan);
}
inline DetectAnomalyGuard::~DetectAnomalyGuard() { AnomalyMode::set_enabled(mode_); }

/// Does this thread run a checkpoint's function once more (autograd/checkpoint.h), in a backward
/// pass? What a forward pass counts or averages is not counted again then.
inline bool is_recomputing() {
  return RAMET_UNLIKELY(ramet::detail::tls.watching & Context::kComputesAgain);
}
}  // namespace autograd
}  // namespace ramet
