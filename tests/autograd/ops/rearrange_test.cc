// Triangles, diagonals, copies with elements moved, grids, joins and splits. What PyTorch 2.15
// gives and refuses at the edges, which the operation table does not test, and the texts of errors.
#include "autograd/ops/shape/rearrange.h"

#include <cmath>

#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using Values = std::vector<double>;
using Sizes = std::vector<int64_t>;

TEST(Triangles, AtTheEdges) {
  const Tensor x = counting({2, 3});
  EXPECT_TRUE(equal(triu(x, INT64_MIN), x));
  EXPECT_TRUE(equal(tril(x, INT64_MAX), x));
  EXPECT_EQ(triu(x, INT64_MAX).ne(0).sum().item<int64_t>(), 0);
  EXPECT_EQ(tril(x, INT64_MIN).ne(0).sum().item<int64_t>(), 0);
  // The part that is cut off becomes 0, whatever it was.
  EXPECT_EQ(values(triu(full({2, 2}, NAN, kDouble)))[2], 0);
  EXPECT_EQ(triu(ones({2, 2}, kBool)).scalar_type(), kBool);
  EXPECT_EQ(triu(x.requires_grad_()).grad_fn()->name(), "TriuBackward0");
  EXPECT_EQ(tril(x).grad_fn()->name(), "TrilBackward0");
  EXPECT_ERROR_TEXT(triu(ones({3})), "[triu] input tensor must have at least 2 dimensions");
  EXPECT_ERROR_TEXT(ones({3}).tril_(), "[tril_] input tensor must have at least 2 dimensions");
  EXPECT_ERROR_TEXT(x.triu_(), "leaf");
  EXPECT_ERROR_TEXT(triu(Tensor()), "[triu] undefined tensor");
  Tensor out = empty({0}, kDouble);
  EXPECT_ERROR_TEXT(triu_out(out, ones({2, 2})), "triu_out");
}

TEST(Triangles, InPlaceThroughAView) {
  const Tensor leaf = counting({3, 4}).add(1).detach().requires_grad_();
  const Tensor base = leaf.mul(2);
  const int64_t version = base._version();
  base.slice(1, 0, 3).tril_();
  EXPECT_EQ(base._version(), version + 1);
  base.sum().backward();
  EXPECT_EQ(values(leaf.grad()), (Values{2, 0, 0, 2, 2, 2, 0, 2, 2, 2, 2, 2}));
}

TEST(Triangles, IndicesRefused) {
  EXPECT_ERROR_TEXT(triu_indices(-1, 3), "[triu_indices] row must be non-negative, got -1");
  EXPECT_ERROR_TEXT(tril_indices(3, -2), "[tril_indices] col must be non-negative, got -2");
  EXPECT_ERROR_TEXT(tril_indices(2, 2, 0, kFloat), "[tril_indices] not implemented for Float");
  EXPECT_ERROR_TEXT(triu_indices(INT64_MAX, INT64_MAX, INT64_MIN), "[triu_indices] elements");
  EXPECT_EQ(triu_indices(INT64_MAX, 0).sizes().vec(), (Sizes{2, 0}));
  EXPECT_EQ(tril_indices(INT64_MAX, 5, INT64_MIN).sizes().vec(), (Sizes{2, 0}));
}

TEST(Diagonals, AtTheEdges) {
  EXPECT_EQ(diag(counting({2, 3}), 5).numel(), 0);
  EXPECT_EQ(diag(counting({2, 3}), INT64_MIN).numel(), 0);
  EXPECT_EQ(diag(counting({3}), -1).sizes().vec(), (Sizes{4, 4}));
  EXPECT_EQ(values(diagflat(zeros({2, 0}, kDouble), 1)), (Values{0}));
  EXPECT_EQ(trace(counting({2, 2}).to(kByte)).scalar_type(), kLong);
  // src is cast.
  EXPECT_EQ(values(diagonal_scatter(zeros({2, 2}, kLong), constant({1.7, 2.2}))),
            (Values{1, 0, 0, 2}));
  EXPECT_ERROR_TEXT(diag(scalar_tensor(1)), "[diag] Supports 1D or 2D tensors. Got 0D");
  EXPECT_ERROR_TEXT(diag(ones({1, 2, 3})), "[diag] Supports 1D or 2D tensors. Got 3D");
  EXPECT_ERROR_TEXT(diag_embed(ones({2, 3}), 0, 0, -3),
                    "[diag_embed] diagonal dimensions cannot be identical: got 0 and -3");
  EXPECT_ERROR_TEXT(diag_embed(ones({2}), INT64_MIN), "[diag_embed]");
  EXPECT_ERROR_TEXT(diag_embed(ones({2}), INT64_MAX), "[diag_embed]");
  EXPECT_ERROR_TEXT(diagonal_scatter(counting({2, 3}), counting({3})),
                    "[diagonal_scatter] expected src to have a size equal to the slice of self. "
                    "src size = [3], slice size = [2]");
  EXPECT_ERROR_TEXT(trace(ones({2, 2}, kBool)), "[trace] not implemented for bool");
  EXPECT_ERROR_TEXT(trace(ones({2})), "[trace] expected a matrix, but got tensor with dim 1");
}

