// What a backward function keeps of the forward pass: tensors, with the versions that they had.
//
// Note [Saved tensors that are computed again]
// In a checkpoint (autograd/checkpoint.h) a Saved holds no values. Its tensor is then a stand-in
// without elements, at another version than the one that the Saved expects. So get() takes its slow
// path there, which asks the checkpoint for the values, and its quick path is the same as without
// checkpoints.
#pragma once
#include <utility>

#include "autograd/tensor.h"
#include "runtime/base/context.h"

namespace ramet {
namespace autograd {

struct Node;
class CheckpointFrame;

/// What a node saves of a tensor that has a history or is a view: its data with the present
/// history. Through the tensor itself, or a view's base, the node would own what is written there
/// later. That may be the node itself: y.add_(y * w), x[0].div_(x[1]). A tensor that cannot be
/// written with history (a leaf that requires grad, a replica's parameter, a view of either) is
/// saved as it is.
RAMET_API Tensor with_history_of_now(Tensor t);

/// Calls on_saved of the graph's observers: the node that this thread makes next saves `t`.
[[gnu::cold]] RAMET_API void tell_saved(const Tensor& t) noexcept;

/// An input (or any tensor), with its history and the version it had.
class RAMET_API Saved {
 public:
  Saved() = default;
  explicit Saved(Tensor t) : t_(std::move(t)), version_(t_.version()) {
    if (RAMET_UNLIKELY(t_.is_inference())) refuse_inference();
    if (RAMET_UNLIKELY(ramet::detail::tls.watching)) keep_watched();
    else if (t_->node != nullptr || t_->base != nullptr) t_ = with_history_of_now(std::move(t_));
  }
  /// The tensor, in a checkpoint computed again. An Error naming both operations if its values were
  /// changed since. The reference is good as long as this Saved.
  const Tensor& get(const Node& self) const {
    if (t_.defined() && RAMET_UNLIKELY(t_.version() != version_)) return at_other_version(self);
    return t_;
  }
  /// Was a tensor saved?
  bool defined() const { return t_.defined(); }

 protected:
  friend class CheckpointFrame;
  [[gnu::cold]] void keep_watched();
  [[gnu::cold]] const Tensor& at_other_version(const Node& self) const;
  [[noreturn, gnu::cold]] static void refuse_inference();
  Tensor t_;
  uint32_t version_ = 0;
};
/// Saves an input.
inline Saved save(const Tensor& t) { return Saved(t); }
/// An undefined Saved unless `wanted`: an input is saved only for another input's gradient.
inline Saved save_if(bool wanted, const Tensor& t) {
  return wanted && t.defined() ? Saved(t) : Saved();
}

/// A result: never owns its node; holds the data without history, and is restored through the node
/// that asks.
class RAMET_API SavedOutput : Saved {
 public:
  SavedOutput() = default;
  explicit SavedOutput(const Tensor& y) : Saved(y.shallow()) {}
  /// With history when a gradient of the gradient is being recorded.
  Tensor get(const Node& self) const;
};
/// Call it before the history is added: record(..., std::move(y), [y = save_output(y)]...).
inline SavedOutput save_output(const Tensor& y) { return SavedOutput(y); }

}  // namespace autograd
}  // namespace ramet
