#include "runtime/base/logging.h"

#include <cstdio>
#include <memory>
#include <mutex>
#include <ostream>
#include <utility>

namespace ramet {
namespace {

struct Sink {
  std::recursive_mutex mutex;  // a handler may set another handler
  std::shared_ptr<LogHandler> handler;
  bool inside = false;
  bool chosen = false;  // a handler, or silence
  int listeners = 0;    // threads that have one
  void update() { detail::log_enabled = handler != nullptr || listeners > 0; }
};
Sink& sink() {  // never destroyed: destructors of static objects may log
  static Sink* s = new Sink;
  return *s;
}

// A thread's own listener. It does not follow work onto another thread.
struct ThreadListener {
  LogListener listener = nullptr;
  bool inside = false;
  ~ThreadListener() { set(nullptr); }
  LogListener set(LogListener next) {
    if ((next != nullptr) != (listener != nullptr)) {
      Sink& s = sink();
      std::lock_guard lock(s.mutex);
      s.listeners += next ? 1 : -1;
      s.update();
    }
    return std::exchange(listener, next);
  }
};
thread_local ThreadListener own;

}  // namespace

LogListener set_thread_log_listener(LogListener listener) { return own.set(listener); }

namespace detail {

constinit std::atomic<bool> log_enabled{false};

bool log_message(LogLevel level, const std::string& message) noexcept {
  if (own.inside) return true;
  if (own.listener) {
    bool taken = true;
    own.inside = true;
    try {
      taken = own.listener(level, message);
    } catch (...) {  // as below
    }
    own.inside = false;
    if (taken) return true;
  }
  Sink& s = sink();
  std::lock_guard lock(s.mutex);
  if (!s.handler || s.inside) return s.chosen;
  const std::shared_ptr<LogHandler> handler = s.handler;
  s.inside = true;
  try {
    (*handler)(level, message);
  } catch (...) {  // a message must not change what the program computes
  }
  s.inside = false;
  return true;
}

void warn_of_mistake(std::atomic<bool>& printed, const std::string& message) noexcept {
  if (log_message(LogLevel::Warning, message) || printed.exchange(true)) return;
  std::fprintf(stderr, "ramet: warning: %s\n", message.c_str());
}

}  // namespace detail

std::ostream& operator<<(std::ostream& out, LogLevel level) {
  return out << (level == LogLevel::Info      ? "info"
                 : level == LogLevel::Warning ? "warning"
                                              : "error");
}

void set_log_handler(LogHandler handler) {
  Sink& s = sink();
  std::lock_guard lock(s.mutex);
  s.chosen = true;
  s.handler = handler ? std::make_shared<LogHandler>(std::move(handler)) : nullptr;
  s.update();
}

LogHandler log_to_stderr() {
  return [](LogLevel level, const std::string& message) {
    std::fprintf(stderr, "ramet: %s: %s\n",
                 level == LogLevel::Info      ? "info"
                 : level == LogLevel::Warning ? "warning"
                                              : "error",
                 message.c_str());
  };
}

}  // namespace ramet
