#include "autograd/graph/graph_order.h"

#include <algorithm>

namespace ramet {
namespace autograd {

void GraphOrder::visit(const std::vector<Root>& roots) {
  std::vector<Node*> stack;
  for (const Root& r : roots)
    if (entries_.try_emplace(r.node.get()).second) stack.push_back(r.node.get());
  while (!stack.empty()) {  // iterative: graphs are deep
    Node* n = stack.back();
    stack.pop_back();
    nodes_.push_back(n);
    RawEdge* edges = n->edges();
    for (int i = 0; i < n->edge_count; ++i) {
      if (!edges[i].node) continue;
      auto [it, fresh] = entries_.try_emplace(edges[i].node);
      ++it->second.waits;
      if (fresh) stack.push_back(edges[i].node);
    }
  }
  const auto key = [](const Node* n) {
    return std::pair(n->flags & Node::kSink ? 0 : n->counter, -int(n->device));
  };
  std::stable_sort(nodes_.begin(), nodes_.end(),
                   [&](const Node* a, const Node* b) { return key(a) > key(b); });
  for (size_t i = 0; i < nodes_.size(); ++i) (*this)[nodes_[i]].rank = i;
}

void GraphOrder::keep_what_leads_to(ArrayRef<RawEdge> captures) {
  for (size_t i = 0; i < captures.size(); ++i)
    if (auto it = entries_.find(captures[i].node); it != entries_.end())
      it->second.captures.emplace_back(captures[i].slot, int(i));
  // Consumers come earlier in the order, so inputs are decided first.
  for (size_t i = nodes_.size(); i-- > 0;) {
    Entry& entry = (*this)[nodes_[i]];
    entry.wanted = !entry.captures.empty() || leads_to_wanted(nodes_[i]);
  }
}

bool GraphOrder::leads_to_wanted(Node* n) const {
  const RawEdge* const edges = n->edges();
  return std::any_of(edges, edges + n->edge_count,
                     [this](const RawEdge& e) { return e.node && find(e.node)->wanted; });
}

}  // namespace autograd
}  // namespace ramet
