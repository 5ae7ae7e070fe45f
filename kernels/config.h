// The complete configuration of this build and this process.
#pragma once
#include <string>

#include "runtime/base/config.h"

namespace ramet {

/// `name: value` lines: runtime_config() and the CPU kernels' variant. If no kernel has chosen one
/// yet, this call chooses it.
RAMET_API std::string config();

}  // namespace ramet
