// Scoped switches of the calling thread: what is recorded, and how.
#pragma once
#include "runtime/base/context.h"

namespace ramet {

/// Off in InferenceMode, whatever is asked there.
struct GradMode {
  /// Are this thread's operations recorded?
  static bool is_enabled() { return ramet::detail::tls.grad_mode; }
  /// Whether they are from now on. InferenceMode is stronger: in it they are not.
  static void set_enabled(bool on) {
    ramet::detail::tls.grad_mode = on && !ramet::detail::tls.inference_mode;
  }
};
/// Sets grad mode while it lives.
struct AutoGradMode : ScopedValue<bool> {
  explicit AutoGradMode(bool on)
      : ScopedValue<bool>(ramet::detail::tls.grad_mode, on && !ramet::detail::tls.inference_mode) {}
};
/// Nothing is recorded while it lives.
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};
/// Operations are recorded while it lives, inside NoGradGuard too.
struct EnableGradGuard : AutoGradMode {
  EnableGradGuard() : AutoGradMode(true) {}
};
/// As NoGradGuard, and what is allocated inside is an inference tensor, as are views of one, made
/// anywhere: it tracks neither versions nor views. All other tensors are normal ones, inside as
/// well, and stay so: written inside they count versions, and their views made inside are normal
/// tensors. Outside an inference tensor may be read by any operation that does not save it for a
/// backward (clone() it for that: a normal tensor), but not be written in place, and it begins to
/// require a gradient only inside. One that does is refused where something is recorded. A view
/// made inside of a normal tensor is refused where it is written in place with history.
/// InferenceMode(false) inside is the normal mode, with grad mode on.
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

/// Debugging: a backward error names the scopes around the forward call that made the failing node,
/// and with `check_nan` a NaN in a gradient is an error naming the operation.
struct DetectAnomalyGuard {
  explicit DetectAnomalyGuard(bool check_nan = true);
  /// As it was before.
  ~DetectAnomalyGuard();
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;
  DetectAnomalyGuard& operator=(const DetectAnomalyGuard&) = delete;

 private:
  const bool mode_;
  ScopedValue<bool> nan_;
};
/// Errors of a backward say where the forward of the operation was called.
struct AnomalyMode {
  /// Is it on in this thread?
  static bool is_enabled() { return ramet::detail::tls.watching & Context::kAnomaly; }
  /// From now on; with check_nan a NaN in a gradient is an Error, too.
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
}  // namespace autograd
}  // namespace ramet
