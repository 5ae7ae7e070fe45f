#include "runtime/base/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace ramet::detail {

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

}  // namespace ramet::detail
