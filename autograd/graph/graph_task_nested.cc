// Backwards inside of a walk: what they leave to it, and what it can say of itself (engine.h).
#include <algorithm>

#include "autograd/graph/captured_internal.h"
#include "autograd/graph/engine.h"
#include "autograd/graph/function.h"

namespace ramet {
namespace autograd {

bool GraphTask::within(const GraphTask& outer) const {
  const GraphTask* t = this;
  while (t && t != &outer) t = t->outer_;
  return t != nullptr;
}

bool GraphTask::may_come_to(const Node* leaf) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(
             functions_, [leaf](const Function& f) { return f.node->may_differentiate(leaf); }) ||
         std::ranges::any_of(kept_,
                             [leaf](const Kept& k) { return k.sum->edges()[0].node == leaf; });
}

bool GraphTask::unseen_before_the_end(const Node* leaf) {
  const std::lock_guard lock(mutex_);
  const auto it = info_.find(const_cast<Node*>(leaf));
  return !users_code_ && it != info_.end() && it->second.waits == 1 && it->second.parts.empty();
}

bool GraphTask::may_meet() {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(functions_, [](const Function& f) { return f.meets; });
}

// Functions of one replica, and those inside of one, may lie on several devices: which of them
// comes first is timing, so each one's part is kept by itself.
void GraphTask::keep(Node* sum, uint32_t slot, const GraphTask& from, const Tensor& gradient) {
  std::vector<uint64_t> path;
  for (const Place* p = from.place_; p; p = p->around) path.push_back(p->rank);
  std::ranges::reverse(path);
  const std::lock_guard lock(mutex_);
  kept_.push_back({NodePtr(sum), slot, std::move(path), gradient});
}

}  // namespace autograd
}  // namespace ramet
