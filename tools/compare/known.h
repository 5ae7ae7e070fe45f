// Deliberate differences from LibTorch, with reasons. A result that differs in one of these ways is
// counted and is no failure. There are two kinds. In the first, the text of an error of one of the
// two libraries identifies the difference. In the second, the case names the entry before a draw
// that may show it (Draw::known). An entry of the second kind that many draws no longer show is
// reported.
#pragma once
#include <array>

#include "tools/compare/known_errors.h"

namespace compare {

// Results that both libraries compute.
constexpr Known kKnownResults[] = {
    {.name = "atan2 of bytes",
     .cases = "atan2",
     .shows = "gradient of",
     .reason = "LibTorch negates and squares in the operand's dtype and wraps around"},
    {.name = "atan2 beyond float16",
     .cases = "atan2 arctan2",
     .shows = "second gradient of",
     .reason = "where terms are more than float16 holds: infinite, or a difference of infinities"},
    {.name = "atan2 of integers",
     .cases = "atan2",
     .shows = "result ",
     .reason = "float32's numbers, cast to `out`: LibTorch's are a unit in the last place off"},
    {.name = "ctc_loss of anything",
     .cases = "ctc_loss",
     .shows = "gradient of",
     .reason =
         "LibTorch's gradient is exp(log_probs) more than the derivative, which is right only "
         "behind log_softmax"},
    {.name = "ctc_loss of blanks",
     .cases = "ctc_loss",
     .shows = "gradient of",
     .reason =
         "a label that is the blank has the loss's derivative here; LibTorch, which documents "
         "that there must be none, computes its loss and loses a term of the gradient"},
    {.name = "extrema alone",
     .cases = "joins",
     .shows = "gradient of",
     .reason = "without self an extremum's gradient is shared among values alone; LibTorch counts "
               "self's element"},
    {.name = "negative uint8",
     .shows = "result ",
     .reason = "whole numbers are computed in int64: -2 beside uint8 is -2; in LibTorch it is 254"},
    {.name = "slopes of tan",
     .cases = "tan",
     .shows = "gradient of",
     .reason = "1 + tan(x)^2 is computed in float and rounded once; in LibTorch it overflows in "
               "float16"},
    {.name = "gelu of infinity",
     .cases = "gelu",
     .shows = "LibTorch nan",
     .reason =
         "gelu of infinity is infinity; in LibTorch it is NaN where eight numbers or more are "
         "computed at once"},
    {.name = "bytes of any",
     .cases = "any all",
     .shows = "LibTorch 0",
     .reason = "out= of uint8: whether a number is 0; LibTorch first cuts it to a whole one"},
    {.name = "mean of infinities",
     .cases = "var std",
     .shows = "second 1",
     .reason =
         "beside a deviation the mean of infinity is NaN; in LibTorch it is that or infinity, "
         "as the layout falls"},
    {.name = "too few",
     .cases = "var std",
     .shows = "gradient of",
     .reason = "no more numbers than the correction: the infinite gradient has the sign of x - "
               "mean; LibTorch's has the cotangent's"},
    {.name = "std of 0",
     .cases = "std",
     .shows = "second gradient of",
     .reason = "the gradient of a standard deviation of 0 is 0, whatever the cotangent; to second "
               "order LibTorch divides by it"},
    {.name = "extremum NaN",
     .shows = "gradient of input",
     .reason = "the gradient of a NaN goes to the NaNs, as in LibTorch's max(); its amax gives NaN "
               "to all"},
    {.name = "clamped NaN",
     .cases = "clamp.tensors",
     .shows = "gradient of input",
     .reason =
         "the result is NaN; the gradient of x's is x's alone, where LibTorch gives it to x and "
         "once more to max between crossed bounds, and that beside a bound's goes by the other "
         "bound, where LibTorch gives it to nobody"},
    {.name = "certain probabilities",
     .cases = "binary_cross_entropy",
     .shows = "gradient of input 1",
     .reason = "the loss is linear in the target with the logarithms that it has, of 0 at least "
               "-100; LibTorch's slope is infinite, and NaN where the cotangent is 0"},
    {.name = "deviations in 16 bits",
     .cases = "std",
     .shows = "gradient of",
     .reason =
         "computed in float and rounded once; LibTorch rounds each step, the mean too: of two "
         "numbers close to each other it is off by tenths"},
    {.name = "norm in 16 bits",
     .cases = "norm",
     .shows = "second gradient of",
     .reason = "of one number it is 0: both have what two terms, rounded to 16 bits, differ by"},
    {.name = "polygamma",
     .cases = "polygamma digamma lgamma mvlgamma",
     .reason = "right to the last places next to zeros, infinite at poles and 0 at infinity; "
               "LibTorch is off by up to 1e-3, finite and NaN there"},
    {.name = "sinc",
     .cases = "sinc",
     .reason = "0 at whole numbers, and its derivatives are right next to 0 and at it; LibTorch's "
               "sine is of a rounded angle, its derivatives differences of rounded numbers, NaN "
               "at 0"},
    {.name = "xlogy at 0",
     .cases = "xlogy",
     .shows = "gradient of",
     .reason = "where self is 0 and the other not above 0 all derivatives are 0; LibTorch's are "
               "NaN and infinite, or to second order alone"},
    {.name = "logit at its ends",
     .cases = "logit",
     .shows = "gradient of",
     .reason = "from outside of eps there is no gradient, and at 0 and 1 it is infinite with an "
               "infinite slope; LibTorch's to second order is NaN. Where eps is below 0 there is "
               "none, for the gradient too"},
    {.name = "heaviside in place",
     .cases = "heaviside",
     .shows = "gradient of",
     .reason = "the values' gradient; LibTorch's is 0 where they were written into a view"},
    {.name = "powers in ldexp",
     .cases = "ldexp",
     .reason = "2^other may be more than the dtype holds where the result is not"},
    {.name = "erf in float16",
     .cases = "erf",
     .shows = "result",
     .reason = "the nearest number; LibTorch's is off by up to 0.24 %"},
    {.name = "mean of broadcast",
     .shows = "gradient of",
     .reason = "LibTorch divides the gradient by the number of elements of the smaller one, not of "
               "the loss"},
    {.name = "huber dtypes",
     .cases = "huber_loss",
     .shows = "result 0: ",
     .reason = "promotes as mse_loss does; LibTorch's result has the input's dtype"},
    {.name = "beta 0",
     .cases = "smooth_l1_loss",
     .shows = "gradient of",
     .reason = "is l1_loss, with gradient 0 where input and target are equal; LibTorch's is -1"},
    {.name = "strided affine",
     .shows = "gradient of",
     .reason = "LibTorch's gradient of batch_norm reads a strided weight as if it were dense"},
    {.name = "odd channels last",
     .shows = "gradient of",
     .reason =
         "LibTorch takes strides at extents of 1 for a channels-last layout and reads others' "
         "elements"},
    {.name = "bias alone",
     .shows = "second gradient of cotangent",
     .reason = "the sum over the cotangent has a derivative where only the bias requires grad; "
               "LibTorch drops it"},
    {.name = "rounded in between",
     .cases = "batch_norm_relu_max_pool2d",
     .shows = "gradient of",
     .reason = "16-bit types: one float computation here; the three operations round in between "
               "and then find another largest element"},
    {.name = "layer of one",
     .cases = "layer_norm group_norm",
     .shows = "gradient of",
     .reason = "x - mean(x) of one element is 0; LibTorch's is a rounding error"},
    {.name = "grouped strides",
     .cases = "conv2d conv_transpose",
     .reason = "LibTorch misreads a grouped weight of channels-last strides and height 1"},
    {.name = "alpha 0",
     .cases = "addmm added",
     .shows = "nan",
     .reason = "0 times NaN is NaN; LibTorch's is, too, in 16 bits and in baddbmm, but its BLAS "
               "skips the product"},
    {.name = "norm of 0",
     .cases = "norm",
     .shows = "second gradient of",
     .reason = "the derivatives of a norm that is 0, or of nothing, are 0; LibTorch's second ones "
               "divide by it"},
    {.name = "empty matrix",
     .cases = "added",
     .shows = "], LibTorch [",
     .reason = "the sum with an empty product has the product's size; LibTorch's addmv gives the "
               "size of what is added"},
    {.name = "one column",
     .cases = "conv1d conv2d conv3d",
     .shows = " (bfloat16), element",
     .reason =
         "a convolution with strides, also one that a gradient is made of, is computed as any "
         "other; LibTorch's bfloat16 numbers are wrong where its result is one column wide"},
    {.name = "product of one",
     .cases = "prod cumprod",
     .shows = "second gradient of",
     .reason = "one number is its own product: the second derivative is 0; LibTorch's is a "
               "rounding error"},
    {.name = "bias in gaps",
     .cases = "conv_transpose",
     .shows = "LibTorch 0",
     .reason = "every element has the bias; LibTorch's bfloat16 has 0 between kernels that are "
               "smaller than the stride"},
    {.name = "summed integers",
     .cases = "einsum",
     .shows = "result 0: int64, LibTorch ",
     .reason = "sums of integers are int64 whatever the extent; LibTorch sums no extent of 1"},
    {.name = "two dtypes of nothing",
     .cases = "einsum",
     .shows = "result 0: int",
     .reason =
         "whole numbers of two dtypes are multiplied in their common one; LibTorch takes empty "
         "ones alone, and the first one's"},
    {.name = "ties of distances",
     .cases = "distances",
     .shows = "gradient of input",
     .reason = "equally large differences share the gradient of the largest; LibTorch gives all of "
               "it to each"},
    {.name = "equal observations",
     .cases = "cov",
     .shows = "result 0",
     .reason = "what numbers differ by from their mean, itself, is a rounding error of either, and "
               "divided by itself or by 0"},
    {.name = "integrals of nothing",
     .cases = "trapezoid",
     .shows = "requires_grad (int64), element 0: 1, LibTorch 0",
     .reason = "of no samples they are zeros with a history here, without one in LibTorch"},
    {.name = "logarithms of gradients",
     .cases = "logcumsumexp",
     .shows = "second gradient of cotangent|LibTorch nan",
     .reason = "LibTorch adds the gradients' logarithms, positive ones and negative ones apart, "
               "and those of nothing have no derivative"},
    {.name = "beside an edge",
     .cases = "histogram",
     .shows = "counts",
     .reason = "edges are rounded, and what lies on one is on either side of it"},
    {.name = "bins in 16 bits",
     .cases = "histc",
     .shows = "result 0",
     .reason = "found in float; LibTorch rounds each step to 16 bits and is a bin off"},
    {.name = "kinks in 16 bits",
     .cases = "losses.samples",
     .shows = "gradient of",
     .reason =
         "computed in float; LibTorch rounds the distances to 16 bits, and where they are the "
         "margin apart it has the other slope"},
    {.name = "shuffles of nothing",
     .cases = "shuffle",
     .shows = "result 0: [",
     .reason = "have the sizes that others have; LibTorch's stay as they were"},
    {.name = "not asked for",
     .cases = "unique",
     .shows = ", LibTorch [0]",
     .reason = "slices' places and counts come without being asked for, as LibTorch's do but of "
               "a vector"},
    {.name = "whole logspace",
     .cases = "more_ranges",
     .reason = "computed in float64 here, with float32 steps in LibTorch, before it is cut off"},
    {.name = "vander",
     .cases = "vander",
     .there = "has been modified by an inplace operation",
     .reason = "LibTorch's gradient of four powers and more fails"},
    {.name = "powers of nothing",
     .cases = "vander",
     .shows = "requires_grad (int64), element 0: 1, LibTorch 0",
     .reason = "the ones of no power have a history here, with zeros for gradients"},
    {.name = "ties of segments",
     .cases = "segment",
     .shows = "gradient",
     .reason =
         "equal extrema share the gradient; LibTorch's get all of it each for some gradients"},
    {.name = "wrapped diagonals of strides",
     .cases = "fill_diagonal",
     .reason = "LibTorch counts elements as if rows were without gaps"},
    {.name = "wrapped diagonals outside",
     .cases = "fill_diagonal",
     .there = "are out of bounds for storage",
     .reason = "so that it finds them behind the memory"},
    {.name = "whole linspace",
     .cases = "arange",
     .shows = "result 0 (",
     .reason = "the formula's numbers, cut; LibTorch's are one less where it falls just short"},
    {.name = "clone of gaps",
     .cases = "transpose t",
     .shows = "strides",
     .reason = "a clone of what has gaps is row-major, as documented for torch.preserve_format; "
               "LibTorch's keeps the order"},
    {.name = "0 ** x",
     .cases = "pow float_power",
     .shows = "gradient of",
     .reason = "its derivative is 0 for x > 0, and 0 ** 1 and 0 ** 0 are a line and a constant; "
               "LibTorch's is NaN for false ** x and to second order"},
    {.name = "products in float16",
     .cases = "prod",
     .shows = "nan",
     .reason = "multiplied in float and rounded once; LibTorch overflows in between, and 0 times "
               "infinity is NaN"},
    {.name = "large products in float16",
     .cases = "prod addmm added chain einsum",
     .shows = "inf",
     .reason = "multiplied in float and rounded once; LibTorch overflows in between"},
    {.name = "positions in nothing",
     .cases = "index.lists",
     .here = "index out of range",
     .reason = "positions are looked at where nothing is taken, too"},
    {.name = "weights of no batch",
     .cases = "batch_norm",
     .here = "as many as channels",
     .reason = "LibTorch does not look at the weights of an empty batch"},
    {.name = "constants of matrices",
     .cases = "inverses determinants",
     .shows = "requires_grad (int64), element 0: 0, LibTorch 1",
     .reason = "a power of 0 and a determinant's sign are constants here, with zeros for gradients "
               "in LibTorch"},
    {.name = "equal eigenvalues",
     .cases = "decompositions",
     .shows = "nan",
     .reason = "between equal values vectors alone have a gradient; LibTorch divides by 0"},
    {.name = "truncated in 16 bits",
     .cases = "div.rounded",
     .shows = "result 0",
     .reason = "LibTorch rounds the quotient to 16 bits first, up to the next whole number"},
    {.name = "quotients in 16 bits",
     .cases = "remainder",
     .shows = "gradient of input 1",
     .reason =
         "how often fmod subtracts is found in float; LibTorch's gradient rounds the quotient "
         "to 16 bits first, up to the next whole number"},
    {.name = "blocks of nothing",
     .cases = "stacks",
     .shows = "gradient of",
     .reason =
         "block_diag gives a vector of nothing a row; LibTorch's gradient forgets it and takes "
         "the rows of later blocks one too high"},
    {.name = "slopes of kinks",
     .cases = "backwards.kinks",
     .shows = "requires_grad (int64), element 0: 0, LibTorch 1",
     .reason = "constant in x almost everywhere: no graph here, a graph of zeros in LibTorch"},
    {.name = "second slopes at 0",
     .cases = "units.exponential prelu",
     .shows = "second gradient of",
     .reason =
         "at 0 the second derivative is that from below here, as the first is; LibTorch's is 0"},
    {.name = "slopes at NaN",
     .cases = "shrink",
     .shows = "gradient of",
     .reason =
         "what is not cut off passes gradients, a NaN too; LibTorch's vectors pass none there"},
    {.name = "sum of no samples",
     .cases = "losses.samples",
     .shows = "result 0",
     .reason = "LibTorch leaves what was in the memory"},
    {.name = "a sixth",
     .cases = "units.hardsigmoid",
     .shows = "gradient of",
     .reason = "LibTorch's slope of hardsigmoid is a sixth in float32, for float64 too"},
    {.name = "number - integers",
     .reason = "number - x and number / x promote as x - number does; LibTorch casts the number"},
    {.name = "logical_not_",
     .reason = "a logical operation in place: LibTorch passes the gradient through as if nothing "
               "had happened; it is 0"},
    {.name = "compared in place",
     .reason = "x.lt_(y): in LibTorch x then requires grad where y does, and gets zeros for it"},
    {.name = "random options",
     .reason = "options without a dtype leave randint and randperm at int64; LibTorch takes the "
               "default dtype"},
    {.name = "plateau",
     .reason = "mode max, threshold abs: LibTorch multiplies by the threshold instead of adding "
               "it"},
    {.name = "embedding scale",
     .reason = "scale_grad_by_freq: the second derivative is that of the scaled gradient; "
               "LibTorch's ignores the scale"},
    {.name = "no dims",
     .reason = "an empty list of dimensions means all; LibTorch's gradient of var and std takes "
               "it for one"},
};

/// All of them: of two that account for a difference the first counts.
inline constexpr auto kKnown = [] {
  constexpr size_t kErrors = std::size(kKnownErrors);
  std::array<Known, kErrors + std::size(kKnownResults)> all{};
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = i < kErrors ? kKnownErrors[i] : kKnownResults[i - kErrors];
  return all;
}();

}  // namespace compare
