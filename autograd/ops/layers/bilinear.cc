#include "autograd/ops/layers/bilinear.h"

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

static Tensor bilinear_body(const Tensor& a, const Tensor& b, const Tensor& weight,
                            const std::optional<Tensor>& bias_) {
  const char* op = "bilinear";
  const Tensor bias = bias_.value_or(Tensor());
  for (const Tensor* t : {&a, &b, &weight}) check_defined(op, *t);
  RAMET_CHECK(a.dim() > 0 && b.dim() > 0, op, "inputs: got ", describe(a), " and ", describe(b),
              ", expected at least one dimension");
  RAMET_CHECK(a.dim() == b.dim(), op, "input dimensions do not match: got ", a.dim(), " and ",
              b.dim());
  for (int64_t d = 0; d + 1 < a.dim(); ++d)
    RAMET_CHECK(a.size(d) == b.size(d), op, "input batch dimensions do not match at dim ", d,
                ": got ", a.size(d), " and ", b.size(d));
  RAMET_CHECK(weight.dim() == 3, op, "weight: got ", describe(weight),
              ", expected three dimensions");
  RAMET_CHECK(a.size(-1) == weight.size(1), op, "input1 size does not match weight size: got ",
              a.size(-1), " but expected ", weight.size(1));
  RAMET_CHECK(b.size(-1) == weight.size(2), op, "input2 size does not match weight size: got ",
              b.size(-1), " but expected ", weight.size(2));
  RAMET_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)), op,
              "bias size does not match weight size: got ",
              bias.defined() ? describe(bias) : std::string(), " but expected ", weight.size(0));
  check_same_device(op, a, b, "input2");
  check_same_device(op, a, weight, "weight");
  RAMET_CHECK(a.scalar_type() == b.scalar_type() && a.scalar_type() == weight.scalar_type(), op,
              "expected inputs and weight of one dtype, but got ", describe(a), ", ", describe(b),
              " and ", describe(weight));
  std::vector<int64_t> sizes = a.sizes().vec();
  int64_t rows = 1;
  for (int64_t d = 0; d + 1 < a.dim(); ++d) rows *= a.size(d);
  const int64_t outs = weight.size(0), in = weight.size(1), lines = weight.size(2);
  sizes.back() = outs;
  // 16-bit numbers are rounded once. First one product with the array as a matrix [i, (k, j)]; then
  // each row with its own second input.
  const ScalarType t = a.scalar_type(), wide = is_narrow(t) ? kFloat : t;
  const Tensor matrix =
      weight.to(wide).permute({1, 0, 2}).reshape({in, checked_mul(op, "weight", outs, lines)});
  const Tensor y = a.to(wide)
                       .reshape({rows, in})
                       .matmul(matrix)
                       .reshape({rows, outs, lines})
                       .matmul(b.to(wide).reshape({rows, lines, 1}))
                       .reshape(sizes);
  return (bias.defined() ? y.add(bias) : y).to(t);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/bilinear.inc"

}  // namespace ramet
