// What happens to tensors between layers, told from where they came from: their memory, or the
// graph of gradients behind them.
//
// A node of that graph says which operation it was ("AddBackward0") and what led to it, not along
// which dimension, say. So a guess is made for each way that it may have been, and computed; those
// that give the bits of what the node made (onnx_seen_internal.h) remain. Two that remain of the
// last one are refused.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/graph/node.h"
#include "nn/formats/onnx/graph_internal.h"
#include "nn/formats/onnx/layers_internal.h"
#include "nn/formats/onnx/seen_internal.h"

namespace ramet {
namespace formats {

/// Same dtype, sizes and bytes in row-major order?
bool same_bits(const Tensor& a, const Tensor& b);

class OnnxTensors {
 public:
  OnnxTensors(OnnxGraph& graph, const OnnxSeen& seen) : graph_(graph), seen_(seen) {}

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
    Tensor value = {};  // a copy, of what has a node: it may be written in place
    bool current() const { return tensor.version() == version; }
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

  static constexpr size_t kMost = 512;  // guesses

  const Known* current(const TensorImpl* t) const;
  bool view_of(const Known& from, const Tensor& t, std::string& name);
  /// The name of what is known, a view of such or has no history; "": of another.
  std::string plain_name(const Tensor& t);
  /// What the gradient `slot` of `node` belongs to.
  const Terms& terms(autograd::Node& node, uint32_t slot, const Hint& hint, int depth);
  Terms guesses(autograd::Node& node, uint32_t slot, const Hint& hint, int depth);
  Terms node_guesses(autograd::Node& node, const OnnxSeen::Made* made, const Hint& hint, int depth);
  Terms layer_guesses(autograd::Node& node, const Parameter& p, int depth);
  void guess_one(const std::string& node, const Terms& x, const Hint& hint, Terms& made);
  void guess_number(const std::string& node, const Term& x, OnnxSeen::Numbers n, Terms& made);
  void guess_reduction(const std::string& node, const Term& x, const Tensor& result, Terms& made);
  void guess_adaptive(const Term& x, const Tensor& result, Terms& made);
  void guess_view(const std::string& node, const Term& x, const Tensor& from, const Tensor& result,
                  Terms& made);
  void guess_product(const std::string& node, const std::vector<const Terms*>& of, Terms& made);
  void guess_two(const std::string& node, const Terms& x, const Terms& y, Terms& made);
  void guess_cat(const std::vector<const Terms*>& parts, bool stacked, Terms& made);
  /// Adds a guess, unless there are too many or `compute` refuses: then it was not that.
  void put(Terms& made, const std::function<Tensor()>& compute,
           const std::function<std::string()>& add);
  void put_node(Terms& made, const Term& x, const char* op, const OnnxAttributes& attributes,
                const std::function<Tensor(const Tensor&)>& f);
  const Parameter* parameter_of(const autograd::Node& node) const;
  [[noreturn]] void refuse(const Tensor& t, const std::string& where, const std::string& whose);

  OnnxGraph& graph_;
  const OnnxSeen& seen_;
  std::string prefix_, whose_;                            // what name_of() was given
  std::vector<Known> known_;                              // in the order of the forward
  std::unordered_map<const TensorImpl*, size_t> places_;  // in it, of the last of each
  std::map<Key, size_t> by_node_;                         // in it
  std::vector<Parameter> parameters_;
  std::map<Key, Terms> looked_at_;  // for one tensor: graphs join again
  std::vector<Constant> constants_;
  std::string blocked_;  // the operation that could not be told
};

}  // namespace formats
}  // namespace ramet
