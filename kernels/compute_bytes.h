// The size of the type in which a floating dtype is computed. Workspaces depend on it, so fronts
// use it, too. Always inlined, like all code that variants of kernels share (kernels/kernel.h).
#pragma once
#include <cstdint>

#include "runtime/base/dtype.h"

namespace ramet {
namespace kernels {

static_assert(kScalarTypes == 12, "which of these is a new dtype?");
/// Is it computed in another type? Then its elements pass through buffers of that type.
[[gnu::always_inline]] constexpr bool is_converted(ScalarType t) {
  return t == ScalarType::Half || t == ScalarType::BFloat16;
}
/// Bytes of the type in which an element is computed.
[[gnu::always_inline]] constexpr int64_t compute_bytes(ScalarType t) {
  return t == ScalarType::Double ? 8 : 4;
}

}  // namespace kernels
}  // namespace ramet
