#include "parallel/distributed/meet/lingering_store_internal.h"

#include <unistd.h>

#include <algorithm>
#include <list>
#include <system_error>
#include <thread>

namespace ramet::distributed::detail {
namespace {

constexpr Milliseconds kAtExit = std::chrono::seconds(2), kLook(20);

class Lingering {
 public:
  // The process ends: ranks that start a little later than this one still get the error.
  ~Lingering() {
    if (getpid() == process_) end([](const One&) { return true; }, kAtExit);
    for (One& one : all_) one.thread.detach();  // in a child of fork(), which has no such threads
  }

  void add(std::shared_ptr<TcpStoreServer> server, Deadline deadline) {
    end([](const One& one) { return !one.server; }, {});
    const std::lock_guard lock(mutex_);
    One& one = all_.emplace_back();
    one.port = server->port();
    one.server = std::move(server);
    one.until = deadline;
    try {
      one.thread = std::thread([this, &one] { keep(one); });
    } catch (const std::system_error&) { all_.pop_back(); }
  }

  /// Ends the servers for which `chosen` is true, within `rest`.
  template <class Chosen> void end(const Chosen& chosen, Milliseconds rest) {
    std::list<One> ending;
    {
      const std::lock_guard lock(mutex_);
      for (auto at = all_.begin(); at != all_.end();) {
        const auto next = std::next(at);
        if (chosen(*at)) {
          at->until = std::min(at->until, deadline_in(rest));
          ending.splice(ending.end(), all_, at);
        }
        at = next;
      }
    }
    changed_.notify_all();
    for (One& one : ending) one.thread.join();
  }

 private:
  struct One {
    uint16_t port = 0;
    std::shared_ptr<TcpStoreServer> server;  // null when it has ended
    Deadline until;
    std::thread thread;
  };

  void keep(One& one) {
    std::unique_lock lock(mutex_);
    while (std::chrono::steady_clock::now() < one.until && one.server->has_to_tell())
      changed_.wait_until(lock, std::min(one.until, deadline_in(kLook)));
    const std::shared_ptr<TcpStoreServer> server = std::move(one.server);
    lock.unlock();
  }

  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<One> all_;
};

Lingering& lingering() {
  static Lingering all;
  return all;
}

}  // namespace

void linger(std::shared_ptr<TcpStoreServer> server, Deadline deadline) {
  lingering().add(std::move(server), deadline);
}

void stop_lingering(uint16_t port) {
  lingering().end([port](const auto& one) { return one.port == port; }, {});
}

}  // namespace ramet::distributed::detail
