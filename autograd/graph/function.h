// Operations of your own: struct F : Function<F> with a static forward and a static backward.
//
//   struct Cube : autograd::Function<Cube> {
//     static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
//       ctx->save_for_backward({x});
//       return x * x * x;
//     }
//     static autograd::tensor_list backward(autograd::AutogradContext* ctx, autograd::tensor_list
//         grads) {
//       Tensor x = ctx->get_saved_variables()[0];
//       return {grads[0] * 3 * x * x};          // differentiable itself: double backward works
//     }
//   };
//   Tensor y = Cube::apply(x);
//
// forward runs without recording. backward returns one gradient for each argument of forward; it is
// undefined for a non-tensor or for "none". For an argument that is a tensor_list, a TensorList or
// convertible to one, backward returns one gradient for each tensor. An argument that could hide
// tensors (a pair, a pointer, a map, a struct of them) does not compile. The library assumes that a
// class with constructors holds no tensors: pass its tensors as separate arguments. A gradient
// of a shape that only broadcasts to the input's is summed, and one of another dtype is cast.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "autograd/graph/forward_context.h"
#include "autograd/graph/node.h"
#include "autograd/ivalue.h"
#include "runtime/base/demangle.h"

namespace ramet {
namespace detail {
struct CustomForward;
}
namespace autograd {

using ramet::tensor_list;
using IndexRange = std::pair<size_t, size_t>;  // from the first to before the second
struct FunctionNode;

/// Carries data from a Function's forward to its backward. Only the thread that runs either uses
/// it.
class RAMET_API AutogradContext {
 public:
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;
  AutogradContext& operator=(const AutogradContext&) = delete;

  /// Values that forward leaves for backward, except tensors that have a history.
  std::unordered_map<std::string, IValue> saved_data;

  /// Saves inputs or outputs of forward; the last call counts.
  void save_for_backward(tensor_list tensors) { to_save_ = std::move(tensors); }
  /// In backward: the saved tensors, checked for later in-place changes.
  tensor_list get_saved_variables() const;
  /// Inputs that forward changed in place and returns; the last call counts. It is an Error where
  /// forward does not return one, or where it may not be written in place at the call of apply().
  /// Their versions are raised when forward ends, so an input written through data_ptr counts as
  /// changed, too.
  void mark_dirty(tensor_list inputs) { dirty_ = std::move(inputs); }
  /// Outputs that carry no gradient.
  void mark_non_differentiable(const tensor_list& outputs);
  /// True (the default): a gradient that no node delivered arrives in backward as zeros. False: it
  /// arrives undefined.
  void set_materialize_grads(bool value) { materialize_ = value; }
  /// In forward: names the parameters that backward() may reach by a backward of its own, as one
  /// does that computes activations again. They may be those of replicas and of sharded modules.
  /// {}: it runs no backward. Without a call, backward() may reach any parameter, and reductions
  /// over processes wait until it has run. They wait in any case where forward met other processes.
  void mark_differentiated(tensor_list tensors) { differentiated_ = std::move(tensors); }
  /// Does the i-th tensor argument want a gradient?
  bool needs_input_grad(size_t i) const { return i < needs_.size() && needs_[i]; }
  /// Does any tensor argument in one of these ranges [first, second) want a gradient?
  bool needs_input_grad(std::initializer_list<IndexRange> ranges) const {
    for (const IndexRange& range : ranges)
      for (size_t i = range.first; i < range.second; ++i)
        if (needs_input_grad(i)) return true;
    return false;
  }