TEST(Repeats, AtTheEdges) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(values(repeat_interleave(x, integers({1, 2, 0}), 1)), (Values{0, 1, 1, 3, 4, 4}));
  EXPECT_EQ(repeat_interleave(x, integers({2}), -1).sizes().vec(), (Sizes{2, 6}));
  EXPECT_EQ(repeat_interleave(x, scalar_tensor(2, kInt), 1).sizes().vec(), (Sizes{2, 6}));
  EXPECT_EQ(values(repeat_interleave(scalar_tensor(2, kDouble), 3)), (Values{2, 2, 2}));
  EXPECT_EQ(repeat_interleave(integers({1, 0, 2}).to(kInt)).scalar_type(), kInt);
  EXPECT_EQ(values(repeat_interleave(integers({1, 0, 2}), std::optional<int64_t>(3))),
            (Values{0, 2, 2}));
  EXPECT_EQ(repeat_interleave(zeros({0}, kLong)).numel(), 0);
  EXPECT_EQ(repeat_interleave(zeros({2, 0}), zeros({0}, kLong), 1).sizes().vec(), (Sizes{2, 0}));
  EXPECT_ERROR_TEXT(repeat_interleave(x, -1), "Repeats must be non-negative: got -1");
  EXPECT_ERROR_TEXT(repeat_interleave(x, INT64_MAX), "repeat_interleave");
  EXPECT_ERROR_TEXT(repeat_interleave(x, 2, 0, 3), "Invalid output_size, expected 4 but got 3");
  EXPECT_ERROR_TEXT(repeat_interleave(x, integers({1, 2}), 1),
                    "repeats must have the same size as input along dim, but got "
                    "repeats.size(0) = 2 and input.size(1) = 3");
  EXPECT_ERROR_TEXT(repeat_interleave(x, ones({1, 3}, kLong), 1),
                    "repeats must be 0-dim or 1-dim tensor");
  EXPECT_ERROR_TEXT(repeat_interleave(x, ones({3}), 1), "tensor of integers: got float32");
  EXPECT_ERROR_TEXT(repeat_interleave(x, integers({1, -2, 5}), 1), "repeats can not be negative");
  EXPECT_ERROR_TEXT(repeat_interleave(x, integers({1, 2, 3}), 1, 5),
                    "allocated size does not match required size");
  EXPECT_ERROR_TEXT(repeat_interleave(integers({int64_t{1} << 62, int64_t{1} << 62})),
                    "more than an int64 holds");
  EXPECT_ERROR_TEXT(repeat_interleave(scalar_tensor(3, kLong)), "only accept 1D vector as repeat");
  EXPECT_THROW(repeat_interleave(scalar_tensor(2), 3, 0), IndexError);
  EXPECT_ERROR_TEXT(tile(x, {-1}), "repeat");
}

