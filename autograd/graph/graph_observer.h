// Observers of the graph: who is told what nodes are made, what they keep, and how a backward walks
// them. tools/see is built on them.
//
// Note [Observing the graph]
// One byte of the thread's context (Context::watching), which nodes and both walks look at anyway
// for anomaly mode, says whether there is somebody; behind it everything is out of line. So while
// nobody observes nothing is paid but two instructions where a tensor is saved or a leaf takes its
// gradient. The fast walk exists twice.
//
// An observer belongs to the thread that a guard was made on, and to what other threads do for that
// one: devices' workers, lanes of a backward, and everything else that ThreadLocalState follows.
// Ranks that are threads of one process so have each their own. Guards may be nested: all of a
// thread's observers are told, the outermost first.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "autograd/graph/node.h"
#include "runtime/observe/observer.h"

namespace ramet {
namespace autograd {

struct Root;

/// Functions are called on the thread where the thing happens, several threads at a time, and what
/// they do is observed by nobody. What they throw is logged and forgotten, but for on_node_begun.
/// A node lives during the call; another one may be made in its place later.
class RAMET_API GraphObserver {
 public:
  GraphObserver() = default;
  GraphObserver(const GraphObserver&) = delete;
  virtual ~GraphObserver();

  // ---- the graph grows --------------------------------------------------------------------------

  /// `node` has its edges. `inputs`: what the operation was called with, one an edge, null where
  /// that was undefined; empty: not known, a leaf's collector. `results`: what it is the history
  /// of, a leaf for its collector; empty: not known.
  virtual void on_node_made(Node& node, ArrayRef<Input> inputs, ArrayRef<Input> results);
  /// The same with the arguments that the operation was called with, besides `inputs`. They live
  /// during the call; copy what is kept. Calls on_node_made where it is not overridden.
  virtual void on_operation(Node& node, ArrayRef<Input> inputs, ArrayRef<Input> results,
                            const Arguments& arguments);
  /// An operation keeps `t`, whose version is the one of now, for its backward: that of the node
  /// which this thread makes next.
  virtual void on_saved(const Tensor& t);

  // ---- a walk, known by an address while it lasts
  // -------------------------------------------------

  /// Shall one thread run the lanes of all devices, in an order that timing does not change? Asked
  /// when a backward pass begins.
  virtual bool wants_one_thread() const { return false; }
  virtual void on_backward_begun(const void* walk, const std::vector<Root>& roots, bool create);
  /// `failed`: it throws.
  virtual void on_backward_ended(const void* walk, bool failed);
  /// All gradients of the node have come. Perhaps under a lock of the walk: it must not wait for
  /// other threads. In a walk over one device, just before it runs.
  virtual void on_node_ready(const void* walk, Node& node);
  /// `in`: a gradient a slot, hooks have run. It may wait, and put others in their place. What it
  /// throws is the node's failure.
  virtual void on_node_begun(Node& node, Tensor* in);
  /// `out`: a gradient an edge, undefined ones too; null: a leaf's collector, or it failed, by
  /// std::current_exception().
  virtual void on_node_ended(Node& node, const Tensor* out, bool failed);
  /// Before it is added to what other edges deliver there.
  virtual void on_delivered(const void* walk, Node& from, int edge, const Tensor& gradient);
  /// A leaf has added what came. Before its hooks.
  virtual void on_accumulated(Node& leaf, const Tensor& gradient);

  // ---- gradients that are reduced together (ReduceBucket, parallel/distributed/ddp)
  // ---------------

  /// All of what `member` gives to the bucket has come. As on_node_ready.
  virtual void on_slot_filled(const void* bucket, Node& member);
  /// `kind`: "reduce_add", "all_reduce". `members`: those of the bucket that take part. A bucket is
  /// known by an address or number, the same in each backward while the plan of the buckets is.
  virtual void on_reduce_begun(const void* bucket, const char* kind, ArrayRef<Node*> members);
  /// `when`: by monotonic_ns(), before now where it went on beside the backward.
  virtual void on_reduce_ended(const void* bucket, uint64_t when);

  // ---- data goes from device to device ----------------------------------------------------------

  /// `kind`: "scatter", "gather", "broadcast", "reduce_add", "copy", "all_reduce" ... `begun`: by
  /// monotonic_ns(). On a GPU it may be queued only.
  virtual void on_moved(const char* kind, ArrayRef<Tensor> from, ArrayRef<Tensor> to,
                        uint64_t begun);
};

/// While it lives `observer` is told. Destroyed on the thread that made it.
class RAMET_API GraphObserverGuard {
 public:
  explicit GraphObserverGuard(std::shared_ptr<GraphObserver> observer);
  ~GraphObserverGuard();
  GraphObserverGuard(const GraphObserverGuard&) = delete;
  GraphObserverGuard& operator=(const GraphObserverGuard&) = delete;

 private:
  std::shared_ptr<GraphObserver> observer_;
};

/// Has this thread an observer? What follows does nothing where it has none.
inline bool graph_observed() {
  return RAMET_UNLIKELY(ramet::detail::tls.watching & Context::kGraphObserved);
}

/// Tells them of a movement (GraphObserver::on_moved) that is over now.
[[gnu::cold]] RAMET_API void tell_moved(const char* kind, ArrayRef<Tensor> from,
                                        ArrayRef<Tensor> to, uint64_t begun) noexcept;
/// monotonic_ns() where somebody wants to know when a movement began, else 0.
inline uint64_t movement_begins() { return graph_observed() ? monotonic_ns() : 0; }

namespace detail {

/// Does this thread tell `observer`?
RAMET_API bool tells(const GraphObserver& observer);
/// Is one of this thread's observers called just now?
RAMET_API bool inside_graph_observer();
using TellObserver = void (*)(const void* what, GraphObserver&);
[[gnu::cold]] RAMET_API void tell_observers(const void* what, TellObserver tell) noexcept;
/// Calls `tell` with each of this thread's observers; logs what it throws.
template <class F> void tell_observers(const F& tell) noexcept {
  tell_observers(&tell, [](const void* f, GraphObserver& o) { (*static_cast<const F*>(f))(o); });
}

}  // namespace detail

}  // namespace autograd
}  // namespace ramet
