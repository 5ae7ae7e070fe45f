#include "autograd/graph/nested_sums.h"

#include <algorithm>

namespace ramet {
namespace autograd {

void NestedSums::keep(Node* sum, uint32_t slot, std::vector<uint64_t> path, Tensor gradient) {
  kept_.push_back({NodePtr(sum), slot, std::move(path), std::move(gradient)});
}

bool NestedSums::leads_to(const Node* leaf) const {
  return std::any_of(kept_.begin(), kept_.end(),
                     [leaf](const Kept& k) { return k.sum->edges()[0].node == leaf; });
}

std::vector<Root> NestedSums::take() {
  std::vector<Kept> kept = std::exchange(kept_, {});
  std::stable_sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) {
    return std::tie(a.sum->counter, a.slot, a.path) < std::tie(b.sum->counter, b.slot, b.path);
  });
  std::vector<Root> roots;
  for (Kept& k : kept) roots.push_back({std::move(k.sum), k.slot, std::move(k.gradient)});
  return roots;
}

}  // namespace autograd
}  // namespace ramet