// Against reversed positions, one dimension after the other.
TEST(Rearrange, FlipsOfAnyDimensions) {
  const auto by_positions = [](Tensor x, uint64_t dims) {
    for (int64_t d = 0; d < x.dim(); ++d)
      if (dims >> d & 1) x = x.index_select(d, arange(x.size(d) - 1, -1, -1, kLong));
    return x;
  };
  const Tensor cube = counting({3, 1, 40, 5}),
               deep = counting({2, 1, 2, 2, 1, 2, 2, 2, 1, 2, 2, 2});
  for (const Tensor& x :
       {cube, cube.permute({2, 0, 3, 1}), cube.narrow(2, 3, 33), cube.expand({2, 3, 1, 40, 5}),
        cube.to(kByte), cube.to(kHalf).transpose(0, 3), cube.to(kDouble), deep, counting({2, 0, 3}),
        counting({100000})})
    for (uint64_t dims = 0; dims < uint64_t{1} << std::min<int64_t>(x.dim(), 5); ++dims) {
      std::vector<int64_t> list;
      for (int64_t d = 0; d < x.dim(); ++d)
        if (dims >> d & 1) list.push_back(d % 2 ? d - x.dim() : d);
      const Tensor y = flip(x, list);
      EXPECT_TRUE(equal(y, by_positions(x, dims))) << x.sizes() << " dims " << IntArrayRef(list);
      EXPECT_FALSE(y.is_alias_of(x));
    }
  EXPECT_EQ(flip(cube.transpose(0, 3), {0}).strides(), cube.transpose(0, 3).strides());
  EXPECT_EQ(flip(scalar_tensor(3), {0}).item<double>(), 3);
  EXPECT_ERROR_TEXT(flip(cube, {1, -3}), "[flip] dim -3 appears multiple times");
}

TEST(Turns, AtTheEdges) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(values(roll(x, {-1, 1}, {0, 1})), (Values{5, 3, 4, 2, 0, 1}));
  EXPECT_EQ(values(roll(x, INT64_MIN, 1)), values(roll(x, 1, 1)));  // -2^63 = 1 modulo 3
  EXPECT_EQ(values(roll(x, {1, 1}, {0, 0})), values(x));
  EXPECT_FALSE(roll(x, 0, 0).may_overlap(x));
  EXPECT_FALSE(roll(x, 0).may_overlap(x));
  EXPECT_EQ(roll(zeros({0, 3}), 1, 7).sizes().vec(), (Sizes{0, 3}));
  EXPECT_EQ(values(rot90(x, -1)), (Values{3, 0, 4, 1, 5, 2}));
  EXPECT_EQ(values(rot90(x, INT64_MIN)), values(x));
  EXPECT_EQ(values(rot90(x, INT64_MAX)), values(rot90(x, 3)));
  EXPECT_ERROR_TEXT(roll(x, IntArrayRef(), 0), "[roll] `shifts` required");
  EXPECT_ERROR_TEXT(roll(x, {1, 2}, {0}),
                    "[roll] shifts and dimensions must align. shifts: 2, dims:1");
  EXPECT_THROW(roll(x, 1, 2), IndexError);
  EXPECT_THROW(roll(scalar_tensor(1), 1, 0), IndexError);
  EXPECT_ERROR_TEXT(
      rot90(x, 1, {0, -2}),
      "[rot90] expected rotation dims to be different, but got dim0 = 0 and dim1 = -2");
  EXPECT_ERROR_TEXT(rot90(x, 1, 0), "expected total rotation dims == 2, but got dims = 1");
  EXPECT_ERROR_TEXT(rot90(counting({3})), "expected total dims >= 2, but got total dims = 1");
  EXPECT_ERROR_TEXT(fliplr(counting({3})), "[fliplr] Input must be >= 2-d");
  EXPECT_ERROR_TEXT(flipud(scalar_tensor(1)), "[flipud] Input must be >= 1-d");
}

