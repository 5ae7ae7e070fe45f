#include "parallel/nodes/reduce_hooks.h"

#include <algorithm>

namespace ramet {
namespace parallel {

std::shared_ptr<const ReduceHooks::Lists> ReduceHooks::lists() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return lists_;
}

unsigned ReduceHooks::replace(const std::function<void(Lists&, unsigned id)>& change) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto next = lists_ ? std::make_shared<Lists>(*lists_) : std::make_shared<Lists>();
  change(*next, last_ + 1);
  const bool some = !next->pre.empty() || !next->post.empty();
  lists_ = some ? std::move(next) : nullptr;
  any_.store(some, std::memory_order_release);
  return ++last_;
}

unsigned ReduceHooks::add(PreReduceHook hook) {
  return replace([&](Lists& l, unsigned id) { l.pre.emplace_back(id, std::move(hook)); });
}
unsigned ReduceHooks::add(PostReduceHook hook) {
  return replace([&](Lists& l, unsigned id) { l.post.emplace_back(id, std::move(hook)); });
}
bool ReduceHooks::remove(unsigned id) {
  size_t gone = 0;
  replace([&](Lists& l, unsigned) {
    const auto is = [id](const auto& hook) { return hook.first == id; };
    gone = std::erase_if(l.pre, is) + std::erase_if(l.post, is);
  });
  return gone != 0;
}

}  // namespace parallel
}  // namespace ramet
