// Deliberate differences from LibTorch, with reasons. What differs in one of these ways is counted
// and is no failure. A difference is known either by the text of the error that one of the two
// throws, or because the case names the entry before a draw that may show it (Draw::known). An
// entry of the latter kind that many draws no longer show is reported.
#pragma once

namespace compare {

struct Known {
  const char* name;
  const char* here;   // part of this library's error, or ""
  const char* there;  // part of LibTorch's error, or ""
  const char* reason;
};
constexpr Known kKnown[] = {
    // ---- LibTorch refuses, this library computes
    {"more dtypes", "", "not implemented for", "LibTorch has no kernel for the dtype"},
    {"integers of floats", "", "Autograd not support dtype",
     "a whole-number result of an input that requires grad is a constant here"},
    {"floor_divide", "", "derivative for aten::floor_divide is not implemented",
     "its derivative is 0 here, as that of div with a rounding mode"},
    {"internal assertions", "", "INTERNAL ASSERT FAILED", "LibTorch stops at an assertion"},
    {"longer source", "", "returned an invalid gradient at index",
     "scatter from a source larger than its index has a gradient here"},
    {"x[vector]", "", "Can only index with tensors that are scalars",
     "x[index tensor] is x.index({index tensor}) here"},
    {"number left", "", "can't be cast to the desired output type",
     "LibTorch makes the number on the left a tensor of the other's dtype"},
    {"strided parameters", "", "Use .reshape(...) instead",
     "parameters_to_vector takes parameters of any strides here"},
    {"logsumexp of no dims", "", "doesn't match the broadcast shape",
     "an empty list of dimensions means all of them here"},
    // ---- this library refuses, LibTorch computes
    {"floating factors", "must not be a floating point number", "",
     "LibTorch drops the fraction of a factor of integers"},
    // ---- both compute
    {"number - integers", "", "",
     "number - x and number / x promote as x - number does; LibTorch casts the number"},
    {"logical_not_", "", "",
     "in place, LibTorch passes the gradient through as if nothing had happened; it is 0"},
    {"random options", "", "",
     "options without a dtype leave randint and randperm at int64; LibTorch takes the default "
     "dtype"},
    {"plateau", "", "",
     "mode max, threshold abs: LibTorch multiplies by the threshold instead of adding it"},
    {"embedding scale", "", "",
     "scale_grad_by_freq: the second derivative is that of the scaled gradient; LibTorch's ignores "
     "the scale"},
    {"no dims", "", "",
     "an empty list of dimensions means all; LibTorch's gradient of var and std takes it for one"},
};

}  // namespace compare
