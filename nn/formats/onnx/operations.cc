#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "autograd/ops.h"
#include "nn/formats/onnx/images_internal.h"
#include "nn/formats/onnx/operations_internal.h"

namespace ramet::formats {
namespace {

using Op = const OnnxOperation&;

// An input in the result's dtype: ONNX's operators want one.
std::string operand(Op o, size_t i) {
  if (o.in(i).scalar_type() == o.out().scalar_type()) return o.name(i);
  return o.ops().op("Cast", {o.name(i)},
                    OnnxAttributes().integer("to", onnx_type(o.out().scalar_type())));
}
std::string times(Op o, const std::string& x, double factor) {
  return factor == 1 ? x : o.ops().op("Mul", {x, o.ops().number(factor)});
}
double number(Op o, const char* name) {
  const std::optional<double> n = o.arguments.number(name);
  if (!n) o.call.refuse(o.node, " does not say its argument ", name);
  return *n;
}
// alpha of sums, which the fast ways leave out where it is 1.
double alpha(Op o) { return o.arguments.number("number").value_or(1); }

// ---- maps ---------------------------------------------------------------------------------------

std::string gelu(Op o) {
  return gelu_operators(o.ops(), o.name(), o.arguments.find("approximate") != nullptr);
}
std::string silu(Op o) { return o.ops().op("Mul", {o.name(), o.ops().op("Sigmoid", {o.name()})}); }
std::string rsqrt(Op o) { return o.ops().op("Reciprocal", {o.ops().op("Sqrt", {o.name()})}); }
// log(1 + exp(beta x)) / beta, and x itself where beta x is above the threshold.
std::string softplus(Op o) {
  const double beta = number(o, "number"), threshold = *o.arguments.number("number", 1);
  const OnnxOps ops = o.ops();
  const std::string bent = times(o, o.name(), beta),
                    y = times(o, ops.op("Softplus", {bent}), 1 / beta);
  if (threshold >= 20) return y;  // log(1 + exp(20)) is 20 + 2e-9
  return ops.op("Where", {ops.op("Greater", {bent, ops.number(threshold)}), o.name(), y});
}
std::string leaky_relu(Op o) {
  return o.ops().op("LeakyRelu", {o.name()}, OnnxAttributes().real("alpha", number(o, "number")));
}
std::string clamp(Op o) {
  std::vector<std::string> in{operand(o, 0)};
  for (const char* name : {"min", "max"}) {
    const std::optional<double> bound = o.arguments.number(name);
    in.push_back(bound ? o.ops().number(*bound) : "");
  }
  while (in.back().empty()) in.pop_back();
  return o.ops().op("Clip", in);
}
std::string cast(Op o) { return operand(o, 0); }

// ---- arithmetic ---------------------------------------------------------------------------------

// self op alpha * other, of two tensors.
template <const char* const& op> std::string of_two(Op o) {
  return o.ops().op(op, {operand(o, 0), times(o, operand(o, 1), alpha(o))});
}
// Of a tensor and a number.
template <const char* const& op> std::string of_number(Op o) {
  const double other = number(o, "other") * alpha(o);
  return o.ops().op(op, {operand(o, 0), o.ops().number(other)});
}
constexpr const char *kAdd = "Add", *kSub = "Sub", *kMul = "Mul", *kDiv = "Div", *kPow = "Pow",
                     *kMax = "Max", *kMin = "Min", *kMatMul = "MatMul";
// other - alpha * self.
std::string reverse_sub(Op o) {
  const std::string x = times(o, operand(o, 0), alpha(o));
  return o.ops().op("Sub", {o.ops().number(number(o, "other")), x});
}
std::string power_of(Op o) {
  return o.ops().op("Pow", {operand(o, 0), o.ops().number(number(o, "exponent"))});
}
std::string number_to_power(Op o) {
  return o.ops().op("Pow", {o.ops().number(number(o, "self")), operand(o, 0)});
}
std::string where(Op o) {
  std::string condition = o.constant(o.arguments.tensor("condition"));
  if (o.arguments.tensor("condition").scalar_type() != kBool)
    condition = o.ops().op("Cast", {condition}, OnnxAttributes().integer("to", onnx_type(kBool)));
  return o.ops().op("Where", {condition, operand(o, 0), operand(o, 1)});
}
std::string masked_fill(Op o) {
  const std::string mask = o.constant(o.arguments.tensor("mask"));
  const std::string value =
      o.call.in.size() > 1 ? operand(o, 1) : o.ops().number(number(o, "value"));
  return o.ops().op("Where", {mask, value, o.name()});
}

// ---- products -----------------------------------------------------------------------------------

std::string turned(Op o, const std::string& weight) { return o.ops().moved(weight, {1, 0}); }
std::string linear(Op o) {
  if (o.in(1).dim() != 2) o.call.refuse("linear with a weight of ", o.in(1).sizes());
  const std::string y = o.ops().op("MatMul", {o.name(), turned(o, o.name(1))});
  const bool bias = o.call.in.size() > 2 && o.in(2).defined();
  return bias ? o.ops().op("Add", {y, o.name(2)}) : y;
}
std::string addmm(Op o) {
  const std::string product = o.ops().op("MatMul", {o.name(1), o.name(2)});
  return o.ops().op("Add",
                    {times(o, product, number(o, "alpha")), times(o, o.name(), number(o, "beta"))});
}
// softmax(scale q k' + mask) v
std::string attention(Op o) {
  const OnnxOps ops = o.ops();
  const int64_t rank = o.in(1).dim();
  const std::string q = times(o, o.name(), number(o, "scale"));
  std::string scores = ops.op("MatMul", {q, ops.exchanged(o.name(1), rank, rank - 1, rank - 2)});
  if (o.arguments.flag("is_causal")) {
    const int64_t rows = o.in(0).size(-2), keys = o.in(1).size(-2);
    const Tensor later =
        full({rows, keys}, -std::numeric_limits<double>::infinity(), o.out().scalar_type());
    scores = ops.op("Add", {scores, o.graph.tensor(o.call.own("mask"), later.triu(1))});
  }
  const std::string weights = ops.op("Softmax", {scores}, onnx_axis(-1));
  return ops.op("MatMul", {weights, o.name(2)});
}

// ---- reductions, softmax ------------------------------------------------------------------------

std::string reduced(Op o, const char* op) {
  const std::vector<int64_t>& dims = o.arguments.integers("dim");
  OnnxAttributes a;
  a.integer("keepdims", o.arguments.flag("keepdim"));
  std::vector<std::string> in{operand(o, 0)};
  if (dims.size() == static_cast<size_t>(o.in(0).dim())) return o.ops().op(op, in, a);
  if (op == std::string("ReduceSum")) in.push_back(o.ops().integers(dims));
  else a.integers("axes", dims);
  return o.ops().op(op, in, a);
}
std::string sum(Op o) { return reduced(o, "ReduceSum"); }
std::string mean(Op o) { return reduced(o, "ReduceMean"); }
std::string product(Op o) { return reduced(o, "ReduceProd"); }
std::string largest(Op o) { return reduced(o, "ReduceMax"); }
std::string smallest(Op o) { return reduced(o, "ReduceMin"); }
std::string norm(Op o) {
  const double p = number(o, "p");
  if (p != 1 && p != 2) o.call.refuse("a norm of order ", p, ", expected 1 or 2");
  return reduced(o, p == 1 ? "ReduceL1" : "ReduceL2");
}
std::string softmax(Op o) {
  if (o.in(0).dim() == 0) o.call.refuse("softmax of a tensor without dimensions");
  return o.ops().op("Softmax", {o.name()}, onnx_axis(o.arguments.integer("dim")));
}
std::string log_softmax(Op o) {
  if (o.in(0).dim() == 0) o.call.refuse("log_softmax of a tensor without dimensions");
  return o.ops().op("LogSoftmax", {o.name()}, onnx_axis(o.arguments.integer("dim")));
}

// ---- norms --------------------------------------------------------------------------------------

std::string or_filled(Op o, size_t i, IntArrayRef sizes, double value) {
  if (i < o.call.in.size() && o.in(i).defined()) return o.name(i);
  return o.graph.tensor(o.call.own(value == 0 ? "zeros" : "ones"),
                        full(sizes, value, o.out().scalar_type()));
}
OnnxAttributes epsilon(Op o) { return OnnxAttributes().real("epsilon", number(o, "eps")); }

std::string batch_norm(Op o) {
  if (o.arguments.flag("training"))
    o.call.refuse("a batch norm that normalises with the statistics of its batch");
  const IntArrayRef channels(o.in(0).sizes().begin() + 1, 1);
  return o.ops().op("BatchNormalization",
                    {o.name(), or_filled(o, 1, channels, 1), or_filled(o, 2, channels, 0),
                     o.constant(o.arguments.tensor("running_mean")),
                     o.constant(o.arguments.tensor("running_var"))},
                    epsilon(o));
}
std::string layer_norm(Op o) {
  const std::vector<int64_t>& shape = o.arguments.integers("normalized_shape");
  std::vector<std::string> in{o.name(), or_filled(o, 1, shape, 1)};
  if (o.in(2).defined()) in.push_back(o.name(2));
  return o.ops().op("LayerNormalization", in,
                    epsilon(o).integer("axis", -static_cast<int64_t>(shape.size())));
}

// ---- shapes -------------------------------------------------------------------------------------

std::string reshape(Op o) {
  if (o.in(0).sizes() == o.out().sizes()) return o.name();
  const IntArrayRef to = o.out().sizes();
  std::vector<int64_t> sizes = reshape_sizes(o.in(0).sizes(), to);
  // -1 is the extent that follows from the others: the free one, where the result has it.
  const auto free =
      o.of_input ? std::find(to.begin(), to.end(), o.batch.extent) - to.begin() : std::ptrdiff_t{0};
  const auto follows = std::find(sizes.begin(), sizes.end(), -1) - sizes.begin();
  if (follows < free && static_cast<size_t>(free) < to.size()) {
    sizes[static_cast<size_t>(follows)] = to[static_cast<size_t>(follows)];
    sizes[static_cast<size_t>(free)] = -1;
  }
  return o.ops().shaped(o.name(), sizes);
}
std::string same(Op o) { return o.ops().op("Identity", {o.name()}); }
std::string transpose(Op o) {
  const int64_t rank = o.in(0).dim();
  if (rank == 0) return o.name();
  return o.ops().exchanged(o.name(), rank, o.arguments.integer("dim0"),
                           o.arguments.integer("dim1"));
}
std::string permute(Op o) {
  std::vector<int64_t> order = o.arguments.integers("dims");
  for (int64_t& d : order) d = wrap_dim("export_onnx", d, o.in(0).dim());
  return o.ops().moved(o.name(), order);
}
std::string select(Op o) {
  return o.ops().selected(o.name(), o.arguments.integer("dim"), o.arguments.integer("index"));
}
std::string slice(Op o) {
  const autograd::Arguments& a = o.arguments;
  const int64_t dim = a.integer("dim"), begin = a.integer("start"), step = a.integer("step");
  int64_t end = a.integer("end");
  const bool whole = begin == 0 && end == o.in(0).size(dim);
  if (whole && step == 1) return o.name();
  if (whole) end = std::numeric_limits<int64_t>::max();  // whatever the extent is
  return o.ops().slice(o.name(), dim, begin, end, step);
}
// The sizes as they come; a free extent is read from the model's input.
std::string expand(Op o) {
  const IntArrayRef from = o.in(0).sizes(), to = o.out().sizes();
  if (from == to) return o.name();
  const OnnxOps ops = o.ops();
  const size_t more = to.size() - from.size();
  std::vector<std::string> parts;
  std::vector<int64_t> fixed;
  const auto flush = [&] {
    if (!fixed.empty()) parts.push_back(ops.integers(fixed));
    fixed.clear();
  };
  for (size_t d = 0; d < to.size(); ++d) {
    const bool stays = d >= more && from[d - more] == to[d];  // 1: as it is there
    if (stays || to[d] != o.batch.extent) {
      fixed.push_back(stays ? 1 : to[d]);
      continue;
    }
    flush();
    parts.push_back(o.batch.extent_in(o.graph));
  }
  flush();
  return ops.op("Expand", {o.name(), ops.concat(parts, 0)});
}
std::string cat(Op o) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < o.call.in.size(); ++i)
    if (o.in(i).dim() == o.out().dim()) parts.push_back(operand(o, i));  // [0] joins anything
  return o.ops().op("Concat", parts, onnx_axis(o.arguments.integer("dim")));
}
std::string stack(Op o) {
  const int64_t dim = o.arguments.integer("dim");
  std::vector<std::string> parts;
  for (size_t i = 0; i < o.call.in.size(); ++i)
    parts.push_back(o.ops().op("Unsqueeze", {operand(o, i), o.ops().integers({dim})}));
  return o.ops().op("Concat", parts, onnx_axis(dim));
}
std::vector<std::string> split(Op o) {
  const int64_t dim = o.arguments.integer("dim");
  std::vector<std::string> parts;
  int64_t begin = 0;
  for (const Tensor& part : o.call.out) {
    const int64_t end = begin + part.size(dim);
    parts.push_back(o.ops().slice(o.name(), dim, begin, end));
    begin = end;
  }
  return parts;
}
std::vector<std::string> unbind(Op o) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < o.call.out.size(); ++i)
    parts.push_back(
        o.ops().selected(o.name(), o.arguments.integer("dim"), static_cast<int64_t>(i)));
  return parts;
}
std::string embedding(Op o) {
  return o.ops().op("Gather", {o.name(), o.constant(o.arguments.tensor("indices"))});
}

