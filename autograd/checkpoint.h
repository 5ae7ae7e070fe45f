// Activations that are computed again in the backward pass, instead of being kept.
//
//   Tensor y = autograd::checkpoint([&](const Tensor& x) { return block->forward(x); }, x);
//
// The function's nodes keep nothing of what they save but parameters. The first of them that runs
// in a backward pass has the function run again, from the same inputs. That gives the tensors that
// all of them need, and they are freed one by one as the pass goes on. So a net of n such blocks
// needs the activations of one block and the inputs of n, for one forward pass more. (Chen, Xu,
// Zhang, Guestrin: Training Deep Nets with Sublinear Memory Cost, 2016.) The gradients have the
// same bits as without. It is torch.utils.checkpoint with use_reentrant=False: grad(), create_graph
// and hooks see one ordinary graph, as do replicas and data-parallel reductions.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/tensor.h"

namespace ramet {
namespace autograd {
namespace detail {

/// From construction to destruction the calling thread runs a checkpoint's function for the first
/// time. Nothing where nothing is recorded, or inside another checkpoint's function.
class RAMET_API CheckpointRegion {
 public:
  /// `again` runs the function once more, which reads `inputs`.
  CheckpointRegion(std::function<void()> again, const tensor_list& inputs);
  ~CheckpointRegion();
  CheckpointRegion(const CheckpointRegion&) = delete;
  CheckpointRegion& operator=(const CheckpointRegion&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The tensors of an argument: of a tensor, of a list, of an optional, of a tuple of these.
template <class T> struct CheckpointedTensors {
  static void add(tensor_list& to, const T& given) {
    if constexpr (std::is_convertible_v<const T&, Tensor>) to.push_back(given);
    else if constexpr (std::is_convertible_v<const T&, TensorList>)
      for (const Tensor& t : TensorList(given)) to.push_back(t);
  }
};
template <class T> struct CheckpointedTensors<std::optional<T>> {
  static void add(tensor_list& to, const std::optional<T>& given) {
    if (given) CheckpointedTensors<T>::add(to, *given);
  }
};
template <class... T> struct CheckpointedTensors<std::tuple<T...>> {
  static void add(tensor_list& to, const std::tuple<T...>& given) {
    std::apply([&](const T&... each) { (CheckpointedTensors<T>::add(to, each), ...); }, given);
  }
};

}  // namespace detail

/// Calls fn(inputs...) and returns what it returns. What its operations save for the backward pass
/// is computed again there. `fn` and `inputs` are copied, and freed when that has happened.
///
/// Run again, `fn` must do the same: it saves tensors of the same number, shapes, dtypes and
/// devices, or the backward pass is an Error. Grad mode, autocast and the other state of the thread
/// are then those of the forward pass. Random numbers are those that it drew, also in replicas and
/// captures. A tensor among `inputs` must not have been written since, or the backward pass is an
/// Error. A tensor that `fn` refers to otherwise is not checked. Batch and instance norms do not
/// update their statistics a second time. What `fn` itself writes (a counter, a buffer) it writes
/// twice, unless it asks is_recomputing(). Observers of the graph do not see the second time.
///
/// Checkpoints may be nested. Other threads that `fn` makes work, such as those of replicas inside
/// it, save their tensors as ever. With retain_graph what was computed again stays until the graph
/// goes. Thread safety: as any operation's.
template <class F, class... Inputs> auto checkpoint(F fn, const Inputs&... inputs) {
  struct Call {
    F fn;
    std::tuple<Inputs...> inputs;
    decltype(auto) run() { return std::apply(fn, std::as_const(inputs)); }
  };
  const auto call = std::make_shared<Call>(Call{std::move(fn), std::tuple<Inputs...>(inputs...)});
  tensor_list tensors;
  detail::CheckpointedTensors<std::tuple<Inputs...>>::add(tensors, call->inputs);
  const detail::CheckpointRegion region([call] { static_cast<void>(call->run()); }, tensors);
  return call->run();
}

}  // namespace autograd
}  // namespace ramet
