#include "autograd/graph/node.h"

#include <algorithm>
#include <new>
#include <ostream>

#include "autograd/grad_mode.h"
#include "autograd/graph/captured_internal.h"
#include "autograd/graph/graph_observer.h"
#include "autograd/graph/reduce_bucket.h"
#include "autograd/graph/view.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/devices.h"
#include "runtime/devices/gpu.h"

using ramet::detail::tls;

namespace ramet {
namespace autograd {

__thread NodeCount* node_count = nullptr;

namespace {

// Never destroyed: a thread that ends leaves its balance here, and the next one goes on with it.
std::atomic<NodeCount*> g_counts{nullptr};
std::atomic<int64_t> g_late{0};  // by threads without a count of their own
__thread bool t_gone = false;

struct GiveBack {
  ~GiveBack() {
    t_gone = true;
    if (NodeCount* c = std::exchange(node_count, nullptr)) c->used.store(false);
  }
};

NodeCount* mine() {
  thread_local GiveBack at_exit;
  (void)&at_exit;
  for (NodeCount* c = g_counts.load(); c; c = c->next)
    if (bool idle = false; c->used.compare_exchange_strong(idle, true)) return c;
  auto* c = new (std::nothrow) NodeCount;  // a destructor asks: it must not throw
  if (!c) return nullptr;
  c->next = g_counts.load();
  while (!g_counts.compare_exchange_weak(c->next, c)) {}
  return c;
}

}  // namespace

void count_node_slowly(int64_t n) {
  if (!t_gone) node_count = mine();
  if (node_count) count_node(n);
  else g_late.fetch_add(n, std::memory_order_relaxed);
}

int64_t nodes_alive() {
  int64_t sum = g_late.load();
  for (NodeCount* c = g_counts.load(); c; c = c->next) sum += c->balance.load();
  return sum;
}

std::ostream& operator<<(std::ostream& out, const NodePtr& p) {
  return p ? out << p->name() : out << "nullptr";
}

Node::~Node() {
  delete extra;
  count_node(-1);
}

// Destroying a node drops what it saved and its edges, which may end further nodes. Those queue up
// on this thread and the outermost call destroys them one by one. `counter` of a dead node is
// reused as the link.
void Node::last_reference_gone() noexcept {
  Context& c = tls;
  counter = reinterpret_cast<uint64_t>(c.dead);
  c.dead = this;
  if (c.draining) return;
  c.draining = true;
  while (Node* d = c.dead) {
    c.dead = reinterpret_cast<Node*>(d->counter);
    const size_t bytes = static_cast<size_t>(d->block_64) * 64;
    d->~Node();
    pool::deallocate(d, bytes);
  }
  c.draining = false;
}

Edge Node::next_edge(size_t i) const {
  RAMET_CHECK(i < edge_count, "next_edge", "index: got ", i, ", expected less than ", edge_count);
  const RawEdge& e = const_cast<Node*>(this)->edges()[i];
  return {NodePtr(e.node), e.slot};
}
edge_list Node::next_edges() const {
  edge_list list;
  list.reserve(edge_count);
  for (size_t i = 0; i < edge_count; ++i) list.push_back(next_edge(i));
  return list;
}
bool Node::should_compute_output(size_t i) const { return next_edge(i).is_valid(); }
NodePtr Node::getptr() { return NodePtr(this); }

Tensor Node::output_for(int i, IntArrayRef sizes, ScalarType dtype, Device where) const {
  RawEdge& e = const_cast<Node*>(this)->edges()[i];
  if (e.node && !tls.grad_mode) {
    if (Tensor t = e.node->destination(e.slot);
        t.defined() && t.sizes() == sizes && t.scalar_type() == dtype && t.device() == where)
      return t;
  }
  return Tensor(TensorBase::empty(sizes, dtype, where));
}

void Node::follow_edges() {
  uint64_t latest = 0;
  const RawEdge* edge = edges();
  for (int i = 0; i < edge_count; ++i) {
    const Node* input = edge[i].node;
    if (!input) continue;
    flags |= input->flags & kSpans;
    latest = std::max(latest, input->counter);
  }
  be_later_than(latest);
}

namespace {

// Those that are there now. A hook may remove itself and others and add some, so what follows is
// the next number and not the next place.
template <class Hook, class F>
void for_each_hook(const NodeExtra& extra, const std::vector<Hook>& hooks, const F& run) {
  const unsigned end = extra.next_id;
  for (unsigned from = 0; from < end;) {
    const auto found =
        std::find_if(hooks.begin(), hooks.end(), [from](const Hook& h) { return h.id >= from; });
    if (found == hooks.end() || found->id >= end) return;
    from = found->id + 1;
    const Hook hook = *found;
    run(hook);
  }
}

}  // namespace

void Node::run_hooks(Tensor& grad, uint32_t at) {
  if (RAMET_LIKELY(!extra)) return;
  if (RAMET_UNLIKELY(capture::active())) refuse_older(this);
  // A hook runs for the gradient's device, whatever thread it is on.
  const DeviceGuard here(grad.device());
  for_each_hook(*extra, extra->hooks, [&](const NodeExtra::TensorHook& hook) {
    if (hook.slot != at) return;
    capture::refuse("register_hook", "a hook on a gradient runs on the host");
    Tensor replaced = hook.call(grad);
    if (!replaced.defined()) return;
    RAMET_CHECK(same_sizes(replaced, grad) && replaced->key() == grad->key(), "register_hook",
                "hook on ", name(), " has changed the size, dtype or device of its value: got ",
                describe(replaced), ", expected ", describe(grad));
    grad = std::move(replaced);
  });
  for (auto& [slot, kept] : extra->retained) {
    if (slot != at) continue;
    if (kept.defined()) {
      RAMET_CHECK(same_sizes(kept, grad), "backward", "the gradient that the result of ", name(),
                  " retains: got ", describe(kept), ", expected the size of what is added to it, ",
                  describe(grad));
      kept = kept.add(grad);
    } else {
      kept = tls.grad_mode ? grad : grad.detach().clone();
    }
  }
}

AccumulateGrad::AccumulateGrad(TensorImpl* of)
    : Node("AccumulateGrad", 0, 1, sizeof(AccumulateGrad)) {
  flags |= kSink;
  device = of->device;
  counter = 0;
}

// `where` may be returned only if nothing else holds last step's gradient (a handle, or a view of
// its memory). One count answers that and "was it returned already": the returned tensor holds a
// reference too, also when an exception drops it.
ReduceBucket* AccumulateGrad::bucket() { return reduce; }

Tensor AccumulateGrad::destination(uint32_t) {
  if (!where.defined()) return {};
  std::lock_guard lock(mutex);
  if (grad.defined() || extra || !where.unique()) return {};
  return where.shallow();
}

void AccumulateGrad::apply(Tensor* in, Tensor*) {
  Tensor& g = in[0];
  if (RAMET_UNLIKELY(capture::active())) note_gradient(this);
  {
    std::lock_guard lock(mutex);
    const bool in_place =
        where.defined() && g.storage_impl() == where.storage_impl() && g->data == where->data;
    // Another thread's backward comes before the end of the one whose sum is not ordered yet.
    if (RAMET_UNLIKELY(sums_under_way != 0) && (grad.defined() || !in_place))
      capture::in_turn([there = Device::from_ordinal(device)] {
        gpu::library()->order({there, gpu::kCommunication}, {there, gpu::kCompute});
      });
    if (grad.defined()) {
      RAMET_CHECK(same_sizes(grad, g), "backward", "the gradient that a leaf has: got ",
                  describe(grad), ", expected the size of what is added to it, ", describe(g));
      if (tls.grad_mode || grad->node || grad.device() != g.device()) {
        grad = grad.add(g);
      } else {
        NoGradGuard off;
        grad.add_(g);
      }
    } else if (in_place) {
      grad = where;
    } else if (where.defined() && !tls.grad_mode && where.unique() && same_sizes(where, g) &&
               where->key() == g->key()) {
      NoGradGuard off;
      ++copies;
      where.copy_(g);
      grad = where;
    } else if (tls.grad_mode) {  // what is done to it is done to no other leaf's
      grad = g.unique() && g.is_contiguous() ? std::move(g) : g.clone(MemoryFormat::Contiguous);
    } else {
      NoGradGuard off;
      if (!g.unique() || !g.is_contiguous()) grad = g.detach().clone(MemoryFormat::Contiguous);
      else grad = g->base ? g.detach() : std::move(g);  // the user's, and no view
    }
  }
  if (RAMET_UNLIKELY(tls.watching))
    detail::tell_observers([this](GraphObserver& o) { o.on_accumulated(*this, grad); });
  if (RAMET_UNLIKELY(extra != nullptr))
    for_each_hook(*extra, extra->post, [&](const NodeExtra::PostHook& hook) {
      capture::refuse("register_post_accumulate_grad_hook", "it runs on the host");
      hook.call(grad);
    });
}

AccumulateGrad* grad_accumulator(TensorImpl* t) {
  if (!t->node) {
    t->node = new_node<AccumulateGrad>(t);
    if (RAMET_UNLIKELY(tls.watching)) tell_made(*static_cast<Node*>(t->node), {}, Input(t));
  }
  auto* node = static_cast<Node*>(t->node);
  return node->flags & Node::kSink ? static_cast<AccumulateGrad*>(node) : nullptr;
}

void set_grad_destination(const Tensor& leaf, Tensor where) {
  AccumulateGrad* sink = grad_accumulator(leaf.impl());
  RAMET_CHECK(sink != nullptr, "set_grad_destination",
              "got a non-leaf, expected a leaf: ", describe(leaf));
  sink->where = std::move(where);
}

void zero_grad(const Tensor& parameter, bool set_to_none) {
  if (parameter.grad().defined()) {
    Tensor& grad = parameter.mutable_grad();
    if (set_to_none) {
      grad = Tensor();
    } else {
      grad = grad.detach();
      grad.zero_();
    }
  }
  auto* const node = static_cast<Node*>(parameter->node);
  if (node && node->flags & Node::kSink)
    static_cast<AccumulateGrad*>(node)->mark = AccumulateGrad::kZeroed;
}

void set_reduce_bucket(AccumulateGrad& leaf, LeafBucket* bucket) {
  leaf.reduce = bucket;
  // Operations on the leaf inherit it: they run in the general pass, which knows when a gradient is
  // complete.
  if (bucket || (leaf.extra && !leaf.extra->post.empty())) leaf.flags |= Node::kSpans;
  else leaf.flags &= static_cast<uint8_t>(~Node::kSpans);
}

void backward_twice(const Node& node) {
  fail(
      node.op,
      "Trying to backward through the graph a second time (or directly access saved tensors after "
      "they have already been "
      "freed). Specify retain_graph=true if you need to backward through the graph a second time.");
}

ListNode::ListNode(const char* n, ArrayRef<Tensor> inputs, Backward f, bool keeps)
    : Node(n, static_cast<int>(inputs.size()), 1, sizeof(ListNode)),
      f_(std::move(f)),
      keeps_(keeps) {
  RAMET_CHECK(inputs.size() < (1u << 16), n, "inputs: got ", inputs.size(),
              ", expected at most 65535");
  edges_.reserve(inputs.size());
  try {
    for (const Tensor& t : inputs) edges_.push_back(edge_of(t.impl()));
  } catch (...) {  // of a view whose history cannot be made
    for (RawEdge& e : edges_) release(e.node);
    throw;
  }
  follow_edges();
}
ListNode::~ListNode() {
  for (RawEdge& e : edges_) release(e.node);
}
void ListNode::release_saved() {
  if (!keeps_) return;
  flags |= kReleased;
  f_ = nullptr;
}
void ListNode::apply(Tensor* in, Tensor* out) {
  if (RAMET_UNLIKELY((flags & kReleased) != 0)) backward_twice(*this);
  std::vector<Tensor> grads(edges_.size());
  f_(*this, in[0], grads);
  std::move(grads.begin(), grads.end(), out);
}

Tensor record_list(const char* name, ArrayRef<Tensor> inputs, Tensor out, ListNode::Backward f,
                   bool keeps, AddArguments arguments) {
  void* const memory = pool::allocate(sizeof(ListNode));
  ListNode* node;
  try {
    node = new (memory) ListNode(name, inputs, std::move(f), keeps);
  } catch (...) {
    pool::deallocate(memory, sizeof(ListNode));
    throw;
  }
  node->device = out->device;
  out->node = node;
  out->flags |= TensorImpl::kRequiresGrad;
  if (RAMET_UNLIKELY(tls.watching))
    tell_made(*node, std::vector<Input>(inputs.begin(), inputs.end()), Input(out), arguments);
  return out;
}

}  // namespace autograd
}  // namespace ramet
