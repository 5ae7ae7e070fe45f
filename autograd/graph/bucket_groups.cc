#include "autograd/graph/bucket_groups.h"

#include <algorithm>

namespace ramet {
namespace autograd {

void BucketGroups::begin(GraphOrder& order, GraphTask& task, bool claim) {
  for (Node* n : order.nodes()) {
    ReduceBucket* const b = n->bucket();
    if (!b || !order[n].wanted) continue;
    const auto [group, first] = groups_.try_emplace(b);
    ++group->second.waits;
    if (first) b->on_backward_begun(task);
    if (claim && !owned_.count(b) && b->claim(&task)) owned_.insert(b);
  }
}

bool BucketGroups::add(ReduceBucket* b, Node* n, GraphOrder::Entry* entry) {
  Group& group = groups_.at(b);
  group.members.emplace_back(n, entry);
  return --group.waits == 0;
}

std::vector<BucketGroups::Member> BucketGroups::take(ReduceBucket* b) {
  std::vector<Member> members = std::exchange(groups_.at(b).members, {});
  std::sort(members.begin(), members.end(),
            [](const Member& x, const Member& y) { return x.second->rank < y.second->rank; });
  return members;
}

std::vector<ReduceBucket*> BucketGroups::waiting() const {
  std::vector<ReduceBucket*> buckets;
  for (const auto& [bucket, group] : groups_)
    if (!group.members.empty()) buckets.push_back(bucket);
  return buckets;
}

void BucketGroups::end() {
  for (ReduceBucket* bucket : owned_) bucket->on_backward_ended();
}

void BucketGroups::release(GraphTask* task) {
  for (ReduceBucket* bucket : owned_) bucket->release(task);
  owned_.clear();
}

}  // namespace autograd
}  // namespace ramet
