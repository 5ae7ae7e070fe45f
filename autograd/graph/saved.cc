#include "autograd/graph/saved.h"

#include "autograd/graph/checkpoint_frame_internal.h"
#include "autograd/graph/node.h"

using ramet::detail::tls;

namespace ramet {
namespace autograd {

// A leaf that requires grad, a replica's parameter, or a view of either.
bool is_never_written_with_history(const Tensor& t) {
  const TensorImpl* written = t.impl();
  while (written->base) written = written->base;
  const auto* node = static_cast<const Node*>(written->node);
  return written->is(TensorImpl::kRequiresGrad) &&
         (!node || (node->flags & (Node::kSink | Node::kReduce)) != 0);
}

Tensor with_history_of_now(Tensor t) {
  if (is_never_written_with_history(t)) return t;
  // Its memory is another tensor's until it is written, and one implementation alone may do that.
  if (t.storage_impl()->copy_on_write) return t;
  const RawEdge edge = edge_of(t.impl());
  Tensor kept;
  try {
    kept = t.shallow();
  } catch (...) {
    release(edge.node);
    throw;
  }
  if (edge.node) {
    kept->node = edge.node;
    kept->slot = edge.slot;
    kept->flags |= TensorImpl::kRequiresGrad;
  }
  return kept;
}

void Saved::keep_watched() {
  tell_saved(t_);
  if (CheckpointFrame::take_over(*this)) return;
  if (t_->node != nullptr || t_->base != nullptr) t_ = with_history_of_now(std::move(t_));
}

const Tensor& Saved::at_other_version(const Node& self) const {
  if (const Tensor* again = CheckpointFrame::value_of(*this, self)) return *again;
  // A replica's parameter, or a view of one, is known by its full name.
  const TensorImpl* at = t_->base ? t_->base : t_.impl();
  const auto* made_by = static_cast<const Node*>(at->node);
  const std::string parameter =
      made_by && (made_by->flags & Node::kReduce) ? " of " + made_by->name() : std::string();
  fail(self.op,
       "one of the variables needed for gradient computation has been modified by an inplace "
       "operation: ",
       describe(t_), parameter, ", saved by ", self.name(), ", was changed by ",
       t_.storage_impl()->last_writer(), ": is at version ", t_.version(), "; expected version ",
       version_, " instead");
}

void Saved::refuse_inference() {
  fail("save",
       "Inference tensors cannot be saved for backward. To work around you can make a clone to get "
       "a normal tensor "
       "and use it in autograd.");
}

Tensor SavedOutput::get(const Node& self) const {
  const Tensor& kept = Saved::get(self);
  if (!tls.grad_mode) return kept;
  Tensor t = kept.shallow();
  auto* node = const_cast<Node*>(&self);
  node->hold();
  t->node = node;
  t->flags |= TensorImpl::kRequiresGrad;
  return t;
}

}  // namespace autograd
}  // namespace ramet
