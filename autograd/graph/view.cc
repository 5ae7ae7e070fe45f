#include "autograd/graph/view.h"

#include <algorithm>
#include <mutex>

#include "autograd/grad_mode.h"
#include "autograd/graph/inplace.h"
#include "autograd/graph/layout.h"
#include "autograd/graph/strided_internal.h"

using ramet::detail::tls;

namespace ramet {
namespace autograd {
namespace {

int64_t offset_in(const TensorImpl* base, const TensorImpl* view) {
  return (static_cast<const char*>(view->data) - static_cast<const char*>(base->data)) /
         static_cast<int64_t>(item_size(view->dtype));
}

// Does a view lie between its base's first element and last? CopySlices writes into memory with the
// layout of the base.
bool lies_within(const TensorImpl* view) {
  const TensorImpl* base = view->base;
  int64_t last = offset_in(base, view), most = 0;
  if (view->numel == 0) return true;
  if (base->numel == 0 || last < 0) return false;
  for (int d = 0; d < view->rank; ++d) last += (view->sizes()[d] - 1) * view->strides()[d];
  for (int d = 0; d < base->rank; ++d) most += (base->sizes()[d] - 1) * base->strides()[d];
  return last <= most;
}

uint32_t generation_of(const TensorImpl* t) {
  return __atomic_load_n(&t->generation, __ATOMIC_ACQUIRE);
}
// Has any base of it changed since its history was made?
bool is_stale(const TensorImpl* t) {
  for (; t->base; t = t->base)
    if (generation_of(t) != generation_of(t->base)) return true;
  return false;
}
bool has_history(const TensorImpl* t) {
  return t->node && !(static_cast<const Node*>(t->node)->flags & Node::kSink);
}
bool leaf_that_requires(const TensorImpl* t) {
  return t->is(TensorImpl::kRequiresGrad) && !has_history(t);
}

// Moves the request to keep a tensor's gradient to the tensor's new node.
void move_retained(Node* from, uint32_t from_slot, Node* to, uint32_t to_slot) {
  if (!from || !to || !from->extra || (from->flags & Node::kSink)) return;
  auto& list = from->extra->retained;
  for (auto it = list.begin(); it != list.end();) {
    if (it->first != from_slot) {
      ++it;
      continue;
    }
    to->more().retained.emplace_back(to_slot, Tensor());
    it = list.erase(it);
  }
}

}  // namespace

Tensor make_view(const Tensor& x, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  Tensor v(x.view_impl(sizes, strides, offset));
  if (!is_floating(x.scalar_type()) || x.is_inference()) return v;
  TensorImpl* base = x->base && !leaf_that_requires(x.impl()) ? x->base : x.impl();
  add_ref(base->refs);
  v->base = base;
  v->generation = generation_of(base);
  v->flags |= tls.grad_mode ? x->flags & TensorImpl::kNoGradView : TensorImpl::kNoGradView;
  return v;
}

bool view_wants_grad(const TensorImpl* view) {
  if (!wants_grad(view->base) || !is_stale(view)) return false;
  if (view->is(TensorImpl::kNoGradView))
    fail(
        "grad_fn",
        "A view was created in no_grad mode (or in InferenceMode, or by as_strided beyond the "
        "tensor "
        "that it was called on) and its base or another view of its base has been modified inplace "
        "with grad mode enabled: there is no history that would be right for it. Make the view "
        "again, or make it with grad mode enabled. Got a view of shape ",
        IntArrayRef(view->sizes(), view->rank));
  return true;
}

void refuse_inference_leaf(const TensorImpl* t) {
  fail("inference_mode",
       "an inference tensor that requires grad is used where history is recorded: no gradient "
       "would reach it from every operation. Use it in InferenceMode, or clone it and call "
       "requires_grad_() on the clone. Got shape ",
       IntArrayRef(t->sizes(), t->rank));
}

void make_history(const Tensor& view) { release(edge_of(view.impl()).node); }

static void make_again(TensorImpl* view, std::vector<AutogradSlot*>& old) {
  if (!is_stale(view)) return;
  if (view->base->base) make_again(view->base, old);
  const uint32_t generation = view->base->generation;
  if (wants_grad(view->base)) {
    RAMET_CHECK(!leaf_that_requires(view), "grad_fn",
                "a leaf Variable that requires grad is a view of a tensor that has been modified "
                "inplace since: it would be no leaf any more. Got one of shape ",
                IntArrayRef(view->sizes(), view->rank), ", expected a detach() or a clone() of it");
    RAMET_CHECK(
        !view->is(TensorImpl::kNoGradView), "grad_fn", "A view of shape ",
        IntArrayRef(view->sizes(), view->rank),
        " was created in no_grad mode, in InferenceMode, in the forward of a Function or by "
        "as_strided beyond the tensor that it was called on, and its base has been modified "
        "inplace since");
    add_ref(view->base->refs);
    add_ref(view->refs);
    const Tensor base(view->base), v(view);
    const Tensor fresh = [&] {
      const InferenceMode normal(false);  // inside InferenceMode, grad mode cannot be on
      return gathered(base, geometry_of(v, offset_in(view->base, view)));
    }();
    old.push_back(std::exchange(view->node, std::exchange(fresh->node, nullptr)));
    move_retained(static_cast<Node*>(old.back()), view->slot, static_cast<Node*>(view->node),
                  fresh->slot);
    view->slot = fresh->slot;
    if (!view->is(TensorImpl::kRequiresGrad)) view->flags |= TensorImpl::kRequiresGrad;
  }  // else the base was detached: the view keeps the history that it has
  __atomic_store_n(&view->generation, generation, __ATOMIC_RELEASE);
}

void renew_view(TensorImpl* view) {
  if (!is_stale(view)) return;  // before the lock: make_again() may call this for a base
  // Several threads may need it at the same time. The generation is written last, and shows that
  // the work is done.
  static std::mutex mutex;
  struct Old {  // destroyed after the lock is released
    std::vector<AutogradSlot*> nodes;
    ~Old() {
      for (AutogradSlot* n : nodes) AutogradSlot::release(n);
    }
  } old;
  const std::lock_guard lock(mutex);
  make_again(view, old.nodes);
}

void leave_lonely_base(const Tensor& x) {
  const TensorImpl* base = x->base;
  if (!base || base->base || base->refs.load(std::memory_order_acquire) != 1) return;
  x->set(TensorImpl::kNoGradView, false);
  const Tensor goes(std::exchange(x->base, nullptr));
}

void check_normal(const char* op, const Tensor& x) {
  RAMET_CHECK(!x.is_inference() || tls.inference_mode, op,
              "Inplace update to inference tensor outside InferenceMode is not allowed. You can "
              "make a clone to get a normal tensor before doing inplace update. Got ",
              describe(x));
}

void check_inplace(const char* op, const Tensor& x, bool records) {
  RAMET_CHECK(x.defined(), op, "undefined tensor");
  check_normal(op, x);
  if (!x.raw_contiguous() && !x->is(TensorImpl::kInternalLayout)) {
    for (int d = 0; d < x->rank; ++d) {
      RAMET_CHECK(x->strides()[d] != 0 || x->sizes()[d] <= 1, op,
                  "unsupported operation: more than one element of the written-to tensor refers to "
                  "a single memory location. "
                  "Please clone() the tensor before performing the operation. Got ",
                  describe(x), " with strides ", x.raw_strides());
    }
  }
  if (RAMET_UNLIKELY(x.storage_impl()->copy_on_write != 0)) x.own_memory(op);
  if (!tls.grad_mode) return;
  const bool requires_grad = x.requires_grad();
  if (!requires_grad && !records) return;
  RAMET_CHECK(!requires_grad || !x->is(TensorImpl::kReplica), op,
              "a replica's parameter is being used in an in-place operation: it follows its "
              "source. Change the source, or use NoGradGuard. Got ",
              describe(x), x->node ? " of " + static_cast<Node*>(x->node)->name() : std::string());
  if (x->is(TensorImpl::kNoGradView) && x->base && !wants_grad(x->base)) leave_lonely_base(x);
  RAMET_CHECK(
      !x->is(TensorImpl::kNoGradView), op,
      "A view was created in no_grad mode (or in InferenceMode, or in the forward of a Function, "
      "or by as_strided beyond the tensor that it was called on) and is being modified inplace "
      "with "
      "grad mode enabled. Given that this use case is ambiguous and error-prone, it is forbidden. "
      "Got ",
      describe(x));
  for (const TensorImpl* t = x.impl(); t->base; t = t->base)
    RAMET_CHECK(lies_within(t), op, "a view of shape ", IntArrayRef(t->sizes(), t->rank),
                " reaches memory that its base of shape ",
                IntArrayRef(t->base->sizes(), t->base->rank),
                " does not show (any more): there is no history for writing it. Got ", describe(x));
  if (!requires_grad) return;
  RAMET_CHECK(x->base || has_history(x.impl()), op,
              "a leaf Variable that requires grad is being used in an in-place operation. Got ",
              describe(x));
  // Refuse where the view itself or any of its bases is a leaf that requires a gradient: its
  // gradient would never come. The same holds where no base gives the view its history: the root
  // was a leaf that requires a gradient no more.
  bool leaf = false;
  const TensorImpl* root = x.impl();
  for (const TensorImpl* t = root; t; t = t->base) {
    leaf = leaf || leaf_that_requires(t);
    root = t;
  }
  RAMET_CHECK(
      !leaf && has_history(root), op,
      "a view of a leaf Variable that requires grad is being used in an in-place operation. Got ",
      describe(x));
}

namespace {

void hang(TensorImpl* t, Node* node, uint32_t slot) {  // takes the reference
  auto* old = static_cast<Node*>(std::exchange(t->node, node));
  move_retained(old, t->slot, node, slot);
  t->slot = slot;
  t->flags |= TensorImpl::kRequiresGrad;
  release(old);
}

}  // namespace

void rebase_history(const Tensor& x, Node* node, uint32_t slot) {
  if (!x->base) {
    hang(x.impl(), node, slot);
    ++x->generation;
    return;
  }
  Tensor changed = x.shallow();  // x_new of the Note
  changed->node = node;
  changed->slot = slot;
  changed->flags |= TensorImpl::kRequiresGrad;
  add_ref(x->base->refs);
  const Tensor base(x->base);
  const int64_t offset = offset_in(x->base, x.impl());
  Node* copy_slices = make_node("CopySlices", {base, changed}, base->device,
                                [at = geometry_of(x, offset), b = geometry_of(base, 0)](
                                    const Node& self, const Tensor& grad) {
                                  std::array<Tensor, 2> out;
                                  const Tensor g = laid_out(grad.contiguous(), b);
                                  if (self.needs(0)) out[0] = zero_at(g, at);
                                  if (self.needs(1)) out[1] = gathered(g, at);
                                  return out;
                                });
  if (RAMET_UNLIKELY(tls.watching)) tell_made(*copy_slices, {base, changed}, Input(base));
  rebase_history(base, copy_slices);
  renew_view(x.impl());
}

void cut_history(const char* name, const Tensor& x) {
  // One node without edges keeps x a non-leaf that requires grad (as LibTorch). It stops the
  // backward pass there.
  Node* const node = make_node(name, {Input(Tensor())}, x->device,
                               [](const Node&, const Tensor&) { return Tensor(); });
  if (RAMET_UNLIKELY(tls.watching)) tell_made(*node, {}, Input(x));
  rebase_history(x, node);
}

}  // namespace autograd
}  // namespace ramet
