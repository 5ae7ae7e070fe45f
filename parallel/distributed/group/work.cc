#include "parallel/distributed/group/work.h"

#include <utility>

#include "parallel/distributed/meet/store.h"
#include "parallel/distributed/wire/comm_error.h"

namespace ramet::distributed {

CommError::~CommError() = default;
CommMismatch::~CommMismatch() = default;
CommTimeout::~CommTimeout() = default;
CommLost::~CommLost() = default;
CommAborted::~CommAborted() = default;

Work Work::begun() {
  Work w;
  w.state_ = std::make_shared<State>();
  return w;
}

Work::State& Work::state() const {
  RAMET_CHECK(state_, "work", "got a Work of no operation, expected one that a process group gave");
  return *state_;
}

void Work::wait() const {
  State& s = state();
  std::exception_ptr error;
  {
    std::unique_lock lock(s.mutex);
    if (const auto help = std::exchange(s.help, nullptr); help && !s.done) {
      lock.unlock();
      help(*this);
      lock.lock();
    }
    s.ended.wait(lock, [&s] { return s.done; });
    error = s.error;
  }
  if (error) std::rethrow_exception(error);
}

bool Work::wait_for(std::chrono::milliseconds time) const {
  State& s = state();
  std::unique_lock lock(s.mutex);
  if (!s.ended.wait_until(lock, deadline_in(time), [&s] { return s.done; })) return false;
  const std::exception_ptr error = s.error;
  lock.unlock();
  if (error) std::rethrow_exception(error);
  return true;
}

bool Work::is_completed() const {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.done;
}

bool Work::is_success() const {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.done && !s.error;
}

std::exception_ptr Work::exception() const {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.error;
}

std::chrono::steady_clock::time_point Work::ended_at() const {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  RAMET_CHECK(s.done, "work", "ended_at: got an operation that runs, expected one that has ended");
  return s.ended_at;
}

void Work::on_wait(std::function<void(const Work&)> help) const {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.done) s.help = std::move(help);
}

void Work::finish(std::exception_ptr error) const {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.done = true;
  s.ended_at = std::chrono::steady_clock::now();
  s.error = std::move(error);
  s.help = nullptr;
  s.ended.notify_all();
}

}  // namespace ramet::distributed
