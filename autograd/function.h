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
// forward runs without recording. backward returns one gradient per argument of forward (undefined
// for a non-tensor or for "none"); a gradient of a shape that only broadcasts to the input's is
// summed, one of another dtype cast.
#pragma once
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograd/forward_context.h"
#include "autograd/ivalue.h"
#include "autograd/node.h"

namespace ramet {
namespace autograd {

using ramet::tensor_list;
struct FunctionNode;

/// What a Function's forward leaves for its backward. Used from the thread that runs either.
class RAMET_API AutogradContext {
 public:
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;
  AutogradContext& operator=(const AutogradContext&) = delete;

  std::unordered_map<std::string, IValue> saved_data;

  /// Inputs or outputs of forward; the last call counts.
  void save_for_backward(tensor_list tensors) { to_save_ = std::move(tensors); }
  /// In backward: the saved tensors, checked for later in-place changes.
  tensor_list get_saved_variables() const;
  /// Inputs that forward changed in place and returns.
  void mark_dirty(const tensor_list& inputs);
  /// Outputs that carry no gradient.
  void mark_non_differentiable(const tensor_list& outputs);
  /// True (the default): gradients that nobody delivered arrive in backward as zeros; false:
  /// undefined.
  void set_materialize_grads(bool value) { materialize_ = value; }
  /// In forward: the parameters (those of replicas and of sharded modules, too) to which backward()
  /// leads by a backward of its own, as one does that computes activations again; {}: it runs none.
  /// Where nothing is said it may lead to any, and reductions over processes wait until it has run;
  /// so they do, whatever is said, where forward met other processes.
  void mark_differentiated(tensor_list tensors) { differentiated_ = std::move(tensors); }
  /// Does the i-th tensor argument want a gradient?
  bool needs_input_grad(size_t i) const { return i < needs_.size() && needs_[i]; }

 private:
  friend struct FunctionNode;
  struct Kept {
    Tensor tensor;
    uint32_t version = 0;
    int output = -1;  // index of the output it is, or -1
  };
  tensor_list to_save_;
  std::vector<Kept> kept_;
  std::vector<bool> needs_;
  std::unordered_set<const TensorImpl*> dirty_, non_differentiable_;
  std::optional<tensor_list> differentiated_;
  bool materialize_ = true;
  FunctionNode* node_ = nullptr;  // the node this context is part of
};

/// For who meets other processes: Functions whose forward runs on this thread meet them in their
/// backward, too, so those of one backward run in its order (Node::kInTurn). The library calls it
/// in everything collective; a Function that meets them in its backward alone calls it in forward.
RAMET_API void note_meeting() noexcept;
/// Is what this thread computes recorded? In a Function's forward, which records nothing: is the
/// Function?
RAMET_API bool is_recorded() noexcept;

/// The node of a user's Function.
struct RAMET_API FunctionNode final : Node {
  using Backward = tensor_list (*)(AutogradContext*, tensor_list);
  AutogradContext ctx;

  FunctionNode(std::string function_name, size_t inputs, Backward f);
  ~FunctionNode() override;
  std::string name() const override { return name_; }
  Edge* edges() override { return edges_.data(); }
  void release_saved() override;
  void apply(Tensor* in, Tensor* out) override;
  /// May backward() lead to this leaf by a backward of its own?
  bool may_differentiate(const Node* leaf) const;
  /// Was it made by a replica's forward?
  bool of_replica() const { return of_replica_; }

  /// Before forward: edges from the tensor arguments; `argument` is their place among all
  /// arguments.
  void connect(const tensor_list& inputs, const std::vector<int>& argument, int arguments);
  /// After forward: hangs the outputs, wraps what was saved. Returns the outputs to hand to the
  /// user.
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
  Tensor fitted(Tensor g, size_t i) const;

  std::string name_;
  Backward backward_;
  const bool of_replica_ = tls.replica >= 0;
  FunctionNode* around_ = nullptr;  // whose forward this one is called in
  const bool recorded_ = is_recorded();
  std::vector<std::shared_ptr<ForwardContext>> contexts_;
  ReplicaRandomRef random_;  // where forward draws by a replica's numbers: from where on
  std::vector<Edge> edges_;
  std::vector<int> argument_;
  int arguments_ = 0;
  std::vector<Shape> inputs_, outputs_;
};

namespace detail {

RAMET_API std::string demangled(const char* name);

struct ArgumentList {
  tensor_list tensors;
  std::vector<int> argument;
  int arguments = 0;
  void add(const Tensor& t) {
    tensors.push_back(t);
    argument.push_back(arguments++);
  }
  void add(const std::optional<Tensor>& t) { add(t ? *t : Tensor()); }
  void add(const tensor_list& list) {
    for (const Tensor& t : list) add(t);
  }
  template <class T> void add(const T&) { ++arguments; }
};

inline tensor_list to_list(Tensor t) { return {std::move(t)}; }
inline tensor_list to_list(tensor_list l) { return l; }
inline void from_list(tensor_list l, Tensor& t) { t = std::move(l[0]); }
inline void from_list(tensor_list l, tensor_list& t) { t = std::move(l); }

}  // namespace detail

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
    auto* made = new_node<FunctionNode>(detail::demangled(typeid(X).name()), list.tensors.size(),
                                        &X::backward);
    node = NodePtr(made);
    release(made);  // `node` keeps it
    made->connect(list.tensors, list.argument, list.arguments);
    std::decay_t<decltype(X::forward(nullptr, std::forward<Args>(args)...))> result;
    {
      ScopedValue<bool> off(tls.grad_mode, false);
      result = X::forward(&made->ctx, std::forward<Args>(args)...);
    }
    detail::from_list(made->finish(detail::to_list(std::move(result)), list.tensors, record),
                      result);
    return result;
  }
};

}  // namespace autograd
}  // namespace ramet
