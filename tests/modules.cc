#include "tests/modules.h"

#include <algorithm>

#include "autograd/ops.h"
#include "nn/formats/onnx/onnx.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/functional_module.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/recurrent_cells.h"
#include "nn/layers/sequence/transformer.h"
#include "nn/layers/sequence/transformer_layers.h"
#include "nn/module/module_list.h"
#include "nn/module/parameter_list.h"
#include "nn/module/sequential.h"

namespace ramet::testing {
namespace {

using namespace nn;

template <class Holder> std::shared_ptr<Module> of(const Holder& made) { return made.ptr(); }
// With so many inputs: calls with all numbers of them would be most of this file's compilation.
template <class M, size_t N> Tensors called(Module& module, const Tensors& inputs) {
  return formats::call_with(dynamic_cast<M&>(module), inputs, std::make_index_sequence<N>(), 0);
}

Tensor own(IntArrayRef sizes) { return ones(sizes, TensorOptions().requires_grad(true)); }

ModuleDict dict_of_modules(
    const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& items) {
  return ModuleDict(items);
}
ParameterDict dict_of_parameters(const std::vector<std::pair<std::string, Tensor>>& items) {
  ParameterDict made;
  for (const auto& [name, value] : items) made->insert(name, value);
  return made;
}

// Results of a forward as one tensor, batch first: states of recurrent modules have it second.
Tensor joined(const Tensors& results) {
  Tensor all = results.at(0);
  for (size_t i = 1; i < results.size(); ++i) {
    Tensor next = results[i];
    if (next.size(0) != all.size(0)) next = next.transpose(0, 1);
    all = cat({all.flatten(1), next.flatten(1)}, 1);
  }
  return all;
}

using Call = std::function<Tensor(Module& module, const Tensors& inputs)>;
// What a module without a forward of its inputs is called by.
const std::pair<const char*, Call> kCalls[] = {
    {"ModuleList",
     [](Module& m, const Tensors& in) {
       return call(*m.children()[1]->as<Linear>(), call(*m.children()[0]->as<Linear>(), in[0]));
     }},
    {"ModuleDict",
     [](Module& m, const Tensors& in) {
       return call(*m.children()[1]->as<Linear>(), in[0]) *
              call(*m.children()[0]->as<Linear>(), in[0]);
     }},
    {"ParameterList",
     [](Module& m, const Tensors& in) { return in[0] * m.parameters()[0] + m.parameters()[1]; }},
    {"ParameterDict", [](Module& m, const Tensors& in) { return in[0] * m.parameters()[0]; }},
    {"CTCLoss",
     [](Module& m, const Tensors& in) {
       return call(*m.as<CTCLoss>(), log_softmax(in[0].transpose(0, 1), 2), in[1], in[2], in[3]);
     }},
};

Call call_of(const ModuleExample& example) {
  for (const auto& [type, call] : kCalls)
    if (std::string(type) == example.type) return call;
  return [&example](Module& m, const Tensors& in) { return joined(example.call(m, in)); };
}

Draw draw_of(const Input& input) {
  Draw draw{input.shape(), Draw::kReal, input.below, input.scale};
  draw.sizes.insert(draw.sizes.begin(), kBatch);
  switch (input.kind) {
    case Input::kReal: break;
    case Input::kPositive: draw.kind = Draw::kPositive; break;
    case Input::kSign: draw.kind = Draw::kSign; break;
    case Input::kIndex: draw.kind = Draw::kIndex; break;
    default: fail("modules.cc", "no input of the matrix: ", int{input.kind});
  }
  return draw;
}

ModuleRow row_of(const ModuleExample& example) {
  ModuleRow row;
  row.name = example.matrix;
  row.make = example.made;
  row.call = call_of(example);
  for (const Input& input : example.inputs)
    if (input.kind != Input::kNone) row.inputs.push_back(draw_of(input));
  for (const auto& lack : example.lacks)
    if (lack.reason) row.lacks(lack.check, lack.reason);
  return row;
}

}  // namespace

std::vector<int64_t> Input::shape() const {
  return {std::begin(sizes), std::find(std::begin(sizes), std::end(sizes), 0)};
}

std::span<const ModuleExample> module_examples() {
  static const ModuleExample all[] = {
#include "tests/module_rows.inc"
  };
  return all;
}

const std::vector<ModuleRow>& all_modules() {
  static const std::vector<ModuleRow> all = [] {
    std::vector<ModuleRow> rows;
    for (const ModuleExample& example : module_examples())
      if (example.matrix) rows.push_back(row_of(example));
    return rows;
  }();
  return all;
}

const ModuleRow& module_row(const std::string& name) {
  for (const ModuleRow& row : all_modules())
    if (row.name == name) return row;
  fail("modules.cc", "no module ", name);
}

}  // namespace ramet::testing
