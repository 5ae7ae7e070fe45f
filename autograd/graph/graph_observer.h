// Observers of the graph. They see which nodes are made, which tensors these save, and how a
// backward pass runs them. tools/see is built on them.
//
// Note [Observing the graph]
// One byte of the thread's context (Context::watching) says whether there is an observer. Nodes and
// both backward passes read this byte anyway, for anomaly mode. All other code for observers is out
// of line. So without an observer two instructions are added where a tensor is saved or a leaf
// takes its gradient. The fast pass is compiled twice.
//
// An observer belongs to the thread that made its guard. It also sees what other threads do for
// that thread: workers of devices, lanes of a backward pass, and all else that ThreadLocalState
// follows. So ranks that are threads of one process have an observer each. Guards may be nested:
// all observers of a thread are called, the outermost first.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "autograd/graph/node.h"
#include "runtime/observe/observer.h"

namespace ramet {
namespace autograd {

struct Root;

/// Functions are called on the thread where the event happens, on several threads at a time. What
/// they do is not observed. What they throw is logged and dropped, but for on_node_begun. A node
/// lives during the call; another one may be made at its address later.
class RAMET_API GraphObserver {
 public:
  GraphObserver() = default;
  GraphObserver(const GraphObserver&) = delete;
  virtual ~GraphObserver();

  // ---- the graph grows --------------------------------------------------------------------------

  /// `node` has its edges. `inputs`: the tensors that the operation was called with, one for each
  /// edge, null where the tensor was undefined. Empty for a leaf's collector, and where they are
  /// not known. `results`: the tensors that have this history; for a collector its leaf. Empty
  /// where they are not known.
  virtual void on_node_made(Node& node, ArrayRef<Input> inputs, ArrayRef<Input> results);
  /// The same with the other arguments of the operation. They live during the call; an observer
  /// that keeps them copies. Calls on_node_made where it is not overridden.
  virtual void on_operation(Node& node, ArrayRef<Input> inputs, ArrayRef<Input> results,
                            const Arguments& arguments);
  /// An operation saves `t`, with its present version, for the backward of the node that this
  /// thread makes next.
  virtual void on_saved(const Tensor& t);
  /// Autocast needs `from` as `to`, a tensor of another dtype. It casts, unless the cast was `kept`
  /// since it made it for another operation.
  virtual void on_cast(const Tensor& from, const Tensor& to, bool kept);

  // ---- a backward pass; `walk` is an address that names it while it lasts -----------------------

  /// True if one thread shall run the lanes of all devices, in an order that timing does not
  /// change. Called when a backward pass begins.
  virtual bool wants_one_thread() const { return false; }
  virtual void on_backward_begun(const void* walk, const std::vector<Root>& roots, bool create);
  /// `failed`: it throws.
  virtual void on_backward_ended(const void* walk, bool failed);
  /// All gradients of the node have come. The pass may hold a lock: do not wait for other threads.
  /// In a pass over one device this comes just before the node runs.
  virtual void on_node_ready(const void* walk, Node& node);
  /// `in`: a gradient for each slot, after hooks. The function may wait, and may replace gradients.
  /// What it throws is the node's failure.
  virtual void on_node_begun(Node& node, Tensor* in);
  /// `out`: a gradient for each edge, undefined ones too. Null for a leaf's collector, and where
  /// the node failed with std::current_exception().
  virtual void on_node_ended(Node& node, const Tensor* out, bool failed);
  /// An edge delivers `gradient`, before it is added to what other edges deliver.
  virtual void on_delivered(const void* walk, Node& from, int edge, const Tensor& gradient);
  /// A leaf has added what came. Before its hooks.
  virtual void on_accumulated(Node& leaf, const Tensor& gradient);

  // ---- gradients that are reduced together (ReduceBucket, parallel/distributed/ddp) -------------

  /// All of what `member` gives to the bucket has come. As on_node_ready.
  virtual void on_slot_filled(const void* bucket, Node& member);
  /// `kind`: "reduce_add", "all_reduce". `members`: those of the bucket that take part. `bucket`:
  /// an address or number, the same in each backward pass until the plan of the buckets changes.
  virtual void on_reduce_begun(const void* bucket, const char* kind, ArrayRef<Node*> members);
  /// `when`: by monotonic_ns(), before now where it ran concurrently with the backward pass.
  virtual void on_reduce_ended(const void* bucket, uint64_t when);

  // ---- data goes from device to device ----------------------------------------------------------

  /// `kind`: "scatter", "gather", "broadcast", "reduce_add", "copy", "all_reduce" ... `begun`: by
  /// monotonic_ns(). On a GPU it may be queued only.
  virtual void on_moved(const char* kind, ArrayRef<Tensor> from, ArrayRef<Tensor> to,
                        uint64_t begun);
};

/// While it lives `observer` is called. Destroy it on the thread that made it.
class RAMET_API GraphObserverGuard {
 public:
  explicit GraphObserverGuard(std::shared_ptr<GraphObserver> observer);
  ~GraphObserverGuard();
  GraphObserverGuard(const GraphObserverGuard&) = delete;
  GraphObserverGuard& operator=(const GraphObserverGuard&) = delete;

 private:
  std::shared_ptr<GraphObserver> observer_;
};

/// Has this thread an observer? The functions below do nothing where it has none.
inline bool graph_observed() {
  return RAMET_UNLIKELY(ramet::detail::tls.watching & Context::kGraphObserved);
}

/// Calls on_moved of this thread's observers, for a movement that is over now.
[[gnu::cold]] RAMET_API void tell_moved(const char* kind, ArrayRef<Tensor> from,
                                        ArrayRef<Tensor> to, uint64_t begun) noexcept;
/// Calls on_cast of this thread's observers.
[[gnu::cold]] RAMET_API void tell_cast(const Tensor& from, const Tensor& to, bool kept) noexcept;
/// monotonic_ns() where an observer needs to know when a movement began, else 0.
inline uint64_t movement_begins() { return graph_observed() ? monotonic_ns() : 0; }

namespace detail {

/// Does this thread call `observer`?
RAMET_API bool tells(const GraphObserver& observer);
/// Is a function of one of this thread's observers running now?
RAMET_API bool inside_graph_observer();
using TellObserver = void (*)(const void* what, GraphObserver&);
[[gnu::cold]] RAMET_API void tell_observers(const void* what, TellObserver tell) noexcept;
/// Calls `tell` with each of this thread's observers. Logs what it throws.
template <class F> void tell_observers(const F& tell) noexcept {
  tell_observers(&tell, [](const void* f, GraphObserver& o) { (*static_cast<const F*>(f))(o); });
}

}  // namespace detail

}  // namespace autograd
}  // namespace ramet
