#include "parallel/distributed/wire/inbox_internal.h"

namespace ramet::distributed::detail {

Inbox::Messages& Inbox::expect(uint64_t tag) {
  for (Messages& m : two_)
    if (m.tag == tag) return m;
  Messages& m = two_[oldest_];
  oldest_ = 1 - oldest_;
  m.transfers.clear();
  m.tag = tag;
  for (int i = 0; i < size_; ++i) {
    const size_t bytes = i == rank_ ? 0 : sizeof(Header) + kRoom;
    if (m.memory.size() < static_cast<size_t>(size_)) m.memory.emplace_back(bytes);
    m.transfers.push_back(
        bytes ? engine_.recv(i, tag, m.memory[static_cast<size_t>(i)].data(), bytes) : nullptr);
  }
  return m;
}

}  // namespace ramet::distributed::detail
