#include "autograd/graph/captured.h"

#include <algorithm>
#include <unordered_set>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "autograd/graph/captured_internal.h"
#include "autograd/graph/layout.h"
#include "autograd/graph/node.h"
#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/copy.h"
#include "runtime/capture/capture.h"
#include "runtime/capture/program_internal.h"

using ramet::detail::tls;

namespace ramet {

using autograd::AccumulateGrad;

namespace {

constexpr const char* kOp = "Captured";

Tensor shared(TensorImpl* t) {
  if (t) add_ref(t->refs);
  return Tensor(t);
}

// Uninitialised, with the memory layout of `x`.
Tensor blank_like(const Tensor& x) {
  if (x->is(TensorImpl::kInternalLayout)) return autograd::empty_like_layout(x, x.scalar_type());
  return Tensor(TensorBase::empty_strided(x.sizes(), x.raw_strides(), x.scalar_type(), x.device()));
}

// A leaf's gradient: its state when the capture begins, and its state at the end.
struct Gradient {
  autograd::NodePtr node;
  TensorImpl* entry = nullptr;  // while the capture is made; the program holds it
  bool defined = false;
  const void* data = nullptr;  // where the list uses its memory
  const void* reduce = nullptr;
  uint32_t version = 0;  // while the capture is made
  bool written = false;
  // What the function leaves in the leaf: no gradient (not `left`), the leaf's own place
  // (`in_place`), or the tensor `after`. The place is not held: AccumulateGrad hands it out only
  // while nothing else refers to it.
  bool left = false, in_place = false;
  const void* place = nullptr;
  Tensor after;

  // Called at the end of the function. Returns the gradient from before.
  Tensor look(capture::Program& program) {
    const AccumulateGrad& s = sink();
    left = s.grad.defined();
    in_place = left && s.grad.is_same(s.where);
    if (left && !in_place) after = s.grad;
    if (in_place) place = s.where->data;
    written = left && (s.grad.impl() != entry || s.grad.version() != version);
    const Tensor before = shared(entry);
    if (entry && program.uses_memory_of(entry)) data = entry->data;
    if (left) program.keep_memory_of(s.grad.impl());
    // This class watches the gradients itself.
    for (const TensorImpl* t : {before.impl(), s.grad.impl(), s.where.impl()})
      program.forget(const_cast<TensorImpl*>(t));
    entry = nullptr;
    return before;
  }

  AccumulateGrad& sink() const { return static_cast<AccumulateGrad&>(*node); }
  // Has the function dropped this leaf? Then nothing can read its gradient.
  bool ended() const { return node->refs.load(std::memory_order_acquire) == 1; }

  bool as_before() const {
    const AccumulateGrad& s = sink();
    if (s.grad.defined() != defined || (data && s.grad->data != data)) return false;
    if (in_place && (!s.where.defined() || s.where->data != place)) return false;
    if (s.reduce != reduce) return false;
    return !s.extra || (s.extra->hooks.empty() && s.extra->post.empty());
  }
  void leave() const {
    AccumulateGrad& s = sink();
    const TensorImpl* wanted = !left ? nullptr : in_place ? s.where.impl() : after.impl();
    if (written) (in_place ? s.where : after).storage_impl()->wrote(kOp);
    if (s.grad.impl() == wanted) return;
    std::lock_guard lock(s.mutex);
    s.grad = !left ? Tensor() : in_place ? s.where : after;
  }
};

// A view made in no_grad mode reports that it requires a gradient, yet receives none.
bool wants(const Tensor& t) {
  return t.is_inference() ? t.requires_grad() : autograd::wants_grad(t);
}

}  // namespace

struct detail::Captures::Capture {
  capture::Program program;
  // `outputs`: the tensors that the caller gets, and may change as it likes. `results`: the
  // originals that outputs are made from again.
  std::vector<Tensor> inputs, outputs, results;
  std::vector<Gradient> gradients;
  std::vector<autograd::NodePtr> unhooked;  // leaves that have no hooks
  std::unordered_set<const AccumulateGrad*> noted;

  bool fits(const Tensor* const* given, size_t count) const {
    if (count != inputs.size()) return false;
    for (size_t i = 0; i < count; ++i) {
      const Tensor &a = *given[i], &b = inputs[i];
      if (a->key() != b->key() || !same_sizes(a, b) || !same_strides(a, b) ||
          wants(a) != wants(b) || a.is_inference() != b.is_inference() ||
          a->is(TensorImpl::kInternalLayout) != b->is(TensorImpl::kInternalLayout))
        return false;
    }
    return true;
  }
  void take(const Tensor* const* given) const {
    // A given tensor may share the memory of another input: a result that the caller passes back
    // in.
    std::vector<std::pair<size_t, Tensor>> aside;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!is_written_before(*given[i], i)) continue;
      aside.emplace_back(i, blank_like(*given[i]));
      autograd::copy_values(aside.back().second, *given[i]);
    }
    size_t next = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool kept = next < aside.size() && aside[next].first == i;
      autograd::copy_values(inputs[i], kept ? aside[next++].second : *given[i]);
      inputs[i].storage_impl()->wrote(kOp);
    }
  }
  // Does `given` share memory with an input before number i, or with input i at another address?
  bool is_written_before(const Tensor& given, size_t i) const {
    const StorageImpl* memory = given.storage_impl()->root();
    for (size_t k = 0; k < i; ++k)
      if (inputs[k].storage_impl()->root() == memory) return true;
    return inputs[i].storage_impl()->root() == memory && inputs[i]->data != given->data;
  }
  const char* failed_guard() const {
    if (program.is_for_once()) return "states of an optimizer";
    for (const Tensor& own : inputs)
      if (own.requires_grad()) own.mutable_grad() = Tensor();
    for (const Gradient& g : gradients)
      if (!g.as_before()) return "gradients";
    for (const autograd::NodePtr& leaf : unhooked)
      if (leaf->watched()) return "gradients";
    return program.failed_guard();
  }
  void leave() {
    for (const Gradient& g : gradients) g.leave();
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor &out = outputs[i], &as = results[i];
      if (!as.defined()) continue;
      as.storage_impl()->wrote(kOp);
      if (out->node || out->storage != as->storage || out->data != as->data ||
          out->flags != as->flags || out->key() != as->key() || !same_sizes(out, as) ||
          !same_strides(out, as))
        outputs[i] = as.shallow();
    }
  }
};

