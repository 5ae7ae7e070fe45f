// Counters of the runtime's work, in plain integers. parallel/move/counters.h lists them with its
// own.
#pragma once
#include <cstdint>

#include "runtime/base/error.h"

namespace ramet {

/// Operations that drew random numbers, from any generator, since the last reset.
RAMET_API uint64_t random_draws();
RAMET_API void reset_random_draws();

}  // namespace ramet
