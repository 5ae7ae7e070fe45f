// What workspaces depend on of a floating dtype; fronts, which ask for them, look here too. Always
// inlined, as all that variants of kernels share (kernels/kernel.h).
#pragma once
#include <cstdint>

#include "runtime/base/dtype.h"

namespace ramet {
namespace kernels {

static_assert(kScalarTypes == 12, "which of these is a new dtype?");
/// Is it computed in another type? Elements then pass through buffers of that one.
[[gnu::always_inline]] constexpr bool is_converted(ScalarType t) {
  return t == ScalarType::Half || t == ScalarType::BFloat16;
}
/// Bytes of what an element is computed in.
[[gnu::always_inline]] constexpr int64_t compute_bytes(ScalarType t) {
  return t == ScalarType::Double ? 8 : 4;
}

}  // namespace kernels
}  // namespace ramet
