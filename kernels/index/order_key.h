// Elements as unsigned numbers in the same order, on CPUs and GPUs.
#pragma once
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

/// How elements of a dtype, as words of their size, become keys. `sign`: the sign bit of signed
/// types, 0 for others. `infinity`: the bits of infinity of floating-point types, 0 for others.
/// `flip`: all ones if the order descends.
template <class U> struct OrderKeys {
  U sign = 0, infinity = 0, flip = 0;

  /// On the host.
  [[gnu::always_inline]] OrderKeys(ScalarType t, bool descending)
      : flip(static_cast<U>(descending ? ~U{0} : U{0})) {
    switch (t) {
      case ScalarType::Half: infinity = static_cast<U>(0x7c00); break;
      case ScalarType::BFloat16: infinity = static_cast<U>(0x7f80); break;
      case ScalarType::Float: infinity = static_cast<U>(0x7f800000); break;
      case ScalarType::Double: infinity = static_cast<U>(0x7ff0000000000000); break;
      case ScalarType::Char:
      case ScalarType::Short:
      case ScalarType::Int:
      case ScalarType::Long: break;
      case ScalarType::Bool:
      case ScalarType::Byte:
      case ScalarType::UInt16:
      case ScalarType::UInt32:
      case ScalarType::Undefined: return;
    }
    sign = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  }

  /// All NaNs have one key, and so do 0 and -0.
  RAMET_INLINE U of(U bits) const {
    if (infinity == 0) return static_cast<U>(bits ^ sign ^ flip);
    const U size = static_cast<U>(bits & ~sign);
    U key = static_cast<U>(bits & sign ? ~bits : bits | sign);
    key = size == 0 ? sign : key;
    key = size > infinity ? static_cast<U>(~U{0}) : key;
    return static_cast<U>(key ^ flip);
  }
  RAMET_INLINE bool nan(U key) const {
    return infinity != 0 && key == static_cast<U>(~U{0} ^ flip);
  }
  /// The only element with this key, if there is just one.
  RAMET_INLINE bool one(U key) const {
    return infinity == 0 || (!nan(key) && key != static_cast<U>(sign ^ flip));
  }
  RAMET_INLINE U element(U key) const {
    const U k = static_cast<U>(key ^ flip);
    if (infinity == 0) return static_cast<U>(k ^ sign);
    return static_cast<U>(k & sign ? k ^ sign : ~k);
  }
};

/// The place of the median in an ordered line, of which the first n - nans elements are numbers.
RAMET_INLINE int64_t median_place(int64_t n, int64_t nans, bool ignores_nan) {
  if (ignores_nan) return nans < n ? (n - nans - 1) / 2 : 0;
  return nans > 0 ? n - nans : (n - 1) / 2;
}

}  // namespace ramet::kernels::RAMET_VARIANT
