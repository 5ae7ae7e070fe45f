#include "tools/ledger/operations.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "runtime/devices/generator.h"
#include "tools/ledger/hash.h"

namespace ramet {
namespace ledger {

void OperationHashes::on_node_made(autograd::Node& node, ArrayRef<autograd::Input>,
                                   ArrayRef<autograd::Input> results) {
  // Collectors of leaves and sums over replicas are no operations of a shard.
  if (results.empty() || node.flags & (autograd::Node::kSink | autograd::Node::kReduce)) return;
  std::vector<Tensor> tensors;
  for (const autograd::Input& result : results) {
    add_ref(result.impl->refs);
    tensors.push_back(Tensor(result.impl));
  }
  const uint64_t hash = hash_of(hex_of(tensors));
  const ReplicaRandom* const replica = ReplicaRandom::current();
  const std::lock_guard lock(mutex_);
  Operation o;
  o.shard = replica ? replica->shard : -1;
  o.number = ++counts_[o.shard];
  o.name = node.name();
  o.hash = hash;
  forward_.emplace_back(node.sequence_nr(), o);
  made_[&node] = o;
}

void OperationHashes::on_node_ended(autograd::Node& node, const Tensor* out, bool failed) {
  if (failed || !out) return;
  const uint64_t hash = hash_of(hex_of(std::vector<Tensor>(out, out + node.edge_count)));
  const std::lock_guard lock(mutex_);
  const auto found = made_.find(&node);
  if (found == made_.end()) return;
  Operation o = found->second;
  o.backward = true;
  o.hash = hash;
  backward_.push_back(o);
}

std::vector<Operation> OperationHashes::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<uint64_t, Operation>> sorted = forward_;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.first, a.second.shard, a.second.number) <
           std::tuple(b.first, b.second.shard, b.second.number);
  });
  std::vector<Operation> all;
  for (const auto& [counter, operation] : sorted) all.push_back(operation);
  all.insert(all.end(), backward_.begin(), backward_.end());
  return all;
}

}  // namespace ledger
}  // namespace ramet
