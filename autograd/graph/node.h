// The graph: Node, Edge, AccumulateGrad, saved tensors and record(), the only way to add history.
//
// Note [The graph]
// Each recorded operation makes one node. Its edges lead to the nodes of its inputs, so a pass that
// follows them from the loss runs backwards. A leaf's autograd slot is its AccumulateGrad node, and
// that node owns the gradient. It has no pointer back to the leaf, so there is no cycle and no weak
// reference. An edge is always (impl->node, impl->slot): recording never asks whether an input is a
// leaf. Nodes come from the pool, with their edges and the backward function inline. They are
// destroyed iteratively: a chain of any length needs constant stack.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "autograd/graph/arguments.h"
#include "autograd/graph/saved.h"
#include "autograd/tensor.h"
#include "runtime/base/context.h"

namespace ramet {
namespace autograd {

class GraphTask;
class LeafBucket;
class ReduceBucket;  // autograd/graph/reduce_bucket.h: nodes with gradients that are reduced

/// What a node has of a node of its inputs: one reference, or borrowed.
struct RawEdge {
  Node* node = nullptr;
  uint32_t slot = 0;  // which of its gradients
};
struct Edge;
/// What next_edges() returns.
using edge_list = std::vector<Edge>;

/// What few nodes have: hooks, retained gradients, the forward's place. Owned by its node.
struct NodeExtra {
  /// One of register_hook(): for the gradient of `slot`, with the number by which it is removed.
  struct TensorHook {
    uint32_t slot;
    unsigned id;                                // the handle
    std::function<Tensor(const Tensor&)> call;  // undefined: the gradient stays
  };
  std::vector<TensorHook> hooks;  // in order of registration
  // retain_grad(): slot and gradient
  std::vector<std::pair<uint32_t, Tensor>> retained;
  /// One of register_post_accumulate_grad_hook(), with the number by which it is removed.
  struct PostHook {
    unsigned id;                              // the handle
    std::function<void(const Tensor&)> call;  // with the leaf
  };
  std::vector<PostHook> post;  // AccumulateGrad only
  // anomaly mode: scopes around the forward call
  std::string place;
  unsigned next_id = 0;  // the next hook's handle
};

/// Nodes made less nodes destroyed by one thread. Only that thread writes it: nothing on the way of
/// an operation is locked.
struct NodeCount {
  std::atomic<int64_t> balance{0};  // made less destroyed
  std::atomic<bool> used{true};     // its thread lives
  NodeCount* next = nullptr;        // another thread's
};
#if defined(__GNUC__)
/// This thread's; null before its first node.
extern RAMET_API __thread NodeCount* node_count;
#endif
/// n nodes more in this thread, or fewer where it is negative:
RAMET_API void count_node_slowly(int64_t n);
inline void count_node(int64_t n) {
  if (NodeCount* c = node_count; RAMET_LIKELY(c != nullptr))
    c->balance.store(c->balance.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  else count_node_slowly(n);
}
/// Nodes that exist now, of all threads; leaves' gradient collectors included. Exact while no other
/// thread records or releases.
RAMET_API int64_t nodes_alive();

/// A recorded operation. Thread safety: a graph may be walked by several backwards at once; hooks
/// are changed by one thread while no backward runs.
struct RAMET_API Node : AutogradSlot {
  enum : uint8_t {
    kSink = 1,       // AccumulateGrad
    kSpans = 2,      // a movement between devices, or downstream of one: needs the general pass
    kReleased = 4,   // saved tensors were freed
    kReduce = 8,     // a ReduceAdd
    kInTurn = 16,    // its backward meets other processes: those of one pass run in its order
    kFunction = 32,  // a FunctionNode: its backward is the user's, and may run a backward itself
  };
  uint8_t flags = 0, device;            // where its backward runs: Device::ordinal()
  uint16_t edge_count, slot_count = 1;  // gradients out, gradients in
  uint16_t block_64;                    // size of its block in units of 64 bytes, for the pool
  const char* op;                       // its name
  uint64_t counter;                     // operation counter at creation: larger is later
  // the backward that uses `inbox`; a second one keeps its own side table
  std::atomic<void*> claimed{nullptr};
  Tensor inbox;                // fast pass: the gradient collected so far
  NodeExtra* extra = nullptr;  // what few nodes have

  Node(const char* name, int edges, int slots, size_t bytes)
      : device(ramet::detail::tls.cpu_device),
        edge_count(static_cast<uint16_t>(edges)),
        slot_count(static_cast<uint16_t>(slots)),
        block_64(static_cast<uint16_t>((bytes + 63) / 64)),
        op(name),
        counter(ramet::detail::tls.counter++) {
    count_node(1);
  }
  virtual ~Node();
  Node(const Node&) = delete;
  /// Call one of these when the edges are there: a node is later than all that its edges lead to
  /// (Lamport 1978). The counter alone does not give that in three cases. Finding an edge made the
  /// history of a view again (edge_of). An input was made on another thread. One backward pass
  /// recorded more operations than its rank has numbers for (GraphTask).
  void be_later_than(uint64_t inputs) {
    if (RAMET_LIKELY(counter > inputs)) return;
    counter = std::max(ramet::detail::tls.counter, inputs + 1);
    ramet::detail::tls.counter = counter + 1;
  }
  /// The general one, which also takes over kSpans.
  void follow_edges();

  /// "AddBackward0": LibTorch's name of the operation's backward.
  virtual std::string name() const { return op; }
  /// Its edge_count edges.
  virtual RawEdge* edges() = 0;
  /// How programs follow the graph, under LibTorch's names. An input without a gradient has an
  /// edge that is not is_valid(), and no output that should be computed:
  edge_list next_edges() const;
  Edge next_edge(size_t i) const;
  size_t num_inputs() const { return slot_count; }
  size_t num_outputs() const { return edge_count; }
  bool should_compute_output(size_t i) const;
  /// Larger is later.
  uint64_t sequence_nr() const { return counter; }
  /// A reference to it.
  NodePtr getptr();
  /// in[slot_count] -> out[edge_count]. Called with grad mode = create_graph. An undefined input is
  /// a gradient that no node delivered; at least one is defined.
  virtual void apply(Tensor* in, Tensor* out) = 0;
  /// Drops what it saved for its backward, which cannot run again then.
  virtual void release_saved() {}
  /// Where a producer may write the gradient it is about to deliver to `slot`; undefined: it
  /// allocates.
  virtual Tensor destination(uint32_t slot) {
    (void)slot;
    return {};
  }
  /// The bucket that reduces its gradients; null where none does.
  virtual ReduceBucket* bucket() { return nullptr; }
  /// A slot's gradient is complete, in the general pass: hooks may read and replace it.
  virtual void arrived(Tensor& grad, uint32_t slot) { run_hooks(grad, slot); }

  /// Is gradient i wanted by this backward?
  bool needs(int i) const;
  /// Memory for gradient i of this shape, in this device's default dtype rules: its destination or
  /// fresh.
  Tensor output_for(int i, IntArrayRef sizes, ScalarType dtype, Device device) const;
  /// Has it tensor hooks, or gradients to retain?
  bool watched() const { return extra && (!extra->hooks.empty() || !extra->retained.empty()); }
  /// Does a backward run user's code here: hooks, a Function, the reduction of a leaf's gradient?
  virtual bool runs_users_code() const {
    return flags & kFunction || watched() || (extra && !extra->post.empty());
  }
  /// `extra`, made at need.
  NodeExtra& more() {
    if (!extra) extra = new NodeExtra;
    return *extra;
  }
  /// Tensor hooks of `slot`, then retained gradients.
  void run_hooks(Tensor& grad, uint32_t slot);
  void last_reference_gone() noexcept final;
};

/// One reference less; null has none.
inline void release(Node* n) { AutogradSlot::release(n); }

/// One reference to a node: what grad_fn() returns. May be kept as a std::shared_ptr, too. As
/// LibTorch's it is a bool where one is asked for.
class RAMET_API NodePtr {
 public:
  using element_type = Node;
  NodePtr() = default;
  NodePtr(std::nullptr_t) {}
  explicit NodePtr(Node* n) : node_(n) {
    if (n) n->hold();
  }
  NodePtr(const std::shared_ptr<Node>& n) : NodePtr(n.get()) {}
  NodePtr(const NodePtr& o) : NodePtr(o.node_) {}
  NodePtr(NodePtr&& o) noexcept : node_(std::exchange(o.node_, nullptr)) {}
  NodePtr& operator=(NodePtr o) noexcept {
    std::swap(node_, o.node_);
    return *this;
  }
  ~NodePtr() { release(node_); }
  /// The node, or null.
  Node* get() const { return node_; }
  Node* operator->() const { return node_; }
  Node& operator*() const { return *node_; }
  /// Does it hold one?
  bool defined() const { return node_ != nullptr; }
  operator bool() const { return node_ != nullptr; }
  /// Holds a reference to the node.
  operator std::shared_ptr<Node>() const {
    if (!node_) return nullptr;
    node_->hold();
    return std::shared_ptr<Node>(node_, [](Node* n) { release(n); });
  }
  /// Holds nothing from now on.
  void reset() { *this = NodePtr(); }
  /// Exchanges what the two hold.
  void swap(NodePtr& o) noexcept { std::swap(node_, o.node_); }
  /// All references, those of tensors and nodes included.
  size_t use_count() const { return node_ ? node_->refs.load() : 0; }
  friend bool operator==(const NodePtr& a, const NodePtr& b) { return a.node_ == b.node_; }
  friend bool operator!=(const NodePtr& a, const NodePtr& b) { return a.node_ != b.node_; }
  friend bool operator<(const NodePtr& a, const NodePtr& b) {
    return std::less<Node*>()(a.node_, b.node_);
  }
  /// The node's name, "MulBackward0", or "nullptr". (LibTorch's prints as the bool: 1 or 0.)
  friend RAMET_API std::ostream& operator<<(std::ostream& out, const NodePtr& p);

 private:
  Node* node_ = nullptr;
};

/// Where a gradient goes: a node, and which of its gradients it is there.
struct Edge {
  NodePtr function;       // the node
  uint32_t input_nr = 0;  // which of its gradients
  Edge() = default;
  Edge(NodePtr node, uint32_t nr) : function(std::move(node)), input_nr(nr) {}
  /// Does it lead anywhere?
  bool is_valid() const { return function.defined(); }
  friend bool operator==(const Edge& a, const Edge& b) {
    return a.function == b.function && a.input_nr == b.input_nr;
  }
  friend bool operator!=(const Edge& a, const Edge& b) { return !(a == b); }
};

/// Collects a leaf's gradient. `where`, if set, receives the first contribution; later ones are
/// added to it.
struct RAMET_API AccumulateGrad final : Node {
  Tensor grad, where;            // collected so far; see above
  std::mutex mutex;              // several backwards may end in one leaf
  uint64_t copies = 0;           // gradients that had to be copied into `where`: tests count them
  LeafBucket* reduce = nullptr;  // set_reduce_bucket()
  uint8_t mark = 0;              // what the code that reduces `grad` over processes knows of it;
                                 // mutable_grad(), through which callers set it, makes it 0
  static constexpr uint8_t kZeroed = 255;  // the mark of zero_grad()
  uint16_t sums_under_way = 0;  // of backwards that order them at their ends; under `mutex`

  explicit AccumulateGrad(TensorImpl* of);
  RawEdge* edges() override { return nullptr; }
  void apply(Tensor* in, Tensor* out) override;
  Tensor destination(uint32_t slot) override;
  ReduceBucket* bucket() override;
  bool runs_users_code() const override { return reduce || Node::runs_users_code(); }
};

/// The AccumulateGrad node of a leaf, made at need; null for a non-leaf.
RAMET_API AccumulateGrad* grad_accumulator(TensorImpl* t);
/// First gradients of this leaf are written into `where` (same sizes and dtype). See Note [Flat
/// stores] in nn/module/flat_store.h.
RAMET_API void set_grad_destination(const Tensor& leaf, Tensor where);
/// Drops the gradient of a parameter, or fills it with zeros. Nothing where there is none.
RAMET_API void zero_grad(const Tensor& parameter, bool set_to_none);
/// From the next forward on, backward passes that reach the leaf call
/// LeafBucket::on_accumulated of `bucket` when its gradient is complete. Null: of none. Call it
/// while no backward pass runs.
RAMET_API void set_reduce_bucket(AccumulateGrad& leaf, LeafBucket* bucket);

// ---- record -------------------------------------------------------------------------------------

inline bool wants_grad(const Tensor& t) { return wants_grad(t.impl()); }
/// Does an operation on these inputs make history? Test it before building the backward function:
/// captures cost 3-9 ns.
template <class... T> inline bool recording(const T&... inputs) {
  return ramet::detail::tls.grad_mode && (wants_grad(inputs) || ...);
}

/// Makes the history of a view again after an in-place operation on its base or a sibling. An Error
/// where that would take the history of a leaf's own, or of a view made in no_grad mode.
RAMET_API void renew_view(TensorImpl* view);
/// The gradient edge of a tensor, one reference; {} if it wants none.
inline RawEdge edge_of(const TensorImpl* t) {
  if (!wants_grad(t)) return {};
  if (RAMET_UNLIKELY(t->base != nullptr) &&
      (__atomic_load_n(&t->generation, __ATOMIC_ACQUIRE) != t->base->generation || t->base->base))
    renew_view(const_cast<TensorImpl*>(t));
  t->node->hold();
  return {static_cast<Node*>(t->node), t->slot};
}

/// Throws the Error of a backward through a node whose saved tensors were freed.
[[noreturn, gnu::cold]] RAMET_API void backward_twice(const Node& node);

struct Input {       // borrowed
  TensorImpl* impl;  // null of an undefined tensor
  Input(const Tensor& t) : impl(t.impl()) {}
  explicit Input(TensorImpl* t) : impl(t) {}
};

/// Call it after `if (RAMET_UNLIKELY(tls.watching))` when a node has its edges, and its results
/// have their node where they get it at once. Anomaly mode notes the program's scopes in which the
/// forward was called. Observers (autograd/graph/graph_observer.h) get the node, the inputs and the
/// results.
[[gnu::cold]] RAMET_API void tell_made(Node& node, ArrayRef<Input> inputs, ArrayRef<Input> results,
                                       AddArguments arguments = {}) noexcept;

/// A backward function that keeps sizes and numbers, and no tensor: nothing of it is freed, so that
/// it may run again, as LibTorch's. One that captures nothing but numbers is known without this.
template <class F> struct SavesNothing : F {};
/// `f` as one: record(..., saves_nothing([sizes](...) { ... })).
template <class F> SavesNothing<std::decay_t<F>> saves_nothing(F&& f) {
  return {std::forward<F>(f)};
}
/// Does release_saved() free something of such a backward function?
template <class F> constexpr bool keeps_tensors = !std::is_trivially_destructible<F>::value;
template <class F> constexpr bool keeps_tensors<SavesNothing<F>> = false;

/// A node of N edges whose backward is the function F, what that captures included.
template <int N, class F> struct LambdaNode final : Node {
  RawEdge edge[N];  // to the inputs' nodes
  union {
    F f;  // destroyed by release_saved, possibly long before the node
  };
  LambdaNode(const char* n, F&& fn) : Node(n, N, 1, sizeof(LambdaNode)), f(std::move(fn)) {}
  ~LambdaNode() override {
    drop();
    for (RawEdge& e : edge) release(e.node);
  }
  RawEdge* edges() override { return edge; }
  void release_saved() override {
    if constexpr (keeps_tensors<F>) drop();
  }
  void apply(Tensor* in, Tensor* out) override {
    if (RAMET_UNLIKELY((flags & kReleased) != 0)) backward_twice(*this);
    if constexpr (std::is_same<decltype(f(*this, in[0])), Tensor>::value) {
      out[0] = f(*this, in[0]);
    } else {
      auto r = f(*this, in[0]);
      static_assert(std::tuple_size<decltype(r)>::value == N, "one gradient per input");
      for (int i = 0; i < N; ++i) out[i] = std::move(r[static_cast<size_t>(i)]);
    }
  }

 private:
  void drop() {
    if (flags & kReleased) return;
    flags |= kReleased;
    f.~F();
  }
};

/// A LambdaNode with the edges of these inputs, and one reference. The caller calls tell_made.
template <size_t N, class F>
Node* make_node(const char* name, const Input (&inputs)[N], uint8_t device, F&& f) {
  using Made = LambdaNode<static_cast<int>(N), F>;
  auto* node = new (pool::allocate(sizeof(Made))) Made(name, std::move(f));
  node->device = device;
  try {
    uint64_t latest = 0;
    for (size_t i = 0; i < N; ++i) {
      node->edge[i] = edge_of(inputs[i].impl);
      if (const Node* input = node->edge[i].node) {
        node->flags |= input->flags & Node::kSpans;
        latest = std::max(latest, input->counter);
      }
    }
    node->be_later_than(latest);
  } catch (...) {  // no memory for a view's new history
    release(node);
    throw;
  }
  return node;
}

/// Adds history to the fresh tensor `out`. Call it after `if (!recording(inputs...)) return out;`.
/// f(const Node& self, const Tensor& grad) returns the gradient of the one input, or a std::array
/// of one per input. An undefined one is "no gradient". `out` is a reference and is moved from
/// after `f` is made: record(..., std::move(y), [y = save_output(y)]...) is right in any order.
/// `arguments` is called only while an observer is registered.
template <size_t N, class F>
Tensor record(const char* name, const Input (&inputs)[N], Tensor&& out, F f,
              AddArguments arguments = {}) {
  out->node = make_node(name, inputs, out->device, std::move(f));
  out->flags |= TensorImpl::kRequiresGrad;
  if (RAMET_UNLIKELY(ramet::detail::tls.watching))
    tell_made(*static_cast<Node*>(out->node), inputs, Input(out), arguments);
  return std::move(out);
}

/// A node with any number of inputs and one result (cat, stack, index): edges in a vector.
class RAMET_API ListNode final : public Node {
 public:
  /// From the result's gradient to those of the inputs that need one.
  using Backward = std::function<void(const Node&, const Tensor&, std::vector<Tensor>&)>;
  ListNode(const char* n, ArrayRef<Tensor> inputs, Backward f, bool keeps);
  ~ListNode() override;
  RawEdge* edges() override { return edges_.data(); }
  void release_saved() override;
  void apply(Tensor* in, Tensor* out) override;

 private:
  std::vector<RawEdge> edges_;
  Backward f_;
  const bool keeps_;  // tensors, which release_saved() frees
};
/// As record(), for a list of inputs. f writes one gradient per input into the vector it gets.
RAMET_API Tensor record_list(const char* name, ArrayRef<Tensor> inputs, Tensor out,
                             ListNode::Backward f, bool keeps = true, AddArguments arguments = {});
template <class F>
Tensor record_list(const char* name, ArrayRef<Tensor> inputs, Tensor out, SavesNothing<F> f,
                   AddArguments arguments = {}) {
  return record_list(name, inputs, std::move(out), ListNode::Backward(std::move(f)), false,
                     arguments);
}

/// Hangs one result of a node with several (unbind, max with indices ... where more than one result
/// is differentiable).
inline void attach(const Tensor& out, Node* node, uint32_t slot) {
  node->hold();
  release(static_cast<Node*>(out->node));
  out->node = node;
  out->slot = slot;
  out->flags |= TensorImpl::kRequiresGrad;
}

/// A result whose backward meets other processes (Node::kInTurn).
inline Tensor in_turn(Tensor result) {
  static_cast<Node*>(result->node)->flags |= Node::kInTurn;
  return result;
}

/// Allocates a node of class T in the pool: new_node<T>(args...). One reference.
template <class T, class... A> T* new_node(A&&... a) {
  return new (pool::allocate(sizeof(T))) T(std::forward<A>(a)...);
}

}  // namespace autograd
}  // namespace ramet

template <> struct std::hash<ramet::autograd::NodePtr> {
  size_t operator()(const ramet::autograd::NodePtr& n) const noexcept {
    return std::hash<ramet::autograd::Node*>()(n.get());
  }
};
