// The number of bits of positions in kernels.
#pragma once
#include "runtime/base/error.h"

namespace ramet {
namespace cuda {

/// With false all kernels compute positions in 64 bits, as for operands that need them, which are
/// too large for tests. Results have the same bits.
RAMET_API void set_narrow_indices(bool enabled);
RAMET_API bool narrow_indices();

}  // namespace cuda
}  // namespace ramet
