// An operation of a process group that has been started.
#pragma once
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "runtime/base/error.h"

namespace ramet {
namespace distributed {

/// A handle; copies are handles of the same operation. Its tensors must not be touched before it
/// has ended; they are kept alive until then. It always ends: the group's or the call's deadline
/// sees to that. Thread safety: all of it.
class RAMET_API Work {
 public:
  /// Of no operation: the rest is an Error.
  Work() = default;
  /// Until it has ended; throws what it failed with.
  void wait() const;
  /// False: it has not ended within the time. It goes on.
  bool wait_for(std::chrono::milliseconds time) const;
  /// Has it ended, well or not? Nobody waits.
  bool is_completed() const;
  /// Ended, and well.
  bool is_success() const;
  /// What it failed with; null while it runs and after success.
  std::exception_ptr exception() const;
  /// When it ended, well or not. An Error while it runs.
  std::chrono::steady_clock::time_point ended_at() const;

  /// For those that run it: the handle of a new one.
  static Work begun();
  /// For those that run it: ends the operation.
  void finish(std::exception_ptr error) const;
  /// Called, once, by the first that waits before it has ended: may run the operation.
  void on_wait(std::function<void(const Work&)> help) const;

 private:
  struct State {
    mutable std::mutex mutex;
    std::condition_variable ended;
    bool done = false;
    std::chrono::steady_clock::time_point ended_at;
    std::exception_ptr error;
    std::function<void(const Work&)> help;
  };
  State& state() const;
  std::shared_ptr<State> state_;
};

}  // namespace distributed
}  // namespace ramet
