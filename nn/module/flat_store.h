// Flat stores: a module's parameters, and their gradients, each in one piece of memory.
//
// Note [Flat stores]
// flatten_parameters moves the parameters of each (device, dtype) into one buffer and gives their
// gradients another one with the same layout: members start at multiples of kFlatAlign bytes, in
// the order of the list, gaps are zero. A flat buffer is what a coalesced broadcast, a bucket's
// reduction and a fused optimizer step want: neighbours are handled by one call.
//
// A flat parameter stays what it was: a leaf with its identity (its implementation is re-pointed,
// so members, registries and optimizers follow), its history of versions, and a version counter of
// its own: its storage is an alias inside the buffer and not a view. The first gradient of a
// backward is born in its place (autograd::set_grad_destination); where the engine cannot do that
// (create_graph, hooks that keep it, a gradient somebody still holds), the gradient has memory of
// its own, and users of the store notice. Nobody keeps a list of what is flat: whoever works on
// runs looks where each tensor lies now (FlatRun). So set_data, to(), an assigned or missing
// gradient, freezing and late registration only split a run; nothing is overwritten.
//
// Raw pointers that were taken from a parameter before it moved are stale, as after to().
#pragma once
#include <vector>

#include "autograd/tensor.h"
#include "runtime/capture/capture.h"

namespace ramet::nn {

/// Members start at multiples of so many bytes.
inline constexpr int64_t kFlatAlign = 64;
/// Bytes that a member of `bytes` bytes occupies.
constexpr int64_t flat_padded(int64_t bytes) {
  return (bytes + kFlatAlign - 1) / kFlatAlign * kFlatAlign;
}

/// One buffer of parameters, and that of their gradients.
struct FlatStore {
  /// Where a member lies in the buffers.
  struct Segment {
    size_t index;           // in the list that was given
    int64_t offset, numel;  // elements
  };
  /// One-dimensional, over the whole buffer, gaps included. They share memory with their members,
  /// not versions.
  Tensor parameters, gradients;
  /// The members, in the order of the list.
  std::vector<Segment> segments;
};

/// What flatten_parameters() made.
struct FlatParameters {
  std::vector<FlatStore> stores;  // one for each (device, dtype), in order of first appearance
  /// Indices of those that were left alone: undefined, no leaf, not floating point, not contiguous,
  /// over foreign memory, or sharing memory with another tensor (a view, a detach()), which moving
  /// would separate. Repeated ones are left out of both.
  std::vector<size_t> loose;
};

/// Idempotent: parameters that lie in the wanted layout are not moved, and gradient places that do
/// are kept. Otherwise they are moved, from another store too. Not while another thread uses the
/// parameters.
RAMET_API FlatParameters flatten_parameters(ArrayRef<Tensor> parameters);

/// Adjacent pieces of several parallel operands, as one: parameter, gradient and optimizer state of
/// neighbours, or what one kernel call copies or adds. Grows while every operand continues in its
/// own allocation where it stopped, at the same distance for all.
class FlatRun {
 public:
  static constexpr int kMaxOperands = 17;  // a sum and parallel::kMaxLeaves contributions
  /// `next` are K dense tensors of equal size and dtype. False, and unchanged, if they do not
  /// continue the run.
  bool extend(const TensorBase* const* next, int count) { return grow<false>(next, count); }
  /// The same for work that comes behind whatever still writes the operands: nothing is waited for.
  /// Null operands, but for the first, are absent.
  bool extend_later(ArrayRef<const TensorBase*> next) {
    return grow<true>(next.data(), static_cast<int>(next.size()));
  }
  /// Takes the next pieces in; where they do not continue the run (or `joins` is false), flush() is
  /// called first, which works on it and clears it. True: the run starts with these pieces.
  template <class Flush>
  bool take(const TensorBase* const* next, int count, bool joins, const Flush& flush) {
    if (!empty() && joins && extend(next, count)) return false;
    if (!empty()) flush();
    return extend(next, count);
  }
  /// Has it no piece?
  bool empty() const { return bytes_ == 0; }
  /// Without pieces.
  void clear() { bytes_ = room_ = 0; }
  /// How many operands it has.
  int operands() const { return count_; }
  /// First byte; null: absent.
  void* at(int operand) const { return at_[operand]; }
  /// Where the operand is; cpu:0 of an absent one.
  Device device(int operand) const {
    return root_[operand] ? Device::from_ordinal(static_cast<int>(root_[operand]->device))
                          : Device(kCPU, 0);
  }
  /// From the first piece's start to the last one's end.
  int64_t bytes() const { return bytes_; }

 private:
  template <bool kLater> bool grow(const TensorBase* const* next, int count) {
    const int64_t size = static_cast<int64_t>(next[0]->nbytes());
    for (int i = 0; bytes_ && i < count; ++i) {
      if (kLater && (!next[i] || !at_[i])) {
        if (next[i] || at_[i]) return false;
      } else if (at_[i] + room_ != start<kLater>(*next[i]) ||
                 root_[i] != next[i]->storage_impl()->root()) {
        return false;
      }
    }
    for (int i = 0; !bytes_ && i < count; ++i) {
      const bool absent = kLater && !next[i];
      at_[i] = absent ? nullptr : start<kLater>(*next[i]);
      root_[i] = absent ? nullptr : next[i]->storage_impl()->root();
      count_ = count;
    }
    bytes_ = room_ + size;
    room_ += flat_padded(size);
    return true;
  }
  template <bool kLater> static char* start(const TensorBase& t) {
    if (!kLater) return static_cast<char*>(t.ptr());
    if (RAMET_UNLIKELY(capture::active())) capture::used(t.impl());  // as ptr() does
    return static_cast<char*>(t->data);
  }

  char* at_[kMaxOperands] = {};
  const StorageImpl* root_[kMaxOperands] = {};
  int count_ = 0;
  int64_t bytes_ = 0, room_ = 0;
};

}  // namespace ramet::nn
