// Hooks on gradients before and after they are added over replicas.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace parallel {

/// Called with the number of a replica, the full name of a parameter, and the gradient that this
/// replica's backward computed. The returned tensor replaces the gradient; an undefined tensor
/// leaves it unchanged.
using PreReduceHook =
    std::function<Tensor(int replica, const std::string& parameter, const Tensor& gradient)>;
/// Called with the full name of a parameter and its gradient, the sum over the replicas. The result
/// counts in the same way.
using PostReduceHook = std::function<Tensor(const std::string& parameter, const Tensor& gradient)>;

/// The hooks of a replica set; all its ReduceAdd nodes read them. Lists are replaced, never
/// changed: a hook may remove itself while a node iterates over its own reference to the list.
/// Thread-safe.
class RAMET_API ReduceHooks {
 public:
  /// Hooks with their handles, in order of registration.
  template <class Hook> using List = std::vector<std::pair<unsigned, Hook>>;
  /// The hooks before a sum, and those after it.
  struct Lists {
    List<PreReduceHook> pre;    // with each replica's gradient
    List<PostReduceHook> post;  // with the sum
  };
  /// Adds a hook, and returns its handle.
  unsigned add(PreReduceHook hook);
  unsigned add(PostReduceHook hook);
  /// False if there is no such hook.
  bool remove(unsigned id);
  /// Is there a hook?
  bool any() const { return any_.load(std::memory_order_acquire); }
  /// Null: there are none.
  std::shared_ptr<const Lists> lists() const;

 private:
  unsigned replace(const std::function<void(Lists&, unsigned id)>& change);
  mutable std::mutex mutex_;
  std::shared_ptr<const Lists> lists_;
  std::atomic<bool> any_{false};
  unsigned last_ = 0;
};

}  // namespace parallel
}  // namespace ramet
