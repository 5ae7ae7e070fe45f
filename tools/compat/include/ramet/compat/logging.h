// LOG, CHECK and kin as LibTorch has them without glog: lines on the standard error stream, "[W1126
// 10:20:30.123456789 net.cc:12] text". Shown from WARNING on, or from TORCH_CPP_LOG_LEVEL (INFO,
// WARNING, ERROR, FATAL or a number). A program's own macros of these names, defined before, stay.
#pragma once
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sstream>

#include "ramet/compat/check.h"

namespace ramet {
namespace compat {

inline int log_level_at_start() {
  const char* const text = std::getenv("TORCH_CPP_LOG_LEVEL");
  if (!text || !*text) return 1;
  const char* const names[] = {"INFO", "WARNING", "ERROR", "FATAL"};
  for (int i = 0; i < 4; ++i)
    if (std::strcmp(text, names[i]) == 0) return i;
  return std::atoi(text);
}

inline const char* base_name(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

}  // namespace compat
}  // namespace ramet

/// Messages below it are not shown: LibTorch's flag of that name. Until it is set, what
/// TORCH_CPP_LOG_LEVEL says decides; nothing runs before main() for it.
RAMET_API inline int FLAGS_caffe2_log_level = INT_MIN;
namespace ramet {
namespace compat {
inline int log_level() {
  if (FLAGS_caffe2_log_level != INT_MIN) return FLAGS_caffe2_log_level;
  static const int at_start = log_level_at_start();
  return at_start;
}
}  // namespace compat
}  // namespace ramet

namespace c10 {

constexpr int GLOG_FATAL = 3, GLOG_ERROR = 2, GLOG_WARNING = 1, GLOG_INFO = 0;

/// One message: what goes into stream() is shown at the end of the statement. A fatal one ends the
/// program (abort), or, with `exit_on_fatal` false, throws c10::Error with the text.
class RAMET_API MessageLogger {
 public:
  MessageLogger(::ramet::SourceLocation where, int severity, bool exit_on_fatal = true)
      : where_(where), severity_(severity), exit_on_fatal_(exit_on_fatal) {}
  MessageLogger(const MessageLogger&) = delete;
  MessageLogger& operator=(const MessageLogger&) = delete;
  ~MessageLogger() noexcept(false) {
    if (severity_ >= ::ramet::compat::log_level()) show();
    if (severity_ < GLOG_FATAL) return;
    if (exit_on_fatal_) std::abort();
    throw ::ramet::Error(where_, text_.str());
  }
  std::stringstream& stream() { return text_; }

 private:
  void show() const {
    std::timespec now{};
    std::timespec_get(&now, TIME_UTC);
    std::tm local{};
    localtime_r(&now.tv_sec, &local);
    const char kind = severity_ < 0 ? 'V' : "IWEF"[severity_ > 3 ? 3 : severity_];
    std::fprintf(stderr, "[%c%02d%02d %02d:%02d:%02d.%09ld %s:%u] %s\n", kind, local.tm_mon + 1,
                 local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec, now.tv_nsec,
                 ::ramet::compat::base_name(where_.file), where_.line, text_.str().c_str());
  }