namespace {
// The gradients of the capture that is being made. Only threads that make it read this.
struct Noted {
  capture::Program* program;
  std::vector<Gradient>* gradients;
  std::vector<autograd::NodePtr>* unhooked;
  std::unordered_set<const AccumulateGrad*>* seen;
  uint64_t begun = tls.counter;  // nodes with a smaller counter are older
};
Noted* noted_by = nullptr;
}  // namespace

void autograd::note_gradient(AccumulateGrad* sink) {
  if (!noted_by || !noted_by->seen->insert(sink).second) return;
  Gradient g;
  g.node = NodePtr(sink);
  g.entry = sink->grad.impl();
  g.defined = g.entry != nullptr;
  g.reduce = sink->reduce;
  if (g.entry) g.version = sink->grad.version();
  if (g.entry) noted_by->program->hold(g.entry, /*by_name=*/true);
  noted_by->gradients->push_back(g);
  capture::on_failure([node = g.node, before = g.entry] {
    static_cast<AccumulateGrad&>(*node).grad = shared(before);
  });
}

void autograd::note_hooks(Node* node) {
  if (!noted_by || !(node->flags & Node::kSink)) return;
  auto& all = *noted_by->unhooked;
  const NodePtr leaf(node);
  if (std::find(all.begin(), all.end(), leaf) == all.end()) all.push_back(leaf);
}

void autograd::refuse_older(const Node* node) {
  constexpr uint8_t kOfParameters = Node::kSink | Node::kReduce;
  if (noted_by && !(node->flags & kOfParameters) && node->counter < noted_by->begun)
    capture::refused("backward", "a graph that was made outside of it");
}

namespace detail {

Captures::Captures() = default;
Captures::Captures(Captures&&) noexcept = default;
Captures& Captures::operator=(Captures&&) noexcept = default;
Captures::~Captures() = default;
void Captures::clear() { captures_.clear(); }
size_t Captures::size() const { return captures_.size(); }

Captures::Capture& Captures::make(const Tensor* const* given, size_t count, Function function,
                                  void* context) {
  auto made = std::make_unique<Capture>();
  Capture& c = *made;
  for (size_t i = 0; i < count; ++i) {
    const Tensor& x = *given[i];
    const NoGradGuard off;
    const ScopedValue<bool> as_given(tls.inference_mode, x.is_inference());
    Tensor own = blank_like(x);
    own.requires_grad_(wants(x));
    c.inputs.push_back(std::move(own));
  }
  c.take(given);
  {
    std::vector<Tensor> before;  // gradients to restore after a failure
    Noted noted{&c.program, &c.gradients, &c.unhooked, &c.noted};
    capture::Program::Recording recording(c.program);
    const ScopedValue<Noted*> here(noted_by, &noted);
    {
      const detail::OwnCasts casts;
      function(context, c.inputs.data(), c.outputs);
    }
    for (Tensor& t : c.outputs) {
      c.results.push_back(t.defined() ? t.detach() : t);
      if (t.defined()) t = t.detach();
    }
    for (Gradient& g : c.gradients) before.push_back(g.look(c.program));
    for (size_t i = 0; i < count; ++i)  // the function may make a leaf of it
      if (wants(c.inputs[i]) != wants(*given[i])) c.program.forget(c.inputs[i].impl());
    recording.finish();
  }
  c.noted.clear();
  c.gradients.erase(std::remove_if(c.gradients.begin(), c.gradients.end(),
                                   [](const Gradient& g) { return g.ended(); }),
                    c.gradients.end());
  captures_.erase(std::remove_if(captures_.begin(), captures_.end(),
                                 [](const auto& old) { return old->program.is_for_once(); }),
                  captures_.end());
  const size_t most = std::max<size_t>(max_captures, 1);
  if (captures_.size() >= most) captures_.resize(most - 1);
  captures_.insert(captures_.begin(), std::move(made));
  return c;
}

const std::vector<Tensor>& Captures::call(const Tensor* const* given, size_t count,
                                          Function function, void* context) {
  capture::refuse(kOp, "a capture inside a capture");
  for (size_t i = 0; i < count; ++i)
    RAMET_CHECK(given[i]->defined(), kOp, "input ", i, ": got an undefined tensor");
  const char* failed = nullptr;
  for (size_t i = 0; i < captures_.size(); ++i) {
    Capture& c = *captures_[i];
    if (!c.fits(given, count)) continue;
    if (const char* why = c.failed_guard()) {
      if (!failed) failed = why;
      continue;
    }
    if (i)
      std::rotate(captures_.begin(), captures_.begin() + static_cast<std::ptrdiff_t>(i),
                  captures_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    c.take(given);
    try {
      c.program.replay();
    } catch (...) {
      c.leave();
      throw;
    }
    c.leave();
    ++counters.replays;
    return c.outputs;
  }
  Capture& c = make(given, count, function, context);
  ++counters.captures;
  if (failed) {
    ++counters.failed_guards;
    last_failed_guard = failed;
  }
  return c.outputs;
}

}  // namespace detail
}  // namespace ramet
