// Grids, joins and splits: what PyTorch 2.15 gives and refuses at the edges, and what errors say.
#include "autograd/ops/make/grids.h"

#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using Values = std::vector<double>;
using Sizes = std::vector<int64_t>;

Tensor numbers(IntArrayRef sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return arange(n, kDouble).reshape(sizes);
}
Tensor integers(std::vector<int64_t> v) { return tensor(v); }

TEST(Grids, AtTheEdges) {
  const std::vector<Tensor> xy = meshgrid({numbers({3}), numbers({2}), numbers({4})}, "xy");
  EXPECT_EQ(xy[0].sizes().vec(), (Sizes{2, 3, 4}));
  EXPECT_EQ(xy[0].strides().vec(), (Sizes{0, 1, 0}));
  EXPECT_EQ(xy[1].strides().vec(), (Sizes{1, 0, 0}));
  EXPECT_EQ(meshgrid({scalar_tensor(1)}, "xy")[0].sizes().vec(), (Sizes{1}));
  EXPECT_ERROR_TEXT(meshgrid(TensorList()), "[meshgrid] expects a non-empty TensorList");
  EXPECT_ERROR_TEXT(meshgrid({numbers({2})}, "ab"),
                    "indexing must be one of \"xy\" or \"ij\", but received: ab");
  EXPECT_ERROR_TEXT(meshgrid({numbers({2}), numbers({2, 2})}), "Expected 0D or 1D tensor");
  EXPECT_ERROR_TEXT(meshgrid({numbers({2}), ones({2})}), "to have the same dtype");
  const Tensor v = numbers({3});
  EXPECT_TRUE(cartesian_prod({v}).is_same(v));
  EXPECT_ERROR_TEXT(cartesian_prod({v, scalar_tensor(1)}), "Expect a 1D vector, but got shape []");
  EXPECT_EQ(values(combinations(v)), (Values{0, 1, 0, 2, 1, 2}));
  EXPECT_EQ(values(combinations(v, 2, true)), (Values{0, 0, 0, 1, 0, 2, 1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(combinations(v, 0).sizes().vec(), (Sizes{0}));
  EXPECT_EQ(combinations(v, 4).sizes().vec(), (Sizes{0, 4}));
  EXPECT_EQ(combinations(numbers({1}), 1000, true).sizes().vec(), (Sizes{1, 1000}));
  EXPECT_EQ(combinations(numbers({20}), 19).sizes().vec(), (Sizes{20, 19}));
  EXPECT_ERROR_TEXT(combinations(v, -1), "Expect a non-negative number, but got -1");
  EXPECT_ERROR_TEXT(combinations(numbers({200}), 100), "more than an int64 holds");
  EXPECT_ERROR_TEXT(combinations(v, INT64_MAX, true), "combinations");
}

TEST(Joins, AtTheEdges) {
  EXPECT_EQ(block_diag(TensorList()).sizes().vec(), (Sizes{1, 0}));
  EXPECT_EQ(block_diag({integers({1}), scalar_tensor(1.5, kDouble)}).scalar_type(), kDouble);
  EXPECT_EQ(block_diag({ones({1}, kBool), integers({2})}).scalar_type(), kLong);
  EXPECT_EQ(block_diag({zeros({0}), ones({2, 3})}).sizes().vec(), (Sizes{3, 3}));
  EXPECT_ERROR_TEXT(block_diag({ones({1, 1, 1})}),
                    "[block_diag] Input tensors must have 2 or fewer dimensions. Input 0 has 3");
  EXPECT_EQ(column_stack({integers({1}), constant({1.5})}).scalar_type(), kDouble);
  EXPECT_ERROR_TEXT(dstack(TensorList()), "[dstack] expects a non-empty TensorList");
  EXPECT_ERROR_TEXT(column_stack(TensorList()), "[column_stack] expects a non-empty TensorList");
  EXPECT_TRUE(atleast_1d(TensorList()).empty());
  EXPECT_EQ(atleast_3d(numbers({3})).sizes().vec(), (Sizes{1, 3, 1}));
}

TEST(Splits, AtTheEdges) {
  const Tensor v = numbers({3});
  const auto lengths = [](const std::vector<Tensor>& parts) {
    Sizes out;
    for (const Tensor& p : parts) out.push_back(p.size(0));
    return out;
  };
  EXPECT_EQ(lengths(tensor_split(v, 5)), (Sizes{1, 1, 1, 0, 0}));
  EXPECT_EQ(lengths(tensor_split(v, {1, 5, 2})), (Sizes{1, 2, 0, 1}));
  EXPECT_EQ(lengths(tensor_split(v, {INT64_MAX, INT64_MIN})), (Sizes{3, 0, 3}));
  EXPECT_EQ(lengths(tensor_split(v, IntArrayRef())), (Sizes{3}));
  EXPECT_EQ(lengths(tensor_split(v, scalar_tensor(2, kLong))), (Sizes{2, 1}));
  EXPECT_EQ(lengths(tensor_split(v, integers({1, 2}))), (Sizes{1, 1, 1}));
  EXPECT_ERROR_TEXT(tensor_split(v, 0),
                    "[tensor_split] number of sections must be larger than 0, got 0");
  EXPECT_ERROR_TEXT(tensor_split(v, integers({1}).to(kInt)), "dtype of long, but got Int");
  EXPECT_ERROR_TEXT(tensor_split(v, ones({1, 1}, kLong)),
                    "zero-dimensional or one-dimensional tensor, but got a tensor with 2 dims");
  EXPECT_ERROR_TEXT(tensor_split(scalar_tensor(1), 1), "at least a 1-dimensional tensor");
  EXPECT_ERROR_TEXT(hsplit(v, 2),
                    "[hsplit] attempted to split along dimension 0, but the size of the dimension "
                    "3 is not divisible by the split_size 2!");
  EXPECT_ERROR_TEXT(hsplit(v, -1), "number of sections must be larger than 0, got -1");
  EXPECT_ERROR_TEXT(vsplit(v, 1), "[vsplit] requires a tensor with at least 2 dimension");
  EXPECT_ERROR_TEXT(dsplit(numbers({2, 2}), {1}),
                    "[dsplit] requires a tensor with at least 3 dimension, but got a tensor with 2 "
                    "dimensions!");
  const Tensor leaf = numbers({2, 4}).requires_grad_();
  hsplit(leaf.mul(3), 2)[1].sum().backward();
  EXPECT_EQ(values(leaf.grad()), (Values{0, 0, 3, 3, 0, 0, 3, 3}));
}

}  // namespace
}  // namespace ramet
