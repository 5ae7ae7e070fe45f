// The name that a program's text has for a type.
#pragma once
#include <string>

#include "runtime/base/error.h"

namespace ramet {
namespace detail {

/// Of std::type_info::name(); what is no such name comes back as it is.
RAMET_API std::string demangled(const char* name);

}  // namespace detail
}  // namespace ramet
