// Elements and slices without repetitions: LibTorch's functions of the same names. Equality is that
// of ==: 0 and -0 are equal, NaNs are not. Results have no history. The host reads how large they
// are, so a capture refuses them.
#pragma once
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

/// The different elements, smallest first (whatever `sorted` says), NaNs last. The second result
/// has self's shape, and gives for each element its position among them. The third counts each of
/// them. The second and third are int64 without elements where the caller does not ask for them.
RAMET_API std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& self, bool sorted = true,
                                                      bool return_inverse = false,
                                                      bool return_counts = false);
/// The first two of these results.
RAMET_API std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool sorted = true,
                                             bool return_inverse = false);
/// The different slices of a dimension, in lexicographic order of their elements. Further results:
/// for each slice of self its position among them, and how often each occurs. Both are returned
/// whether asked for or not, as in LibTorch. An Error where slices have no elements to distinguish
/// them.
RAMET_API std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim,
                                                        bool sorted = true,
                                                        bool return_inverse = false,
                                                        bool return_counts = false);
/// The same for neighbours alone, in self's order. Returns the first of each run of equal elements
/// of the flattened tensor, or of equal slices of `dim`.
RAMET_API std::tuple<Tensor, Tensor, Tensor> unique_consecutive(
    const Tensor& self, bool return_inverse = false, bool return_counts = false,
    std::optional<int64_t> dim = std::nullopt);
/// One slice of each run of equal slices of a dimension; inverse and counts as above.
RAMET_API std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, int64_t dim,
                                                                    bool return_inverse = false,
                                                                    bool return_counts = false);

}  // namespace ramet
