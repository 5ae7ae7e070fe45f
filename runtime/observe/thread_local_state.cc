// Note [Own thread-local memory]
// Thread-local memory is initial-exec (.bazelrc): an access is one instruction and no call. That
// also holds for variables of other libraries, but the loader may have no fixed place for those. A
// process that loads libstdc++ late (Python with PyTorch or ONNX Runtime) has none for libstdc++'s
// variables once they were used. Then the loader refuses a library that asks for one: "cannot
// allocate memory in static TLS block". So no object of the library names a thread-local variable
// of another one. std::call_once, std::promise, std::packaged_task and std::async do that. A static
// variable of a function, or a mutex, replaces them. tests/tools/sdk checks it.
#include "runtime/observe/thread_local_state.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "runtime/observe/observer.h"

using ramet::detail::tls;

namespace ramet {
namespace {

struct Entry {
  uint64_t number;
  CaptureState capture;
  RestoreState restore;
  std::atomic<bool> registered{true};
};
using List = std::vector<std::shared_ptr<Entry>>;

struct Registry {
  std::mutex mutex;
  std::shared_ptr<const List> list;  // replaced, never changed
  uint64_t last = 0;
};
Registry& registry() {  // never destroyed: see pool
  static Registry* r = new Registry;
  return *r;
}
std::atomic<bool> g_any{false};

// A new member of Context must be classified: carried, or the thread's own.
static_assert(sizeof(void*) != 8 || sizeof(Context) == 64,
              "decide about the new member, then mend the number");

void copy_captured(Context& to, const Context& from) {
  to.grad_mode = from.grad_mode;
  to.inference_mode = from.inference_mode;
  to.watching = from.watching;
  to.anomaly_check_nan = from.anomaly_check_nan;
  to.default_dtype = from.default_dtype;
  to.cpu_device = from.cpu_device;
  to.cuda_device = from.cuda_device;
  to.share = from.share;
  to.replica = from.replica;
  to.autocast = from.autocast;
  to.autocast_choices = from.autocast_choices;
  to.scope = from.scope;
  to.random = from.random;
}

}  // namespace

struct ThreadLocalState::Registered {
  std::shared_ptr<Entry> entry;
  std::shared_ptr<void> value;
};

ThreadLocalState::ThreadLocalState() : random_(ReplicaRandomRef::current()) {
  if (RAMET_UNLIKELY(g_any.load(std::memory_order_acquire))) {
    Registry& r = registry();
    std::unique_lock lock(r.mutex);
    const std::shared_ptr<const List> list = r.list;
    lock.unlock();
    std::vector<Registered> values;
    for (const auto& entry : *list) values.push_back({entry, entry->capture()});
    registered_ = std::make_shared<const std::vector<Registered>>(std::move(values));
  }
  copy_captured(context_, tls);
  Scope::hold(context_.scope);
}

ThreadLocalState::ThreadLocalState(const ThreadLocalState& o)
    : context_(o.context_), random_(o.random_), registered_(o.registered_) {
  Scope::hold(context_.scope);
}

ThreadLocalState::~ThreadLocalState() { Scope::release(context_.scope); }

void ThreadLocalState::apply() const {
  copy_captured(tls, context_);
  if (registered_)
    for (const Registered& r : *registered_)
      if (r.entry->registered.load(std::memory_order_acquire)) r.entry->restore(r.value);
}

ThreadLocalStateGuard::ThreadLocalStateGuard(const ThreadLocalState& state) : inside_(state) {
  inside_.apply();
}

ThreadLocalStateGuard::~ThreadLocalStateGuard() { before_.apply(); }

uint64_t register_thread_local_state(CaptureState capture, RestoreState restore) {
  RAMET_CHECK(capture && restore, "register_thread_local_state",
              "got an empty function, expected two functions");
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  List list = r.list ? *r.list : List();
  auto entry = std::make_shared<Entry>();
  entry->number = ++r.last;
  entry->capture = std::move(capture);
  entry->restore = std::move(restore);
  list.push_back(std::move(entry));
  r.list = std::make_shared<const List>(std::move(list));
  g_any.store(true, std::memory_order_release);
  return r.last;
}

void unregister_thread_local_state(uint64_t number) {
  Registry& r = registry();
  std::shared_ptr<const List> old;  // its functions die after the lock
  std::lock_guard lock(r.mutex);
  old = r.list;
  List list = old ? *old : List();
  const auto at =
      std::find_if(list.begin(), list.end(), [&](const auto& e) { return e->number == number; });
  RAMET_CHECK(at != list.end(), "unregister_thread_local_state", "no such state: got ", number,
              ", expected a number that register_thread_local_state returned");
  (*at)->registered.store(false, std::memory_order_release);
  list.erase(at);
  g_any.store(!list.empty(), std::memory_order_release);
  r.list = std::make_shared<const List>(std::move(list));
}

}  // namespace ramet
