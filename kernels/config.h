// The whole of what this build and this process are.
#pragma once
#include <string>

#include "runtime/base/config.h"

namespace ramet {

/// `name: value` lines: runtime_config() and the CPU kernels' variant, which this call chooses if
/// no kernel has yet.
RAMET_API std::string config();

}  // namespace ramet
