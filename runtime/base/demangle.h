// The name that the source of a program has for a type.
#pragma once
#include <string>

#include "runtime/base/error.h"

namespace ramet {
namespace detail {

/// From std::type_info::name(). A text that is no such name is returned unchanged.
RAMET_API std::string demangled(const char* name);

}  // namespace detail
}  // namespace ramet
