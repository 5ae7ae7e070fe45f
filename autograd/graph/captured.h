// Captured: runs a step of a program once, and from then on repeats it as a list of kernel calls.
//
//   Captured step([&](const Tensor& x, const Tensor& y) {
//     optimizer.zero_grad();
//     Tensor loss = cross_entropy_loss(net->forward(x), y);
//     loss.backward();
//     optimizer.step();
//     return loss;
//   });
//   for (auto& batch : loader) total += step(batch.data, batch.target).item<float>();
//
// The first call runs the function, which writes its kernel calls down instead of making them. Then
// the call makes them. A later call with inputs of the same shapes makes them again, without the
// function: no graph, no allocation, no checks of shapes. On a GPU, neighbouring calls form one
// graph of the device.
//
// A replay does what the function would have done:
//
// - Inputs are copied into tensors of the capture, which the function receives: leaves, without the
//   caller's history. The results are tensors of the capture too, without history. They hold their
//   values until the next call, which may take them as inputs. That call undoes what the caller
//   does to a result in place.
// - Random numbers, learning rates, schedulers' and optimizers' step counts and the counters of
//   batch norm go on as in eager steps. After a replay, leaves have the gradients that the
//   function leaves in them, in the same memory: copy a gradient that you need for longer.
// - A capture is used only where everything that it depends on is unchanged:
//   - shapes, strides, dtypes, devices and requires_grad of inputs;
//   - storages, shapes, strides, dtypes and requires_grad of all tensors it uses, also through
//     views;
//   - which gradients are defined;
//   - training mode and hooks of modules;
//   - states that optimizers have;
//   - the state of the thread (grad mode, default dtype, autocast, current devices, number of
//     threads).
//   Otherwise the function is captured again, and both captures are kept for their own cases.
//
// A data-parallel step is one list, too, on CPU devices, GPUs or both. Its CPU kernels run one
// after the other, each on all threads. Those of several GPUs run concurrently, with the same bits.
//
// What cannot be repeated throws `[op] not capturable`, and nothing has changed:
//
// - values that the host reads (item, nonzero, a boolean index, printing, data_ptr, saving);
// - hooks, seeding, a changed training mode, parameters that move;
// - a change of requires_grad or of the shape of a tensor from outside;
// - a backward through a graph made outside;
// - generators that the function makes, optimizer steps of dtypes without a kernel;
// - replicas that merge replica_state, operations of process groups;
// - a capture inside a capture.
//
// To catch the error inside the function does not help.
//
// What the function does outside of this library happens when it is captured, not at a replay.
// Examples are its own counters, a rate that it sets, a tensor variable that it assigns, and its
// own thread-local state. The same holds for a thread that it starts, which must not use its
// tensors. The tensors and modules that the function uses must stay the same ones, and so must the
// settings of modules (a Dropout's p). A replay reads an optimizer's settings each time.
//
// Thread safety: one thread at a time. A capture keeps the tensors, and all memory that the
// function used. It is dropped with the Captured, or after more than max_captures() others were
// used since.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {

/// What a Captured has done so far.
struct CapturedCounters {
  uint64_t captures = 0;       ///< calls that ran the function
  uint64_t replays = 0;        ///< calls that did not
  uint64_t failed_guards = 0;  ///< of the captures: made though inputs fitted an earlier one
};

namespace detail {

/// Captures of one function.
class RAMET_API Captures {
 public:
  /// The function: fills `outputs`.
  using Function = void (*)(void* context, const Tensor* inputs, std::vector<Tensor>& outputs);

  Captures();
  Captures(Captures&&) noexcept;
  Captures& operator=(Captures&&) noexcept;
  ~Captures();
  /// The outputs, valid until the next call.
  const std::vector<Tensor>& call(const Tensor* const* inputs, size_t count, Function function,
                                  void* context);

  CapturedCounters counters;
  const char* last_failed_guard = nullptr;
  size_t max_captures = 16;
  void clear();
  size_t size() const;

