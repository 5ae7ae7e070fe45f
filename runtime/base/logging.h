// Messages of the library. A program that wants to see them sets a handler. Without one the library
// prints only probable mistakes of the program itself (RAMET_WARN_MISTAKE).
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "runtime/base/error.h"

namespace ramet {

/// Severity; the library itself uses Info and Warning.
enum class LogLevel : uint8_t { Info, Warning, Error };
RAMET_API std::ostream& operator<<(std::ostream& out, LogLevel level);

/// It gets a message, without a newline.
using LogHandler = std::function<void(LogLevel, const std::string&)>;
/// From now on every message goes to `handler`, one at a time, on the thread that logs it. An empty
/// handler: silence. Messages that a handler logs are dropped, and its exceptions are caught.
RAMET_API void set_log_handler(LogHandler handler);
/// A handler that prints "ramet: warning: ..." to the standard error stream.
RAMET_API LogHandler log_to_stderr();

/// From now on the calling thread's messages first go to `listener`. If it returns true, the
/// handler does not get them. Holds until the thread sets another, or nullptr. Returns the previous
/// one. Messages that a listener logs are dropped. It gets messages that a handler logs. Its
/// exceptions are caught. Other threads that work for this one have their own:
using LogListener = bool (*)(LogLevel, const std::string&);
RAMET_API LogListener set_thread_log_listener(LogListener listener);

namespace detail {
RAMET_API extern std::atomic<bool> log_enabled;
/// Did a handler or listener get it?
RAMET_API bool log_message(LogLevel level, const std::string& message) noexcept;
}  // namespace detail
/// Is there a handler or a listener?
inline bool logging() { return detail::log_enabled.load(std::memory_order_relaxed); }

namespace detail {
/// A warning that goes to standard error where no handler was ever set, unless `printed`.
RAMET_API void warn_of_mistake(std::atomic<bool>& printed, const std::string& message) noexcept;
}  // namespace detail

/// Streams `parts` into one message; does nothing while there is no handler.
template <class... Parts> void log(LogLevel level, const Parts&... parts) {
  if (RAMET_UNLIKELY(logging())) detail::log_message(level, detail::join(parts...));
}

}  // namespace ramet

/// RAMET_WARN("[op] the message: ", value)
#define RAMET_WARN(...) ::ramet::log(::ramet::LogLevel::Warning, __VA_ARGS__)
/// The same for a probable mistake of the program, as LibTorch warns of it. If the program has set
/// no handler, the first message of each place goes to standard error. set_log_handler({}) ends
/// that.
#define RAMET_WARN_MISTAKE(...)                                                            \
  do {                                                                                     \
    static ::std::atomic<bool> ramet_printed{false};                                       \
    if (::ramet::logging() || !ramet_printed.load(::std::memory_order_relaxed))            \
      ::ramet::detail::warn_of_mistake(ramet_printed, ::ramet::detail::join(__VA_ARGS__)); \
  } while (false)
/// RAMET_WARN, the first time that there is a handler or a listener.
#define RAMET_WARN_ONCE(...)                                                \
  do {                                                                      \
    static ::std::atomic<bool> ramet_warned{false};                         \
    if (RAMET_UNLIKELY(::ramet::logging()) && !ramet_warned.exchange(true)) \
      RAMET_WARN(__VA_ARGS__);                                              \
  } while (false)
