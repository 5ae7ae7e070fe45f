// Which dtype an operation on operands of several dtypes computes in: LibTorch's functions of the
// same names (promote_types, of two dtypes, is in runtime/base/dtype.h).
#pragma once
#include "autograd/tensor.h"
#include "runtime/base/type_meta.h"

namespace ramet {

/// Dimensioned tensors decide, then 0-dim ones, then numbers; a lower rank counts only by a higher
/// category (bool < integer < floating point). A floating-point number counts as the default dtype.
RAMET_API ScalarType result_type(const Tensor& tensor, const Tensor& other);
RAMET_API ScalarType result_type(const Tensor& tensor, const Scalar& other);
RAMET_API ScalarType result_type(const Scalar& scalar, const Tensor& tensor);
RAMET_API ScalarType result_type(const Scalar& scalar1, const Scalar& scalar2);

/// canCast by LibTorch's other name.
inline bool can_cast(ScalarType from_, ScalarType to) { return canCast(from_, to); }

}  // namespace ramet