  ::ramet::SourceLocation where_;
  int severity_;
  bool exit_on_fatal_;
  std::stringstream text_ = ::ramet::detail::classic<std::stringstream>();
};

/// Makes a stream expression one of type void: weaker than <<, stronger than ?:.
struct LoggerVoidify {
  void operator&(const std::ostream&) {}
};

/// `pointer`, which is not null.
template <class T>
T&& CheckNotNull(const ::ramet::SourceLocation& where, const char* names, T&& pointer, bool fatal) {
  if (pointer == nullptr)
    MessageLogger(where, GLOG_FATAL, fatal).stream()
        << "Check failed: '" << names << "' must be non NULL. ";
  return std::forward<T>(pointer);
}

/// From now on everything from INFO on is shown.
inline void ShowLogInfoToStderr() { FLAGS_caffe2_log_level = GLOG_INFO; }
constexpr bool IsUsingGoogleLogging() { return false; }
inline void initLogging() {}

}  // namespace c10

#define RAMET_COMPAT_MESSAGE(severity) ::c10::MessageLogger(RAMET_COMPAT_HERE, severity).stream()
#define RAMET_COMPAT_UNLESS(condition, fatal) \
  (condition) ? (void)0                       \
              : ::c10::LoggerVoidify() &      \
                    ::c10::MessageLogger(RAMET_COMPAT_HERE, ::c10::GLOG_FATAL, fatal).stream()
#define RAMET_COMPAT_CHECK_OP(a, b, op, fatal) \
  RAMET_COMPAT_UNLESS((a)op(b), fatal)         \
      << "Check failed: " #a " " #op " " #b " (" << (a) << " vs. " << (b) << "). "

// Failing, these throw c10::Error.
#define TORCH_CHECK_EQ(a, b) RAMET_COMPAT_CHECK_OP(a, b, ==, false)
#define TORCH_CHECK_NE(a, b) RAMET_COMPAT_CHECK_OP(a, b, !=, false)
#define TORCH_CHECK_LT(a, b) RAMET_COMPAT_CHECK_OP(a, b, <, false)
#define TORCH_CHECK_LE(a, b) RAMET_COMPAT_CHECK_OP(a, b, <=, false)
#define TORCH_CHECK_GT(a, b) RAMET_COMPAT_CHECK_OP(a, b, >, false)
#define TORCH_CHECK_GE(a, b) RAMET_COMPAT_CHECK_OP(a, b, >=, false)
#define TORCH_CHECK_NOTNULL(p) ::c10::CheckNotNull(RAMET_COMPAT_HERE, #p, (p), false)

// Failing, these end the program, as LibTorch's.
#ifndef LOG
#define LOG(severity) RAMET_COMPAT_MESSAGE(::c10::GLOG_##severity)
#endif
#ifndef LOG_IF
#define LOG_IF(severity, condition) !(condition) ? (void)0 : ::c10::LoggerVoidify() & LOG(severity)
#endif
#ifndef VLOG
#define VLOG(n) RAMET_COMPAT_MESSAGE(-(n))
#endif
#ifndef VLOG_IF
#define VLOG_IF(n, condition) !(condition) ? (void)0 : ::c10::LoggerVoidify() & VLOG(n)
#endif
#ifndef VLOG_IS_ON
#define VLOG_IS_ON(n) (::ramet::compat::log_level() <= -(n))
#endif
#define C10_LOG_EVERY_MS(severity, ms) LOG(severity)
#define C10_LOG_FIRST_N(severity, n) LOG(severity)
#define C10_LOG_EVERY_N(severity, n) LOG(severity)
#ifndef CHECK
#define CHECK(condition) RAMET_COMPAT_UNLESS(condition, true) << "Check failed: " #condition " "
#endif
#ifndef CHECK_EQ
#define CHECK_EQ(a, b) RAMET_COMPAT_CHECK_OP(a, b, ==, true)
#endif
#ifndef CHECK_NE
#define CHECK_NE(a, b) RAMET_COMPAT_CHECK_OP(a, b, !=, true)
#endif
#ifndef CHECK_LT
#define CHECK_LT(a, b) RAMET_COMPAT_CHECK_OP(a, b, <, true)
#endif
#ifndef CHECK_LE
#define CHECK_LE(a, b) RAMET_COMPAT_CHECK_OP(a, b, <=, true)
#endif
#ifndef CHECK_GT
#define CHECK_GT(a, b) RAMET_COMPAT_CHECK_OP(a, b, >, true)
#endif
#ifndef CHECK_GE
#define CHECK_GE(a, b) RAMET_COMPAT_CHECK_OP(a, b, >=, true)
#endif
#ifndef CHECK_NOTNULL
#define CHECK_NOTNULL(p) ::c10::CheckNotNull(RAMET_COMPAT_HERE, #p, (p), true)
#endif

// Only in programs without NDEBUG; else their operands are compiled and not evaluated.
#ifdef NDEBUG
#define RAMET_COMPAT_DEBUG while (false)
#define RAMET_COMPAT_DEBUG_OR(condition) (true || (condition))
#else
#define RAMET_COMPAT_DEBUG
#define RAMET_COMPAT_DEBUG_OR(condition) (condition)
#endif
#ifndef DLOG
#define DLOG(severity) RAMET_COMPAT_DEBUG LOG(severity)
#endif
#ifndef DCHECK
#define DCHECK(condition) \
  RAMET_COMPAT_UNLESS(RAMET_COMPAT_DEBUG_OR(condition), true) << "Check failed: " #condition " "
#endif
#define RAMET_COMPAT_DCHECK_OP(a, b, op)                     \
  RAMET_COMPAT_UNLESS(RAMET_COMPAT_DEBUG_OR((a)op(b)), true) \
      << "Check failed: " #a " " #op " " #b " (" << (a) << " vs. " << (b) << "). "
#define TORCH_DCHECK_EQ(a, b) RAMET_COMPAT_DCHECK_OP(a, b, ==)
#define TORCH_DCHECK_NE(a, b) RAMET_COMPAT_DCHECK_OP(a, b, !=)
#define TORCH_DCHECK_LT(a, b) RAMET_COMPAT_DCHECK_OP(a, b, <)
#define TORCH_DCHECK_LE(a, b) RAMET_COMPAT_DCHECK_OP(a, b, <=)
#define TORCH_DCHECK_GT(a, b) RAMET_COMPAT_DCHECK_OP(a, b, >)
#define TORCH_DCHECK_GE(a, b) RAMET_COMPAT_DCHECK_OP(a, b, >=)
#ifndef DCHECK_EQ
#define DCHECK_EQ(a, b) TORCH_DCHECK_EQ(a, b)
#endif
#ifndef DCHECK_NE
#define DCHECK_NE(a, b) TORCH_DCHECK_NE(a, b)
#endif
#ifndef DCHECK_LT
#define DCHECK_LT(a, b) TORCH_DCHECK_LT(a, b)
#endif
#ifndef DCHECK_LE
#define DCHECK_LE(a, b) TORCH_DCHECK_LE(a, b)
#endif
#ifndef DCHECK_GT
#define DCHECK_GT(a, b) TORCH_DCHECK_GT(a, b)
#endif
#ifndef DCHECK_GE
#define DCHECK_GE(a, b) TORCH_DCHECK_GE(a, b)
#endif
