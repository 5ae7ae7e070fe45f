// The handle of a process group's operation that has been started.
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

/// A handle; copies refer to the same operation. The caller must not touch the operation's tensors
/// before it has ended. They are kept alive until then. Every operation ends, at the latest by its
/// own or the group's deadline. Thread-safe.
class RAMET_API Work {
 public:
  /// A handle of no operation; all other functions throw an Error.
  Work() = default;
  /// Waits until the operation has ended; throws its error if it failed.
  void wait() const;
  /// Waits for at most `time`. Returns false if the operation has not ended; it goes on.
  bool wait_for(std::chrono::milliseconds time) const;
  /// Has it ended, with or without an error? Does not wait.
  bool is_completed() const;
  /// Has it ended without an error?
  bool is_success() const;
  /// Its error; null while it runs and after success.
  std::exception_ptr exception() const;
  /// When it ended, with or without an error. An Error while it runs.
  std::chrono::steady_clock::time_point ended_at() const;

  /// For the code that runs operations: makes the handle of a new one.
  static Work begun();
  /// For the code that runs operations: ends this one.
  void finish(std::exception_ptr error) const;
  /// Sets a function that may run the operation. The first thread that waits before the operation
  /// has ended calls it, once.
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