 private:
  friend struct FunctionNode;
  friend struct ramet::detail::CustomForward;
  struct Kept {
    Saved saved;
    int output = -1;  // the index of the output that it is, or -1
  };
  tensor_list to_save_;
  std::vector<Kept> kept_;
  std::vector<bool> needs_;
  tensor_list dirty_;
  std::vector<const TensorImpl*> non_differentiable_;
  std::optional<tensor_list> differentiated_;
  bool materialize_ = true;
  bool autocast_ = false;  // of custom_fwd (autograd/autocast.h)
  ScalarType autocast_dtype_ = ScalarType::Undefined;
  FunctionNode* node_ = nullptr;  // the node this context is part of
};

/// For functions that exchange data with other processes. Functions that run their forward on this
/// thread then do so in their backward, too. So the Functions of one backward run in its order
/// (Node::kInTurn). The library calls it in every collective operation. A Function that meets other
/// processes in its backward alone calls it in forward.
RAMET_API void note_meeting() noexcept;
/// Is what this thread computes recorded? In a Function's forward, which records nothing: is the
/// Function recorded?
RAMET_API bool is_recorded() noexcept;

/// The node of a user's Function.
struct RAMET_API FunctionNode final : Node {
  /// The type of a user's backward, which takes its context.
  using Backward = tensor_list (*)(AutogradContext*, tensor_list);
  /// The context that forward and backward receive.
  AutogradContext ctx;

  FunctionNode(std::string function_name, size_t inputs, Backward f);
  ~FunctionNode() override;
  std::string name() const override { return name_; }
  RawEdge* edges() override { return edges_.data(); }
  void release_saved() override;
  void apply(Tensor* in, Tensor* out) override;
  /// May backward() reach this leaf by a backward of its own?
  bool may_differentiate(const Node* leaf) const;
  /// Did a replica's forward make it?
  bool of_replica() const { return of_replica_; }

  /// Called before forward: makes edges from the tensor arguments. `argument`: their indices among
  /// all arguments.
  void connect(const tensor_list& inputs, const std::vector<int>& argument, int arguments);
  /// Called after forward: attaches this node to the outputs and wraps what was saved. Returns the
  /// outputs for the user.
  tensor_list finish(tensor_list outputs, const tensor_list& inputs, bool record);

 private:
  friend class AutogradContext;
  friend void note_meeting() noexcept;
  friend bool is_recorded() noexcept;
  struct Shape {
    std::vector<int64_t> sizes;
    ScalarType dtype = kFloat;
    Device device{kCPU, 0};
    bool defined = false;
  };
  static Shape shape_of(const Tensor& t);
  void mark_written(const tensor_list& dirty, const tensor_list& outputs, bool record);
  void save_inputs(const tensor_list& outputs);
  bool add_history(Tensor& y, size_t i, const tensor_list& dirty, const tensor_list& inputs);
  Tensor fitted(Tensor g, size_t i) const;

