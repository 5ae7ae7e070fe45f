// What ONNX operators an operation between layers becomes. A row an operation, by the name of its
// node.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/graph/arguments.h"
#include "nn/formats/onnx/layers_internal.h"

namespace ramet {
namespace formats {

/// A dimension of a model's input with a free extent (OnnxOptions::batch_dim), which is `extent` in
/// this run.
struct OnnxBatch {
  std::string input;  // its name; "" where no extent is free
  int64_t dim = 0, extent = -1;
  std::string value;  // of the extent in the graph, once it is there

  /// The name of a list of one number, the extent.
  std::string extent_in(OnnxGraph& graph);
};

/// A recorded operation. `call` has its inputs (undefined: not given) and its results. It has the
/// names of the inputs that have a history.
struct OnnxOperation {
  std::string node;  // its name: "AddBackward0"
  OnnxGraph& graph;
  const OnnxCall& call;
  const autograd::Arguments& arguments;
  /// The inputs. Their sizes may have changed since; those of `call` are the sizes of then.
  const std::vector<Tensor>& given;
  /// The name of a tensor that has no history: a parameter, a buffer, a constant.
  std::function<std::string(const Tensor&)> constant;
  OnnxBatch& batch;
  bool of_input;  // false: computed of parameters and constants, which have no batch

  const Tensor& in(size_t i) const { return call.in[i]; }
  const Tensor& out(size_t i = 0) const { return call.out[i]; }
  std::string name(size_t i = 0) const {
    return call.names[i].empty() && in(i).defined() ? constant(given[i]) : call.names[i];
  }
  OnnxOps ops() const { return {graph, call}; }
};

/// A layer of an LSTM or GRU in one direction.
std::vector<std::string> onnx_recurrent_layer(const OnnxOperation& o);

/// Adds the operators; the names of the results, "" of one that was not asked for.
using OnnxOperator = std::vector<std::string> (*)(const OnnxOperation&);
/// Null for an operation that has none.
OnnxOperator onnx_operator(const std::string& node);

}  // namespace formats
}  // namespace ramet
