// How a GradientReducer works with users' hooks: it takes what parameter hooks leave, before the
// reduction, and runs the post-sync hooks after it.
#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/graph/under_way_internal.h"
#include "autograd/ops.h"
#include "parallel/distributed/ddp/gradient_reducer_internal.h"

namespace ramet::distributed::detail {

using autograd::AccumulateGrad;

// Where to write the gradient of a leaf that has none.
Tensor GradientReducer::place_of(const Leaf& leaf) {
  const Tensor& where = leaf.sink->where;
  return where.defined() && where.unique() ? where.shallow() : empty_like(leaf.tensor.detach());
}

// A hook, or other code that ran since the gradient came, may have set another gradient.
void GradientReducer::check_taken(const Leaf& leaf) const {
  const Tensor &g = leaf.sink->grad, &p = leaf.tensor;
  RAMET_CHECK(same_sizes(g, p) && g->key() == p->key(), "ddp", "the gradient of '", leaf.name,
              "' when it is to be reduced: got ", describe(g),
              ", expected the size, dtype and device of ", describe(p));
}

// Does no other handle share the memory of a leaf's gradient?
static bool is_alone(const Tensor& g, const Tensor& where) {
  if (!where.defined() || g.storage_impl() != where.storage_impl()) return g.unique();
  const uint32_t storages = g.storage_impl()->refs;
  return g.is_same(where) ? g->refs == 2 && storages == 1
                          : g->refs == 1 && where->refs == 1 && storages == 2;
}

// The reduction works in place. A tensor to which other code keeps a handle must not change. The
// code may read it, or give it to another leaf, at any time. (A hook may even put one tensor into
// several gradients.) Such a gradient is copied first.
void GradientReducer::give_own_memory(Member& m) const {
  const Leaf& leaf = *leaves_[m.leaf];
  if (m.sent.is_contiguous() && is_alone(m.sent, leaf.sink->where)) return;
  const Tensor own = place_of(leaf);
  own.copy_(m.sent);
  m.sent = own;
}

// This rank contributes what the leaves have now, including all changes that hooks made.
void GradientReducer::take_gradients(Bucket& b) {
  for (Member& m : b.members) {
    const Leaf& leaf = *leaves_[m.leaf];
    AccumulateGrad& sink = *leaf.sink;
    const std::lock_guard its(sink.mutex);
    if (!sink.grad.defined()) {
      m.reached = m.old = false;  // a hook has dropped it
    } else if (!m.reached) {      // from an earlier backward
      if (sink.mark == common) {
        m.before = std::exchange(sink.grad, Tensor());
      } else {
        check_unsynchronised(leaf);
        m.reached = m.old = true;
      }
    }
    if (m.reached && is_weighted() && rows() == 0) {  // a mean over no rows is not a number
      m.reached = false;
      sink.grad = Tensor();
    }
    const ScalarType sent = wire_dtype(leaf);
    const bool widens = sent != leaf.tensor.scalar_type();
    if (!m.reached) {
      m.sent = widens ? empty_like(leaf.tensor.detach(), sent) : place_of(leaf);
      continue;
    }
    check_taken(leaf);
    // From here on it is being reduced: readers must not see values that change.
    const bool as_it_was = m.wide.defined() && m.as_accumulated.is(sink.grad);
    m.sent = std::exchange(sink.grad, Tensor());
    sink.mark = autograd::kUnderWay;
    if (m.sent->node) m.sent = m.sent.detach();
    if (widens) m.sent = as_it_was ? std::move(m.wide) : m.sent.to(sent);
    else give_own_memory(m);
  }
}

unsigned GradientReducer::add_hook(size_t unit, PostSyncHook hook) {
  const std::lock_guard lock(mutex_);
  hooks_.push_back({unit, ++last_hook_, std::make_shared<const PostSyncHook>(std::move(hook))});
  return last_hook_;
}
bool GradientReducer::remove_hook(size_t unit, unsigned id) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(hooks_, [&](const UnitHook& h) { return h.unit == unit && h.id == id; });
}

// Runs the hooks in the order of the plan, which is the same on all ranks. No lock is held: a hook
// may do anything, even run a backward.
void GradientReducer::run_hooks(const std::vector<Synchronised>& leaves) {
  const NoGradGuard off;
  for (const Synchronised& s : leaves) {
    std::vector<UnitHook> hooks;
    {
      const std::lock_guard lock(mutex_);
      hooks = hooks_;
    }
    const DeviceGuard here(s.leaf.device());
    for (const UnitHook& hook : hooks) {
      if (hook.unit != s.unit) continue;
      try {
        (*hook.call)(s.name, s.leaf);
      } catch (...) {
        abort("a post-sync hook failed on this rank");
        throw;
      }
    }
  }
}

}  // namespace ramet::distributed::detail
