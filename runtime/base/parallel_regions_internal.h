// For tests that check whether several threads shared an operation.
#pragma once
#include <cstdint>

#include "runtime/base/error.h"

namespace ramet {
namespace detail {

/// Regions that this thread started and that other threads could take tasks of, so far.
RAMET_API uint64_t shared_regions();

}  // namespace detail
}  // namespace ramet
