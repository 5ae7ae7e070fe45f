// Of how many bits positions in kernels are.
#pragma once
#include "runtime/base/error.h"

namespace ramet {
namespace cuda {

/// With false all kernels compute positions in 64 bits, as they do of operands that need them, and
/// that tests have no memory for. Results have the same bits.
RAMET_API void set_narrow_indices(bool enabled);
RAMET_API bool narrow_indices();

}  // namespace cuda
}  // namespace ramet
