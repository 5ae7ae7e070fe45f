// A recorder of scopes and kernels that writes Chrome's trace format (chrome://tracing, Perfetto).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/error.h"

namespace ramet {

/// Collects events between start() and stop(). Each device has one lane (tid). It gets further
/// lanes only where threads overlap on it, because the events of one lane must nest. Thread safe.
class RAMET_API ChromeTrace {
 public:
  /// Keeps at most `max_events`, the first ones; json() contains the number of dropped ones.
  explicit ChromeTrace(size_t max_events = size_t{1} << 20);
  ~ChromeTrace();
  ChromeTrace(const ChromeTrace&) = delete;
  ChromeTrace& operator=(const ChromeTrace&) = delete;

  /// Forgets all collected events and starts again.
  void start();
  /// Drops events that have not ended. Without start() it does nothing.
  void stop();
  /// Events collected.
  size_t size() const;
  /// An object with `traceEvents`; times in microseconds since start().
  std::string json() const;
  /// json() into a file, atomically (runtime/base/atomic_file.h). An Error naming the path where it
  /// cannot be written.
  void write(const std::string& path) const;

 private:
  struct Events;
  std::shared_ptr<Events> events_;
};

}  // namespace ramet