// ---- rows ---------------------------------------------------------------------------------------

template <std::string (*f)(Op)> std::vector<std::string> one(Op o) { return {f(o)}; }
// The operator of one input with the name of its node: "ReluBackward0".
std::string plain(Op o) {
  return o.ops().op(o.node.substr(0, o.node.find("Backward")).c_str(), {o.name()});
}

using Table = std::unordered_map<std::string, OnnxOperator>;
const Table& table() {
  static const Table all = [] {
    Table rows = {
        {"CloneBackward0", one<same>},
        {"ToCopyBackward0", one<cast>},
        {"GeluBackward0", one<gelu>},
        {"SiluBackward0", one<silu>},
        {"RsqrtBackward0", one<rsqrt>},
        {"SoftplusBackward0", one<softplus>},
        {"LeakyReluBackward0", one<leaky_relu>},
        {"LeakyReluBackward1", one<leaky_relu>},
        {"ClampBackward1", one<clamp>},
        {"ClampMinBackward0", one<clamp>},
        {"ClampMaxBackward0", one<clamp>},
        {"AddBackward0", one<of_two<kAdd>>},
        {"SubBackward0", one<of_two<kSub>>},
        {"MulBackward0", one<of_two<kMul>>},
        {"DivBackward0", one<of_two<kDiv>>},
        {"PowBackward1", one<of_two<kPow>>},
        {"MaximumBackward0", one<of_two<kMax>>},
        {"MinimumBackward0", one<of_two<kMin>>},
        {"MmBackward0", one<of_two<kMatMul>>},
        {"BmmBackward0", one<of_two<kMatMul>>},
        {"MvBackward0", one<of_two<kMatMul>>},
        {"AddBackward1", one<of_number<kAdd>>},
        {"SubBackward1", one<of_number<kSub>>},
        {"MulBackward1", one<of_number<kMul>>},
        {"DivBackward1", one<of_number<kDiv>>},
        {"RsubBackward1", one<reverse_sub>},
        {"PowBackward0", one<power_of>},
        {"PowBackward2", one<number_to_power>},
        {"WhereBackward0", one<where>},
        {"MaskedFillBackward0", one<masked_fill>},
        {"MaskedFillBackward1", one<masked_fill>},
        {"LinearBackward0", one<linear>},
        {"AddmmBackward0", one<addmm>},
        {"ScaledDotProductAttentionBackward0", one<attention>},
        {"SumBackward0", one<sum>},
        {"SumBackward1", one<sum>},
        {"MeanBackward0", one<mean>},
        {"MeanBackward1", one<mean>},
        {"ProdBackward0", one<product>},
        {"ProdBackward1", one<product>},
        {"NormBackward0", one<norm>},
        {"NormBackward1", one<norm>},
        {"NormBackward2", one<norm>},
        {"NormBackward3", one<norm>},
        {"AmaxBackward0", one<largest>},
        {"AminBackward0", one<smallest>},
        {"MaxBackward0", one<largest>},
        {"MinBackward0", one<smallest>},
        {"MaxBackward1", one<largest>},
        {"MinBackward1", one<smallest>},
        {"SoftmaxBackward0", one<softmax>},
        {"LogSoftmaxBackward0", one<log_softmax>},
        {"NativeBatchNormBackward0", one<batch_norm>},
        {"NativeLayerNormBackward0", one<layer_norm>},
        {"ViewBackward0", one<reshape>},
        {"UnsqueezeBackward0", one<reshape>},
        {"SqueezeBackward0", one<reshape>},
        {"TransposeBackward0", one<transpose>},
        {"PermuteBackward0", one<permute>},
        {"SelectBackward0", one<select>},
        {"SliceBackward0", one<slice>},
        {"ExpandBackward0", one<expand>},
        {"CatBackward0", one<cat>},
        {"StackBackward0", one<stack>},
        {"SplitBackward0", split},
        {"SplitWithSizesBackward0", split},
        {"UnbindBackward0", unbind},
        {"EmbeddingBackward0", one<embedding>},
        {"LstmLayerBackward0", onnx_recurrent_layer},
        {"GruLayerBackward0", onnx_recurrent_layer},
        {"ConvolutionBackward0", one<onnx_convolution>},
        {"MaxPool2DWithIndicesBackward0", one<onnx_max_pool>},
        {"AvgPool2DBackward0", one<onnx_average_pool>},
        {"AdaptiveAvgPool2DBackward0", one<onnx_adaptive_pool>},
        {"UpsampleNearest1DBackward0", one<onnx_upsample>},
        {"UpsampleNearest2DBackward0", one<onnx_upsample>},
        {"UpsampleNearest3DBackward0", one<onnx_upsample>},
        {"UpsampleLinear1DBackward0", one<onnx_upsample>},
        {"UpsampleBilinear2DBackward0", one<onnx_upsample>},
        {"UpsampleTrilinear3DBackward0", one<onnx_upsample>},
        {"UpsampleBicubic2DBackward0", one<onnx_upsample>},
    };
    for (const char* op :
         {"Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs", "Sqrt", "Log", "Sin", "Cos", "Tan",
          "Asin", "Acos", "Atan", "Sinh", "Cosh", "Erf", "Reciprocal"})
      rows[op + std::string("Backward0")] = one<plain>;
    return rows;
  }();
  return all;
}

}  // namespace

std::string OnnxBatch::extent_in(OnnxGraph& graph) {
  if (value.empty())
    value = graph.node("batch", "Gather",
                       {graph.node("batch", "Shape", {input}), graph.integers("batch.dim", {dim})},
                       onnx_axis(0));
  return value;
}

OnnxOperator onnx_operator(const std::string& node) {
  const auto found = table().find(node);
  return found == table().end() ? nullptr : found->second;
}

}  // namespace ramet::formats
