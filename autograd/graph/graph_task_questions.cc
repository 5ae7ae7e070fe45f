// Answers to the questions that reducers and nodes ask a general backward pass while it runs, and
// the state that the answers need (graph_task.h).
#include <algorithm>

#include "autograd/graph/function.h"
#include "autograd/graph/graph_task.h"

namespace ramet {
namespace autograd {
namespace detail {

bool InTurn::may_run(Node* n) {
  if (nodes_[turn_].first == n) return true;
  std::find_if(nodes_.begin(), nodes_.end(), [n](const auto& pair) {
    return pair.first == n;
  })->second = true;
  return false;
}

Node* InTurn::finish() {
  return ++turn_ < nodes_.size() && nodes_[turn_].second ? nodes_[turn_].first : nullptr;
}

void PendingFunctions::add(FunctionNode* f) {
  functions_.push_back({f, (f->flags & Node::kInTurn) != 0});
}

void PendingFunctions::remove(const Node* f) {
  std::erase_if(functions_, [f](const Function& pending) { return pending.node == f; });
}

bool PendingFunctions::may_differentiate(const Node* leaf) const {
  return std::any_of(functions_.begin(), functions_.end(),
                     [leaf](const Function& f) { return f.node->may_differentiate(leaf); });
}

bool PendingFunctions::may_meet() const {
  return std::any_of(functions_.begin(), functions_.end(),
                     [](const Function& f) { return f.meets; });
}

}  // namespace detail

bool GraphTask::within(const GraphTask& outer) const {
  const GraphTask* t = this;
  while (t && t != &outer) t = t->outer_;
  return t != nullptr;
}

bool GraphTask::may_reach(const Node* leaf) {
  const std::lock_guard lock(mutex_);
  return functions_.may_differentiate(leaf) || nested_sums_.leads_to(leaf);
}

bool GraphTask::is_unread_until_end(const Node* leaf) {
  const std::lock_guard lock(mutex_);
  const Entry* const entry = order_.find(leaf);
  return !users_code_ && entry && entry->waits == 1 && entry->contributions.empty();
}

bool GraphTask::may_meet() {
  const std::lock_guard lock(mutex_);
  return functions_.may_meet();
}

void GraphTask::keep(Node* sum, uint32_t slot, const GraphTask& from, const Tensor& gradient) {
  std::vector<uint64_t> path;
  for (const Place* p = from.place_; p; p = p->outer) path.push_back(p->rank);
  std::reverse(path.begin(), path.end());
  const std::lock_guard lock(mutex_);
  nested_sums_.keep(sum, slot, std::move(path), gradient);
}

}  // namespace autograd
}  // namespace ramet
