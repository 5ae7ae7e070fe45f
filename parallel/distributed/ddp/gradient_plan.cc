// Which gradients are reduced together, and what all ranks must agree on.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "parallel/distributed/ddp/gradient_reducer_internal.h"
#include "parallel/distributed/meet/meeting_internal.h"
#include "parallel/distributed/meet/socket_internal.h"
#include "parallel/distributed/wire/channel_internal.h"
#include "parallel/move/bucket.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ramet::distributed::detail {

// ---- frozen parameters ------------------------------------------------------------------------

GradientReducer::Trainable GradientReducer::trainable() const {
  Trainable t;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    if (!leaves_[i]) continue;
    const Tensor& tensor = leaves_[i]->tensor;
    const uint64_t facts[] = {static_cast<uint64_t>(tensor.scalar_type()),
                              static_cast<uint64_t>(tensor.device().ordinal()), tensor.nbytes()};
    t.layout = XXH3_64bits_withSeed(facts, sizeof(facts), t.layout);
    if (tensor.requires_grad()) continue;
    t.frozen.push_back(i);
    const std::string& name = leaves_[i]->name;
    t.hash = XXH3_64bits_withSeed(name.data(), name.size(), t.hash);
  }
  return t;
}

// If ranks froze different parameters, their buckets differ. The lists in the store show them
// where.
void GradientReducer::publish_trainable() {
  Trainable now = trainable();
  if (key_.empty() || (stored_ && now == published_)) return;
  std::string list;
  for (size_t i : now.frozen) list += leaves_[i]->name + '\n';
  group_->store()->set(key_ + std::to_string(group_->rank()), list);
  published_ = std::move(now);
  stored_ = true;
}

std::string GradientReducer::disagreement() const {
  if (key_.empty()) return {};
  std::map<std::string, std::vector<int>> frozen;  // name, ranks
  const int n = group_->size();
  for (int r = 0; r < n; ++r) {
    const std::string key = key_ + std::to_string(r);
    if (!group_->store()->check({key})) return {};
    const std::string list = group_->store()->get(key, Milliseconds(1000));
    for (size_t at = 0, end; (end = list.find('\n', at)) != std::string::npos; at = end + 1)
      frozen[list.substr(at, end - at)].push_back(r);
  }
  std::string text;
  for (const auto& [name, ranks] : frozen) {
    if (static_cast<int>(ranks.size()) == n) continue;
    std::vector<int> others;
    for (int r = 0; r < n; ++r)
      if (std::ranges::find(ranks, r) == ranks.end()) others.push_back(r);
    text += (text.empty() ? "" : "; ") + ("parameter '" + name) + "' is frozen on " +
            rank_list(ranks) + " and not on " + rank_list(others);
  }
  return text;
}

// Throws the error of a step again, with what the ranks disagree about.
void GradientReducer::explain(const std::exception_ptr& error) const {
  try {
    std::rethrow_exception(error);
  } catch (const CommError& e) {
    // After any other error the store may be on a lost rank's host: asking it takes half a minute.
    if (e.kind() != CommError::Kind::mismatch) throw;
    std::string text;
    try {
      text = disagreement();
    } catch (const Error&) {}  // the store has gone with its process
    if (text.empty()) throw;
    throw CommMismatch(CommError::Kind::mismatch, e.origin(), e.ranks(),
                       "[" + options_.name + "] requires_grad differs between the ranks: " + text +
                           ". " + e.what());
  }
}

// ---- the plan ---------------------------------------------------------------------------------

// A bucket's members are in the order of registration. That is their order in memory, except for
// those that the module got later. The sum is formed there.
void GradientReducer::make_plan() {
  std::vector<parallel::BucketItem> items;
  for (size_t i : order_) {
    const Tensor& t = leaves_[i]->tensor;
    items.push_back({t.requires_grad() ? static_cast<int64_t>(t.nbytes()) : 0, t.scalar_type(),
                     t.device().ordinal()});
  }
  plan_.clear();
  for (const auto& group : parallel::plan_buckets(items, options_.bucket_bytes)) {
    for (size_t from = 0; from < group.size(); from += kMaxMembers) {
      auto& list = plan_.emplace_back();
      for (size_t k = from; k < std::min(group.size(), from + kMaxMembers); ++k)
        list.push_back(order_[group[k]]);
      std::ranges::sort(list);
      for (size_t i : list) leaves_[i]->bucket = plan_.size() - 1;
    }
  }
  planned_ = trainable();
}

