// The context of a forward, for backwards that compute parts of the forward again.
#pragma once
#include <memory>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {
namespace autograd {

/// A context that layers find during a forward, for example the other replicas for layers that
/// synchronise. A Function of the user that runs in such a forward has the same context in its
/// backward.
class RAMET_API ForwardContext {
 public:
  virtual ~ForwardContext();
  /// Called before such a backward, on its thread; several calls may run at once. The result is
  /// destroyed when the backward has run, or failed.
  virtual std::shared_ptr<void> enter() = 0;
};

/// During its lifetime, Functions that this thread applies also remember `context`. A null
/// `context` changes nothing.
class RAMET_API ForwardContextGuard {
 public:
  explicit ForwardContextGuard(std::shared_ptr<ForwardContext> context);
  ~ForwardContextGuard();
  ForwardContextGuard(const ForwardContextGuard&) = delete;
  ForwardContextGuard& operator=(const ForwardContextGuard&) = delete;

  /// The contexts of this thread, the outermost first.
  static std::vector<std::shared_ptr<ForwardContext>> all();

 private:
  const std::shared_ptr<ForwardContext> context_;
  ForwardContextGuard* const before_;
};

}  // namespace autograd
}  // namespace ramet
