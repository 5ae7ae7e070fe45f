#include "runtime/memory/memory_observer.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/base/context.h"
#include "runtime/base/error.h"
#include "runtime/memory/allocator.h"

namespace ramet {
namespace {

using List = std::vector<std::pair<uint64_t, std::shared_ptr<const MemoryObserver>>>;

struct Registry {
  std::mutex mutex;
  std::shared_ptr<const List> list = std::make_shared<List>();  // replaced, never changed
  uint64_t last = 0;
};
Registry& registry() {  // never destroyed: static destructors release storages
  static auto* r = new Registry;
  return *r;
}

__thread bool t_inside;

}  // namespace

constinit std::atomic<uint32_t> detail::memory_observers{0};

void detail::tell_memory(const MemoryEvent& event) noexcept {
  if (t_inside) return;
  const ScopedValue<bool> inside(t_inside, true);
  Registry& r = registry();
  std::unique_lock lock(r.mutex);
  const std::shared_ptr<const List> list = r.list;
  lock.unlock();
  for (const auto& [number, observer] : *list) (*observer)(event);
}

uint64_t add_memory_observer(MemoryObserver observer) {
  RAMET_CHECK(observer, "add_memory_observer", "got an empty function, expected one");
  auto shared = std::make_shared<const MemoryObserver>(std::move(observer));
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  List list = *r.list;
  list.emplace_back(++r.last, std::move(shared));
  r.list = std::make_shared<const List>(std::move(list));
  detail::memory_observers = static_cast<uint32_t>(r.list->size());
  detail::observe_blocks(true);
  return r.last;
}

void remove_memory_observer(uint64_t number) {
  Registry& r = registry();
  std::shared_ptr<const List> old;  // its observers die after the lock
  const std::lock_guard lock(r.mutex);
  old = r.list;
  List list = *old;
  const auto at =
      std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.first == number; });
  RAMET_CHECK(at != list.end(), "remove_memory_observer", "no such observer: got ", number,
              ", expected a number that add_memory_observer returned");
  list.erase(at);
  r.list = std::make_shared<const List>(std::move(list));
  detail::memory_observers = static_cast<uint32_t>(r.list->size());
  if (r.list->empty()) detail::observe_blocks(false);
}

}  // namespace ramet
