#include "runtime/observe/observer.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/base/logging.h"
#include "runtime/observe/observer_internal.h"

using ramet::detail::tls;

namespace ramet {
namespace detail {
constinit std::atomic<uint32_t> observers{0};
constinit std::atomic<KernelObserver> kernel_observer{nullptr};
}  // namespace detail

namespace {

using List = std::vector<std::pair<uint64_t, std::shared_ptr<const Observer>>>;

struct Registry {
  std::mutex mutex;
  std::shared_ptr<const List> list = std::make_shared<List>();  // replaced, never changed
  bool captures = false;
  uint64_t last = 0;
};
Registry& registry() {  // never destroyed: static destructors may run operations
  static Registry* r = new Registry;
  return *r;
}

std::shared_ptr<const List> current_list() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  return r.list;
}

__thread bool t_inside;  // an observer's own operations are not observed

template <class Member, class What> void tell(Member member, const What& what) noexcept {
  if (t_inside) return;
  ScopedValue<bool> inside(t_inside, true);
  const std::shared_ptr<const List> list = current_list();
  for (const auto& [number, observer] : *list) {
    if (!((*observer).*member)) continue;
    try {
      ((*observer).*member)(what);
    } catch (const std::exception& e) {
      log(LogLevel::Error, "[observer] an observer failed: got \"", e.what(),
          "\", expected no exception");
    } catch (...) {
      log(LogLevel::Error,
          "[observer] an observer failed: got an unknown exception, expected none");
    }
  }
}

void on_kernel(KernelCall& call) {
  if (RAMET_UNLIKELY(tls.capturing && !t_inside)) return capture::record(call);
  if (!call.done) {
    tell(&Observer::kernel_begin, call);
    call.start = monotonic_ns();
  } else {
    tell(&Observer::kernel_end, call);
  }
}

// Under the registry's lock.
void set_hook(Registry& r) {
  bool kernels = r.captures;
  for (const auto& [number, observer] : *r.list)
    kernels |= observer->kernel_begin || observer->kernel_end;
  // Leaves alone a raw hook that other code has set.
  KernelObserver expected = kernels ? nullptr : &on_kernel;
  detail::kernel_observer.compare_exchange_strong(expected, kernels ? &on_kernel : nullptr);
}
void publish(Registry& r, List list) {
  detail::observers = static_cast<uint32_t>(list.size());
  r.list = std::make_shared<const List>(std::move(list));
  set_hook(r);
}

uint64_t thread_number() {
  static std::atomic<uint64_t> last{0};
  static __thread uint64_t mine;
  if (!mine) mine = ++last;
  return mine;
}

}  // namespace

void detail::observe_captures(bool on) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  r.captures = on;
  set_hook(r);
}

uint64_t monotonic_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

const Scope* Scope::hold(const Scope* s) {
  if (s) add_ref(const_cast<Scope*>(s)->refs);
  return s;
}

void Scope::release(const Scope* s) {
  while (s && drop_ref(const_cast<Scope*>(s)->refs)) {
    const Scope* parent = s->parent;
    delete s;
    s = parent;
  }
}

uint64_t add_observer(Observer observer) {
  auto shared = std::make_shared<const Observer>(std::move(observer));
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  List list = *r.list;
  const uint64_t number = ++r.last;
  list.emplace_back(number, std::move(shared));
  publish(r, std::move(list));
  return number;
}

void remove_observer(uint64_t number) {
  Registry& r = registry();
  std::shared_ptr<const List> old;  // its observers die after the lock
  std::lock_guard lock(r.mutex);
  old = r.list;
  List list = *old;
  const auto at = std::find_if(list.begin(), list.end(),
                               [&](const auto& entry) { return entry.first == number; });
  RAMET_CHECK(at != list.end(), "remove_observer", "no such observer: got ", number,
              ", expected a number that add_observer returned");
  list.erase(at);
  publish(r, std::move(list));
}

void RecordScope::begin(const char* name) {
  if (t_inside) return;
  const Device here(kCPU, static_cast<DeviceIndex>(tls.cpu_device));
  scope_ = new Scope{{1}, name, tls.scope, here, monotonic_ns(), 0, thread_number()};
  Scope::hold(tls.scope);
  tls.scope = scope_;
  tell(&Observer::scope_begin, *scope_);
  scope_->start = monotonic_ns();  // again, so that the time of observers does not count
}

void RecordScope::end() noexcept {
  scope_->end = monotonic_ns();
  tell(&Observer::scope_end, *scope_);
  tls.scope = scope_->parent;
  Scope::release(scope_);
}

void RecordWait::end() noexcept {
  if (std::uncaught_exceptions() > exceptions_) return;
  wait_.end = monotonic_ns();
  tell(&Observer::host_wait, wait_);
}

std::string scope_path() {
  std::string path;
  for (const Scope* s = tls.scope; s; s = s->parent)
    path = path.empty() ? s->name : s->name + " > " + path;
  return path;
}

}  // namespace ramet
