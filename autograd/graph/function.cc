#include "autograd/graph/function.h"

#include <algorithm>

#include "autograd/graph/entered_contexts_internal.h"
#include "autograd/graph/inplace.h"
#include "autograd/graph/layout.h"
#include "autograd/ops/front/common_internal.h"

using ramet::detail::tls;

namespace ramet {
namespace autograd {

tensor_list AutogradContext::get_saved_variables() const {
  RAMET_CHECK(node_ != nullptr, "get_saved_variables", "called outside of backward");
  if (node_->flags & Node::kReleased) backward_twice(*node_);
  tensor_list out;
  for (const Kept& k : kept_) {
    Tensor t = k.saved.get(*node_);
    if (k.output >= 0 && tls.grad_mode) {
      t = t.shallow();
      attach(t, node_, static_cast<uint32_t>(k.output));
    }
    out.push_back(std::move(t));
  }
  return out;
}

void AutogradContext::mark_non_differentiable(const tensor_list& outputs) {
  for (const Tensor& t : outputs) non_differentiable_.push_back(t.impl());
}

FunctionNode::FunctionNode(std::string function_name, size_t inputs, Backward f)
    : Node("Function", static_cast<int>(inputs), 1, sizeof(FunctionNode)),
      name_(std::move(function_name)),
      backward_(f) {
  flags |= kFunction;
}

// The innermost Function that is running its forward on this thread.
static __thread FunctionNode* in_forward = nullptr;

void note_meeting() noexcept {
  for (FunctionNode* f = in_forward; f; f = f->around_) f->flags |= Node::kInTurn;
}

bool is_recorded() noexcept { return in_forward ? in_forward->recorded_ : tls.grad_mode; }

FunctionNode::~FunctionNode() {
  if (RAMET_UNLIKELY(in_forward == this)) in_forward = around_;  // forward has thrown
  for (RawEdge& e : edges_) release(e.node);
}

// The node where gradients of a parameter end. The parameters of replicas and of sharded modules
// are no leaves.
static const Node* leaf_of(const Tensor& parameter) {
  auto* node = static_cast<Node*>(parameter->node);
  while (node && node->flags & Node::kReduce) node = node->edges()[0].node;
  return node;
}

bool FunctionNode::may_differentiate(const Node* leaf) const {
  return !ctx.differentiated_ ||
         (leaf &&
          std::any_of(ctx.differentiated_->begin(), ctx.differentiated_->end(),
                      [leaf](const Tensor& t) { return t.defined() && leaf_of(t) == leaf; }));
}

void FunctionNode::release_saved() {
  flags |= kReleased;
  ctx.kept_.clear();
}

FunctionNode::Shape FunctionNode::shape_of(const Tensor& t) {
  if (!t.defined()) return {};
  return {t.sizes().vec(), t.scalar_type(), t.device(), true};
}

void FunctionNode::connect(const tensor_list& inputs, const std::vector<int>& argument,
                           int arguments) {
  argument_ = argument;
  arguments_ = arguments;
  for (const Tensor& t : inputs) {
    edges_.push_back(tls.grad_mode ? edge_of(t.impl()) : RawEdge{});
    inputs_.push_back(shape_of(t));
    ctx.needs_.push_back(edges_.back().node != nullptr);
  }
  contexts_ = ForwardContextGuard::all();
  if (const ReplicaRandomRef now = ReplicaRandomRef::current(); now.get()) random_ = now.again();
  around_ = std::exchange(in_forward, this);
}

// Marks what forward wrote as written. All of it must be among the outputs.
void FunctionNode::mark_written(const tensor_list& dirty, const tensor_list& outputs, bool record) {
  for (const Tensor& t : dirty)
    if (t.defined()) wrote(op, t);
  for (const Tensor& t : dirty) {
    if (!t.defined()) continue;
    RAMET_CHECK(
        std::any_of(outputs.begin(), outputs.end(), [&t](const Tensor& y) { return y.is_same(t); }),
        op, "Function ", name_, " marked ", describe(t),
        " as dirty and did not return it, expected every dirty tensor among the outputs");
    check_inplace(name_.c_str(), t, record);
  }
}

// Saves what is not an output. Outputs get their new history later: a saved view of one would then
// lead back to this node.
void FunctionNode::save_inputs(const tensor_list& outputs) {
  ctx.kept_.resize(ctx.to_save_.size());
  for (size_t s = 0; s < ctx.to_save_.size(); ++s) {
    const Tensor& t = ctx.to_save_[s];
    const auto is_output = [&](const Tensor& y) { return y.is_same(t); };
    if (!t.defined() || std::any_of(outputs.begin(), outputs.end(), is_output)) continue;
    ctx.kept_[s].saved = save(t);
  }
}

// Gives output i its history. False where it has none: a tensor of integers, or one that forward
// marked.
bool FunctionNode::add_history(Tensor& y, size_t i, const tensor_list& dirty,
                               const tensor_list& inputs) {
  const auto is_y = [&y](const Tensor& t) { return t.is_same(y); };
  if (std::any_of(dirty.begin(), dirty.end(), is_y)) {
    hold();
    rebase_history(y, this, static_cast<uint32_t>(i));
    return true;
  }
  if (!is_floating(y.scalar_type()) ||
      std::count(ctx.non_differentiable_.begin(), ctx.non_differentiable_.end(), y.impl()) != 0)
    return false;
  // An input that forward returns becomes another tensor with another history. A view of an input
  // (made without grad, so it is not written with history) stays a view. A view of a tensor that
  // forward made becomes a tensor of its own.
  const auto hides = [&](const Tensor& x) {
    return x.defined() && y->base != x.impl() && (!x->base || y->base != x->base);
  };
  if (y->node || std::any_of(inputs.begin(), inputs.end(), is_y) ||
      (y->base && std::all_of(inputs.begin(), inputs.end(), hides)))
    y = y.detach();
  attach(y, this, static_cast<uint32_t>(i));
  return true;
}

tensor_list FunctionNode::finish(tensor_list outputs, const tensor_list& inputs, bool record) {
  in_forward = around_;
  const tensor_list dirty = std::exchange(ctx.dirty_, {});
  mark_written(dirty, outputs, record);
  if (random_.get() && (!tls.random || tls.random->operations == random_.get()->operations))
    random_ = {};
  if (!record) {
    ctx.to_save_.clear();
    return outputs;
  }
  save_inputs(outputs);
  counter = tls.counter++;  // later than anything forward did
  follow_edges();
  slot_count = static_cast<uint16_t>(outputs.size());
  ctx.node_ = this;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor& y = outputs[i];
    const TensorImpl* asked = y.impl();
    outputs_.push_back(shape_of(y));
    if (!y.defined()) continue;
    if (i == 0) device = y->device;
    const int kept_as = add_history(y, i, dirty, inputs) ? static_cast<int>(i) : -1;
    for (size_t s = 0; s < ctx.to_save_.size(); ++s)
      if (ctx.to_save_[s].impl() == asked)
        ctx.kept_[s] = {Saved(y.shallow()), kept_as};  // never owns its node
  }
  ctx.to_save_.clear();
  if (RAMET_UNLIKELY(tls.watching))
    tell_made(*this, std::vector<Input>(inputs.begin(), inputs.end()),
              std::vector<Input>(outputs.begin(), outputs.end()));
  return outputs;
}

Tensor FunctionNode::fitted(Tensor g, size_t i) const {
  const Shape& to = inputs_[i];
  if (g.sizes() != IntArrayRef(to.sizes)) {
    bool fits = g.dim() >= static_cast<int64_t>(to.sizes.size());
    const size_t lead = fits ? static_cast<size_t>(g.dim()) - to.sizes.size() : 0;
    for (size_t d = 0; fits && d < to.sizes.size(); ++d)
      fits = to.sizes[d] == 1 || to.sizes[d] == g.sizes()[lead + d];
    RAMET_CHECK(fits, op, "Function ", name_, " returned an invalid gradient at index ", i,
                " - got ", g.sizes(), " but expected shape compatible with ",
                IntArrayRef(to.sizes));
    g = sum_to(g, to.sizes);
  }
  RAMET_CHECK(g.device() == to.device, op, "Function ", name_,
              " returned an invalid gradient at index ", i, " - expected device ", to.device,
              " but got ", g.device());
  return g.scalar_type() == to.dtype ? g : g.to(to.dtype);
}

// May run a second time: then get_saved_variables() is what throws.
void FunctionNode::apply(Tensor* in, Tensor* out) {
  tensor_list grads(in, in + slot_count);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined() || !ctx.materialize_ || !outputs_[i].defined) continue;
    grads[i] = Tensor(TensorBase::empty(outputs_[i].sizes, outputs_[i].dtype, outputs_[i].device));
    grads[i].zero_();
  }
  EnteredContexts entered(contexts_);
  // Note [Random numbers]. A forward that drew no numbers may draw new ones.
  const ReplicaRandomGuard numbers(random_.get() ? random_.again() : ReplicaRandomRef::current());
  tensor_list result = backward_(&ctx, std::move(grads));
  entered.leave();
  for (size_t i = static_cast<size_t>(arguments_); i < result.size(); ++i)
    RAMET_CHECK(!result[i].defined(), op, "function ", name_,
                " returned an incorrect number of gradients (expected ", arguments_, ", got ",
                result.size(), ")");
  RAMET_CHECK(result.size() >= static_cast<size_t>(arguments_), op, "function ", name_,
              " returned an incorrect number of gradients (expected ", arguments_, ", got ",
              result.size(), ")");
  for (size_t i = 0; i < edges_.size(); ++i) {
    Tensor& g = result[static_cast<size_t>(argument_[i])];
    if (g.defined() && edges_[i].node) out[i] = fitted(std::move(g), i);
  }
}

namespace {

// Tensors without a history, each with a node of its own where `backward` ends.
template <class Backward>
tensor_list identity(const char* name, tensor_list inputs, bool copy, Backward backward) {
  for (Tensor& t : inputs) {
    if (!t.defined()) continue;
    Tensor out = t.shallow();  // keeps the layout: Note [Internal layout]
    if (copy) out = out.clone();
    t = recording(t) ? record(name, {t}, std::move(out), backward) : std::move(out);
  }
  return inputs;
}

}  // namespace

tensor_list UndefinedGrad::apply(tensor_list inputs) const {
  return identity("UndefinedGradBackward", std::move(inputs), /*copy=*/true,
                  [](const Node&, const Tensor&) { return Tensor(); });
}

DelayedError::DelayedError(std::string message, int64_t num_inputs) : msg(std::move(message)) {
  RAMET_CHECK(num_inputs >= 0, "DelayedError", "num_inputs: got ", num_inputs,
              ", expected 0 or more");
}
tensor_list DelayedError::apply(tensor_list inputs) const {
  return identity("Error", std::move(inputs), /*copy=*/false,
                  [text = msg](const Node&, const Tensor&) -> Tensor { throw ramet::Error(text); });
}

}  // namespace autograd
}  // namespace ramet
