// By which address a process listens where no store has shown it one.
#pragma once
#include <string>

#include "runtime/base/error.h"

namespace ramet {
namespace distributed {

/// The interface's first address, as a number. An Error where it has none, or there is no such
/// interface.
RAMET_API std::string address_of_interface(const std::string& name);
/// Does the name, or address, lead to this host: may a process listen there?
RAMET_API bool is_own_address(const std::string& host);
/// This host's name, where that leads to this host; else loopback.
RAMET_API std::string own_address();

}  // namespace distributed
}  // namespace ramet
