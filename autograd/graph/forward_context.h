// What a forward runs in, for backwards that compute parts of it again.
#pragma once
#include <memory>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {
namespace autograd {

/// Something that layers find around them while a forward runs, as the other replicas are for those
/// that synchronise. A user's Function that is applied there finds it again around its backward.
class RAMET_API ForwardContext {
 public:
  virtual ~ForwardContext();
  /// Before such a backward, on its thread; several may run at once. The result goes when the
  /// backward has run, or failed.
  virtual std::shared_ptr<void> enter() = 0;
};

/// While it lives, Functions that this thread applies remember `context`, too. Null: nothing more.
class RAMET_API ForwardContextGuard {
 public:
  explicit ForwardContextGuard(std::shared_ptr<ForwardContext> context);
  ~ForwardContextGuard();
  ForwardContextGuard(const ForwardContextGuard&) = delete;
  ForwardContextGuard& operator=(const ForwardContextGuard&) = delete;

  /// Those of this thread, the outermost first.
  static std::vector<std::shared_ptr<ForwardContext>> all();

 private:
  const std::shared_ptr<ForwardContext> context_;
  ForwardContextGuard* const before_;
};

}  // namespace autograd
}  // namespace ramet
