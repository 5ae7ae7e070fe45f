#include <algorithm>
#include <optional>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/formats/onnx/operations_internal.h"
#include "nn/formats/onnx/tensors_internal.h"

namespace ramet::formats {
namespace {

constexpr const char* kOp = "export_onnx";
constexpr const char* kWritten = " of a tensor that was written where nothing is recorded";

// The dimension of `from` without which it is `to`, or that is shorter there.
struct Cut {
  int64_t dim, start;
};
std::optional<Cut> cut_of(const Tensor& from, const Tensor& to, int64_t offset) {
  const bool selected = to.dim() == from.dim() - 1;
  if (!selected && to.dim() != from.dim()) return std::nullopt;
  for (int64_t d = 0; d < from.dim(); ++d) {
    bool fits = from.stride(d) > 0 && offset % from.stride(d) == 0;
    for (int64_t k = 0; fits && k < from.dim(); ++k) {
      if (k == d && (selected || to.size(k) < from.size(k))) continue;
      const int64_t other = selected && k > d ? k - 1 : k;
      fits = to.size(other) == from.size(k) && to.stride(other) == from.stride(k);
    }
    if (!fits || (!selected && to.stride(d) != from.stride(d))) continue;
    const int64_t start = offset / from.stride(d);
    if (start >= 0 && start + (selected ? 1 : to.size(d)) <= from.size(d)) return Cut{d, start};
  }
  return std::nullopt;
}

// to is from.permute(order).
std::optional<std::vector<int64_t>> order_of(const Tensor& from, const Tensor& to) {
  if (to.dim() != from.dim()) return std::nullopt;
  std::vector<int64_t> order;
  std::vector<bool> taken(static_cast<size_t>(from.dim()));
  for (int64_t d = 0; d < to.dim(); ++d) {
    int64_t k = 0;
    while (k < from.dim() && (taken[static_cast<size_t>(k)] || from.size(k) != to.size(d) ||
                              from.stride(k) != to.stride(d)))
      ++k;
    if (k == from.dim()) return std::nullopt;
    taken[static_cast<size_t>(k)] = true;
    order.push_back(k);
  }
  return order;
}

}  // namespace

void OnnxTensors::know(const Tensor& t, const std::string& name) {
  places_[t.impl()] = known_.size();
  if (t->node) by_node_[{t->node, t->slot}] = {name, t.version(), true};
  known_.push_back({t, t.shallow(), t.version(), name, t->node});
}

bool OnnxTensors::Known::current() const {
  return same_values() && tensor.sizes() == shape.sizes() && tensor->node == node &&
         (node || (tensor.strides() == shape.strides() &&
                   tensor.storage_offset() == shape.storage_offset()));
}

const OnnxTensors::Known* OnnxTensors::current(const TensorImpl* t) const {
  const auto found = places_.find(t);
  if (found == places_.end()) return nullptr;
  const Known& known = known_[found->second];
  return known.current() ? &known : nullptr;
}

bool OnnxTensors::view_of(const Known& from, const Tensor& t, std::string& name) {
  const Tensor& x = from.shape;
  const OnnxCall call{prefix_, {}, {}, {}};
  const OnnxOps o{graph_, call};
  const int64_t offset = t.storage_offset() - x.storage_offset();
  if (offset == 0 && t.numel() == x.numel() && t.is_contiguous() && x.is_contiguous()) {
    name = t.sizes() == x.sizes() ? from.name
                                  : o.shaped(from.name, reshape_sizes(x.sizes(), t.sizes()));
    return true;
  }
  if (const auto order = offset == 0 ? order_of(x, t) : std::nullopt) {
    name = o.moved(from.name, *order);
    return true;
  }
  const auto cut = cut_of(x, t, offset);
  if (!cut) return false;
  if (t.dim() < x.dim()) {
    name = o.selected(from.name, cut->dim, cut->start);
  } else {
    name = o.slice(from.name, cut->dim, cut->start, cut->start + t.size(cut->dim));
  }
  return true;
}

std::string OnnxTensors::plain_name(const Tensor& t) {
  if (const Known* known = current(t.impl())) return known->name;
  std::string name;
  for (const Known& known : known_) {
    if (known.tensor.storage_impl() != t.storage_impl() || !known.same_values() ||
        known.tensor.scalar_type() != t.scalar_type() || !view_of(known, t, name))
      continue;
    know(t, name);
    return name;
  }
  if (t.grad_fn()) return "";
  const Parameter* const p = parameter(t);
  if (!p) constants_.push_back({t, t.version(), prefix_, layer_});
  name = graph_.tensor(p ? p->name : onnx_name(prefix_, "constant"), t);
  know(t, name);
  return name;
}

const OnnxTensors::Parameter* OnnxTensors::parameter(const Tensor& t) const {
  for (const Parameter& p : parameters_)
    if (p.tensor.is_same(t)) return &p;
  return nullptr;
}

const OnnxTensors::Parameter* OnnxTensors::parameter_of(const autograd::Node& node) const {
  for (const Parameter& p : parameters_)
    if (p.tensor->node == &node) return &p;
  return nullptr;
}

bool OnnxTensors::has_name(const autograd::Node& node, uint32_t slot) const {
  return by_node_.count({&node, slot}) || parameter_of(node);
}

std::string OnnxTensors::name_of_node(autograd::Node& node, uint32_t slot) {
  std::vector<autograd::Node*> waiting;
  if (!has_name(node, slot)) waiting.push_back(&node);
  while (!waiting.empty()) {
    autograd::Node* const next = waiting.back();
    const size_t before = waiting.size();
    const auto edges = next->next_edges();
    for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
      if (!edge->is_valid() || has_name(*edge->function, edge->input_nr)) continue;
      waiting.push_back(edge->function.get());
    }
    if (waiting.size() != before) continue;
    waiting.pop_back();
    if (!by_node_.count({next, 0})) add(*next);
  }
  if (const Parameter* p = parameter_of(node)) return graph_.tensor(p->name, p->tensor);
  const auto found = by_node_.find({&node, slot});
  if (found == by_node_.end() || found->second.name.empty()) refuse(node.name());
  return found->second.name;
}

