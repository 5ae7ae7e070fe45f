// A graph of ONNX operators while it is being made.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.h"
#include "nn/formats/proto_internal.h"

namespace ramet {
namespace formats {

/// Attributes of an operator.
class OnnxAttributes {
 public:
  OnnxAttributes& integer(const char* name, int64_t value);
  OnnxAttributes& integers(const char* name, IntArrayRef values);
  OnnxAttributes& real(const char* name, double value);
  OnnxAttributes& text(const char* name, const std::string& value);
  OnnxAttributes& texts(const char* name, const std::vector<std::string>& values);

 private:
  friend class OnnxGraph;
  std::vector<ProtoMessage> list_;
};

/// ONNX's number of a dtype.
int64_t onnx_type(ScalarType dtype);

/// "features.0.weight"; of the whole model ("") "weight".
inline std::string onnx_name(const std::string& path, const std::string& what) {
  return path.empty() ? what : path + "." + what;
}

class OnnxGraph {
 public:
  /// Adds an operator; its outputs' names. `name` says where it comes from ("features.0"); it and
  /// its outputs are called so, with a number behind where that is taken. "": an input left out.
  std::vector<std::string> nodes(const std::string& name, const char* op,
                                 const std::vector<std::string>& inputs, size_t outputs,
                                 const OnnxAttributes& attributes = {});
  std::string node(const std::string& name, const char* op, const std::vector<std::string>& inputs,
                   const OnnxAttributes& attributes = {}) {
    return nodes(name, op, inputs, 1, attributes)[0];
  }
  /// A tensor of the file. The same memory given again is the same tensor.
  std::string tensor(const std::string& name, const Tensor& value);
  /// Numbers that an operator takes as an input.
  std::string integers(const std::string& name, IntArrayRef values);
  /// A number of the dtype `like`.
  std::string number(const std::string& name, double value, ScalarType like);
  /// A name that nothing else of the graph has.
  std::string unused(const std::string& name);

  void input(const std::string& name, ScalarType dtype, const ProtoMessage& shape);
  /// `value` under another name, as an output.
  void output(const std::string& name, const std::string& value, ScalarType dtype,
              const ProtoMessage& shape);
  /// The model. An Error where it is larger than the 2 GiB that the format allows.
  std::string bytes() const;
  /// Operators with their attributes and tensors; nothing that depends on values of inputs or on
  /// their extents but what the operators say themselves.
  std::string operators() const;

 private:
  std::map<std::string, int> names_;
  std::vector<ProtoMessage> nodes_, tensors_, inputs_, outputs_;
  struct Given {
    Tensor tensor;
    uint32_t version;
    std::string name;
  };
  std::vector<Given> given_;  // kept, so that no memory is given twice
};

}  // namespace formats
}  // namespace ramet
