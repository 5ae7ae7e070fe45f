// What optimizer steps and limits on gradients have in common: many tensors, few kernel calls.
#pragma once
#include "kernels/optim/optimizer_step.h"
#include "nn/module/flat_store.h"

namespace ramet::nn::detail {

/// Joins adjacent members of a flat store into one piece of memory (FlatRun). One call takes up to
/// kOptimizerTensors pieces of one device and dtype. Allocates nothing.
///
///   mates(a, b)     may `a` and `b`, which have one device and dtype, be in one call?
///   piece(run, n)   the piece as the call takes it, n elements
///   call(head, a)   makes the call; `head` is the first item of its first piece
///
/// Added items must stay at their addresses until flush().
template <class Args, class Item, class Mates, class Piece, class Call> class CallBatch {
 public:
  CallBatch(Mates mates, Piece piece, Call call) : mates_(mates), piece_(piece), call_(call) {
    args_.count = 0;
  }
  CallBatch(const CallBatch&) = delete;
  CallBatch& operator=(const CallBatch&) = delete;

  /// `operands`: the tensors of `item` for the kernel, the first of the call's dtype. `alone`:
  /// `item` stays a separate piece.
  void add(const Item& item, const TensorBase* const* operands, int count, bool alone = false) {
    const TensorBase& first = *operands[0];
    const bool joins = !alone && run_item_ && run_key_ == first->key() && mates_(*run_item_, item);
    if (!run_.take(operands, count, joins, [this] { end_run(); })) return;
    run_item_ = &item;
    run_key_ = first->key();
    run_dtype_ = first.scalar_type();
  }
  /// Launches everything that was added.
  void flush() {
    end_run();
    launch();
  }

 private:
  void end_run() {
    if (run_.empty()) return;
    if (args_.count == kernels::kOptimizerTensors ||
        (args_.count > 0 && (run_key_ != key_ || !mates_(*head_, *run_item_))))
      launch();
    if (args_.count == 0) {
      head_ = run_item_;
      key_ = run_key_;
      args_.dtype = run_dtype_;
    }
    args_.tensors[args_.count++] =
        piece_(run_, run_.bytes() / static_cast<int64_t>(item_size(run_dtype_)));
    run_.clear();
  }
  void launch() {
    if (args_.count == 0) return;
    call_(*head_, args_);
    args_.count = 0;
  }

  const Mates mates_;
  const Piece piece_;
  const Call call_;
  FlatRun run_;
  const Item* run_item_ = nullptr;  // where the run starts
  uint16_t run_key_ = 0;            // its device and dtype
  ScalarType run_dtype_ = ScalarType::Undefined;
  Args args_;                   // the pieces of one call
  const Item* head_ = nullptr;  // where its first one starts
  uint16_t key_ = 0;
};

template <class Args, class Item, class Mates, class Piece, class Call>
CallBatch<Args, Item, Mates, Piece, Call> call_batch(Mates mates, Piece piece, Call call) {
  return {mates, piece, call};
}

/// Calls for dense tensors of which each stays a separate piece: a gap between two tensors may be
/// memory of another one. `call` as for CallBatch.
template <class Args, class Call> class DenseBatch {
 public:
  explicit DenseBatch(Call call) : batch_(mates, piece, call) {}
  /// `t` must stay at its address until flush(). Nothing if it is empty.
  void add(const Tensor& t) {
    if (t.numel() == 0) return;
    const TensorBase* operand[1] = {&t};
    batch_.add(t, operand, 1, /*alone=*/true);
  }
  /// Launches everything that was added.
  void flush() { batch_.flush(); }

 private:
  static bool mates(const Tensor&, const Tensor&) { return true; }
  static kernels::DenseTensor piece(const FlatRun& run, int64_t n) { return {run.at(0), n}; }
  CallBatch<Args, Tensor, decltype(&mates), decltype(&piece), Call> batch_;
};
template <class Args, class Call> DenseBatch<Args, Call> dense_batch(Call call) {
  return DenseBatch<Args, Call>(call);
}

}  // namespace ramet::nn::detail