std::string OnnxTensors::input_name(const OnnxHistory::Operation& operation, autograd::Node& node,
                                    size_t i) {
  const OnnxHistory::At& input = operation.inputs[i];
  const autograd::Edge edge = node.next_edge(i);
  if (edge.is_valid() && !parameter_of(*edge.function)) {
    const Name& known = by_node_.at({edge.function.get(), edge.input_nr});
    if (known.name.empty()) refuse(edge.function->name());
    // An operation in place has raised the version itself.
    const bool in_place = std::any_of(
        operation.results.begin(), operation.results.end(),
        [&](const OnnxHistory::At& result) { return result.tensor.is_same(input.tensor); });
    if (input.version != known.version + in_place) refuse(node.name() + kWritten);
    return known.name;
  }
  if (!input.tensor.defined()) return "";
  const Tensor t = input.now();
  if (!t.defined()) refuse(node.name() + kWritten);
  if (!edge.is_valid() && t.grad_fn())
    refuse(node.name() + " with something that no input leads to");
  return "";
}

std::string OnnxTensors::owner_of(const Tensor& t) const {
  const Parameter* const p = t.defined() ? parameter(t) : nullptr;
  const size_t dot = p ? p->name.rfind('.') : std::string::npos;
  return dot == std::string::npos ? "" : p->name.substr(0, dot);
}

void OnnxTensors::add(autograd::Node& node) {
  const std::string name = node.name();
  const OnnxOperator f = onnx_operator(name);
  const OnnxHistory::Operation* const operation = history_.of(node);
  if (!f || !operation || operation->inputs.size() != node.num_outputs()) refuse(name);
  for (const OnnxHistory::At& t : operation->tensors)
    if (!t.now().defined()) refuse(name + kWritten);
  OnnxCall call{prefix_, {}, {}, {}};
  std::vector<Tensor> given;
  bool of_input = false;
  for (size_t i = 0; i < operation->inputs.size(); ++i) {
    given.push_back(operation->inputs[i].tensor);
    call.in.push_back(operation->inputs[i].shape);
    if (const std::string owner = owner_of(given.back()); !owner.empty()) call.path = owner;
    call.names.push_back(input_name(*operation, node, i));
    const autograd::Edge edge = node.next_edge(i);
    of_input = of_input || (!call.names.back().empty() &&
                            by_node_.at({edge.function.get(), edge.input_nr}).of_input);
  }
  for (const OnnxHistory::At& result : operation->results) call.out.push_back(result.shape);
  const NoGradGuard constants;
  const std::vector<std::string> names =
      f({name, graph_, call, operation->arguments, given,
         [this](const Tensor& t) { return plain_name(t); }, batch, of_input});
  if (names.size() != node.num_inputs()) refuse(name);
  for (uint32_t slot = 0; slot < names.size(); ++slot)
    by_node_[{&node, slot}] = {names[slot], operation->results[slot].version, of_input};
}

std::string OnnxTensors::name_of(const Tensor& t, const std::string& where,
                                 const std::string& layer) {
  prefix_ = where, layer_ = layer, asked_ = &t;
  std::string name;
  if (t.grad_fn() && !current(t.impl()) && history_.of(*t.grad_fn())) {
    name = name_of_node(*t.grad_fn(), t->slot);
    if (by_node_.at({t->node, t->slot}).version != t.version())
      refuse(t.grad_fn()->name() + kWritten);
  } else {
    name = plain_name(t);
  }
  if (name.empty()) refuse(t.grad_fn()->name());
  know(t, name);
  return name;
}

void OnnxTensors::refuse(const std::string& what) const {
  fail(kOp, "in the forward of ", named(prefix_), ": ",
       layer_.empty() ? std::string("an output") : "what '" + layer_ + "' is given", ", ",
       describe(*asked_), ", comes by an operation that cannot be exported: got ", what,
       ", expected layers, or what onnx.h lists as \"between\"");
}

}  // namespace ramet::formats
