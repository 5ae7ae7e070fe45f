#include "parallel/move/bucket.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/base/checked_size.h"

namespace ramet {
namespace parallel {

std::vector<std::vector<size_t>> plan_buckets(const std::vector<BucketItem>& items,
                                              ArrayRef<int64_t> limits, GroupRule rule) {
  RAMET_CHECK(!limits.empty(), "plan_buckets", "got no limit, expected at least one");
  for (int64_t limit : limits)
    RAMET_CHECK(limit >= 0, "plan_buckets", "limit: got ", limit, ", expected 0 or more bytes");

  struct Open {
    std::vector<size_t> members;
    int64_t bytes = 0;
    size_t closed = 0;  // groups of this key so far: chooses the limit
  };
  std::map<std::pair<int, ScalarType>, Open> open;
  std::vector<std::vector<size_t>> groups;
  auto close = [&groups](Open& o) {
    if (o.members.empty()) return;
    groups.push_back(std::exchange(o.members, {}));
    o.bytes = 0;
    ++o.closed;
  };
  for (size_t i = 0; i < items.size(); ++i) {
    RAMET_CHECK(items[i].bytes >= 0, "plan_buckets", "bytes of item ", i, ": got ", items[i].bytes,
                ", expected 0 or more");
    Open& o = open[{items[i].device, items[i].dtype}];
    auto limit = [&] { return limits[std::min(o.closed, limits.size() - 1)]; };
    if (rule == GroupRule::ours && items[i].bytes > limit() - o.bytes) close(o);
    o.members.push_back(i);
    o.bytes = checked_add("plan_buckets", "bytes of a group", o.bytes, items[i].bytes);
    if (rule == GroupRule::upstream && o.bytes >= limit()) close(o);
  }
  for (auto& [key, o] : open) close(o);
  // by first member: no two groups share one
  if (rule == GroupRule::ours) std::sort(groups.begin(), groups.end());
  return groups;
}

}  // namespace parallel
}  // namespace ramet
