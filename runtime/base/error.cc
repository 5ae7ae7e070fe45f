#include "runtime/base/error.h"

namespace ramet {

std::ostream& operator<<(std::ostream& out, const SourceLocation& where) {
  const detail::ClassicScope classic(out);
  return out << where.function << " at " << where.file << ':' << where.line;
}

Error::Error(const SourceLocation& where, const std::string& message)
    : std::runtime_error(message),
      text_(message),
      place_("\nException raised from " + detail::join(where)),
      whole_(text_ + place_) {}
Error::Error(const std::string& message, const std::string& backtrace)
    : std::runtime_error(message),
      text_(message),
      place_(backtrace.empty() ? "" : "\n" + backtrace),
      whole_(place_.empty() ? "" : text_ + place_) {}
Error::~Error() = default;

void Error::append(const std::string& text) {
  text_ += text;
  write();
}
void Error::add_context(const std::string& context) {
  context_.push_back(context);
  write();
}
void Error::write() {
  without_ = text_;
  if (context_.size() == 1) without_ += " (" + context_[0] + ")";
  else
    for (const std::string& c : context_) without_ += "\n  " + c;
  whole_ = without_ + place_;
}

IndexError::~IndexError() = default;
OutOfMemoryError::~OutOfMemoryError() = default;
NotImplementedError::~NotImplementedError() = default;
LinAlgError::~LinAlgError() = default;

namespace detail {
void throw_error(const char* op, const std::string& message) {
  throw Error("[" + std::string(op) + "] " + message);
}
}  // namespace detail
}  // namespace ramet
