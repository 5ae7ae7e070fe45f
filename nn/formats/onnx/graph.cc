#include <algorithm>
#include <limits>

#include "autograd/ops/make/factory.h"
#include "nn/formats/onnx/graph_internal.h"

namespace ramet::formats {
namespace {

// Numbers of fields, from onnx.proto.
namespace attribute {
constexpr uint32_t kName = 1, kReal = 2, kInteger = 3, kText = 4, kIntegers = 8, kTexts = 9,
                   kType = 20;
constexpr int64_t kIsReal = 1, kIsInteger = 2, kIsText = 3, kAreIntegers = 7, kAreTexts = 8;
}  // namespace attribute
namespace operators_ {
constexpr uint32_t kInput = 1, kOutput = 2, kName = 3, kOp = 4, kAttribute = 5;
}
namespace tensors {
constexpr uint32_t kDims = 1, kType = 2, kName = 8, kRaw = 9;
}
namespace graphs {
constexpr uint32_t kNode = 1, kName = 2, kTensor = 5, kInput = 11, kOutput = 12;
}
namespace models {
constexpr uint32_t kIrVersion = 1, kProducer = 2, kGraph = 7, kOperatorSet = 8;
}
constexpr int64_t kIr = 8, kOperatorSetVersion = 17;

ProtoMessage value_info(const std::string& name, ScalarType dtype, const ProtoMessage& shape) {
  ProtoMessage tensor, type, info;
  tensor.integer(1, onnx_type(dtype)).message(2, shape);
  return info.text(1, name).message(2, type.message(1, tensor));
}

}  // namespace

int64_t onnx_type(ScalarType dtype) {
  static constexpr int64_t kTypes[kScalarTypes] = {9, 2, 3, 5, 6, 7, 4, 12, 10, 16, 1, 11};
  return kTypes[static_cast<int>(dtype)];
}

OnnxAttributes& OnnxAttributes::integer(const char* name, int64_t value) {
  ProtoMessage m;
  m.text(attribute::kName, name).integer(attribute::kInteger, value);
  list_.push_back(m.integer(attribute::kType, attribute::kIsInteger));
  return *this;
}
OnnxAttributes& OnnxAttributes::integers(const char* name, IntArrayRef values) {
  ProtoMessage m;
  m.text(attribute::kName, name).integers(attribute::kIntegers, values);
  list_.push_back(m.integer(attribute::kType, attribute::kAreIntegers));
  return *this;
}
OnnxAttributes& OnnxAttributes::real(const char* name, double value) {
  ProtoMessage m;
  m.text(attribute::kName, name).real32(attribute::kReal, static_cast<float>(value));
  list_.push_back(m.integer(attribute::kType, attribute::kIsReal));
  return *this;
}
OnnxAttributes& OnnxAttributes::text(const char* name, const std::string& value) {
  ProtoMessage m;
  m.text(attribute::kName, name).text(attribute::kText, value);
  list_.push_back(m.integer(attribute::kType, attribute::kIsText));
  return *this;
}

OnnxAttributes& OnnxAttributes::texts(const char* name, const std::vector<std::string>& values) {
  ProtoMessage m;
  m.text(attribute::kName, name);
  for (const std::string& v : values) m.text(attribute::kTexts, v);
  list_.push_back(m.integer(attribute::kType, attribute::kAreTexts));
  return *this;
}

std::string OnnxGraph::unused(const std::string& name) {
  int& used = names_[name];
  if (!used) return used = 1, name;
  std::string other;
  do other = name + "_" + std::to_string(used++);
  while (names_.count(other));
  names_[other] = 1;
  return other;
}

std::vector<std::string> OnnxGraph::nodes(const std::string& name, const char* op,
                                          const std::vector<std::string>& inputs, size_t outputs,
                                          const OnnxAttributes& attributes) {
  using namespace operators_;
  ProtoMessage node;
  for (const std::string& input : inputs) node.text(kInput, input);
  std::vector<std::string> made;
  const std::string where = onnx_name(name, op);
  for (size_t i = 0; i < outputs; ++i) made.push_back(unused(where));
  for (const std::string& output : made) node.text(kOutput, output);
  node.text(kName, made[0]).text(kOp, op);
  for (const ProtoMessage& a : attributes.list_) node.message(kAttribute, a);
  nodes_.push_back(std::move(node));
  return made;
}

std::string OnnxGraph::tensor(const std::string& name, const Tensor& value) {
  for (const Given& g : given_)
    if (g.version == value.version() &&
        (g.tensor.is_same(value) || (g.tensor.is_set_to(value) && g.tensor.is_same_size(value))))
      return g.name;
  const Tensor host = value.detach().to(Device(kCPU, 0)).contiguous();
  const std::string own = unused(name);
  ProtoMessage m;
  m.integers(tensors::kDims, host.sizes()).integer(tensors::kType, onnx_type(host.scalar_type()));
  m.text(tensors::kName, own);
  m.text(tensors::kRaw, {static_cast<const char*>(host.data_ptr()), host.nbytes()});
  tensors_.push_back(std::move(m));
  given_.push_back({value, value.version(), own});
  return own;
}
std::string OnnxGraph::integers(const std::string& name, IntArrayRef values) {
  const Tensor t = empty({static_cast<int64_t>(values.size())}, kLong);
  std::copy(values.begin(), values.end(), t.data_ptr<int64_t>());
  return tensor(name, t);
}
std::string OnnxGraph::number(const std::string& name, double value, ScalarType like) {
  return tensor(name, full({}, value, like));
}

void OnnxGraph::input(const std::string& name, ScalarType dtype, const ProtoMessage& shape) {
  inputs_.push_back(value_info(name, dtype, shape));
}
void OnnxGraph::output(const std::string& name, const std::string& value, ScalarType dtype,
                       const ProtoMessage& shape) {
  using namespace operators_;
  ProtoMessage node;
  node.text(kInput, value).text(kOutput, name).text(kName, name + ".Identity");
  nodes_.push_back(node.text(kOp, "Identity"));
  outputs_.push_back(value_info(name, dtype, shape));
}

std::string OnnxGraph::operators() const {
  ProtoMessage graph;
  for (const ProtoMessage& n : nodes_) graph.message(graphs::kNode, n);
  for (const ProtoMessage& t : tensors_) graph.message(graphs::kTensor, t);
  return graph.bytes();
}

std::string OnnxGraph::bytes() const {
  ProtoMessage rest, set, model;
  rest.text(graphs::kName, "ramet");
  for (const ProtoMessage& i : inputs_) rest.message(graphs::kInput, i);
  for (const ProtoMessage& o : outputs_) rest.message(graphs::kOutput, o);
  model.integer(models::kIrVersion, kIr).text(models::kProducer, "ramet");
  set.text(1, "").integer(2, kOperatorSetVersion);
  model.message(models::kOperatorSet, set);
  model.text(models::kGraph, operators() + rest.bytes());
  RAMET_CHECK(model.bytes().size() < std::numeric_limits<int32_t>::max(), "export_onnx",
              "the file would have ", model.bytes().size(), " bytes, expected less than 2^31");
  return model.bytes();
}

}  // namespace ramet::formats
