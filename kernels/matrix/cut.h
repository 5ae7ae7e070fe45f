// How the rows of a product are cut into tiles.
#pragma once
#include "kernels/simd/vec.h"

namespace ramet::kernels::RAMET_VARIANT {

// m cut into the fewest parts of at most `most`, with sizes that differ by at most one. So there
// are never full tiles and a small rest.
struct Cut {
  int64_t parts, per, extra;
  RAMET_INLINE explicit Cut(int64_t m, int64_t most = kMR)
      : parts((m + most - 1) / most), per(m / parts), extra(m % parts) {}
  RAMET_INLINE int64_t size(int64_t s) const { return per + (s < extra); }
};

}  // namespace ramet::kernels::RAMET_VARIANT
