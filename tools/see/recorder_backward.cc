// The recorder's observer calls for backwards, reductions, movements and waits.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "autograd/graph/engine.h"
#include "tools/see/recorder_internal.h"
#include "tools/see/source_lines.h"
#include "tools/see/statistics_of.h"

namespace ramet {
namespace see {

using autograd::Node;

void Recorder::event(const char* kind, EventRow e) {
  if (full()) return;
  e.kind = kind;
  e.time = now();
  e.thread = thread().number;
  data_.events.push_back(std::move(e));
}

void Recorder::on_backward_begun(const void*, const std::vector<autograd::Root>& roots, bool) {
  const std::lock_guard lock(mutex_);
  Thread& t = thread();
  if (t.running.empty()) {
    // Kernels that made the loss's first gradient belong to the backward.
    std::erase_if(t.kernels, [&roots](const Unclaimed& k) {
      return std::ranges::any_of(roots, [&k](const autograd::Root& r) {
        return r.grad.defined() &&
               std::ranges::find(k.words, reinterpret_cast<uintptr_t>(r.grad->data)) !=
                   k.words.end();
      });
    });
    leave_unclaimed(t);
  }
  ++t.walks;
  EventRow e;
  for (const autograd::Root& r : roots) {
    const Id node = node_of(*r.node.get());
    if (e.node < 0) e.node = node;
  }
  event("backward_begin", e);
}

void Recorder::on_backward_ended(const void*, bool failed) {
  const std::lock_guard lock(mutex_);
  Thread& t = thread();
  t.walks = std::max(t.walks - 1, 0);
  EventRow e;
  if (failed) e.text = "failed";
  event("backward_end", e);
}

void Recorder::on_node_ready(const void*, Node& node) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  EventRow e;
  e.node = node_of(node);
  e.device = device_of(Device::from_ordinal(node.device));
  event("ready", e);
}

void Recorder::on_node_begun(Node& node, Tensor*) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  EventRow e;
  e.node = node_of(node);
  e.device = device_of(Device::from_ordinal(node.device));
  thread().running.push_back(e.node);
  event("begin", e);
}

void Recorder::on_node_ended(Node& node, const Tensor*, bool failed) {
  const std::lock_guard lock(mutex_);
  Thread& t = thread();
  if (stopped_) return;
  t.kernels.clear();  // of the node, which they name already
  t.saved.clear();
  if (!t.running.empty()) t.running.pop_back();
  EventRow e;
  e.node = node_of(node);
  e.device = device_of(Device::from_ordinal(node.device));
  if (failed) {
    try {
      if (std::current_exception()) throw;
    } catch (const std::exception& error) { e.text = error.what(); } catch (...) {
    }
  }
  event(failed ? "failed" : "end", e);
}

void Recorder::on_delivered(const void*, Node& from, int edge, const Tensor& gradient) {
  std::unique_ptr<Statistics> statistics;
  if (wants_statistics(gradient.impl()))
    statistics = std::make_unique<Statistics>(statistics_of(gradient));
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  EventRow e;
  e.node = node_of(from);
  e.edge = edge;
  e.device = device_of(gradient.device());
  const Id of_it = add_statistics(statistics.get());
  e.tensor = add_tensor(gradient.impl(), of_it);
  NodeRow::Edge& row = data_.nodes[static_cast<size_t>(e.node)].edges[static_cast<size_t>(edge)];
  if (row.tensor < 0) row.tensor = e.tensor;
  if (data_.nodes[static_cast<size_t>(row.to)].leaf) {
    contributors_[row.to].insert(e.node);
    const int before = delivered_[row.to].count;
    delivered_[row.to] = {before + 1, gradient->data, gradient.version(), of_it};
  }
  event("delivered", e);
}

void Recorder::on_accumulated(Node& leaf, const Tensor& gradient) {
  std::unique_lock lock(mutex_);
  if (stopped_) return;
  EventRow e;
  e.node = node_of(leaf);
  // A leaf's first gradient is what was delivered, if that was one.
  const Delivered came = std::exchange(delivered_[e.node], {});
  const bool same =
      came.count == 1 && came.data == gradient->data && came.version == gradient.version();
  Id statistics = same ? came.statistics : -1;
  if (statistics < 0 && wants_statistics(gradient.impl())) {
    lock.unlock();
    const Statistics s = statistics_of(gradient);
    lock.lock();
    statistics = add_statistics(&s);
  }
  if (stopped_) return;
  e.device = device_of(gradient.device());
  e.tensor = add_tensor(gradient.impl(), statistics);
  gradients_[e.node] = e.tensor;
  event("accumulated", e);
}

// ---- buckets and movements

