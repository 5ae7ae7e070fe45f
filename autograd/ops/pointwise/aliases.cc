#include "autograd/ops/pointwise/aliases.h"

#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/pair.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/shape/view.h"

namespace ramet {

Tensor& negative_(Tensor& self) { return self.neg_(); }
Tensor& fix_(Tensor& self) { return self.trunc_(); }
Tensor& arcsin_(Tensor& self) { return self.asin_(); }
Tensor& arccos_(Tensor& self) { return self.acos_(); }
Tensor& arctan_(Tensor& self) { return self.atan_(); }
Tensor& arcsinh_(Tensor& self) { return self.asinh_(); }
Tensor& arccosh_(Tensor& self) { return self.acosh_(); }
Tensor& arctanh_(Tensor& self) { return self.atanh_(); }

#include "autograd/forms/definitions.inc"
#include "autograd/ops/pointwise/aliases.inc"

}  // namespace ramet
