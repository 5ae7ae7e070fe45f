// Describes this build and this process, for bug reports and benchmark records.
#pragma once
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/version.h"

namespace ramet {

/// "0.1.0": RAMET_VERSION of the library's own headers.
RAMET_API const char* version();
/// Version, compiler, sanitizers, threads, devices: `name: value` lines. `config()`
/// (kernels/config.h) adds the kernels' part.
RAMET_API std::string runtime_config();

}  // namespace ramet
