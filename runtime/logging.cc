#include "runtime/logging.h"

#include <cstdio>
#include <memory>
#include <mutex>
#include <ostream>

namespace ramet {
namespace {

struct Sink {
  std::recursive_mutex mutex;  // a handler may set another handler
  std::shared_ptr<LogHandler> handler;
  bool inside = false;
};
Sink& sink() {  // never destroyed: destructors of static objects may log
  static Sink* s = new Sink;
  return *s;
}

}  // namespace

namespace detail {

constinit std::atomic<bool> log_enabled{false};

void log_message(LogLevel level, const std::string& message) noexcept {
  Sink& s = sink();
  std::lock_guard lock(s.mutex);
  if (!s.handler || s.inside) return;
  const std::shared_ptr<LogHandler> handler = s.handler;
  s.inside = true;
  try {
    (*handler)(level, message);
  } catch (...) {  // a message must not change what the program computes
  }
  s.inside = false;
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
  detail::log_enabled = static_cast<bool>(handler);
  s.handler = handler ? std::make_shared<LogHandler>(std::move(handler)) : nullptr;
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
