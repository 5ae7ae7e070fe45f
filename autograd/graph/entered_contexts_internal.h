// The contexts of a forward pass, entered once more.
#pragma once
#include <memory>
#include <vector>

#include "autograd/graph/forward_context.h"

namespace ramet {
namespace autograd {

/// While it lives, its thread is inside these contexts again.
class EnteredContexts {
 public:
  /// Where entering one throws, it leaves those that it has entered.
  explicit EnteredContexts(const std::vector<std::shared_ptr<ForwardContext>>& contexts)
      : EnteredContexts() {
    for (const auto& context : contexts) entered_.push_back(context->enter());
  }
  ~EnteredContexts() { leave(); }
  EnteredContexts(const EnteredContexts&) = delete;
  EnteredContexts& operator=(const EnteredContexts&) = delete;
  /// Leaves the last one first.
  void leave() {
    while (!entered_.empty()) entered_.pop_back();
  }

 private:
  EnteredContexts() = default;

  std::vector<std::shared_ptr<void>> entered_;
};

}  // namespace autograd
}  // namespace ramet
