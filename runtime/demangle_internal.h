// The name that a program's text has for a type.
#pragma once
#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace ramet::detail {

/// Of std::type_info::name(); what is no such name comes back as it is.
inline std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

}  // namespace ramet::detail
