// What the backward passes call where the graph is observed.
#pragma once
#include "autograd/graph/graph_observer.h"

namespace ramet {
namespace autograd {
namespace detail {

/// An observed pass: reports its begin when constructed, and its end when destroyed.
class ObservedWalk {
 public:
  ObservedWalk(const void* walk, const std::vector<Root>& roots, bool create) : walk_(walk) {
    tell_observers([&](GraphObserver& o) { o.on_backward_begun(walk_, roots, create); });
  }
  ~ObservedWalk() {
    tell_observers([this](GraphObserver& o) { o.on_backward_ended(walk_, failed); });
  }
  bool failed = true;  // until the pass sets it

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
/// Reports the begin and the end of `n`, and calls `run` between them.
[[gnu::cold]] void run_observed(Node* n, Tensor* in, Tensor* out,
                                void (*run)(Node*, Tensor*, Tensor*));

}  // namespace detail
}  // namespace autograd
}  // namespace ramet
