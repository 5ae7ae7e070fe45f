#include "autograd/graph/graph_observer.h"

#include <algorithm>
#include <exception>
#include <mutex>

#include "autograd/graph/graph_observer_internal.h"
#include "runtime/base/logging.h"
#include "runtime/observe/thread_local_state.h"

using ramet::detail::tls;

namespace ramet {
namespace autograd {

GraphObserver::~GraphObserver() = default;
void GraphObserver::on_node_made(Node&, ArrayRef<Input>, ArrayRef<Input>) {}
void GraphObserver::on_operation(Node& node, ArrayRef<Input> inputs, ArrayRef<Input> results,
                                 const Arguments&) {
  on_node_made(node, inputs, results);
}
void GraphObserver::on_saved(const Tensor&) {}
void GraphObserver::on_cast(const Tensor&, const Tensor&, bool) {}
void GraphObserver::on_backward_begun(const void*, const std::vector<Root>&, bool) {}
void GraphObserver::on_backward_ended(const void*, bool) {}
void GraphObserver::on_node_ready(const void*, Node&) {}
void GraphObserver::on_node_begun(Node&, Tensor*) {}
void GraphObserver::on_node_ended(Node&, const Tensor*, bool) {}
void GraphObserver::on_delivered(const void*, Node&, int, const Tensor&) {}
void GraphObserver::on_accumulated(Node&, const Tensor&) {}
void GraphObserver::on_slot_filled(const void*, Node&) {}
void GraphObserver::on_reduce_begun(const void*, const char*, ArrayRef<Node*>) {}
void GraphObserver::on_reduce_ended(const void*, uint64_t) {}
void GraphObserver::on_moved(const char*, ArrayRef<Tensor>, ArrayRef<Tensor>, uint64_t) {}

namespace {

// A task of another thread may hold the list longer than its guard. Observers that are gone are
// left out.
using List = std::vector<std::weak_ptr<GraphObserver>>;

std::shared_ptr<const List>& current() {
  thread_local std::shared_ptr<const List> list;
  return list;
}

// The list follows work to other threads as the byte of the context does.
struct Carried {
  std::mutex mutex;
  int guards = 0;
  uint64_t number = 0;
};
Carried& carried() {  // never destroyed: static destructors may run operations
  static auto* c = new Carried;
  return *c;
}
void carry(int more) {
  Carried& c = carried();
  const std::lock_guard lock(c.mutex);
  if (c.guards == 0)
    c.number = register_thread_local_state(
        [] { return std::static_pointer_cast<void>(std::const_pointer_cast<List>(current())); },
        [](const std::shared_ptr<void>& list) {
          current() = std::static_pointer_cast<const List>(list);
        });
  if ((c.guards += more) == 0) unregister_thread_local_state(c.number);
}

__thread bool t_inside;

// What an observer does itself is neither observed nor looked at for anomalies.
class Inside {
 private:
  ScopedValue<bool> inside_{t_inside, true};
  ScopedValue<uint8_t> watching_{tls.watching, 0};
};

template <class F> void for_each(const F& f) {
  const std::shared_ptr<const List> list = current();
  if (!list) return;
  for (const auto& one : *list)
    if (const std::shared_ptr<GraphObserver> observer = one.lock()) {
      const Inside inside;
      f(*observer);
    }
}

}  // namespace

bool detail::tells(const GraphObserver& observer) {
  const std::shared_ptr<const List> list = graph_observed() ? current() : nullptr;
  return list && std::any_of(list->begin(), list->end(),
                             [&](const auto& one) { return one.lock().get() == &observer; });
}

bool detail::inside_graph_observer() { return t_inside; }

void detail::tell_observers(const void* what, TellObserver tell) noexcept {
  if (!graph_observed()) return;
  for_each([&](GraphObserver& observer) {
    try {
      tell(what, observer);
    } catch (const std::exception& e) {
      log(LogLevel::Error, "[graph_observer] an observer failed: got \"", e.what(),
          "\", expected no exception");
    } catch (...) {
      log(LogLevel::Error,
          "[graph_observer] an observer failed: got an unknown exception, expected none");
    }
  });
}

GraphObserverGuard::GraphObserverGuard(std::shared_ptr<GraphObserver> observer)
    : observer_(std::move(observer)) {
  RAMET_CHECK(observer_ != nullptr, "GraphObserverGuard", "got no observer, expected one");
  List list = current() ? *current() : List();
  list.emplace_back(observer_);
  auto made = std::make_shared<const List>(std::move(list));
  carry(1);
  current() = std::move(made);
  tls.watching |= Context::kGraphObserved;
}

// Guards need not go in the order in which they came.
GraphObserverGuard::~GraphObserverGuard() {
  List list = current() ? *current() : List();
  std::erase_if(list, [this](const auto& one) {
    const auto observer = one.lock();
    return !observer || observer == observer_;
  });
  if (list.empty()) {
    current() = nullptr;
    tls.watching &= static_cast<uint8_t>(~Context::kGraphObserved);
  } else {
    current() = std::make_shared<const List>(std::move(list));
  }
  carry(-1);
}

// ---- what the graph and the walks call ----------------------------------------------------------

void tell_made(Node& node, ArrayRef<Input> inputs, ArrayRef<Input> results,
               AddArguments add) noexcept {
  if (tls.watching & Context::kAnomaly) {
    try {
      node.more().place = scope_path();
    } catch (const std::bad_alloc&) {}  // an error of its backward says less
  }
  if (!graph_observed()) return;
  Arguments arguments;
  try {
    add(arguments);
  } catch (const std::bad_alloc&) {}  // observers get the node without arguments
  detail::tell_observers(
      [&](GraphObserver& o) { o.on_operation(node, inputs, results, arguments); });
}

void tell_saved(const Tensor& t) noexcept {
  if (t.defined()) detail::tell_observers([&](GraphObserver& o) { o.on_saved(t); });
}

void tell_moved(const char* kind, ArrayRef<Tensor> from, ArrayRef<Tensor> to,
                uint64_t begun) noexcept {
  detail::tell_observers([&](GraphObserver& o) { o.on_moved(kind, from, to, begun); });
}

void tell_cast(const Tensor& from, const Tensor& to, bool kept) noexcept {
  detail::tell_observers([&](GraphObserver& o) { o.on_cast(from, to, kept); });
}

bool detail::an_observer_wants_one_thread() {
  bool one = false;
  tell_observers([&](GraphObserver& o) { one = one || o.wants_one_thread(); });
  return one;
}

void detail::run_observed(Node* n, Tensor* in, Tensor* out, void (*run)(Node*, Tensor*, Tensor*)) {
  const auto ended = [n](const Tensor* gradients, bool failed) {
    tell_observers([&](GraphObserver& o) { o.on_node_ended(*n, gradients, failed); });
  };
  try {
    for_each([&](GraphObserver& o) { o.on_node_begun(*n, in); });
    run(n, in, out);
  } catch (...) {  // std::current_exception() has it while observers are called
    ended(nullptr, true);
    throw;
  }
  ended(out, false);
}

}  // namespace autograd
}  // namespace ramet
