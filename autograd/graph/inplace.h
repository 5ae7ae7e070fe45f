// In-place operations: checks, versions, history.
//
//   Tensor& Tensor::mul_(const Tensor& other) const {
//     check_inplace("mul_", *this, other);
//     const bool record = recording(*this, other);
//     // before the kernel: it destroys the values
//     const Saved x = save_overwritten(record && wants_grad(other), *this);
//     kernel(...);
//     wrote("mul_", *this);
//     if (record) record_inplace("MulBackward0", {*this, other}, *this, [...](const Node&, const
//         Tensor& g) {...});
//     return as_mutable(*this);
//   }
//
// Note [In-place operations on views]
// A differentiable view knows its base. An in-place operation on a view x of b is rewritten into
// the equivalent history without in-place: x_new = op(x_old), b_new = b_old with x's elements
// replaced by x_new ("CopySlices"). From then on every view of b, x included, derives from b_new:
// its history is made again (as_strided of b) when it is next needed, which the base's generation
// counter tells. So each view and the base always have the history that the single-threaded program
// text implies. A view that became a leaf of its own (requires_grad_) is the base of the views made
// of it from then on, so that the rules for a leaf's views hold for them; written where it is no
// such leaf any more, it is a view of its own base all the same. Views made in no_grad mode and in
// inference mode know their base, too, but derive from nothing: it can only be refused to use them
// where the base has another history by now, and to write them; but where nobody else has a base
// without a history, its view is a tensor of its own: the result of an operation, say.
#pragma once
#include "autograd/graph/node.h"

namespace ramet {
namespace autograd {

/// Makes the history of a view that wants a gradient now; an Error where it cannot be made.
RAMET_API void make_history(const Tensor& view);

/// Throws where x is an inference tensor outside InferenceMode: what may be written only there.
RAMET_API void check_normal(const char* op, const Tensor& x);

/// Throws unless x may be written in place now: no leaf that requires grad (nor a view of one)
/// while recording, no memory that overlaps itself, no inference tensor outside InferenceMode, no
/// replica parameter; where the operation `records`, or x requires grad, no view made under
/// no_grad.
RAMET_API void check_inplace(const char* op, const Tensor& x, bool records = false);
/// The same where x gets history if any of `others`, which the operation reads, wants a gradient.
/// An Error also where that cannot be recorded: the kernel must not have run then.
template <class... T>
void check_inplace(const char* op, const Tensor& x, const Tensor& other, const T&... others) {
  const auto wants = [](const Tensor& t) {
    if (!wants_grad(t)) return false;
    if (RAMET_UNLIKELY(t->base != nullptr)) make_history(t);
    return true;
  };
  check_inplace(
      op, x, ramet::detail::tls.grad_mode && (int{wants(other)} + ... + int{wants(others)}) != 0);
}

/// After the write: raises the version and notes the writer for error texts.
inline void wrote(const char* op, const Tensor& x) { x.storage_impl()->wrote(op); }

/// Hangs `node` (one reference, taken over) as x's new history, through x's base where x is a view:
/// what comes to x is the gradient of the node's `slot`.
RAMET_API void rebase_history(const Tensor& x, Node* node, uint32_t slot = 0);

template <size_t N, class F>
void record_inplace(const char* name, const Input (&inputs)[N], const Tensor& x, F&& f) {
  Node* const node = make_node(name, inputs, x->device, std::move(f));
  if (RAMET_UNLIKELY(ramet::detail::tls.watching)) tell_made(*node, inputs, Input(x));
  rebase_history(x, node);
}
/// The same of an operation with arguments (record).
template <size_t N, class F, class A>
void record_inplace(const char* name, const Input (&inputs)[N], const Tensor& x, F&& f,
                    const A& arguments) {
  Node* const node = make_node(name, inputs, x->device, std::move(f));
  if (RAMET_UNLIKELY(ramet::detail::tls.watching)) tell_made(*node, inputs, Input(x), arguments);
  rebase_history(x, node);
}

/// x's values were replaced by ones without history (fill_, copy_ of a constant): x no longer
/// depends on what it was. Needed only where `recording(x)` holds.
RAMET_API void cut_history(const char* name, const Tensor& x);

/// What a backward needs of the values that the kernel is about to overwrite: a copy, with their
/// history. As LibTorch, which makes `x.mul_(y)` right where y wants a gradient instead of an error
/// in backward.
inline Saved save_overwritten(bool wanted, const Tensor& x) {
  return wanted ? save(x.clone()) : Saved();
}

inline Tensor& as_mutable(const Tensor& x) { return const_cast<Tensor&>(x); }

}  // namespace autograd
}  // namespace ramet
