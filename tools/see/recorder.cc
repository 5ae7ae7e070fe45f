// The recorder's observer calls while the program runs.
#include <algorithm>
#include <optional>

#include "autograd/graph/engine.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/gpu.h"
#include "tools/see/operation_name.h"
#include "tools/see/recorder_internal.h"
#include "tools/see/source_lines.h"
#include "tools/see/statistics_of.h"

using ramet::detail::tls;

namespace ramet {
namespace see {
namespace {

using autograd::Input;
using autograd::Node;

Id last(const auto& list) { return static_cast<Id>(list.size()) - 1; }

bool is_movement(const std::string& node) {
  return node == "ScatterBackward" || node == "GatherBackward" || node == "BroadcastBackward" ||
         node == "ReduceAddBackward" || node == "ReduceAddCoalescedBackward";
}

bool has_history(const TensorImpl* t) {
  return t->node && !(static_cast<const Node*>(t->node)->flags & Node::kSink);
}

const TensorImpl* base_of(const TensorImpl* t) {
  while (t->base) t = t->base;
  return t;
}

}  // namespace

Recorder::Recorder(const RecordingOptions& options) : options_(options) {}

bool Recorder::full() {
  if (stopped_) return true;
  if (rows_ < options_.most_rows) {
    ++rows_;
    return false;
  }
  ++dropped_;
  return true;
}

Recorder::Thread& Recorder::thread() {
  const auto [at, fresh] = threads_.try_emplace(std::this_thread::get_id());
  if (fresh) at->second.number = threads_.size() - 1;
  return at->second;
}

Id Recorder::device_of(Device device) {
  const auto [at, fresh] =
      devices_.try_emplace(device.ordinal(), static_cast<Id>(data_.devices.size()));
  if (fresh) {
    std::string kind = "cpu";
    if (device.is_cuda()) {
      gpus_ = true;
      kind = gpu::library()->card(device.index()) < 0 ? "emulated gpu" : "gpu";
    }
    data_.devices.push_back(
        {device.is_cpu() ? "cpu:" + std::to_string(device.index()) : device.str(), kind, 0});
  }
  return at->second;
}

// ---- tensors

bool Recorder::wants_statistics(const TensorImpl* t) const {
  return options_.statistics && t && !capture::active() && t->numel > 0;
}

Id Recorder::add_statistics(const Statistics* s) {
  if (!s) return -1;
  data_.statistics.push_back(*s);
  return last(data_.statistics);
}

Id Recorder::add_tensor(const TensorImpl* t, Id statistics) {
  TensorRow row;
  row.shape.assign(t->sizes(), t->sizes() + t->rank);
  row.dtype = short_name_of(t->dtype);
  row.device = device_of(Device::from_ordinal(t->device));
  // A settled result has other memory and counts as the same storage: Note [Internal layout].
  StorageImpl* const settled = t->storage->version_of;
  row.storage = memory_.storage_of(
      settled && settled->external != StorageImpl::kAbsent ? settled : t->storage);
  row.bytes = t->numel * static_cast<int64_t>(item_size(t->dtype));
  row.statistics = statistics;
  if (const auto name = names_.find(t); name != names_.end()) row.name = name->second;
  data_.tensors.push_back(std::move(row));
  return last(data_.tensors);
}

// A tensor with a history is identified by its node and output, because addresses are used again. A
// tensor without one is identified by its address, as long as the same memory is there.
Id Recorder::tensor_of(const TensorImpl* t, Id statistics) {
  if (!t) return -1;
  if (t->node) {
    const Id node = node_of(*static_cast<Node*>(t->node));
    if (!has_history(t)) {
      const auto [at, fresh] = leaf_tensors_.try_emplace(node, -1);
      if (fresh) at->second = add_tensor(t, statistics);
      return at->second;
    }
    const auto [at, fresh] = of_node_.try_emplace({node, t->slot}, -1);
    if (fresh) at->second = add_tensor(t, statistics);
    return at->second;
  }
  const uint64_t serial = t->storage->serial();
  KnownTensor& known = others_[t];
  if (known.data != t->data || known.serial != serial || known.numel != t->numel ||
      known.dtype != t->dtype)
    known = {add_tensor(t, statistics), serial, t->data, t->numel, t->dtype};
  return known.id;
}

void Recorder::name_tensor(const Tensor& t, const std::string& name, bool parameter) {
  std::optional<Statistics> s;
  if (wants_statistics(t.impl()))  // as what an observer does itself, which is not observed
    autograd::detail::tell_observers([&](autograd::GraphObserver& o) {
      if (&o == this) s = statistics_of(t);
    });
  const std::lock_guard lock(mutex_);
  if (!names_.try_emplace(t.impl(), name).second) return;  // tied: the first name
  named_.push_back({t, name, parameter});
  TensorRow& row = data_.tensors[static_cast<size_t>(tensor_of(t.impl()))];
  row.name = name;
  if (row.statistics < 0) row.statistics = add_statistics(s ? &*s : nullptr);
}

// ---- nodes

Id Recorder::add_node(Node& node) {
  const Id id = static_cast<Id>(data_.nodes.size());
  nodes_[&node] = {id, node.counter};
  NodeRow row;
  row.name = node.name();
  row.device = device_of(Device::from_ordinal(node.device));
  row.leaf = node.flags & Node::kSink;
  row.reduces = node.flags & Node::kReduce;
  row.sequence = node.counter;
  data_.nodes.push_back(std::move(row));
  return id;
}

// Records also all nodes that it leads to: nodes from before the recording.
Id Recorder::node_of(Node& asked) {
  const auto known = [this](Node* n) {
    const auto at = nodes_.find(n);
    return at != nodes_.end() && at->second.counter == n->counter ? at->second.id : -1;
  };
  if (const Id id = known(&asked); id >= 0) return id;
  const Id result = add_node(asked);
  std::vector<std::pair<Node*, Id>> stack{{&asked, result}};
  while (!stack.empty()) {
    const auto [n, id] = stack.back();
    stack.pop_back();
    const autograd::RawEdge* const edges = n->edges();
    std::vector<NodeRow::Edge> rows(n->edge_count);
    bool moves = false;
    for (size_t i = 0; i < n->edge_count; ++i) {
      Node* const to = edges[i].node;
      if (!to) continue;
      Id of = known(to);
      if (of < 0) stack.emplace_back(to, of = add_node(*to));
      rows[i] = {of, edges[i].slot, -1};
      moves = moves || (to->device != n->device && !(to->flags & Node::kReduce));
    }
    NodeRow& row = data_.nodes[static_cast<size_t>(id)];
    row.edges = std::move(rows);
    row.moves = moves || is_movement(row.name);
  }
  return result;
}

OperationRow Recorder::operation_of(const Thread& t, std::string name, std::string scope,
                                    Id device) {
  OperationRow op;
  op.name = std::move(name);
  op.module = t.modules.empty() ? -1 : t.modules.back();
  op.scope = std::move(scope);
  op.device = device;
  op.replica = tls.replica;
  op.thread = t.number;
  return op;
}

Id Recorder::source_of(SourceRow row) {
  const auto [at, fresh] = sources_.try_emplace({row.file, row.function, row.line},
                                                static_cast<Id>(data_.sources.size()));
  if (fresh) data_.sources.push_back(std::move(row));
  return at->second;
}

Id Recorder::script_line() {
  for (const Scope* scope = tls.scope; scope; scope = scope->parent) {
    const std::string& name = scope->name;
    const size_t in = name.rfind(" in __torch__.");
    const size_t colon = in == std::string::npos ? in : name.rfind(':', in);
    if (colon == std::string::npos || colon + 1 >= in || in - colon > 10) continue;
    const std::string line = name.substr(colon + 1, in - colon - 1);
    if (line.find_first_not_of("0123456789") != std::string::npos) continue;
    return source_of({name.substr(0, colon), name.substr(in + 4), std::stoi(line)});
  }
  return -1;
}

void Recorder::on_operation(Node& node, ArrayRef<Input> inputs, ArrayRef<Input> results,
                            const autograd::Arguments& arguments) {
  const uint64_t ended = now();  // what follows is the recorder's own time
  std::vector<std::unique_ptr<Statistics>> statistics(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    TensorImpl* const t = results[i].impl;
    if (!wants_statistics(t) || node.flags & (Node::kSink | Node::kReduce)) continue;
    // A view's values are known already, unless it has just been written.
    const bool seen = t->base && std::ranges::any_of(inputs, [t](const Input& in) {
                        return in.impl && in.impl != t && base_of(in.impl) == base_of(t);
                      });
    if (seen) continue;
    add_ref(t->refs);
    statistics[i] = std::make_unique<Statistics>(statistics_of(Tensor(t)));
  }
  std::vector<uintptr_t> stack;
  if (options_.source_lines && !(node.flags & Node::kSink)) stack = return_addresses();

  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  nodes_.erase(&node);                   // another one's, at the same place
  if (node.flags & Node::kSink) return;  // until something leads to it
  const Id id = node_of(node);
  NodeRow& row = data_.nodes[static_cast<size_t>(id)];
  Thread& t = thread();
  row.in_backward = !t.running.empty();
  if (node.flags & Node::kReduce) {  // no operation of the program's
    for (const Input& copy : results)
      if (copy.impl) of_node_[{id, copy.impl->slot}] = add_tensor(copy.impl, -1);
    return;
  }
  if (full()) return;
  OperationRow op = operation_of(t, operation_name(row.name), scope_text(), row.device);
  op.arguments = arguments.str();
  op.node = id;
  op.source = script_line();
  op.start = op.end = ended;
  for (const Input& in : inputs) {
    op.inputs.push_back(tensor_of(in.impl));
    op.versions.push_back(in.impl ? in.impl->storage->version().load() : 0);
  }
  NodeRow& made = data_.nodes[static_cast<size_t>(id)];  // tensor_of may have added some
  for (size_t i = 0; i < made.edges.size() && i < op.inputs.size(); ++i)
    if (made.edges[i].to >= 0) made.edges[i].tensor = op.inputs[i];
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorImpl* const r = results[i].impl;
    if (!r) {
      op.outputs.push_back(-1);
      continue;
    }
    const Id tensor = add_tensor(r, add_statistics(statistics[i].get()));
    op.outputs.push_back(tensor);
    // In place: the tensor gets its history after this call.
    if (r->node == &node || !r->node || results.size() == 1)
      of_node_[{id, r->node == &node ? r->slot : 0}] = tensor;
  }
  // A saved result has no history: the node does not own itself.
  for (OperationRow::Saved& s : t.saved)
    for (const Id out : op.outputs) {
      if (out < 0) continue;
      const TensorRow &a = data_.tensors[static_cast<size_t>(s.tensor)],
                      &b = data_.tensors[static_cast<size_t>(out)];
      if (a.storage == b.storage && a.shape == b.shape) s.tensor = out;
    }
  op.saved = std::move(t.saved);
  t.saved.clear();
  const std::vector<Id> kernels = claim_kernels(t, inputs, results);
  // to() and the like: the host has waited for their copy.
  const bool copied = t.copied_to && results.size() == 1 && inputs.size() == 1 &&
                      results[0].impl == t.copied_to && inputs[0].impl &&
                      inputs[0].impl->device != t.copied_to->device;
  const Id operation = copied ? t.copied : static_cast<Id>(data_.operations.size());
  if (copied) op.start = data_.operations[static_cast<size_t>(operation)].start;
  t.copied_to = nullptr;
  for (const Id k : kernels) {
    data_.kernels[static_cast<size_t>(k)].operation = operation;
    op.start = std::min(op.start, data_.kernels[static_cast<size_t>(k)].start);
  }
  data_.nodes[static_cast<size_t>(id)].operation = operation;
  // A movement belongs to this operation if it brought the results. Movements that leave no node
  // belong to no operation.
  const auto storage_of = [this](Id tensor) {
    return tensor < 0 ? -1 : data_.tensors[static_cast<size_t>(tensor)].storage;
  };
  const auto made_here = [&](Id moved) {
    const auto same = [&, storage = storage_of(moved)](Id t) { return storage_of(t) == storage; };
    return storage_of(moved) >= 0 && std::ranges::any_of(op.outputs, same) &&
           std::ranges::none_of(op.inputs, [&](Id t) { return t == moved; });
  };
  for (const Id movement : t.movements) {
    MovementRow& m = data_.movements[static_cast<size_t>(movement)];
    if (std::ranges::any_of(m.to, made_here)) m.operation = operation, m.node = id;
  }
  t.movements.clear();
  if (copied) data_.operations[static_cast<size_t>(operation)] = std::move(op);
  else data_.operations.push_back(std::move(op));
  if (!stack.empty()) stacks_.emplace_back(operation, std::move(stack));
}

void Recorder::on_saved(const Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  Thread& t = thread();
  const Id id = tensor_of(tensor.impl());
  if (std::ranges::any_of(t.saved, [id](const auto& s) { return s.tensor == id; })) return;
  t.saved.push_back({id, data_.tensors[static_cast<size_t>(id)].bytes, tensor.version()});
}

// A cast that leaves a node is an operation already. Another one takes its kernel here, so that
// what uses its result shows where that comes from.
void Recorder::on_cast(const Tensor& from, const Tensor& to, bool kept) {
  std::optional<Statistics> s;
  const bool recorded = has_history(to.impl());
  if (!kept && !recorded && wants_statistics(to.impl())) s = statistics_of(to);
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  if (kept) {
    if (const auto at = casts_.find(tensor_of(to.impl())); at != casts_.end())
      ++data_.operations[static_cast<size_t>(at->second)].reuses;
    return;
  }
  Id operation = -1;
  if (recorded) {
    operation = data_.nodes[static_cast<size_t>(node_of(*static_cast<Node*>(to->node)))].operation;
  } else if (!full()) {
    Thread& t = thread();
    OperationRow op = operation_of(t, "to", scope_text(), device_of(to.device()));
    op.start = op.end = now();
    op.inputs = {tensor_of(from.impl())};
    op.versions = {from.version()};
    op.outputs = {tensor_of(to.impl(), add_statistics(s ? &*s : nullptr))};
    const Input in(from), out(to);
    const std::vector<Id> kernels = claim_kernels(t, {&in, 1}, {&out, 1});
    operation = static_cast<Id>(data_.operations.size());
    for (const Id k : kernels) {
      data_.kernels[static_cast<size_t>(k)].operation = operation;
      op.start = std::min(op.start, data_.kernels[static_cast<size_t>(k)].start);
    }
    data_.operations.push_back(std::move(op));
  }
  if (operation < 0) return;
  OperationRow& op = data_.operations[static_cast<size_t>(operation)];
  op.autocast = true;
  casts_[op.outputs[0]] = operation;
}

// ---- scopes

const std::string& Recorder::scope_text() {
  static const std::string none;
  const Scope* const s = tls.scope;
  if (!s) return none;
  const auto [at, fresh] = scopes_.try_emplace(s);
  if (fresh)
    for (const Scope* up = s; up; up = up->parent)
      at->second = at->second.empty() ? up->name : up->name + " > " + at->second;
  return at->second;
}

void Recorder::on_scope(const Scope& scope, bool begins) {
  if (!autograd::detail::tells(*this)) return;
  const std::lock_guard lock(mutex_);
  scopes_.erase(&scope);  // a new scope may have the same address
  Thread& t = thread();
  if (t.walks == 0 && t.running.empty() && !tls.task) leave_unclaimed(t);
  if (scope.name.size() > 5 && scope.name.ends_with(".step")) {
    EventRow e;
    e.text = scope.name;
    event(begins ? "step_begin" : "step_end", e);
  }
}

// ---- modules

Id Recorder::add_module(const std::string& path, const std::string& type, Id parent) {
  const std::lock_guard lock(mutex_);
  data_.modules.push_back({path, type, parent});
  return last(data_.modules);
}
void Recorder::enter_module(Id module) {
  const std::lock_guard lock(mutex_);
  Thread& t = thread();
  leave_unclaimed(t);
  t.modules.push_back(module);
}
void Recorder::leave_module() {
  const std::lock_guard lock(mutex_);
  Thread& t = thread();
  leave_unclaimed(t);
  if (!t.modules.empty()) t.modules.pop_back();
}

// ---- memory

void Recorder::on_memory(const MemoryEvent& e) {
  // Memory that observers allocate and free is not recorded.
  if (autograd::detail::inside_graph_observer()) return;
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  if (!e.made) return memory_.on_gone(e, now());
  memory_.on_made(e, now(), autograd::detail::tells(*this) ? scope_text() : std::string());
}

}  // namespace see
}  // namespace ramet
