// Flat stores: each holds a module's parameters, and their gradients, in one piece of memory.
//
// Note [Flat stores]
// flatten_parameters moves the parameters of each (device, dtype) into one buffer. It gives their
// gradients another buffer with the same layout. Members start at multiples of kFlatAlign bytes, in
// the order of the list; gaps are zero. A coalesced broadcast, a bucket's reduction and a fused
// optimizer step profit from a flat buffer: one call handles adjacent members.
//
// A flat parameter remains the same leaf. Its implementation points to the new memory, so members,
// registries and optimizers follow. It keeps its history of versions and its own version counter:
// its storage is an alias inside the buffer and not a view. The first gradient of a backward is
// written directly to its place in the buffer (autograd::set_grad_destination). Where the engine
// cannot do that, the gradient has memory of its own, and users of the store notice. Reasons are
// create_graph, hooks that keep the gradient, and a gradient that the program still holds. No list
// records which tensors are flat: code that works on runs checks the present address of each tensor
// (FlatRun). So set_data, to(), an assigned or missing gradient, freezing and late registration
// only split a run; nothing is overwritten.
//
// Raw pointers that were taken from a parameter before the move are stale, as after to().
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
  /// Indices of the parameters that were not moved. They are undefined, no leaf, not floating point
  /// or not contiguous, lie in foreign memory, or share memory with another tensor. Moving would
  /// separate the latter (a view, a detach()). Repeated parameters are in neither list.
  std::vector<size_t> loose;
};

/// Idempotent: it moves no parameters that lie in the wanted layout, and keeps gradient places that
/// do. It moves all others, also from another store. No other thread may use the parameters at that
/// time.
RAMET_API FlatParameters flatten_parameters(ArrayRef<Tensor> parameters);

/// Adjacent pieces of several parallel operands, as one. The operands are the parameter, gradient
/// and optimizer state of adjacent members, or tensors that one kernel call copies or adds. A run
/// grows while every operand continues in its own allocation where it stopped, at the same distance
/// in elements for all.
class FlatRun {
 public:
  static constexpr int kMaxOperands = 17;  // a sum and parallel::kMaxLeaves contributions
  /// `next` are K dense tensors of equal size. False, and unchanged, if they do not continue the
  /// run. For each operand, all pieces of a run have one dtype.
  bool extend(const TensorBase* const* next, int count) { return grow<false>(next, count); }
  /// The same for work that is queued after all writes of the operands, so that the host waits for
  /// none of them. Operands other than the first may be null: absent.
  bool extend_later(ArrayRef<const TensorBase*> next) {
    return grow<true>(next.data(), static_cast<int>(next.size()));
  }
  /// Adds the next pieces. Where they do not continue the run (or `joins` is false), it first calls
  /// flush(), which processes the run and clears it. True: the run starts with these pieces.
  template <class Flush>
  bool take(const TensorBase* const* next, int count, bool joins, const Flush& flush) {
    if (!empty() && joins && extend(next, count)) return false;
    if (!empty()) flush();
    return extend(next, count);
  }
  /// Has it no piece?
  bool empty() const { return bytes_ == 0; }
  /// Without pieces.
  void clear() { bytes_ = distance_ = 0; }
  /// How many operands it has.
  int operands() const { return count_; }
  /// First byte; null: absent.
  void* at(int operand) const { return at_[operand]; }
  /// Where the operand is; cpu:0 of an absent one.
  Device device(int operand) const {
    return root_[operand] ? Device::from_ordinal(static_cast<int>(root_[operand]->device))
                          : Device(kCPU, 0);
  }
  /// Of the first operand, from the first piece's start to the last one's end.
  int64_t bytes() const { return bytes_; }

 private:
  template <bool kLater> bool grow(const TensorBase* const* next, int count) {
    const int64_t size = static_cast<int64_t>(next[0]->nbytes());
    for (int i = 0; bytes_ && i < count; ++i) {
      if (kLater && (!next[i] || !at_[i])) {
        if (next[i] || at_[i]) return false;
      } else if (shift_[i] != shift_of(*next[i]) ||
                 at_[i] + (distance_ << shift_[i]) != start<kLater>(*next[i]) ||
                 root_[i] != next[i]->storage_impl()->root()) {
        return false;
      }
    }
    for (int i = 0; !bytes_ && i < count; ++i) {
      const bool absent = kLater && !next[i];
      at_[i] = absent ? nullptr : start<kLater>(*next[i]);
      root_[i] = absent ? nullptr : next[i]->storage_impl()->root();
      shift_[i] = absent ? 0 : shift_of(*next[i]);
      count_ = count;
    }
    bytes_ = (distance_ << shift_[0]) + size;
    distance_ += flat_padded(size) >> shift_[0];
    return true;
  }
  /// Its elements have 2 to this power bytes.
  static int shift_of(const TensorBase& t) { return __builtin_ctzll(item_size(t.scalar_type())); }
  template <bool kLater> static char* start(const TensorBase& t) {
    if (!kLater) return static_cast<char*>(t.ptr());
    if (RAMET_UNLIKELY(capture::active())) capture::used(t.impl());  // as ptr() does
    return static_cast<char*>(t->data);
  }

  char* at_[kMaxOperands] = {};
  const StorageImpl* root_[kMaxOperands] = {};
  int shift_[kMaxOperands] = {};
  int count_ = 0;
  int64_t bytes_ = 0, distance_ = 0;  // the latter in elements
};

}  // namespace ramet::nn
