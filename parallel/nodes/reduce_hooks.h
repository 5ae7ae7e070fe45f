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

/// With the number of a replica, the full name of a parameter and the gradient that this replica's
/// backward gave it. What it returns takes the gradient's place; an undefined tensor leaves it as
/// it is.
using PreReduceHook =
    std::function<Tensor(int replica, const std::string& parameter, const Tensor& gradient)>;
/// With the full name of a parameter and its gradient: the sum over the replicas. The same.
using PostReduceHook = std::function<Tensor(const std::string& parameter, const Tensor& gradient)>;

/// The hooks of a replica set, which all its ReduceAdd nodes look up. Lists are never changed, only
/// replaced: a hook may remove itself, and whoever walks a list keeps it. Thread safety: all of it.
class RAMET_API ReduceHooks {
 public:
  /// Hooks with their handles, in order of registration.
  template <class Hook> using List = std::vector<std::pair<unsigned, Hook>>;
  /// Those before a sum, and those behind it.
  struct Lists {
    List<PreReduceHook> pre;    // with each replica's gradient
    List<PostReduceHook> post;  // with the sum
  };
  /// Adds one, and returns its handle.
  unsigned add(PreReduceHook hook);
  unsigned add(PostReduceHook hook);
  /// False if there is no such hook.
  bool remove(unsigned id);
  /// Is there a hook?
  bool any() const { return any_.load(std::memory_order_acquire); }
  /// Null: none.
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
