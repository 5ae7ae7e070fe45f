#include "runtime/base/error.h"

#include <sstream>

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

void write_characters(std::ostream& text, const void* value) {
  text << static_cast<const char*>(value);
}
void write_bool(std::ostream& text, const void* value) { write_value<bool>(text, value); }
void write_int(std::ostream& text, const void* value) { write_value<int>(text, value); }
void write_int64(std::ostream& text, const void* value) { write_value<int64_t>(text, value); }
void write_size(std::ostream& text, const void* value) { write_value<size_t>(text, value); }
void write_double(std::ostream& text, const void* value) { write_value<double>(text, value); }
void write_string(std::ostream& text, const void* value) { write_value<std::string>(text, value); }

std::string join_parts(const Part* parts, size_t count) {
  auto text = classic<std::ostringstream>();
  for (size_t i = 0; i < count; ++i) parts[i].write(text, parts[i].value);
  return text.str();
}

void throw_error(const char* op, const Part* parts, size_t count) {
  throw Error("[" + std::string(op) + "] " + join_parts(parts, count));
}

}  // namespace detail
}  // namespace ramet
