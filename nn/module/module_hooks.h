// nn::call(): forward with the module's hooks around it.
#pragma once
#include <optional>
#include <tuple>

#include "nn/module/module.h"

namespace ramet {
namespace nn {

class ComputedParameter;

/// All hooks of a module, as a running call sees them; each with its handle.
struct ModuleHooks {
  std::vector<std::pair<unsigned, ForwardPreHook>> pre;   // before forward, in order.
  std::vector<std::pair<unsigned, ForwardHook>> post;     // after forward, in order.
  std::vector<std::pair<unsigned, ForwardScope>> scopes;  // around the call.
  unsigned next_id = 0;                                   // the next handle
  /// Runs around a call too, inside the scopes. These hooks only queue operations, so a capture may
  /// contain them.
  std::vector<std::shared_ptr<const ComputedParameter>> computed;

  /// Is there none?
  bool empty() const noexcept {
    return pre.empty() && post.empty() && scopes.empty() && computed.empty();
  }
  /// Enters the scopes; they end with what it returns.
  RAMET_API std::vector<std::shared_ptr<void>> enter(Module& module) const;
  /// Runs the hooks before forward, and those after it:
  RAMET_API void run_pre(Module& module, std::vector<Tensor>& inputs) const;
  RAMET_API void run_post(Module& module, const std::vector<Tensor>& inputs,
                          std::vector<Tensor>& outputs) const;
};

namespace detail {

template <class T> using is_tensor = std::is_same<std::decay_t<T>, Tensor>;

// Tensors, and those in tuples, which may be optional: an LSTM's states.
template <class T> struct HoldsTensors : is_tensor<T> {};
template <class... T>
struct HoldsTensors<std::tuple<T...>> : std::disjunction<HoldsTensors<T>...> {};
template <class T> struct HoldsTensors<std::optional<T>> : HoldsTensors<T> {};
template <class T> struct IsOptional : std::false_type {};
template <class T> struct IsOptional<std::optional<T>> : std::true_type {};

// Arguments that hold tensors are copied, so that a hook can replace the tensors. All others are
// passed on as they came.
template <class A>
using HookedArg = std::conditional_t<HoldsTensors<std::decay_t<A>>::value, std::decay_t<A>, A&&>;

// f(tensor) for each of them, in order.
template <class A, class F> void each_tensor(A& held, const F& f) {
  if constexpr (is_tensor<A>::value) {
    f(held);
  } else if constexpr (HoldsTensors<std::decay_t<A>>::value) {
    if constexpr (IsOptional<std::decay_t<A>>::value) {
      if (held) each_tensor(*held, f);
    } else {
      std::apply([&f](auto&... item) { (each_tensor(item, f), ...); }, held);
    }
  }
  (void)held, (void)f;
}
template <class A> void gather_tensors(std::vector<Tensor>& out, const A& held) {
  each_tensor(held, [&out](const Tensor& t) { out.push_back(t); });
}
// The reverse, from the `next`-th on.
template <class A> void put_tensors(const std::vector<Tensor>& from, size_t& next, A& held) {
  if constexpr (HoldsTensors<std::decay_t<A>>::value)
    each_tensor(held, [&from, &next](Tensor& t) { t = from[next++]; });
  (void)from, (void)next, (void)held;
}

template <class R> struct Outputs {  // a result without tensors
  static void gather(std::vector<Tensor>&, const R&) {}
  static void put(const std::vector<Tensor>&, R&) {}
};
template <> struct Outputs<Tensor> {
  static void gather(std::vector<Tensor>& out, const Tensor& result) { out.push_back(result); }
  static void put(const std::vector<Tensor>& from, Tensor& result) { result = from[0]; }
};
template <> struct Outputs<std::vector<Tensor>> {
  static void gather(std::vector<Tensor>& out, const std::vector<Tensor>& result) { out = result; }
  static void put(const std::vector<Tensor>& from, std::vector<Tensor>& result) { result = from; }
};
template <class... T> struct Outputs<std::tuple<T...>> {
  static void gather(std::vector<Tensor>& out, const std::tuple<T...>& result) {
    gather_tensors(out, result);
  }
  static void put(const std::vector<Tensor>& from, std::tuple<T...>& result) {
    size_t next = 0;
    put_tensors(from, next, result);
  }
};

template <class M, class... A>
auto call_with_hooks(M& module, A&&... args) -> decltype(module.forward(std::forward<A>(args)...)) {
  using Result = decltype(module.forward(std::forward<A>(args)...));
  const std::shared_ptr<const ModuleHooks> hooks = static_cast<Module&>(module).forward_hooks();
  const std::vector<std::shared_ptr<void>> scopes = hooks->enter(module);
  std::tuple<HookedArg<A>...> held(std::forward<A>(args)...);
  std::vector<Tensor> inputs;
  std::apply([&](const auto&... arg) { (gather_tensors(inputs, arg), ...); }, held);
  hooks->run_pre(module, inputs);
  size_t next = 0;
  std::apply([&](auto&... arg) { (put_tensors(inputs, next, arg), ...); }, held);
  (void)next;
  auto forward = [&module](auto&... arg) -> Result {
    return module.forward(std::forward<A>(arg)...);
  };
  std::vector<Tensor> outputs;
  if constexpr (std::is_void<Result>::value) {
    std::apply(forward, held);
    hooks->run_post(module, inputs, outputs);
  } else if constexpr (std::is_reference<Result>::value) {
    Result result = std::apply(forward, held);
    Outputs<std::decay_t<Result>>::gather(outputs, result);
    hooks->run_post(module, inputs, outputs);
    return static_cast<Result>(result);
  } else {
    Result result = std::apply(forward, held);
    Outputs<std::decay_t<Result>>::gather(outputs, result);
    hooks->run_post(module, inputs, outputs);
    Outputs<std::decay_t<Result>>::put(outputs, result);
    return result;
  }
}

}  // namespace detail

/// module.forward(args...) with the module's pre-hooks before and its hooks after: how the library
/// itself calls a module.
template <class M, class... A>
auto call(M& module, A&&... args) -> decltype(module.forward(std::forward<A>(args)...)) {
  if (RAMET_LIKELY(!static_cast<Module&>(module).forward_hooks()))
    return module.forward(std::forward<A>(args)...);
  return detail::call_with_hooks(module, std::forward<A>(args)...);
}

}  // namespace nn
}  // namespace ramet
