// What a checkpoint knows of its function: how to run it again, and the values that its nodes ask
// for. Note [Saved tensors that are computed again] in saved.h.
//
// Note [Checkpoints inside checkpoints]
// In the forward pass the outermost checkpoint alone keeps account: a checkpoint inside its
// function only calls its own function. When the outer function runs again, the inner one is a
// checkpoint of its own. The value that the outer frame gets for such a tensor is then a stand-in,
// too, which asks the inner frame. So only one level's activations are in memory at any time.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "autograd/graph/entered_contexts_internal.h"
#include "autograd/graph/node.h"
#include "autograd/graph/saved.h"
#include "runtime/devices/draw_record.h"
#include "runtime/observe/thread_local_state.h"

namespace ramet {
namespace autograd {

/// May no operation write it with history? So it is a leaf that requires grad, a replica's
/// parameter, or a view of either.
bool is_never_written_with_history(const Tensor& t);

struct StandIn;

/// One call of checkpoint(). Its stand-ins own it.
class CheckpointFrame : public std::enable_shared_from_this<CheckpointFrame> {
 public:
  /// `again` runs the function once more, which reads `inputs`. The state of the calling thread is
  /// that of the forward pass.
  CheckpointFrame(std::function<void()> again, const tensor_list& inputs);

  /// If this thread runs a checkpoint's function, its frame keeps the tensor of `saved` from now
  /// on, and this returns true. Parameters stay where they are.
  static bool take_over(Saved& saved);
  /// The tensor that `saved` stands for, computed again where it has not been; null where it is no
  /// stand-in. `asking` is the node whose backward needs it.
  static const Tensor* value_of(const Saved& saved, const Node& asking);

  /// While it lives, this thread runs the function of `frame`: for the first time, or again. Then
  /// observers of the graph do not see it.
  class Running {
   public:
    Running(CheckpointFrame& frame, bool again);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    /// Does this thread run a checkpoint's function for the first time?
    static bool first_time();

   private:
    friend class CheckpointFrame;
    CheckpointFrame& frame_;
    const bool again_;
    size_t next_ = 0;  // the number of the tensor that is saved next
    Running* const outer_;
    const DrawRecordGuard draws_;
    const ScopedValue<uint8_t> watching_;
  };

 private:
  friend struct StandIn;
  /// What is needed to run the function again.
  struct Call {
    std::function<void()> again;
    std::vector<std::pair<Tensor, uint32_t>> inputs;  // with their versions
    std::vector<std::shared_ptr<ForwardContext>> contexts;
    ThreadLocalState state;
    DrawRecord draws;
  };
  /// A tensor that was saved: what it was like, and its values when they have been computed again.
  struct Value {
    std::vector<int64_t> sizes;
    ScalarType dtype;
    Device device;
    StandIn* holder;  // null: no node needs it any more
    Saved computed;
  };

  void keep(Saved& saved);
  void put(size_t number, const Tensor& like, Saved& saved);
  const Tensor& value(size_t number, const Node& asking);
  /// Returns the call, which is done: its function dies when the lock is gone.
  std::unique_ptr<Call> compute_again(const Node& asking);
  void check_inputs(const Node& asking) const;
  void drop(size_t number);

  std::recursive_mutex mutex_;  // what is dropped may end other nodes of this frame
  std::deque<Value> values_;    // references to its elements stay good
  std::unique_ptr<Call> call_;  // null: it has run again, and all values are there
};

}  // namespace autograd
}  // namespace ramet
