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
// the equivalent history without in-place ("CopySlices"). There x_new = op(x_old), and b_new is
// b_old with x's elements replaced by x_new. From then on every view of b, x included, derives from
// b_new. Its history is made again (as_strided of b) when it is next needed; the base's generation
// counter shows when. So each view and the base always have the history that the single-threaded
// program text implies.
//
// A view may become a leaf of its own (requires_grad_). Then it is the base of the views made of it
// from then on, so that the rules for a leaf's views hold for them. Where it is written after it
// has stopped being such a leaf, it still counts as a view of its own base.
//
// Views made in no_grad mode and in inference mode know their base, too, but derive from nothing.
// So the library refuses to write them, and to use them where the base has another history by now.
// There is one exception: a base without a history that nothing else refers to, as inside an
// operation. Its view becomes a tensor of its own.
#pragma once
#include "autograd/graph/node.h"

namespace ramet {
namespace autograd {

/// Makes the history of a view that wants a gradient now. An Error where that is impossible.
RAMET_API void make_history(const Tensor& view);

/// Throws where x is an inference tensor outside InferenceMode: only inside may it be written.
RAMET_API void check_normal(const char* op, const Tensor& x);

/// Throws unless x may be written in place now. It must have no overlapping elements, and be no
/// inference tensor outside InferenceMode. While recording, it must be no leaf that requires grad
/// (nor a view of one), and no replica parameter. Where the operation `records`, or x requires
/// grad, it must be no view made under no_grad.
RAMET_API void check_inplace(const char* op, const Tensor& x, bool records = false);
/// The same, where x gets history if any of `others`, which the operation reads, wants a gradient.
/// Also an Error where that history cannot be recorded; so call it before the kernel.
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

/// Call after the write: raises the version and notes the operation for error texts.
inline void wrote(const char* op, const Tensor& x) { x.storage_impl()->wrote(op); }

/// Makes `node` the new history of x, through x's base where x is a view. Takes over one reference.
/// The gradient of x is that of the node's `slot`.
RAMET_API void rebase_history(const Tensor& x, Node* node, uint32_t slot = 0);

/// As record(), for an operation that writes x in place.
template <size_t N, class F>
void record_inplace(const char* name, const Input (&inputs)[N], const Tensor& x, F&& f,
                    AddArguments arguments = {}) {
  Node* const node = make_node(name, inputs, x->device, std::move(f));
  if (RAMET_UNLIKELY(ramet::detail::tls.watching)) tell_made(*node, inputs, Input(x), arguments);
  rebase_history(x, node);
}

/// Call when x's values were replaced by ones without history (fill_, copy_ of a constant): x no
/// longer depends on its old values. Needed only where `recording(x)` holds.
RAMET_API void cut_history(const char* name, const Tensor& x);

/// Saves for a backward the values that the kernel is about to overwrite: a copy, with their
/// history. Like LibTorch, this makes `x.mul_(y)` right where y wants a gradient, instead of an
/// error in backward.
inline Saved save_overwritten(bool wanted, const Tensor& x) {
  return wanted ? save(x.clone()) : Saved();
}

inline Tensor& as_mutable(const Tensor& x) { return const_cast<Tensor&>(x); }

}  // namespace autograd
}  // namespace ramet
