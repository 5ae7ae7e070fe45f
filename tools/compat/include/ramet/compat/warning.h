// TORCH_WARN and LibTorch's warning handlers.
//
// A warning goes to the calling thread's handler. The one that every thread has at first prints to
// the standard error stream. The handler of a thread also gets Ramet's own warnings on that thread.
// For threads without one, runtime/base/logging.h says what is printed.
#pragma once
#include <atomic>
#include <variant>

#include "ramet/compat/logging.h"

namespace c10 {

class Warning {
 public:
  class UserWarning {};
  class DeprecationWarning {};
  using warning_variant_t = std::variant<UserWarning, DeprecationWarning>;

  /// `verbatim`: the text says all, a handler need not say where it comes from.
  Warning(warning_variant_t type, const ::ramet::SourceLocation& where, std::string message,
          bool verbatim)
      : type_(type), where_(where), message_(std::move(message)), verbatim_(verbatim) {}

  warning_variant_t type() const { return type_; }
  const ::ramet::SourceLocation& source_location() const { return where_; }
  const std::string& msg() const { return message_; }
  bool verbatim() const { return verbatim_; }

 private:
  warning_variant_t type_;
  ::ramet::SourceLocation where_;
  std::string message_;
  bool verbatim_;
};
using UserWarning = Warning::UserWarning;
using DeprecationWarning = Warning::DeprecationWarning;

/// Receives warnings. As it is, prints them: "[W1126 10:20:30.123456789 net.cc:12] Warning: text
/// (function main)".
class RAMET_API WarningHandler {
 public:
  virtual ~WarningHandler() = default;
  virtual void process(const Warning& warning) {
    MessageLogger(warning.source_location(), GLOG_WARNING).stream()
        << "Warning: " << warning.msg() << " (function " << warning.source_location().function
        << ")";
  }
};

}  // namespace c10

namespace ramet {
namespace compat {
RAMET_API inline thread_local c10::WarningHandler* warning_handler =
    nullptr;  // null: the printing one
RAMET_API inline std::atomic<bool> warn_always{false};
RAMET_API inline c10::WarningHandler& printing_handler() {
  static c10::WarningHandler& handler = *new c10::WarningHandler;
  return handler;
}
/// What Ramet says on a thread with a handler of its own.
inline bool warn_of_ramet(LogLevel level, const std::string& message) {
  if (level != LogLevel::Warning || !warning_handler) return false;
  warning_handler->process(
      c10::Warning(c10::UserWarning(), {"ramet", "ramet", 0}, message, /*verbatim=*/true));
  return true;
}
}  // namespace compat
}  // namespace ramet

namespace c10 {

/// Hands it to the thread's handler; what that throws goes on.
inline void warn(const Warning& warning) {
  WarningHandler* const own = ::ramet::compat::warning_handler;
  (own ? *own : ::ramet::compat::printing_handler()).process(warning);
}

namespace WarningUtils {
/// Of the calling thread; nullptr: the printing one again. It must live until another one is set.
inline void set_warning_handler(WarningHandler* handler) noexcept {
  if (handler == &::ramet::compat::printing_handler()) handler = nullptr;
  ::ramet::compat::warning_handler = handler;
  ::ramet::set_thread_log_listener(handler ? &::ramet::compat::warn_of_ramet : nullptr);
}
inline WarningHandler* get_warning_handler() noexcept {
  WarningHandler* const own = ::ramet::compat::warning_handler;
  return own ? own : &::ramet::compat::printing_handler();
}
class WarningHandlerGuard {
 public:
  explicit WarningHandlerGuard(WarningHandler* handler) : before_(get_warning_handler()) {
    set_warning_handler(handler);
  }
  ~WarningHandlerGuard() { set_warning_handler(before_); }
  WarningHandlerGuard(const WarningHandlerGuard&) = delete;
  WarningHandlerGuard& operator=(const WarningHandlerGuard&) = delete;

 private:
  WarningHandler* before_;
};
/// On: TORCH_WARN_ONCE warns each time. Of all threads.
inline void set_warnAlways(bool on) noexcept { ::ramet::compat::warn_always = on; }
inline bool get_warnAlways() noexcept { return ::ramet::compat::warn_always; }
class WarnAlways {
 public:
  explicit WarnAlways(bool on = true) : before_(get_warnAlways()) { set_warnAlways(on); }
  ~WarnAlways() { set_warnAlways(before_); }
  WarnAlways(const WarnAlways&) = delete;
  WarnAlways& operator=(const WarnAlways&) = delete;

 private:
  bool before_;
};
}  // namespace WarningUtils

}  // namespace c10

#define RAMET_COMPAT_WARN(Kind, ...) \
  ::c10::warn(::c10::Warning(::c10::Kind(), RAMET_COMPAT_HERE, ::c10::str(__VA_ARGS__), false));
#define TORCH_WARN(...) RAMET_COMPAT_WARN(UserWarning, __VA_ARGS__)
#define TORCH_WARN_DEPRECATION(...) RAMET_COMPAT_WARN(DeprecationWarning, __VA_ARGS__)
#define TORCH_WARN_ONCE(...)                                                         \
  if (::c10::WarningUtils::get_warnAlways()) {                                       \
    TORCH_WARN(__VA_ARGS__)                                                          \
  } else {                                                                           \
    [[maybe_unused]] static const bool C10_ANONYMOUS_VARIABLE(ramet_warned_) = [&] { \
      TORCH_WARN(__VA_ARGS__)                                                        \
      return true;                                                                   \
    }();                                                                             \
  }
#define AT_WARN(...) TORCH_WARN(__VA_ARGS__)
