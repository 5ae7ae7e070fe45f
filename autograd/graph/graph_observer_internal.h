// What the walks call where somebody observes the graph.
#pragma once
#include "autograd/graph/graph_observer.h"

namespace ramet {
namespace autograd {
namespace detail {

/// A walk that is observed: tells that it begins and, when it goes, that it ends.
class ObservedWalk {
 public:
  ObservedWalk(const void* walk, const std::vector<Root>& roots, bool create) : walk_(walk) {
    tell_observers([&](GraphObserver& o) { o.on_backward_begun(walk_, roots, create); });
  }
  ~ObservedWalk() {
    tell_observers([this](GraphObserver& o) { o.on_backward_ended(walk_, failed); });
  }
  bool failed = true;  // until somebody says otherwise

 private:
  const void* const walk_;
};
class ObservedReduction {
 public:
  ObservedReduction(const void* bucket, const char* kind, ArrayRef<Node*> members)
      : bucket_(bucket) {
    tell_observers([&](GraphObserver& o) { o.on_reduce_begun(bucket_, kind, members); });
  }
  ~ObservedReduction() {
    tell_observers([this](GraphObserver& o) { o.on_reduce_ended(bucket_, monotonic_ns()); });
  }

 private:
  const void* const bucket_;
};

[[gnu::cold]] bool an_observer_wants_one_thread();
/// Tells that `n` begins and ends, around `run`.
[[gnu::cold]] void run_observed(Node* n, Tensor* in, Tensor* out,
                                void (*run)(Node*, Tensor*, Tensor*));

}  // namespace detail
}  // namespace autograd
}  // namespace ramet
