// The dtype of computations on operands of several dtypes: LibTorch's functions of the same names.
// runtime/base/dtype.h has promote_types, for two dtypes.
#pragma once
#include "autograd/tensor.h"
#include "runtime/base/type_meta.h"

namespace ramet {

/// The common dtype. Tensors with dimensions decide, then 0-dim ones, then numbers. A later group
/// counts only if it has a higher category (bool < integer < floating point). A floating-point
/// number counts as the default dtype.
RAMET_API ScalarType result_type(const Tensor& tensor, const Tensor& other);
RAMET_API ScalarType result_type(const Tensor& tensor, const Scalar& other);
RAMET_API ScalarType result_type(const Scalar& scalar, const Tensor& tensor);
RAMET_API ScalarType result_type(const Scalar& scalar1, const Scalar& scalar2);

/// canCast under LibTorch's other name.
inline bool can_cast(ScalarType from_, ScalarType to) { return canCast(from_, to); }

}  // namespace ramet
