#include "parallel/distributed/shard/shard_layout_internal.h"

#include <algorithm>

#include "nn/module/flat_store.h"
#include "runtime/base/checked_size.h"

namespace ramet::distributed::detail {

ShardLayout::ShardLayout(std::vector<int64_t> numels, int64_t item, int ranks)
    : numels_(std::move(numels)) {
  const auto padded = [item](int64_t n) { return nn::flat_padded(n * item) / item; };
  int64_t end = 0;
  for (int64_t n : numels_) {
    offsets_.push_back(end);
    end += padded(n);
  }
  piece_ = padded(ceil_div(end, ranks));
  total_ = piece_ * ranks;
}

ShardLayout::Range ShardLayout::part(size_t tensor, int rank) const {
  const int64_t from = offsets_[tensor], n = numels_[tensor];
  const int64_t begin = std::clamp(piece_ * rank - from, int64_t{0}, n);
  const int64_t end = std::clamp(piece_ * (rank + 1) - from, int64_t{0}, n);
  return {begin, end - begin};
}

}  // namespace ramet::distributed::detail