// After the first synchronised backward: orders the leaves by the last rank's position at which
// their gradient was complete, then by name. Later the plan changes only if parameters are frozen,
// thawed or moved.
void GradientReducer::agree_on_order() {
  if (agreed_) return;
  Packer mine;
  std::vector<uint64_t> place(leaves_.size(), UINT64_MAX);
  for (size_t k = 0; k < completed_.size(); ++k) place[completed_[k]] = k;
  for (uint64_t p : place) mine.number(p);
  const auto all = group_->exchange(mine.bytes(), options_.name + "/order of gradients");
  for (const std::string& theirs : all) {
    Unpacker u(theirs);
    for (uint64_t& p : place) p = std::max(p, u.number());
    RAMET_CHECK(u.good(), "ddp", "the order of another rank's gradients: got ", theirs.size(),
                " bytes, expected ", place.size() * sizeof(uint64_t));
  }
  // Parameters that some rank did not use come last.
  std::ranges::sort(order_, [&](size_t a, size_t b) {
    return std::pair(place[a], leaves_[a]->name) < std::pair(place[b], leaves_[b]->name);
  });
  agreed_ = true;
  make_plan();
}

BucketPlan GradientReducer::plan() const {
  const std::lock_guard lock(mutex_);
  BucketPlan out;
  for (const auto& list : plan_) {
    auto& names = out.emplace_back();
    for (size_t i : list) names.push_back(leaves_[i]->name);
  }
  return out;
}

void GradientReducer::set_plan(const BucketPlan& plan) {
  Packer text;
  for (const auto& bucket : plan) {
    text.number(bucket.size());
    for (const std::string& name : bucket) text.text(name);
  }
  const auto all = group_->exchange(text.bytes(), options_.name + "/set_plan");
  for (size_t r = 0; r < all.size(); ++r)
    RAMET_CHECK(all[r] == all[0], "set_plan", "rank ", r, " has another plan than rank 0");
  const std::lock_guard lock(mutex_);
  RAMET_CHECK(!task_, "set_plan", "a backward runs, expected a call between steps");
  std::map<std::string, size_t> by_name;
  for (size_t i = 0; i < leaves_.size(); ++i)
    if (leaves_[i]) by_name[leaves_[i]->name] = i;
  std::vector<std::vector<size_t>> lists;
  std::set<size_t> seen;
  for (const auto& bucket : plan) {
    RAMET_CHECK(bucket.size() <= kMaxMembers, "set_plan", "a bucket of ", bucket.size(),
                " parameters, expected at most ", kMaxMembers);
    auto& list = lists.emplace_back();
    for (const std::string& name : bucket) {
      const auto at = by_name.find(name);
      RAMET_CHECK(at != by_name.end(), "set_plan", "got '", name,
                  "', expected names of this module's parameters");
      RAMET_CHECK(seen.insert(at->second).second, "set_plan", "got '", name, "' twice");
      const Tensor &t = leaves_[at->second]->tensor,
                   &first = leaves_[list.empty() ? at->second : list[0]]->tensor;
      RAMET_CHECK(t.scalar_type() == first.scalar_type() && t.device() == first.device(),
                  "set_plan", "parameter '", name, "' is ", describe(t),
                  ", expected dtype and device of the others in its bucket, ", describe(first));
      list.push_back(at->second);
    }
    std::ranges::sort(list);
  }
  for (const auto& [name, i] : by_name)
    RAMET_CHECK(seen.count(i), "set_plan", "parameter '", name, "' is in no bucket");
  order_.clear();
  for (const auto& list : lists) order_.insert(order_.end(), list.begin(), list.end());
  plan_ = std::move(lists);
  for (size_t b = 0; b < plan_.size(); ++b)
    for (size_t i : plan_[b]) leaves_[i]->bucket = b;
  planned_ = trainable();
  agreed_ = true;
}

}  // namespace ramet::distributed::detail
