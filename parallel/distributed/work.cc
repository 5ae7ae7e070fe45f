#include "parallel/distributed/work.h"

#include <utility>

#include "parallel/distributed/comm_error.h"

namespace ramet::distributed {

CommError::~CommError() = default;
CommMismatch::~CommMismatch() = default;
CommTimeout::~CommTimeout() = default;
CommLost::~CommLost() = default;
CommAborted::~CommAborted() = default;

Work::Work() : state_(std::make_shared<State>()) {}

void Work::wait() const {
  std::exception_ptr error;
  {
    std::unique_lock lock(state_->mutex);
    if (const auto help = std::exchange(state_->help, nullptr); help && !state_->done) {
      lock.unlock();
      help(*this);
      lock.lock();
    }
    state_->ended.wait(lock, [this] { return state_->done; });
    error = state_->error;
  }
  if (error) std::rethrow_exception(error);
}

bool Work::wait_for(std::chrono::milliseconds time) const {
  std::unique_lock lock(state_->mutex);
  if (!state_->ended.wait_for(lock, time, [this] { return state_->done; })) return false;
  const std::exception_ptr error = state_->error;
  lock.unlock();
  if (error) std::rethrow_exception(error);
  return true;
}

bool Work::is_completed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

bool Work::is_success() const {
  const std::lock_guard lock(state_->mutex);
  return state_->done && !state_->error;
}

std::exception_ptr Work::exception() const {
  const std::lock_guard lock(state_->mutex);
  return state_->error;
}

void Work::on_wait(std::function<void(const Work&)> help) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->done) state_->help = std::move(help);
}

void Work::finish(std::exception_ptr error) const {
  const std::lock_guard lock(state_->mutex);
  state_->done = true;
  state_->error = std::move(error);
  state_->help = nullptr;
  state_->ended.notify_all();
}

}  // namespace ramet::distributed
