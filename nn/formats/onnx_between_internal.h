// What happens to tensors between layers, told from where they came from: their memory, or the
// graph of gradients behind them.
//
// A node of that graph says which operation it was ("AddBackward0") and what led to it, not with
// which numbers (along which dimension, say), and the tensors in the middle are gone. So a guess is
// made for each way that it may have been, and computed; the one that gives the last tensor's bits
// is it. Two that do are refused.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/graph/node.h"
#include "nn/formats/onnx_graph_internal.h"
#include "nn/formats/onnx_layers_internal.h"

namespace ramet {
namespace formats {

class OnnxTensors {
 public:
  explicit OnnxTensors(OnnxGraph& graph) : graph_(graph) {}

  /// `t`, as it is now, has this name in the graph.
  void know(const Tensor& t, const std::string& name);
  /// A parameter of the module `owner`; `layer`: null where that is none.
  struct Parameter {
    Tensor tensor;
    std::string name, path;  // path of the owner
    nn::Module* owner;
    const OnnxLayer* layer;
  };
  void parameter(Parameter p) { parameters_.push_back(std::move(p)); }
  /// Tensors without a history that are no parameters: constants, if the forward did not make them.
  struct Constant {
    Tensor tensor;
    std::string where, whose;
  };
  const std::vector<Constant>& constants() const { return constants_; }
  /// Adds operators where `t` is not known. `where`: in which module's forward; `whose`: the layer
  /// that gets it, "" for an output. An Error that says so where it cannot be told.
  std::string name_of(const Tensor& t, const std::string& where, const std::string& whose);

 private:
  struct Known {
    Tensor tensor;
    uint32_t version;
    std::string name;
  };
  /// A guess: what the values would be, and how its operators are added, once.
  struct Term {
    Tensor value;
    std::function<std::string()> add;
  };
  using Terms = std::vector<Term>;
  using Key = std::pair<const AutogradSlot*, uint32_t>;
  /// What is known of a tensor before its node is looked at: its sizes, or their last one.
  struct Hint {
    const Tensor* tensor = nullptr;
    int64_t last = 0;
  };

  const Known* current(const TensorImpl* t) const;
  bool view_of(const Known& from, const Tensor& t, std::string& name);
  /// What the gradient `slot` of `node` belongs to.
  const Terms& terms(autograd::Node& node, uint32_t slot, const Hint& hint, int depth);
  Terms guesses(autograd::Node& node, uint32_t slot, const Hint& hint, int depth);
  Terms layer_guesses(autograd::Node& node, const Parameter& p, int depth);
  void guess_one(const std::string& node, const Terms& x, const Hint& hint, Terms& made);
  void guess_two(const std::string& node, const Terms& x, const Terms& y, Terms& made);
  void guess_cat(const std::vector<const Terms*>& parts, Terms& made);
  /// Adds a guess, unless there are too many or `compute` refuses: then it was not that.
  void put(Terms& made, const std::function<Tensor()>& compute,
           const std::function<std::string()>& add);
  void put_node(Terms& made, const Term& x, const char* op, const OnnxAttributes& attributes,
                const std::function<Tensor(const Tensor&)>& f);
  const Parameter* parameter_of(const autograd::Node& node) const;
  [[noreturn]] void refuse(const Tensor& t, const std::string& where, const std::string& whose);

  OnnxGraph& graph_;
  std::string prefix_;                                    // of names that are added
  std::vector<Known> known_;                              // in the order of the forward
  std::unordered_map<const TensorImpl*, size_t> places_;  // in it
  std::map<Key, const TensorImpl*> by_node_;
  std::vector<Parameter> parameters_;
  std::map<Key, Terms> looked_at_;  // for one tensor: graphs join again
  std::vector<Constant> constants_;
  std::string blocked_;  // the operation that could not be told
};

}  // namespace formats
}  // namespace ramet
