#include "runtime/base/classic.h"

#include <locale.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "runtime/base/error.h"

namespace ramet::detail {
namespace {

// The C library's classic locale, which exists without being loaded.
locale_t c_locale() {
  static const locale_t classic = ::newlocale(LC_ALL_MASK, "C", nullptr);
  return classic;
}

// Switches the calling thread's C locale, for functions without a locale argument.
class ThreadLocale {
 public:
  ThreadLocale() : before_(::uselocale(c_locale())) {}
  ~ThreadLocale() { ::uselocale(before_); }
  ThreadLocale(const ThreadLocale&) = delete;
  ThreadLocale& operator=(const ThreadLocale&) = delete;

 private:
  const locale_t before_;
};

}  // namespace

ClassicScope::ClassicScope(std::ostream& stream)
    : stream_(stream), before_(stream.getloc()), switches_(before_ != std::locale::classic()) {
  if (switches_) stream_.imbue(std::locale::classic());
}
ClassicScope::~ClassicScope() {
  if (switches_) stream_.imbue(before_);
}

std::string formatted(const char* format, ...) {
  const ThreadLocale in_c;
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(static_cast<size_t>(std::max(length, 0)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

double read_double(const char* text, char** end) { return ::strtod_l(text, end, c_locale()); }

}  // namespace ramet::detail