TEST(Lines, AtTheEdges) {
  const Tensor x = counting({2, 3});
  // Any integer counts modulo the extent, as in PyTorch 2.15.
  EXPECT_EQ(values(take_along_dim(x, integers({-1}).view({1, 1}), 1)), (Values{2, 5}));
  EXPECT_EQ(values(take_along_dim(x, integers({5}).view({1, 1}), 1)), (Values{2, 5}));
  EXPECT_EQ(values(take_along_dim(x, integers({INT64_MIN}).view({1, 1}), 1)), (Values{1, 4}));
  EXPECT_THROW(take_along_dim(x, integers({-7})), IndexError);
  EXPECT_THROW(take_along_dim(zeros({2, 0}), zeros({2, 1}, kLong), 1), IndexError);
  EXPECT_ERROR_TEXT(take_along_dim(x, zeros({1, 1}, kInt), 1),
                    "[take_along_dim] dtype of indices should be Long but got Int");
  EXPECT_ERROR_TEXT(take_along_dim(x, integers({0}), 1),
                    "but got 2 dimensions for input, and 1 dimensions for indices");
  EXPECT_EQ(values(diff(constant({1, 4, 9}), 2)), (Values{2}));
  EXPECT_EQ(diff(constant({1, 4, 9}), INT64_MAX).numel(), 0);
  EXPECT_EQ(values(diff(constant({1, 4}), 0, -1, constant({9}))), (Values{1, 4}));
  EXPECT_EQ(values(diff(integers({1, 2}), 1, -1, constant({1.5}))), (Values{-0.5, 1}));
  EXPECT_EQ(diff(tensor({true, false, false})).scalar_type(), kBool);
  EXPECT_ERROR_TEXT(diff(constant({1, 2}), -1), "[diff] order must be non-negative but got -1");
  EXPECT_ERROR_TEXT(diff(scalar_tensor(1)), "[diff] expects input to be at least one-dimensional");
  EXPECT_ERROR_TEXT(diff(x, 1, 1, ones({3, 1})), "input.size(0) = 2, but got tensor.size(0) = 3");
  EXPECT_ERROR_TEXT(diff(x, 1, 1, ones({3})),
                    "expects prepend or append to be the same dimension as input");
}

// ---- grids, joins and splits --------------------------------------------------------------------

TEST(Grids, AtTheEdges) {
  const std::vector<Tensor> xy = meshgrid({counting({3}), counting({2}), counting({4})}, "xy");
  EXPECT_EQ(xy[0].sizes().vec(), (Sizes{2, 3, 4}));
  EXPECT_EQ(xy[0].strides().vec(), (Sizes{0, 1, 0}));
  EXPECT_EQ(xy[1].strides().vec(), (Sizes{1, 0, 0}));
  EXPECT_EQ(meshgrid({scalar_tensor(1)}, "xy")[0].sizes().vec(), (Sizes{1}));
  EXPECT_ERROR_TEXT(meshgrid(TensorList()), "[meshgrid] expects a non-empty TensorList");
  EXPECT_ERROR_TEXT(meshgrid({counting({2})}, "ab"),
                    "indexing must be one of \"xy\" or \"ij\", but received: ab");
  EXPECT_ERROR_TEXT(meshgrid({counting({2}), counting({2, 2})}), "Expected 0D or 1D tensor");
  EXPECT_ERROR_TEXT(meshgrid({counting({2}), ones({2})}), "to have the same dtype");
  const Tensor v = counting({3});
  EXPECT_TRUE(cartesian_prod({v}).is_same(v));
  EXPECT_ERROR_TEXT(cartesian_prod({v, scalar_tensor(1)}), "Expect a 1D vector, but got shape []");
  EXPECT_EQ(values(combinations(v)), (Values{0, 1, 0, 2, 1, 2}));
  EXPECT_EQ(values(combinations(v, 2, true)), (Values{0, 0, 0, 1, 0, 2, 1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(combinations(v, 0).sizes().vec(), (Sizes{0}));
  EXPECT_EQ(combinations(v, 4).sizes().vec(), (Sizes{0, 4}));
  EXPECT_EQ(combinations(counting({1}), 1000, true).sizes().vec(), (Sizes{1, 1000}));
  EXPECT_EQ(combinations(counting({20}), 19).sizes().vec(), (Sizes{20, 19}));
  EXPECT_ERROR_TEXT(combinations(v, -1), "Expect a non-negative number, but got -1");
  EXPECT_ERROR_TEXT(combinations(counting({200}), 100), "more than an int64 holds");
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
  EXPECT_EQ(atleast_3d(counting({3})).sizes().vec(), (Sizes{1, 3, 1}));
}

TEST(Splits, AtTheEdges) {
  const Tensor v = counting({3});
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
  EXPECT_ERROR_TEXT(dsplit(counting({2, 2}), {1}),
                    "[dsplit] requires a tensor with at least 3 dimension, but got a tensor with 2 "
                    "dimensions!");
  const Tensor leaf = counting({2, 4}).requires_grad_();
  hsplit(leaf.mul(3), 2)[1].sum().backward();
  EXPECT_EQ(values(leaf.grad()), (Values{0, 0, 3, 3, 0, 0, 3, 3}));
}

}  // namespace
}  // namespace ramet