  std::string name_;
  Backward backward_;
  const bool of_replica_ = ramet::detail::tls.replica >= 0;
  FunctionNode* around_ = nullptr;  // the Function that applies this one in its forward
  const bool recorded_ = is_recorded();
  std::vector<std::shared_ptr<ForwardContext>> contexts_;
  ReplicaRandomRef random_;  // the replica's random state at the start, where forward draws numbers
  std::vector<RawEdge> edges_;
  std::vector<int> argument_;
  int arguments_ = 0;
  std::vector<Shape> inputs_, outputs_;
};

namespace detail {

/// How apply() takes a T, without references and const: as one tensor argument or as several.
template <class T>
inline constexpr bool is_tensor_argument = std::is_same_v<T, Tensor> ||
                                           std::is_same_v<T, std::optional<Tensor>> ||
                                           (std::is_convertible_v<const T&, TensorList> &&
                                            !std::is_convertible_v<const T&, Tensor>);
template <class T, class = void> struct HidesTensors : std::false_type {};
template <class T>
inline constexpr bool shows_tensors =
    is_tensor_argument<T> || std::is_convertible_v<const T&, Tensor> || HidesTensors<T>::value;
/// Are there tensors in a T that apply() would miss? The check sees into pointers, pairs, tuples,
/// variants, containers and aggregates of up to 8 members, also nested. It sees into no other class
/// of the user's.
template <class T> inline constexpr bool hides_tensors = !is_tensor_argument<T> && shows_tensors<T>;

template <class P>
inline constexpr bool points_to_tensors =
    std::is_convertible_v<P, const TensorBase*> || std::is_convertible_v<P, const TensorList*> ||
    std::is_convertible_v<P, const tensor_list*> ||
    std::is_convertible_v<P, const std::optional<Tensor>*>;
template <class T> struct HidesTensors<T*> : std::bool_constant<points_to_tensors<T*>> {};
template <class T, size_t N>
struct HidesTensors<T[N]> : std::bool_constant<shows_tensors<std::remove_const_t<T>>> {};
template <class... T>
struct HidesTensors<std::variant<T...>> : std::bool_constant<(shows_tensors<T> || ...)> {};
template <class... T>
struct HidesTensors<std::tuple<T...>>
    : std::bool_constant<(shows_tensors<std::decay_t<T>> || ...)> {};
template <class A, class B>
struct HidesTensors<std::pair<A, B>>
    : std::bool_constant<shows_tensors<std::decay_t<A>> || shows_tensors<std::decay_t<B>>> {};
template <class T> struct HidesTensors<std::optional<T>> : std::bool_constant<shows_tensors<T>> {};
template <class T>
struct HidesTensors<std::reference_wrapper<T>>
    : std::bool_constant<shows_tensors<std::remove_const_t<T>>> {};
template <> struct HidesTensors<IValue> : std::true_type {};
template <> struct HidesTensors<indexing::TensorIndex> : std::true_type {};
template <class T>
struct HidesTensors<T, std::enable_if_t<std::is_class_v<T> && std::is_base_of_v<TensorBase, T>>>
    : std::true_type {};
template <class T>  // unique_ptr, shared_ptr
struct HidesTensors<T, std::void_t<typename T::element_type, decltype(std::declval<T>().get())>>
    : std::bool_constant<points_to_tensors<decltype(std::declval<T>().get())>> {};
template <class T>  // containers
struct HidesTensors<T, std::enable_if_t<!std::is_aggregate_v<T>,
                                        std::void_t<typename T::value_type,
                                                    decltype(std::declval<const T&>().begin())>>>
    : std::bool_constant<!std::is_same_v<T, typename T::value_type> &&
                         shows_tensors<std::decay_t<typename T::value_type>>> {};

struct AnyMember {
  template <class T> operator T() const;
};
struct TensorMember {
  TensorMember() = default;
  TensorMember(const TensorMember&) = delete;  // no std::any takes it
  template <class T, class = std::enable_if_t<shows_tensors<T>>> operator T() const;
};
template <class T, size_t... Before>
auto has_tensor_after(std::index_sequence<Before...>)
    -> decltype(T{(static_cast<void>(Before), AnyMember{})..., TensorMember{}}, std::true_type{});
template <class T> std::false_type has_tensor_after(...);
template <class T, size_t N>
inline constexpr bool is_tensor_member =
    decltype(has_tensor_after<T>(std::make_index_sequence<N>{}))::value;
template <class T>  // aggregates, std::array among them
struct HidesTensors<T, std::enable_if_t<std::is_class_v<T> && std::is_aggregate_v<T> &&
                                        !std::is_base_of_v<TensorBase, T>>>
    : std::bool_constant<is_tensor_member<T, 0> || is_tensor_member<T, 1> ||
                         is_tensor_member<T, 2> || is_tensor_member<T, 3> ||
                         is_tensor_member<T, 4> || is_tensor_member<T, 5> ||
                         is_tensor_member<T, 6> || is_tensor_member<T, 7>> {};

struct ArgumentList {
  tensor_list tensors;
  std::vector<int> argument;
  int arguments = 0;
  template <class T> void add(const T& given) {
    static_assert(!hides_tensors<T>,
                  "Function::apply cannot see the tensors in this argument: they would have no "
                  "gradient. Pass a Tensor, std::optional<Tensor>, a tensor_list, a TensorList or "
                  "what converts to one");
    if constexpr (std::is_same_v<T, Tensor>) {
      tensors.push_back(given);
      argument.push_back(arguments++);
    } else if constexpr (std::is_same_v<T, std::optional<Tensor>>) {
      add(given ? *given : Tensor());
    } else if constexpr (is_tensor_argument<T>) {
      for (const Tensor& t : TensorList(given)) add(t);
    } else {
      ++arguments;
    }
  }
};

// The user's backward takes its gradients by value or by a reference of any kind.
template <class X, class = void> struct TakesTemporaries : std::false_type {};
template <class X>
struct TakesTemporaries<X, std::void_t<decltype(X::backward(nullptr, std::declval<tensor_list>()))>>
    : std::true_type {};
template <class X> tensor_list call_backward(AutogradContext* ctx, tensor_list gradients) {
  if constexpr (TakesTemporaries<X>::value) return X::backward(ctx, std::move(gradients));
  else return X::backward(ctx, gradients);
}

inline tensor_list to_list(Tensor t) { return {std::move(t)}; }
inline tensor_list to_list(tensor_list l) { return l; }
inline void from_list(tensor_list l, Tensor& t) { t = std::move(l[0]); }
inline void from_list(tensor_list l, tensor_list& t) { t = std::move(l); }

}  // namespace detail

/// The base class of a user's differentiable operation, `struct Cube : Function<Cube>`. The derived
/// class has the static functions forward(ctx, args...) and backward(ctx, gradients).
template <class T> struct Function {
  /// Calls T::forward(ctx, args...) and records T::backward. Returns what forward returns: a Tensor
  /// or a tensor_list.
  template <class X = T, class... Args>
  static auto apply(Args&&... args)
      -> std::decay_t<decltype(X::forward(nullptr, std::forward<Args>(args)...))> {
    detail::ArgumentList list;
    (list.add(args), ...);
    bool record = false;
    for (const Tensor& t : list.tensors) record = record || recording(t);
    NodePtr node;
    auto* made = new_node<FunctionNode>(ramet::detail::demangled(typeid(X).name()),
                                        list.tensors.size(), &detail::call_backward<X>);
    node = NodePtr(made);
    release(made);  // `node` keeps it
    made->connect(list.tensors, list.argument, list.arguments);
    std::decay_t<decltype(X::forward(nullptr, std::forward<Args>(args)...))> result;
    {
      ScopedValue<bool> off(ramet::detail::tls.grad_mode, false);
      result = X::forward(&made->ctx, std::forward<Args>(args)...);
    }
    detail::from_list(made->finish(detail::to_list(std::move(result)), list.tensors, record),
                      result);
    return result;
  }
};

/// A copy that passes no gradient back. In LibTorch it says "not differentiable"; here it does so
/// as an operation: UndefinedGrad()({x})[0].
struct RAMET_API UndefinedGrad {
  /// A copy of each input.
  tensor_list apply(tensor_list inputs) const;
  tensor_list operator()(tensor_list inputs) const { return apply(std::move(inputs)); }
};
/// The node that UndefinedGrad records: it returns an undefined gradient for each one that it
/// receives.
struct RAMET_API UndefinedGradBackward {
  /// As many undefined tensors as `gradients` has.
  tensor_list apply(tensor_list gradients) const { return tensor_list(gradients.size()); }
  tensor_list operator()(tensor_list gradients) const { return apply(std::move(gradients)); }
};
/// The identity (the same memory). Its backward throws an Error with the text `message`.
struct RAMET_API DelayedError {
  DelayedError(std::string message, int64_t num_inputs);
  /// The inputs; there must be `num_inputs` of them.
  tensor_list apply(tensor_list inputs) const;
  tensor_list operator()(tensor_list inputs) const { return apply(std::move(inputs)); }
  std::string msg;  // what the Error says
};

}  // namespace autograd
}  // namespace ramet