Id Recorder::bucket_of(const void* bucket, const char* kind) {
  const auto [at, fresh] = buckets_.try_emplace(bucket, static_cast<Id>(data_.buckets.size()));
  if (fresh) data_.buckets.emplace_back();
  BucketRow& row = data_.buckets[static_cast<size_t>(at->second)];
  if (kind) row.kind = kind;
  return at->second;
}

void Recorder::add_member(Id bucket, Id node) {
  BucketRow& row = data_.buckets[static_cast<size_t>(bucket)];
  if (std::ranges::find(row.members, node) != row.members.end()) return;
  row.members.push_back(node);
  if (row.device < 0) row.device = data_.nodes[static_cast<size_t>(node)].device;
}

void Recorder::on_slot_filled(const void* bucket, Node& member) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  EventRow e;
  e.node = node_of(member);
  e.bucket = bucket_of(bucket, nullptr);
  add_member(e.bucket, e.node);
  event("slot", e);
}

void Recorder::on_reduce_begun(const void* bucket, const char* kind, ArrayRef<Node*> members) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  EventRow e;
  e.bucket = bucket_of(bucket, kind);
  for (Node* const n : members) add_member(e.bucket, node_of(*n));
  e.device = data_.buckets[static_cast<size_t>(e.bucket)].device;
  // Inside the backward's thread, or concurrently with it.
  const bool beside = std::strcmp(kind, "all_reduce") == 0;
  if (beside) {
    if (!full()) {
      MovementRow m;
      m.kind = kind;
      m.bucket = e.bucket;
      m.start = m.end = now();
      reductions_[e.bucket] = {static_cast<Id>(data_.movements.size()), m.start};
      data_.movements.push_back(std::move(m));
    }
  } else {
    thread().reducing.push_back(e.bucket);
  }
  event("reduce_begin", e);
}

void Recorder::on_reduce_ended(const void* bucket, uint64_t when) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  EventRow e;
  e.bucket = bucket_of(bucket, nullptr);
  e.device = data_.buckets[static_cast<size_t>(e.bucket)].device;
  event("reduce_end", e);
  if (const auto at = reductions_.find(e.bucket); at != reductions_.end()) {
    const uint64_t end = time_of(when);
    data_.movements[static_cast<size_t>(at->second.first)].end = std::max(end, at->second.second);
    if (!data_.events.empty() && data_.events.back().kind == "reduce_end")
      data_.events.back().time = std::max(end, at->second.second);
    reductions_.erase(at);
  } else if (auto& stack = thread().reducing; !stack.empty()) {
    stack.pop_back();
  }
}

void Recorder::on_moved(const char* kind, ArrayRef<Tensor> from, ArrayRef<Tensor> to,
                        uint64_t begun) {
  const std::lock_guard lock(mutex_);
  if (full()) return;
  Thread& t = thread();
  MovementRow m;
  m.kind = kind;
  for (const Tensor& x : from) m.from.push_back(x.defined() ? tensor_of(x.impl()) : -1);
  for (const Tensor& x : to) {
    m.to.push_back(x.defined() ? tensor_of(x.impl()) : -1);
    if (x.defined()) m.bytes += static_cast<int64_t>(x.nbytes());
  }
  if (to.empty())  // another process has what came of it
    for (const Tensor& x : from)
      if (x.defined()) m.bytes += static_cast<int64_t>(x.nbytes());
  m.start = time_of(begun);
  m.end = now();
  if (!t.reducing.empty()) m.bucket = t.reducing.back();
  if (!t.running.empty()) m.node = t.running.back();
  else t.movements.push_back(static_cast<Id>(data_.movements.size()));
  data_.movements.push_back(std::move(m));
}

// ---- waits

// Recorded as an operation, with a line and a module; a node's operation may turn out to be the
// same one.
void Recorder::on_host_wait(const HostWait& wait) {
  if (!autograd::detail::tells(*this)) return;
  std::vector<uintptr_t> stack;
  if (options_.source_lines) stack = return_addresses();
  const std::lock_guard lock(mutex_);
  if (full()) return;
  Thread& t = thread();
  OperationRow op = operation_of(t, wait.what, scope_text(), device_of(wait.device));
  op.source = script_line();
  op.start = time_of(wait.start), op.end = time_of(wait.end);
  if (wait.from) {
    op.inputs.push_back(tensor_of(wait.from));
    op.versions.push_back(wait.from->storage->version().load());
  }
  if (wait.to) op.outputs.push_back(tensor_of(wait.to));
  t.copied = static_cast<Id>(data_.operations.size());
  t.copied_to = wait.to;
  data_.operations.push_back(std::move(op));
  if (!stack.empty()) stacks_.emplace_back(t.copied, std::move(stack));
}

}  // namespace see
}  // namespace ramet
