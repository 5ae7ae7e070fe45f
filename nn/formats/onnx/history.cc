#include "nn/formats/onnx/history_internal.h"

namespace ramet::formats {
namespace {

OnnxHistory::At now(const Tensor& t) {
  if (!t.defined()) return {t, t, 0};
  return {t, t.shallow(), t.version()};
}
std::vector<OnnxHistory::At> all_now(ArrayRef<autograd::Input> inputs) {
  std::vector<OnnxHistory::At> out;
  for (const autograd::Input& input : inputs) {
    if (input.impl) add_ref(input.impl->refs);
    out.push_back(now(input.impl ? Tensor(input.impl) : Tensor()));
  }
  return out;
}

}  // namespace

void OnnxHistory::on_operation(autograd::Node& node, ArrayRef<autograd::Input> inputs,
                               ArrayRef<autograd::Input> results,
                               const autograd::Arguments& arguments) {
  if (node.flags & autograd::Node::kSink || results.empty()) return;
  Operation operation{all_now(inputs), all_now(results), arguments, {}};
  for (const autograd::Argument& a : arguments.all())
    if (const Tensor* t = std::get_if<Tensor>(&a.value); t && t->defined())
      operation.tensors.push_back(now(*t));
  const std::lock_guard<std::mutex> lock(mutex_);
  operations_[&node] = std::move(operation);
}

const OnnxHistory::Operation* OnnxHistory::of(const autograd::Node& node) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = operations_.find(&node);
  return found == operations_.end() ? nullptr : &found->second;
}

}  // namespace ramet::formats
