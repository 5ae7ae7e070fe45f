// Names of tensors in the graph of operators. A tensor that goes from one layer to the next has the
// name that its layer gave it. Another one gets the operators of the operations that made it: its
// history has them.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/graph/node.h"
#include "nn/formats/onnx/graph_internal.h"
#include "nn/formats/onnx/history_internal.h"
#include "nn/formats/onnx/operations_internal.h"

namespace ramet {
namespace formats {

class OnnxTensors {
 public:
  OnnxTensors(OnnxGraph& graph, const OnnxHistory& history) : graph_(graph), history_(history) {}

  OnnxBatch batch;

  /// `t`, as it is now, has this name in the graph.
  void know(const Tensor& t, const std::string& name);
  void add_parameter(const Tensor& t, const std::string& name) {
    if (t.defined()) parameters_.push_back({t, name});
  }
  /// Tensors without a history that are no parameters: constants, if the forward did not make them.
  struct Constant {
    Tensor tensor;
    uint32_t version;
    std::string where, layer;
  };
  const std::vector<Constant>& constants() const { return constants_; }
  /// Adds operators where `t` is not known. `where`: in which module's forward; `layer`: the layer
  /// that gets it, "" for an output. An Error that says so where an operation has no operator.
  std::string name_of(const Tensor& t, const std::string& where, const std::string& layer);

 private:
  struct Known {
    Tensor tensor, shape;  // shape: as OnnxHistory::At
    uint32_t version;
    std::string name;
    const AutogradSlot* node;
    /// Is what `shape` shows the same as then?
    bool same_values() const {
      return shape.version() == version && tensor.storage_impl() == shape.storage_impl();
    }
    /// And has the tensor still that shape and history?
    bool current() const;
  };
  struct Parameter {
    Tensor tensor;
    std::string name;
  };
  using Key = std::pair<const AutogradSlot*, uint32_t>;

  const Known* current(const TensorImpl* t) const;
  bool view_of(const Known& from, const Tensor& t, std::string& name);
  /// The name without the history: of a known tensor, a view of one, a parameter or a
  /// constant.
  std::string plain_name(const Tensor& t);
  /// Of what the gradient `slot` of `node` belongs to. Adds the operators of the operations before
  /// it that have none yet, the first ones first; recursion would be as deep as the model.
  std::string name_of_node(autograd::Node& node, uint32_t slot);
  /// Null of another tensor.
  const Parameter* parameter(const Tensor& t) const;
  /// Null where `node` collects the gradient of no parameter.
  const Parameter* parameter_of(const autograd::Node& node) const;
  /// Parameters get names when an operator asks for them.
  bool has_name(const autograd::Node& node, uint32_t slot) const;
  /// The path of the module that has the parameter `t`: its operators are named after it. "" of
  /// another tensor and of the root module.
  std::string owner_of(const Tensor& t) const;
  /// REQUIRES: the inputs have names.
  void add(autograd::Node& node);
  /// "" of a parameter or a constant: the operator asks for that name where it needs it.
  std::string input_name(const OnnxHistory::Operation& operation, autograd::Node& node, size_t i);

  OnnxGraph& graph_;
  const OnnxHistory& history_;
  std::string prefix_, layer_;                            // what name_of() was given
  const Tensor* asked_ = nullptr;                         // the same
  std::vector<Known> known_;                              // in the order of the forward
  std::unordered_map<const TensorImpl*, size_t> places_;  // in it, of the last of each
  struct Name {
    std::string name;
    uint32_t version;  // of the tensor when it had these values
    bool of_input;     // false: of parameters and constants alone
  };
  std::map<Key, Name> by_node_;
  std::vector<Parameter> parameters_;
  std::vector<Constant> constants_;

  [[noreturn]] void refuse(const std::string& what) const;
};

}  // namespace formats
}  // namespace ramet
