// Finds the operation that called a kernel.
#include <algorithm>
#include <cstring>

#include "runtime/capture/capture.h"
#include "tools/see/kernel_costs.h"
#include "tools/see/recorder_internal.h"

using ramet::detail::tls;

namespace ramet {
namespace see {
namespace {

using autograd::Input;

// Memory of tensors is aligned to 64 bytes, and tensors' addresses have the same upper bits.
// Numbers among the arguments (a count of elements, or two numbers in one word) have other upper
// bits.
constexpr int kFar = 40;
bool is_start_of_memory(uintptr_t word) { return word % 64 == 0 && word >> kFar != 0; }

}  // namespace

// Which of the kernels that a thread has called since its last operation belong to this operation?
// Those that were given memory of its results. Then, from the last to the first, those that share
// memory with one of them which is no input's. The others belong to operations without a node.
std::vector<Id> Recorder::claim_kernels(Thread& t, ArrayRef<Input> inputs,
                                        ArrayRef<Input> results) {
  const auto range_of = [](const TensorImpl* of) {
    StorageImpl* const root = of->storage->root();
    const auto first = reinterpret_cast<uintptr_t>(root->data);
    return Range{first, first + std::max<uint64_t>(root->bytes, 1)};
  };
  std::vector<Range> theirs;
  std::set<uintptr_t> mine;
  std::vector<Range> made;
  for (const Input& in : inputs)
    if (in.impl) theirs.push_back(range_of(in.impl));
  for (const Input& r : results)
    if (r.impl) made.push_back(range_of(r.impl));
  std::set<uintptr_t> near;
  for (const auto* const list : {&theirs, &made})
    for (const Range& r : *list) near.insert(r.first >> kFar);
  const auto in = [](const std::vector<Range>& ranges, uintptr_t word) {
    return std::ranges::any_of(ranges, [word](const Range& r) { return r.has(word); });
  };
  std::vector<Unclaimed> rest;
  std::vector<Id> claimed;
  for (size_t i = t.kernels.size(); i-- > 0;) {
    Unclaimed& k = t.kernels[i];
    const bool is_its = std::ranges::any_of(
        k.words, [&](uintptr_t w) { return in(made, w) || mine.count(w) != 0; });
    if (!is_its) {
      rest.push_back(std::move(k));
      continue;
    }
    for (const uintptr_t w : k.words)
      if (is_start_of_memory(w) && near.count(w >> kFar) && !in(theirs, w) && !in(made, w))
        mine.insert(w);
    claimed.push_back(k.kernel);
  }
  std::ranges::reverse(rest);
  t.kernels = std::move(rest);
  if (t.running.empty()) leave_unclaimed(t);
  else t.kernels.clear();  // the running node's
  return claimed;
}

// Operations that left no node.
void Recorder::leave_unclaimed(Thread& t) {
  for (const Unclaimed& k : t.kernels) {
    if (full()) break;
    KernelRow& row = data_.kernels[static_cast<size_t>(k.kernel)];
    OperationRow op = operation_of(t, row.name, row.scope, row.device);
    op.start = row.start, op.end = row.end;
    row.operation = static_cast<Id>(data_.operations.size());
    data_.operations.push_back(std::move(op));
  }
  t.kernels.clear();
}

void Recorder::on_kernel(const KernelCall& call) {
  if (!autograd::detail::tells(*this)) return;
  const KernelCost cost = cost_of(call);
  const std::lock_guard lock(mutex_);
  if (full()) return;
  Thread& t = thread();
  KernelRow row;
  row.name = call.name;
  row.device = device_of(call.stream.device);
  row.scope = scope_text();
  row.thread = t.number;
  row.start = time_of(call.start);
  row.end = now();
  row.bytes = cost.bytes, row.flops = cost.flops;
  row.replayed = capture::replaying();
  replays_ = replays_ || row.replayed;
  if (!t.running.empty()) row.node = t.running.back();
  const Id id = static_cast<Id>(data_.kernels.size());
  // Not those of backward passes, optimizers and replays: they are no operations of the program.
  const bool step = row.scope.find(".step") != std::string::npos;
  const bool unclaimed = !row.replayed && !step && t.walks == 0 && !tls.task && t.reducing.empty();
  const bool in_node = !t.running.empty() && tls.grad_mode;
  data_.kernels.push_back(std::move(row));
  std::vector<uintptr_t> words(std::min<size_t>(call.bytes, 1024) / sizeof(uintptr_t));
  std::memcpy(words.data(), call.args, words.size() * sizeof(uintptr_t));
  std::erase_if(words, [](uintptr_t w) { return w < 4096; });  // no pointers
  for (const uintptr_t w : words)
    if (const Id storage = memory_.made_at(reinterpret_cast<const void*>(w)); storage >= 0)
      used_.try_emplace(storage, id);
  if (!unclaimed && !in_node) return;
  t.kernels.push_back({id, std::move(words)});
}

}  // namespace see
}  // namespace ramet
