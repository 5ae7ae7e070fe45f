#include "nn/formats/onnx/history_internal.h"

namespace ramet::formats {
namespace {

std::vector<OnnxHistory::At> held(ArrayRef<autograd::Input> inputs) {
  std::vector<OnnxHistory::At> out;
  for (const autograd::Input& input : inputs) {
    if (input.impl) add_ref(input.impl->refs);
    const Tensor t = input.impl ? Tensor(input.impl) : Tensor();
    out.push_back({t, t.defined() ? t.shallow() : t, t.defined() ? t.version() : 0});
  }
  return out;
}

}  // namespace

void OnnxHistory::on_operation(autograd::Node& node, ArrayRef<autograd::Input> inputs,
                               ArrayRef<autograd::Input> results,
                               const autograd::Arguments& arguments) {
  if (node.flags & autograd::Node::kSink || results.empty()) return;
  Operation operation{held(inputs), held(results), arguments, {}};
  for (const autograd::Argument& a : arguments.all())
    if (const Tensor* t = std::get_if<Tensor>(&a.value); t && t->defined())
      operation.tensors.push_back({*t, t->shallow(), t->version()});
  const std::lock_guard<std::mutex> lock(mutex_);
  operations_[&node] = std::move(operation);
}

const OnnxHistory::Operation* OnnxHistory::of(const autograd::Node& node) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = operations_.find(&node);
  return found == operations_.end() ? nullptr : &found->second;
}

}  // namespace ramet::formats