 private:
  struct Capture;
  Capture& make(const Tensor* const* inputs, size_t count, Function function, void* context);
  std::vector<std::unique_ptr<Capture>> captures_;  // the last one used first
};

template <class R> struct CapturedResult;  // Tensor, void, tuples, arrays and vectors of Tensor
template <> struct CapturedResult<Tensor> {
  static void put(std::vector<Tensor>& to, Tensor r) { to.push_back(std::move(r)); }
  static Tensor get(const std::vector<Tensor>& from) { return from[0]; }
};
template <> struct CapturedResult<std::vector<Tensor>> {
  static void put(std::vector<Tensor>& to, std::vector<Tensor> r) { to = std::move(r); }
  static const std::vector<Tensor>& get(const std::vector<Tensor>& from) { return from; }
};
template <size_t N> struct CapturedResult<std::array<Tensor, N>> {
  static void put(std::vector<Tensor>& to, const std::array<Tensor, N>& r) {
    to.assign(r.begin(), r.end());
  }
  static std::array<Tensor, N> get(const std::vector<Tensor>& from) {
    std::array<Tensor, N> r;
    for (size_t i = 0; i < N; ++i) r[i] = from[i];
    return r;
  }
};
template <class... T> struct CapturedResult<std::tuple<T...>> {
  static_assert((std::is_same<T, Tensor>::value && ...), "a captured function returns tensors");
  static void put(std::vector<Tensor>& to, const std::tuple<T...>& r) {
    std::apply([&](const auto&... t) { (to.push_back(t), ...); }, r);
  }
  static std::tuple<T...> get(const std::vector<Tensor>& from) {
    return get(from, std::index_sequence_for<T...>());
  }
  template <size_t... I>
  static std::tuple<T...> get(const std::vector<Tensor>& from, std::index_sequence<I...>) {
    return std::tuple<T...>(from[I]...);
  }
};

}  // namespace detail

/// See the head of this file. `F` takes any number of `const Tensor&`. It returns void, a Tensor,
/// or a tuple, array or vector of tensors.
template <class F> class Captured {
 public:
  explicit Captured(F function) : function_(std::move(function)) {}

  /// Captures or replays. All inputs must be defined. Errors: those of the function, where it is
  /// run; an IndexError, also at a replay, where an index is out of range; `[op] not capturable`.
  template <class... T> decltype(auto) operator()(const T&... inputs) {
    static_assert((std::is_base_of<Tensor, T>::value && ...), "a captured function takes tensors");
    using Result = std::decay_t<std::invoke_result_t<F&, const T&...>>;
    const Tensor* given[sizeof...(T) + 1] = {static_cast<const Tensor*>(&inputs)..., nullptr};
    const std::vector<Tensor>& out =
        captures_.call(given, sizeof...(T), &run<Result, sizeof...(T)>, &function_);
    if constexpr (std::is_void<Result>::value) (void)out;
    else return detail::CapturedResult<Result>::get(out);
  }

  /// How often the function was captured and replayed.
  CapturedCounters counters() const { return captures_.counters; }
  /// The reason for the last capture that replaced a replay: "storages", "gradients", "training
  /// mode" and so on. Null where that never happened.
  const char* last_failed_guard() const { return captures_.last_failed_guard; }
  /// Sets how many captures are kept (16 by default). The least recently used one is dropped first.
  void set_max_captures(size_t n) { captures_.max_captures = n; }
  /// How many captures are kept at most.
  size_t max_captures() const { return captures_.max_captures; }
  /// How many captures are kept now.
  size_t size() const { return captures_.size(); }
  /// Drops all captures and their memory.
  void clear() { captures_.clear(); }

 private:
  template <class Result, size_t N>
  static void run(void* context, const Tensor* inputs, std::vector<Tensor>& outputs) {
    run<Result>(context, inputs, outputs, std::make_index_sequence<N>());
  }
  template <class Result, size_t... I>
  static void run(void* context, const Tensor* inputs, std::vector<Tensor>& outputs,
                  std::index_sequence<I...>) {
    F& function = *static_cast<F*>(context);
    (void)inputs, (void)outputs;
    if constexpr (std::is_void<Result>::value) function(inputs[I]...);
    else detail::CapturedResult<Result>::put(outputs, function(inputs[I]...));
  }

  F function_;
  detail::Captures captures_;
};

}  // namespace ramet
