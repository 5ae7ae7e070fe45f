#include "autograd/graph/engine.h"

#include <algorithm>
#include <unordered_set>

#include "autograd/autograd.h"
#include "autograd/graph/captured_internal.h"
#include "autograd/graph/graph_observer_internal.h"
#include "autograd/graph/graph_task.h"
#include "autograd/graph/rethrow_internal.h"
#include "runtime/base/logging.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/devices.h"
#include "runtime/observe/observer.h"

using ramet::detail::tls;

namespace ramet {
namespace autograd {
namespace {

[[noreturn, gnu::cold]] void rethrow_with_place(const Node* n) {
  rethrow_with("\n  in the backward of " + n->name() +
               (n->extra && !n->extra->place.empty()
                    ? ", whose forward was called in: " + n->extra->place
                    : std::string()));
}

void run_for_anomalies(Node* n, Tensor* in, Tensor* out) {
  if (!AnomalyMode::is_enabled()) return n->apply(in, out);
  try {
    n->apply(in, out);
    if (!tls.anomaly_check_nan) return;
    capture::refuse("DetectAnomalyGuard", "the host looks for NaN; set check_nan to false");
    NoGradGuard off;
    for (int i = 0; i < n->edge_count; ++i) {
      if (!out[i].defined() || !is_floating(out[i].scalar_type())) continue;
      RAMET_CHECK(!out[i].isnan().any().item<bool>(), n->op, "Function '", n->name(),
                  "' returned nan values in its ", i, "th output.");
    }
  } catch (...) { rethrow_with_place(n); }
}

[[gnu::cold, gnu::noinline]] void run_watched(Node* n, Tensor* in, Tensor* out) {
  if (graph_observed()) detail::run_observed(n, in, out, &run_for_anomalies);
  else run_for_anomalies(n, in, out);
}

// Has a leaf the whole gradient, with the contribution of one edge to `n`? If only its tensor and
// that edge refer to it, no other contribution can come. The addition then need not wait for the
// end of the pass, and the contribution's memory goes at once. It has the same bits. A gradient
// that something else refers to may be a saved tensor, which a node needs as it was.
bool is_whole(Node* n) {
  if (n->refs.load(std::memory_order_acquire) != 2 || n->extra) return false;
  const auto* leaf = static_cast<const AccumulateGrad*>(n);
  const Tensor& grad = leaf->grad;
  return grad.defined() && !leaf->reduce &&
         grad->refs.load(std::memory_order_relaxed) == (leaf->where.is_same(grad) ? 2u : 1u) &&
         grad.storage_impl()->refs.load(std::memory_order_relaxed) == 1;
}

// Ordered by operation counter, latest first.
template <bool kObserved> class FastWalk {
 public:
  explicit FastWalk(bool retain) : retain_(retain) {}
  ~FastWalk() {  // also after an exception: leave no node claimed
    if (first_.node) gradient_of(first_);
    for (const Entry& e : rest_) gradient_of(e);
    for (Node* n : sinks_)
      if (n) take(n);
  }

  void start(Root& r) {
    if (r.node->slot_count > 1) collect_slot({r.node.get(), r.slot}, std::move(r.grad));
    else collect(r.node.get(), std::move(r.grad));
  }

  void run() {
    while (Node* n = first_.node) {
      Tensor one = gradient_of(pop()), few[4];
      std::vector<Tensor> slots;
      if (RAMET_UNLIKELY(n->slot_count > 1)) slots = std::move(slots_.extract(n).mapped());
      Tensor* const in = slots.empty() ? &one : slots.data();
      if (RAMET_UNLIKELY(n->extra != nullptr)) {
        for (uint32_t s = 0; s < n->slot_count; ++s)
          if (in[s].defined()) n->run_hooks(in[s], s);
      }
      std::vector<Tensor> many(n->edge_count > 4 ? n->edge_count : 0u);
      Tensor* out = n->edge_count > 4 ? many.data() : few;
      if constexpr (kObserved) tell_ready(n);
      run_node(n, in, out);
      if (!retain_) n->release_saved();  // frees activations while the pass goes on
      RawEdge* edges = n->edges();
      if constexpr (kObserved) tell_delivered(this, *n, out);
      for (int i = 0; i < n->edge_count; ++i) deliver(edges[i], std::move(out[i]));
    }
    for (Node*& sink : sinks_) {  // all contributions are in: hooks once, then one addition
      Node* n = std::exchange(sink, nullptr);
      Tensor in = take(n);
      if constexpr (kObserved) tell_ready(n);
      n->run_hooks(in, 0);
      if constexpr (kObserved) run_watched(n, &in, nullptr);
      else n->apply(&in, nullptr);
    }
    sinks_.clear();
  }

 private:
  struct Entry {
    uint64_t counter = 0;
    Node* node = nullptr;
    TensorImpl* gradient = nullptr;  // one reference; null: it is in the node's inbox
    bool operator<(const Entry& o) const { return counter < o.counter; }
  };

  void tell_ready(Node* n) {
    detail::tell_observers([&](GraphObserver& o) { o.on_node_ready(this, *n); });
  }
  void deliver(const RawEdge& e, Tensor g) {
    if (!e.node || !g.defined()) return;
    if (RAMET_UNLIKELY(e.node->slot_count > 1)) return collect_slot(e, std::move(g));
    // This edge is the only one to that node: there is nothing to sum up.
    if (!(e.node->flags & Node::kSink) && e.node->refs.load(std::memory_order_relaxed) == 1)
      return push(e.node, std::move(g));
    if constexpr (!kObserved) {
      if (e.node->flags & Node::kSink && is_whole(e.node)) return e.node->apply(&g, nullptr);
    }
    collect(e.node, std::move(g));
  }
  void collect(Node* n, Tensor g) {
    Tensor* box = inbox(n);
    if (box->defined()) {
      *box = accumulate(std::move(*box), g);
      return;
    }
    *box = std::move(g);
    if (n->flags & Node::kSink) sinks_.push_back(n);
    else push(n, {});
  }
  void collect_slot(const RawEdge& e, Tensor g) {
    std::vector<Tensor>& slots = slots_[e.node];
    if (slots.empty()) {
      slots.resize(e.node->slot_count);
      push(e.node, {});
    }
    slots[e.slot] = accumulate(std::move(slots[e.slot]), g);
  }
  [[gnu::always_inline]] inline void push(Node* n, Tensor gradient) {
    Entry e{n->counter, n, gradient.impl()};
    if (!first_.node) {
      first_ = e;
    } else {
      if (first_ < e) std::swap(first_, e);  // threads have counters of their own: may be equal
      rest_.push_back(e);
      std::push_heap(rest_.begin(), rest_.end());
    }
    std::move(gradient).release();  // the heap entry owns it now
  }
  Entry pop() {
    const Entry e = std::exchange(first_, {});
    if (!rest_.empty()) {
      first_ = rest_.front();
      std::pop_heap(rest_.begin(), rest_.end());
      rest_.pop_back();
    }
    return e;
  }
  Tensor gradient_of(const Entry& e) { return e.gradient ? Tensor(e.gradient) : take(e.node); }

  // Where gradients of `n` are summed: the node's own inbox, unless another backward pass is using
  // it.
  Tensor* inbox(Node* n) {
    void* owner = n->claimed.load(std::memory_order_relaxed);
    if (owner == this) return &n->inbox;
    if (!owner && n->claimed.compare_exchange_strong(owner, this, std::memory_order_acquire))
      return &n->inbox;
    return &side_[n];
  }
  Tensor take(Node* n) {
    if (n->claimed.load(std::memory_order_relaxed) == this) {
      Tensor t = std::move(n->inbox);
      n->claimed.store(nullptr, std::memory_order_release);
      return t;
    }
    auto it = side_.find(n);
    if (it == side_.end()) return {};
    Tensor t = std::move(it->second);
    side_.erase(it);
    return t;
  }

  const bool retain_;
  Entry first_;              // the latest: in a chain the only one
  std::vector<Entry> rest_;  // heap
  std::vector<Node*> sinks_;
  std::unordered_map<Node*, Tensor> side_;
  std::unordered_map<Node*, std::vector<Tensor>> slots_;  // for nodes with several slots
};

RawEdge borrowed_edge(const Tensor& t) {
  const RawEdge e = edge_of(t.impl());
  if (e.node) release(e.node);  // the tensor keeps it
  return e;
}

Root root_of(const char* op, size_t i, const Tensor& t, const Tensor& seed) {
  RAMET_CHECK(t.defined(), op, "element ", i, " of tensors is undefined");
  RAMET_CHECK(wants_grad(t), op, "element ", i,
              " of tensors does not require grad and does not have a grad_fn: got ", describe(t));
  Tensor g = seed;
  if (!g.defined()) {
    RAMET_CHECK(t.numel() == 1, op, "grad can be implicitly created only for scalar outputs: got ",
                describe(t));
    NoGradGuard off;
    g = Tensor(TensorBase::empty(t.sizes(), t.scalar_type(), t.device()));
    g.fill_(1);
  }
  RAMET_CHECK(same_sizes(g, t), op, "Mismatch in shape: grad_output[", i, "] has a shape of ",
              g.sizes(), " and output[", i, "] has a shape of ", t.sizes(), ".");
  RAMET_CHECK(g.device() == t.device(), op, "gradient of element ", i, ": got ", describe(g),
              ", expected ", describe(t));
  const RawEdge edge = borrowed_edge(t);
  return {NodePtr(edge.node), edge.slot, g.to(t.scalar_type())};
}

std::vector<Root> roots_of(const char* op, const variable_list& tensors,
                           const variable_list& seeds) {
  RAMET_CHECK(!tensors.empty(), op, "got no tensors, expected at least one");
  RAMET_CHECK(seeds.empty() || seeds.size() == tensors.size(), op, "got ", tensors.size(),
              " tensors and ", seeds.size(), " gradients");
  std::vector<Root> roots;
  for (size_t i = 0; i < tensors.size(); ++i)
    roots.push_back(root_of(op, i, tensors[i], seeds.empty() ? Tensor() : seeds[i]));
  return roots;
}

}  // namespace

bool Node::needs(int i) const {
  Node* to = const_cast<Node*>(this)->edges()[i].node;
  return to && (!tls.task || tls.task->wanted(to));
}

Tensor accumulate(Tensor sum, const Tensor& g) {
  if (!sum.defined()) return g;
  if (!g.defined()) return sum;
  if (tls.grad_mode || !sum.unique() ||
      !(sum.raw_contiguous() || sum->is(TensorImpl::kInternalLayout)))
    return sum.add(g);
  sum.add_(g);
  return sum;
}

void tell_delivered(const void* walk, Node& from, const Tensor* out) {
  const RawEdge* const edges = from.edges();
  for (int i = 0; i < from.edge_count; ++i)
    if (edges[i].node && out[i].defined())
      detail::tell_observers([&](GraphObserver& o) { o.on_delivered(walk, from, i, out[i]); });
}

void run_node(Node* n, Tensor* in, Tensor* out) {
  RecordScope scope(n->op);
  if (RAMET_UNLIKELY(capture::active())) refuse_older(n);
  if (RAMET_UNLIKELY(tls.watching)) return run_watched(n, in, out);
  n->apply(in, out);
}

void run_backward(std::vector<Root>& roots, bool retain, bool create) {
  AutoGradMode mode(create);
  const ScopedValue<uint8_t> uncast(tls.autocast, 0);  // in the forward pass's dtypes
  bool fast = true;
  for (Root& r : roots) {
    const Node* n = r.node.get();
    fast = fast && !(n->flags & Node::kSpans) && n->device == roots[0].node->device;
  }
  // This thread queues work for a GPU, as the GPU's worker does.
  const Device device = Device::from_ordinal(roots[0].node->device);
  if (fast && (device.is_cuda() || device.ordinal() == tls.cpu_device)) {
    std::optional<DeviceGuard> current;  // for hooks
    if (device.is_cuda()) current.emplace(device);
    ScopedValue<GraphTask*> outer(tls.task, nullptr);  // we may be inside a hook
    if (graph_observed()) {
      FastWalk<true> walk(retain);
      detail::ObservedWalk observed(&walk, roots, create);
      for (Root& r : roots) walk.start(r);
      walk.run();
      observed.failed = false;
      return;
    }
    FastWalk<false> walk(retain);
    for (Root& r : roots) walk.start(r);
    return walk.run();
  }
  GraphTask task(retain, create);
  task.prepare(roots, {}, nullptr);
  task.run();
}

namespace {

// Gradients of `edges`, by the general pass.
std::vector<Tensor> captured_gradients(std::vector<Root>& roots, ArrayRef<RawEdge> edges,
                                       bool retain, bool create) {
  std::vector<Tensor> result(edges.size());
  AutoGradMode mode(create);
  const ScopedValue<uint8_t> uncast(tls.autocast, 0);  // in the forward pass's dtypes
  GraphTask task(retain, create);
  task.prepare(roots, edges, &result);
  task.run();
  return result;
}

}  // namespace

void backward(const variable_list& tensors, const variable_list& grad_tensors,
              std::optional<bool> retain_graph, bool create_graph, const variable_list& inputs) {
  std::vector<Root> roots = roots_of("backward", tensors, grad_tensors);
  const bool retain = retain_graph.value_or(create_graph);
  if (RAMET_UNLIKELY(create_graph))
    RAMET_WARN_ONCE(
        "Using backward() with create_graph=True will create a reference cycle between the "
        "parameter and its gradient which can cause a memory leak. We recommend using "
        "autograd.grad when creating the graph to avoid this. If you have to use this function, "
        "make sure to reset the .grad fields of your parameters to None after use to break the "
        "cycle and avoid the leak.");
  if (inputs.empty()) return run_backward(roots, retain, create_graph);
  std::vector<RawEdge> edges;
  for (const Tensor& t : inputs) {
    RAMET_CHECK(t.defined() && wants_grad(t), "backward", "input ", edges.size(),
                " does not require grad: got ", describe(t));
    t.retain_grad();  // where a non-leaf's gradient is kept; nothing for a leaf
    edges.push_back(borrowed_edge(t));
  }
  std::vector<Tensor> grads = captured_gradients(roots, edges, retain, create_graph);
  AutoGradMode mode(create_graph);
  std::unordered_set<const Node*> done;  // a leaf may be named twice
  for (size_t i = 0; i < grads.size(); ++i)
    if (grads[i].defined() && (edges[i].node->flags & Node::kSink) &&
        done.insert(edges[i].node).second)
      edges[i].node->apply(&grads[i], nullptr);
}

variable_list grad(const variable_list& outputs, const variable_list& inputs,
                   const variable_list& grad_outputs, std::optional<bool> retain_graph,
                   bool create_graph, bool allow_unused) {
  RAMET_CHECK(!inputs.empty(), "grad", "grad requires non-empty inputs.");
  std::vector<Root> roots = roots_of("grad", outputs, grad_outputs);
  std::vector<RawEdge> edges;
  for (const Tensor& t : inputs) {
    RAMET_CHECK(t.defined() && wants_grad(t), "grad",
                "One of the differentiated Tensors does not require grad: input ", edges.size(),
                " is ", describe(t));
    edges.push_back(borrowed_edge(t));
  }
  variable_list result =
      captured_gradients(roots, edges, retain_graph.value_or(create_graph), create_graph);
  for (size_t i = 0; i < result.size() && !allow_unused; ++i) {
    RAMET_CHECK(result[i].defined(), "grad",
                "One of the differentiated Tensors appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior. It is input ",
                i, ", ", describe(inputs[i]));
  }
  return result;
}

}  // namespace autograd

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                      std::optional<TensorList> inputs) const {
  autograd::variable_list seeds, leaves;
  if (gradient.defined()) seeds.push_back(gradient);
  if (inputs) {
    RAMET_CHECK(!inputs->empty(), "backward", "'inputs' argument to backward cannot be empty");
    leaves = inputs->vec();
  }
  autograd::backward({*this}, seeds, retain_graph, create_graph, leaves);
}

}  // namespace ramet
