// Where the forms of a name stand for another's.
#include "autograd/ops/pointwise/aliases.h"

#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

Tensor numbers(IntArrayRef sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return arange(n, kDouble).reshape(sizes);
}

TEST(Aliases, SayWhatTheyAre) {
  const Tensor x = numbers({2, 2}).requires_grad_();
  EXPECT_EQ(x.multiply(2).grad_fn()->name(), x.mul(2).grad_fn()->name());
  EXPECT_EQ(x.true_divide(2).grad_fn()->name(), x.div(2).grad_fn()->name());
  EXPECT_EQ(x.fix().grad_fn()->name(), x.trunc().grad_fn()->name());
  EXPECT_ERROR_TEXT(ones({2}, kBool).negative(), "bool");
  EXPECT_ERROR_TEXT(ones({2}, kBool).subtract(ones({2}, kBool)), "logical_xor");
  EXPECT_EQ(x.swapaxes(0, 1).strides().vec(), x.transpose(0, 1).strides().vec());
}

}  // namespace
}  // namespace ramet
