#include "runtime/error.h"

namespace ramet {

Error::~Error() = default;
IndexError::~IndexError() = default;
OutOfMemoryError::~OutOfMemoryError() = default;
NotImplementedError::~NotImplementedError() = default;

namespace detail {
void throw_error(const char* op, const std::string& message) {
  throw Error("[" + std::string(op) + "] " + message);
}
}  // namespace detail
}  // namespace ramet
