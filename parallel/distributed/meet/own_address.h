// Chooses the address at which a process listens, if no store has shown it one.
#pragma once
#include <string>

#include "runtime/base/error.h"

namespace ramet {
namespace distributed {

/// The interface's first address, numeric. An Error if it has none, or if there is no such
/// interface.
RAMET_API std::string address_of_interface(const std::string& name);
/// Does the name or address denote this host, so that a process may listen there?
RAMET_API bool is_own_address(const std::string& host);
/// This host's name if it denotes this host; else loopback.
RAMET_API std::string own_address();

}  // namespace distributed
}  // namespace ramet
